// SPDX-License-Identifier: Apache-2.0
// Report latency, which IREE does not have: for each queue and kind of operation how long
// submissions waited for others (submit to ready), in the queue (ready to start), and how long they
// ran (start to end). Start and end are those of host spans of the same submission, or of
// operations and dispatches of the device, mapped to host time by the brackets of its clock
// correlations.
#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/durations.h"
#include "analysis/ireeprof/reports/impl.h"
#include "base/arena.h"

struct submission_key {
    uint64_t submission_id, stream_id;
    uint32_t physical_device_ordinal, queue_ordinal;
    uint64_t session; // each numbers its own
};
struct submission {
    struct submission_key key;
    int64_t start_ns, end_ns; // start INT64_MAX: nothing ran
};
enum { WAIT, QUEUED, RUN, ALL, N_PARTS };
static const char *const part_names[N_PARTS] = {"submit_to_ready", "ready_to_start", "start_to_end",
                                                "submit_to_end"};
struct group_key {
    uint64_t stream_id;
    uint32_t physical_device_ordinal, queue_ordinal, op, zero;
};
struct group {
    struct group_key key;
    uint64_t events;
    struct xpl_iree_durations parts[N_PARTS];
};

struct latency {
    struct xpl_iree_run *run;
    struct xpl_iree_model model;
    struct xpl_iree_table submissions, groups;
    uint64_t *all; // durations; NULL in the pass that counts
};

// ---- spans of submissions ----

static bool add_span(struct latency *x, const struct submission_key *key, int64_t start,
                     int64_t end) {
    bool is_new;
    struct submission *const s = xpl_iree_table_put(&x->submissions, key, &is_new);
    if (!s) return false;
    if (is_new || start < s->start_ns) s->start_ns = start;
    if (is_new || end > s->end_ns) s->end_ns = end;
    return true;
}

static bool add_ticks(struct latency *x, const struct submission_key *key, uint64_t start,
                      uint64_t end) {
    const struct xpl_iree_fit fit = xpl_iree_clock_fit(
        xpl_iree_model_clock(&x->model, key->physical_device_ordinal), XPL_IREE_TIME_BRACKET);
    int64_t from, to;
    if (!xpl_iree_ticks_valid(start, end) || !xpl_iree_fit_time(&fit, start, &from) ||
        !xpl_iree_fit_time(&fit, end, &to))
        return true; // without a clock nothing is known of its time
    return add_span(x, key, from, to);
}

static bool add_item(struct latency *x, const struct xpl_iree_record *r,
                     const struct xpl_iree_item *item) {
    struct xpl_iree_host_event h;
    struct xpl_iree_queue_device_event q;
    struct xpl_iree_dispatch_event e;
    if (r->chunk == XPL_IREE_HOST_EVENTS) {
        xpl_iree_copy(item, &h);
        const struct submission_key key = {h.submission_id, h.stream_id, h.physical_device_ordinal,
                                           h.queue_ordinal, x->model.session};
        return !xpl_iree_host_valid(h.start_host_time_ns, h.end_host_time_ns) ||
               add_span(x, &key, h.start_host_time_ns, h.end_host_time_ns);
    }
    if (r->chunk == XPL_IREE_QUEUE_DEVICE_EVENTS) {
        xpl_iree_copy(item, &q);
        const struct submission_key key = {q.submission_id, q.stream_id, q.physical_device_ordinal,
                                           q.queue_ordinal, x->model.session};
        return add_ticks(x, &key, q.start_tick, q.end_tick);
    }
    xpl_iree_copy(item, &e);
    const struct submission_key key = {e.submission_id, r->stream_id, r->physical_device_ordinal,
                                       r->queue_ordinal, x->model.session};
    return add_ticks(x, &key, e.start_tick, e.end_tick);
}

static xpl_status_t add_spans(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct latency *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    XPL_TRY(xpl_iree_model_follow(&x->model, r, err));
    if (r->chunk != XPL_IREE_HOST_EVENTS && r->chunk != XPL_IREE_QUEUE_DEVICE_EVENTS &&
        r->chunk != XPL_IREE_DISPATCH_EVENTS)
        return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_model_enter(&x->model, r, xpl_iree_device_of(r, &item));
        if (!add_item(x, r, &item)) XPL_RETURN_OOM(err, "submissions of the bundle");
    }
    return XPL_OK;
}

// ---- queue events ----

static void add_part(struct latency *x, struct group *g, int part, int64_t from, int64_t to) {
    struct xpl_iree_durations *const d = &g->parts[part];
    int64_t ns;
    if (to < from || __builtin_sub_overflow(to, from, &ns)) return;
    if (x->all)
        xpl_iree_durations_add(d, x->all, (uint64_t)ns);
    else
        d->n++;
}

static bool add_event(struct latency *x, const struct xpl_iree_queue_event *e) {
    const struct group_key key = {e->stream_id, e->physical_device_ordinal, e->queue_ordinal,
                                  e->type, 0};
    const struct submission_key id = {e->submission_id, e->stream_id, e->physical_device_ordinal,
                                      e->queue_ordinal, x->model.session};
    const struct submission *const s = xpl_iree_table_get(&x->submissions, &id);
    // An operation that waited for nothing was ready when it was submitted.  When one was that had
    // something to wait for is not known without its own word: it may never have been.
    const bool is_known = e->ready_host_time_ns > 0 || e->wait_count == 0;
    const int64_t ready = e->ready_host_time_ns > 0 ? e->ready_host_time_ns : e->host_time_ns;
    bool is_new;
    struct group *const g = xpl_iree_table_put(&x->groups, &key, &is_new);
    if (!g) return false;
    if (!x->all) g->events++;
    if (is_known) add_part(x, g, WAIT, e->host_time_ns, ready);
    if (!s) return true;
    if (is_known) add_part(x, g, QUEUED, ready, s->start_ns);
    add_part(x, g, RUN, s->start_ns, s->end_ns);
    add_part(x, g, ALL, e->host_time_ns, s->end_ns);
    return true;
}

static xpl_status_t add_events(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct latency *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct xpl_iree_queue_event e;
    XPL_TRY(xpl_iree_model_follow(&x->model, r, err));
    if (r->chunk != XPL_IREE_QUEUE_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        if (!xpl_iree_glob_z(xpl_iree_name(XPL_IREE_NAMES_OP, e.type), x->run->options.filter))
            continue;
        xpl_iree_model_enter(&x->model, r, e.physical_device_ordinal);
        if (!add_event(x, &e)) XPL_RETURN_OOM(err, "queues of the bundle");
    }
    return XPL_OK;
}

// ---- rows ----

static struct xpl_iree_durations *durations_of(void *ctx, size_t i) {
    struct group *const g = xpl_iree_table_at(&((struct latency *)ctx)->groups, i / N_PARTS);
    return &g->parts[i % N_PARTS];
}

static void write_part(const struct latency *x, const struct group *g, int part) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_durations *const d = &g->parts[part];
    if (d->n == 0) return;
    xpl_row_begin(r, "type", "latency");
    xpl_row_u64(r, "physical_device_ordinal", g->key.physical_device_ordinal);
    xpl_row_u64(r, "queue_ordinal", g->key.queue_ordinal);
    xpl_row_u64(r, "stream_id", g->key.stream_id);
    xpl_row_text(r, "op", xpl_iree_name(XPL_IREE_NAMES_OP, g->key.op));
    xpl_row_text(r, "part", part_names[part]);
    xpl_row_u64(r, "events", g->events);
    xpl_row_u64(r, "valid", d->n);
    xpl_row_u64(r, "total_ns", d->sum);
    xpl_iree_durations_write(r, d, x->all, "ns");
    xpl_row_end(r);
}

static xpl_status_t collect(struct latency *x, struct xpl_error *err) {
    XPL_TRY(xpl_iree_model_load(&x->model, x->run, err));
    xpl_iree_model_pass(&x->model);
    XPL_TRY(xpl_iree_walk(x->run, add_spans, x, err));
    xpl_iree_model_pass(&x->model);
    XPL_TRY(xpl_iree_walk(x->run, add_events, x, err));
    x->all = xpl_iree_durations_new(durations_of, x, x->groups.n * N_PARTS);
    if (!x->all) XPL_RETURN_OOM(err, "queues of the bundle");
    xpl_iree_model_pass(&x->model);
    XPL_TRY(xpl_iree_walk(x->run, add_events, x, err));
    for (size_t i = 0; i < x->groups.n; i++)
        for (int part = 0; part < N_PARTS; part++)
            write_part(x, xpl_iree_table_at(&x->groups, i), part);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_latency(struct xpl_iree_run *run, struct xpl_error *err) {
    struct latency x = {
        .run = run,
        .submissions = {.row_size = sizeof(struct submission),
                        .key_size = sizeof(struct submission_key)},
        .groups = {.row_size = sizeof(struct group), .key_size = sizeof(struct group_key)}};
    xpl_iree_model_init(&x.model);
    xpl_iree_model_by_session(&x.model, run->bundle);
    const xpl_status_t st = collect(&x, err);
    xpl_sys_free(x.all);
    xpl_iree_table_fini(&x.submissions);
    xpl_iree_table_fini(&x.groups);
    xpl_iree_model_fini(&x.model);
    return st;
}
