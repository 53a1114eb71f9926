// SPDX-License-Identifier: Apache-2.0
// Report usage, which IREE does not have: memory in use over time on each device, with its peak,
// the open allocations at the end, and allocations that failed, which use nothing.
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/usage.h"
#include "analysis/ireeprof/sessions.h"

enum { POINTS = 64 }; // of a timeline

struct usage {
    struct xpl_iree_usage u; // first: the key
    uint64_t points[POINTS]; // most bytes in use within a slice of the time
    size_t n_points;         // slices that were reached
};
struct report {
    struct xpl_iree_run *run;
    // False on OOM.
    bool (*visit)(struct report *x, const struct xpl_iree_memory_event *e, uint32_t session);
    struct xpl_iree_usages usages; // struct usage
    struct xpl_iree_sessions sessions;
    int64_t first_ns, last_ns; // of all events
};

// The times were found in an earlier pass: bytes that changed since give the first or last slice.
static size_t slice_of(const struct report *x, int64_t ns) {
    const double span = (double)x->last_ns - (double)x->first_ns;
    const double at = span > 0 ? ((double)ns - (double)x->first_ns) / span * POINTS : 0;
    return at >= POINTS ? POINTS - 1 : at > 0 ? (size_t)at : 0;
}

// Sets the use at the begin of slices without events, up to and with slice `last`.
static void reach_slice(struct usage *u, size_t last) {
    while (u->n_points <= last)
        u->points[u->n_points++] = u->u.bytes;
}

static bool add_event(struct report *x, const struct xpl_iree_memory_event *e, uint32_t session) {
    struct xpl_iree_usage *usage;
    int64_t bytes;
    if (!xpl_iree_usage_of(&x->usages, e, &usage)) return false;
    if (!usage) return true;
    struct usage *const u = (struct usage *)usage;
    const size_t slice = slice_of(x, e->host_time_ns);
    reach_slice(u, slice);
    if (!xpl_iree_usage_add(&x->usages, usage, e, session, &bytes)) return false;
    if (usage->bytes > u->points[slice]) u->points[slice] = usage->bytes;
    return true;
}

static bool note_time(struct report *x, const struct xpl_iree_memory_event *e, uint32_t session) {
    (void)session;
    if (e->host_time_ns < x->first_ns) x->first_ns = e->host_time_ns;
    if (e->host_time_ns > x->last_ns) x->last_ns = e->host_time_ns;
    return true;
}

static xpl_status_t visit_events(void *ctx, const struct xpl_iree_record *r,
                                 struct xpl_error *err) {
    struct report *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct xpl_iree_memory_event e;
    if (!xpl_iree_sessions_follow(&x->sessions, r, NULL))
        XPL_RETURN_OOM(err, "sessions of the bundle");
    if (r->chunk != XPL_IREE_MEMORY_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        const uint32_t session = xpl_iree_sessions_of(&x->sessions, r, e.physical_device_ordinal);
        if (!x->visit(x, &e, session)) XPL_RETURN_OOM(err, "memory of the bundle");
    }
    return XPL_OK;
}

static void write_usage(const struct report *x, struct usage *u) {
    struct xpl_iree_rows *const r = x->run->rows;
    reach_slice(u, POINTS - 1);
    xpl_row_begin(r, "type", "memory_usage");
    xpl_row_u64(r, "physical_device_ordinal", u->u.key.physical_device_ordinal);
    xpl_row_text(r, "kind", xpl_iree_memory_kind_names[u->u.key.kind]);
    xpl_row_u64(r, "allocations", u->u.opens);
    xpl_row_u64(r, "peak_bytes", u->u.peak_bytes);
    xpl_row_i64(r, "peak_host_time_ns", u->u.peak_ns);
    xpl_row_u64(r, "open_at_end_bytes", u->u.bytes);
    xpl_row_u64(r, "failed_allocations", u->u.failed);
    xpl_row_u64(r, "failed_bytes", u->u.failed_bytes);
    xpl_row_i64(r, "first_host_time_ns", x->first_ns);
    xpl_row_i64(r, "last_host_time_ns", x->last_ns);
    xpl_row_open(r, "peak_bytes_by_time", '[');
    for (size_t i = 0; i < POINTS; i++)
        xpl_row_u64(r, NULL, u->points[i]);
    xpl_row_close(r, ']');
    xpl_row_end(r);
}

static void write_open(const struct report *x, const struct xpl_iree_open *o) {
    struct xpl_iree_rows *const r = x->run->rows;
    if (o->bytes == 0) return;
    xpl_row_begin(r, "type", "memory_open_at_end");
    xpl_row_u64(r, "physical_device_ordinal", o->key.physical_device_ordinal);
    xpl_row_text(r, "kind", xpl_iree_memory_kind_names[o->key.kind]);
    xpl_row_u64(r, "allocation_id", o->key.allocation_id);
    xpl_row_u64(r, "pool_id", o->key.pool_id);
    xpl_row_u64(r, "bytes", o->bytes);
    xpl_row_u64(r, "event_id", o->event_id);
    xpl_row_i64(r, "since_host_time_ns", o->since_ns);
    xpl_row_end(r);
}

xpl_status_t xpl_iree_report_usage(struct xpl_iree_run *run, struct xpl_error *err) {
    struct report x = {.run = run, .visit = note_time, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
    const struct xpl_iree_usages *const u = &x.usages;
    xpl_iree_usages_init(&x.usages, sizeof(struct usage));
    xpl_iree_sessions_init(&x.sessions);
    xpl_status_t st = xpl_iree_walk(run, visit_events, &x, err);
    xpl_iree_sessions_fini(&x.sessions);
    xpl_iree_sessions_init(&x.sessions);
    x.visit = add_event; // the slices of the timeline are known by now
    if (st == XPL_OK) st = xpl_iree_walk(run, visit_events, &x, err);
    for (size_t i = 0; st == XPL_OK && i < u->rows.n; i++)
        write_usage(&x, xpl_iree_table_at(&u->rows, i));
    for (size_t i = 0; st == XPL_OK && i < u->opens.n; i++)
        write_open(&x, xpl_iree_table_at(&u->opens, i));
    xpl_iree_usages_fini(&x.usages);
    xpl_iree_sessions_fini(&x.sessions);
    return st;
}
