// SPDX-License-Identifier: Apache-2.0
// Report usage, of our own: memory in use over time on each device, with its peak, what is open at
// the end, and allocations that failed, which use nothing.
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/memory.h"

enum { POINTS = 64 }; // of a timeline

struct usage_key {
    uint32_t physical_device_ordinal, kind;
};
struct usage {
    struct usage_key key;
    uint64_t bytes, peak_bytes, opens, failed, failed_bytes;
    int64_t peak_ns;
    uint64_t points[POINTS]; // most bytes in use within a slice of the time
    size_t n_points;         // slices that were reached
};
struct open_key {
    uint64_t allocation_id, pool_id;
    uint32_t physical_device_ordinal, kind;
};
struct open {
    struct open_key key;
    uint64_t bytes, event_id;
    int64_t since_ns;
};
struct report {
    struct xpl_iree_run *run;
    bool (*visit)(struct report *x, const struct xpl_iree_memory_event *e); // false on OOM
    struct xpl_iree_table usages, opens; // struct usage, struct open
    int64_t first_ns, last_ns;           // of all events
};

// A pool's reservation that did not succeed reserves nothing.  Results of up to 2 are successes;
// that of other events is XPL_IREE_NONE.
static bool is_failure(const struct xpl_iree_memory_event *e) {
    enum { LAST_SUCCESS = 2 };
    return e->result > LAST_SUCCESS && e->result != XPL_IREE_NONE;
}

// The times were found in an earlier pass: bytes that changed since give the first or last slice.
static size_t slice_of(const struct report *x, int64_t ns) {
    const double span = (double)x->last_ns - (double)x->first_ns;
    const double at = span > 0 ? ((double)ns - (double)x->first_ns) / span * POINTS : 0;
    return at >= POINTS ? POINTS - 1 : at > 0 ? (size_t)at : 0;
}

// What is in use when slices begin that nothing happened in, up to and with slice `last`.
static void reach_slice(struct usage *u, size_t last) {
    while (u->n_points <= last)
        u->points[u->n_points++] = u->bytes;
}

static struct open_key open_of(const struct xpl_iree_memory_event *e, uint32_t kind) {
    // Queues leave the pool out of some events.
    return (struct open_key){e->allocation_id, kind == XPL_IREE_MEMORY_QUEUE ? 0 : e->pool_id,
                             e->physical_device_ordinal, kind};
}

static bool open_allocation(struct report *x, struct usage *u,
                            const struct xpl_iree_memory_event *e) {
    const struct open_key key = open_of(e, u->key.kind);
    bool is_new;
    struct open *const o = xpl_iree_table_put(&x->opens, &key, &is_new);
    if (!o) return false;
    if (o->bytes == 0) o->event_id = e->event_id, o->since_ns = e->host_time_ns;
    xpl_iree_add(&o->bytes, e->length);
    xpl_iree_add(&u->bytes, e->length);
    u->opens++;
    if (u->bytes > u->peak_bytes) u->peak_bytes = u->bytes, u->peak_ns = e->host_time_ns;
    return true;
}

// What was opened before the capture is closed without having been counted.
static void close_allocation(struct report *x, struct usage *u,
                             const struct xpl_iree_memory_event *e) {
    const struct open_key key = open_of(e, u->key.kind);
    struct open *const o = xpl_iree_table_get(&x->opens, &key);
    const uint64_t bytes = o && o->bytes < e->length ? o->bytes : o ? e->length : 0;
    if (!o) return;
    o->bytes -= bytes;
    u->bytes -= bytes < u->bytes ? bytes : u->bytes;
}

static bool add_event(struct report *x, const struct xpl_iree_memory_event *e) {
    if (e->type == 0 || e->type >= XPL_IREE_N_MEMORY_TYPES) return true;
    const struct xpl_iree_memory_rule *const rule = &xpl_iree_memory_rules[e->type];
    const bool counts = rule->of_allocation || (e->flags & XPL_IREE_MEMORY_RESERVATION);
    if (rule->life == 0 || !counts) return true;
    const struct usage_key key = {e->physical_device_ordinal, rule->kind};
    bool is_new;
    struct usage *const u = xpl_iree_table_put(&x->usages, &key, &is_new);
    if (!u) return false;
    const size_t slice = slice_of(x, e->host_time_ns);
    reach_slice(u, slice);
    if (rule->life > 0 && is_failure(e)) {
        u->failed++;
        xpl_iree_add(&u->failed_bytes, e->length);
    } else if (rule->life > 0) {
        if (!open_allocation(x, u, e)) return false;
    } else {
        close_allocation(x, u, e);
    }
    if (u->bytes > u->points[slice]) u->points[slice] = u->bytes;
    return true;
}

static bool note_time(struct report *x, const struct xpl_iree_memory_event *e) {
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
    if (r->chunk != XPL_IREE_MEMORY_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        if (!x->visit(x, &e)) XPL_RETURN_OOM(err, "memory of the bundle");
    }
    return XPL_OK;
}

static void write_usage(const struct report *x, struct usage *u) {
    struct xpl_iree_rows *const r = x->run->rows;
    reach_slice(u, POINTS - 1);
    xpl_row_begin(r, "type", "memory_usage");
    xpl_row_u64(r, "physical_device_ordinal", u->key.physical_device_ordinal);
    xpl_row_text(r, "kind", xpl_iree_memory_kind_names[u->key.kind]);
    xpl_row_u64(r, "allocations", u->opens);
    xpl_row_u64(r, "peak_bytes", u->peak_bytes);
    xpl_row_i64(r, "peak_host_time_ns", u->peak_ns);
    xpl_row_u64(r, "open_at_end_bytes", u->bytes);
    xpl_row_u64(r, "failed_allocations", u->failed);
    xpl_row_u64(r, "failed_bytes", u->failed_bytes);
    xpl_row_i64(r, "first_host_time_ns", x->first_ns);
    xpl_row_i64(r, "last_host_time_ns", x->last_ns);
    xpl_row_open(r, "peak_bytes_by_time", '[');
    for (size_t i = 0; i < POINTS; i++)
        xpl_row_u64(r, NULL, u->points[i]);
    xpl_row_close(r, ']');
    xpl_row_end(r);
}

static void write_open(const struct report *x, const struct open *o) {
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
    struct report x = {
        .run = run,
        .visit = note_time,
        .usages = {.row_size = sizeof(struct usage), .key_size = sizeof(struct usage_key)},
        .opens = {.row_size = sizeof(struct open), .key_size = sizeof(struct open_key)},
        .first_ns = INT64_MAX,
        .last_ns = INT64_MIN};
    xpl_status_t st = xpl_iree_walk(run, visit_events, &x, err);
    x.visit = add_event; // the slices of the timeline are known by now
    if (st == XPL_OK) st = xpl_iree_walk(run, visit_events, &x, err);
    for (size_t i = 0; st == XPL_OK && i < x.usages.n; i++)
        write_usage(&x, xpl_iree_table_at(&x.usages, i));
    for (size_t i = 0; st == XPL_OK && i < x.opens.n; i++)
        write_open(&x, xpl_iree_table_at(&x.opens, i));
    xpl_iree_table_fini(&x.usages);
    xpl_iree_table_fini(&x.opens);
    return st;
}
