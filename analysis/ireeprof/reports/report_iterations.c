// SPDX-License-Identifier: Apache-2.0
// Report iterations, which IREE does not have: where the submissions to a queue repeat, as in
// benchmarks and replays, how long each repetition took. An iteration begins with its first
// submission and lasts to that of the next one. Operations are alike by kind, count and bytes; ids
// change from one iteration to the next. Sessions of a bundle have separate iterations: none spans
// two sessions.

#include "analysis/ireeprof/reports/durations.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/sessions.h"
#include "base/arena.h"
#include "base/vec.h"

struct queue {
    struct queue_key {
        uint64_t stream_id;
        uint32_t physical_device_ordinal, queue_ordinal;
        uint64_t session;
    } key;
    uint64_t events;
};
// An event of a queue; in the order of the file.
struct step {
    uint64_t alike; // equal for operations that are alike
    uint64_t submission_id;
    int64_t ns;
    uint32_t queue, sequence;
};

struct iterations {
    struct xpl_iree_run *run;
    struct xpl_iree_sessions sessions;
    struct xpl_iree_table queues;
    struct step *steps;
    size_t n, cap;
    uint32_t *borders; // of the steps of one queue
};

static bool add_step(struct iterations *x, const struct xpl_iree_queue_event *e, uint32_t session) {
    const struct queue_key key = {e->stream_id, e->physical_device_ordinal, e->queue_ordinal,
                                  session};
    bool is_new;
    struct queue *const q = xpl_iree_table_put(&x->queues, &key, &is_new);
    if (!q || x->n >= UINT32_MAX - 1) return false;
    if (x->n == x->cap) {
        const size_t cap = x->cap < 64 ? 64 : x->cap + x->cap / 2;
        struct step *const steps = xpl_sys_realloc(x->steps, cap * sizeof *steps);
        if (!steps) return false;
        x->steps = steps, x->cap = cap;
    }
    const uint64_t mixed = (e->payload_length + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x->steps[x->n] = (struct step){.alike = mixed ^ ((uint64_t)e->operation_count << 8 | e->type),
                                   .submission_id = e->submission_id,
                                   .ns = e->host_time_ns,
                                   .queue = (uint32_t)x->queues.last,
                                   .sequence = (uint32_t)x->n};
    x->n++;
    q->events++;
    return true;
}

static xpl_status_t add_events(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct iterations *const x = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    struct xpl_iree_queue_event e;
    if (!xpl_iree_sessions_follow(&x->sessions, r, NULL))
        XPL_RETURN_OOM(err, "sessions of the bundle");
    if (r->chunk != XPL_IREE_QUEUE_EVENTS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        xpl_iree_copy(&item, &e);
        if (!add_step(x, &e, xpl_iree_sessions_of(&x->sessions, r, e.physical_device_ordinal)))
            XPL_RETURN_OOM(err, "queues of the bundle");
    }
    return XPL_OK;
}

static int by_queue(const void *pa, const void *pb) {
    const struct step *const a = pa, *const b = pb;
    if (a->queue != b->queue) return a->queue < b->queue ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

// How many of the last steps repeat, as many as possible and at least twice, and after how many.
// Earlier ones, which prepare the run, are not iterations. Borders of the reversed steps, by Knuth,
// Morris and Pratt.
static size_t find_period(const struct step *v, size_t n, uint32_t *borders, size_t *ret_period) {
    const struct step *const last = v + n - 1;
    size_t best = 0;
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k && (last - i)->alike != (last - k)->alike)
            k = borders[k - 1];
        if (i == 1) borders[0] = 0;
        if ((last - i)->alike == (last - k)->alike) k++;
        borders[i] = (uint32_t)k;
        const size_t length = i + 1, period = length - k;
        if (length < 2 * period) continue;
        best = length;
        *ret_period = period;
    }
    return best;
}

// ---- rows ----

static void begin_row(struct xpl_iree_rows *r, const char *type, const struct queue *q) {
    xpl_row_begin(r, "type", type);
    xpl_row_u64(r, "physical_device_ordinal", q->key.physical_device_ordinal);
    xpl_row_u64(r, "queue_ordinal", q->key.queue_ordinal);
    xpl_row_u64(r, "stream_id", q->key.stream_id);
}

static uint64_t interval(const struct step *from, const struct step *to) {
    int64_t ns;
    return to->ns < from->ns || __builtin_sub_overflow(to->ns, from->ns, &ns) ? 0 : (uint64_t)ns;
}

static struct xpl_iree_durations *durations_of(void *ctx, size_t i) {
    (void)i;
    return ctx;
}

// A queue where nothing repeats.
static void write_none(const struct iterations *x, const struct queue *q) {
    struct xpl_iree_rows *const r = x->run->rows;
    begin_row(r, "iterations", q);
    xpl_row_u64(r, "queue_events", q->events);
    xpl_row_u64(r, "events_before", q->events);
    xpl_row_u64(r, "events_per_iteration", 0);
    xpl_row_u64(r, "iterations", 0);
    xpl_row_u64(r, "session_index", q->key.session);
    xpl_row_end(r);
}

// v: the steps that repeat.
static xpl_status_t write_queue(const struct iterations *x, const struct queue *q,
                                const struct step *v, size_t n, size_t period,
                                struct xpl_error *err) {
    struct xpl_iree_rows *const r = x->run->rows;
    const size_t count = n / period;
    struct xpl_iree_durations d = {.n = count - 1};
    uint64_t *const all = xpl_iree_durations_new(durations_of, &d, 1);
    if (!all) XPL_RETURN_OOM(err, "iterations of the bundle");
    for (size_t i = 0; i + 1 < count; i++)
        xpl_iree_durations_add(&d, all, interval(&v[i * period], &v[(i + 1) * period]));
    begin_row(r, "iterations", q);
    xpl_row_u64(r, "queue_events", q->events);
    xpl_row_u64(r, "events_before", q->events - n);
    xpl_row_u64(r, "events_per_iteration", period);
    xpl_row_u64(r, "iterations", count);
    xpl_row_u64(r, "total_ns", d.sum);
    xpl_iree_durations_write(r, &d, all, "ns");
    xpl_row_u64(r, "session_index", q->key.session);
    xpl_row_end(r);
    // For a person the sums are enough.
    for (size_t i = 0; i < count && r->format == XPL_IREE_JSONL && !r->failed; i++) {
        const struct step *const s = &v[i * period];
        begin_row(r, "iteration", q);
        xpl_row_u64(r, "index", i);
        xpl_row_u64(r, "first_submission_id", s->submission_id);
        xpl_row_u64(r, "last_submission_id", s[period - 1].submission_id);
        xpl_row_i64(r, "host_time_ns", s->ns);
        xpl_row_bool(r, "interval_available", i + 1 < count);
        xpl_row_u64(r, "interval_ns", i + 1 < count ? interval(s, s + period) : 0);
        xpl_row_u64(r, "session_index", q->key.session);
        xpl_row_end(r);
    }
    xpl_sys_free(all);
    return XPL_OK;
}

static xpl_status_t write_all(struct iterations *x, struct xpl_error *err) {
    xpl_sort(x->steps, x->n, sizeof *x->steps, by_queue);
    x->borders = xpl_sys_alloc((x->n + 1) * sizeof *x->borders);
    if (!x->borders) XPL_RETURN_OOM(err, "queues of the bundle");
    for (size_t from = 0, i = 0; i < x->queues.n; i++) {
        const struct queue *const q = xpl_iree_table_at(&x->queues, i);
        size_t period = 1;
        const size_t n = find_period(x->steps + from, q->events, x->borders, &period);
        from += q->events;
        if (n)
            XPL_TRY(write_queue(x, q, x->steps + from - n, n, period, err));
        else
            write_none(x, q);
        if (xpl_iree_stopped(x->run) && !x->run->rows->failed)
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "the report is not needed any more");
    }
    return XPL_OK;
}

xpl_status_t xpl_iree_report_iterations(struct xpl_iree_run *run, struct xpl_error *err) {
    struct iterations x = {
        .run = run,
        .queues = {.row_size = sizeof(struct queue), .key_size = sizeof(struct queue_key)}};
    xpl_iree_sessions_init(&x.sessions);
    xpl_status_t st = xpl_iree_walk(run, add_events, &x, err);
    xpl_iree_sessions_fini(&x.sessions);
    if (st == XPL_OK) st = write_all(&x, err);
    xpl_sys_free(x.borders);
    xpl_sys_free(x.steps);
    xpl_iree_table_fini(&x.queues);
    return st;
}
