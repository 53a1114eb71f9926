// SPDX-License-Identifier: Apache-2.0
// Report explain: the largest times, and oddities of the bundle.

#include "analysis/ireeprof/reports/explain/explain.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/rows_dispatch.h"
#include "base/arena.h"
#include "base/vec.h"

// Sums over the submissions and groups of a device, and over the submissions of a queue: a bundle
// may have as many devices and queues as it has submissions.
struct device_sum {
    uint64_t physical_device_ordinal; // the key
    struct xpl_iree_spans spans;      // of submissions with a valid dispatch
    uint64_t active;                  // ticks of its groups
};
struct queue_sum {
    struct xpl_iree_queue_key key;
    uint32_t first_plus_1; // its submissions; 0: none
};

// ---- collecting ----

static void add_queue_events(struct xpl_iree_explain *x, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        struct xpl_iree_queue_event e;
        xpl_iree_copy(&item, &e);
        x->queue_events++;
        if (e.type < XPL_IREE_N_OPS) {
            x->ops[e.type]++;
            xpl_iree_add(&x->bytes[e.type], e.payload_length);
        }
        if (e.dependency_strategy < XPL_IREE_N_STRATEGIES) x->strategies[e.dependency_strategy]++;
        if (!xpl_iree_model_has_queue(&x->model, e.physical_device_ordinal, e.queue_ordinal,
                                      e.stream_id))
            x->run->missing[XPL_IREE_MISSING_QUEUE]++;
    }
}

static xpl_status_t add_events(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct xpl_iree_explain *const x = ctx;
    XPL_TRY(xpl_iree_summary_add(&x->summary, r, err));
    XPL_TRY(xpl_iree_dispatches_add(&x->dispatches, r, err));
    if (r->chunk == XPL_IREE_QUEUE_EVENTS) add_queue_events(x, r);
    return xpl_iree_memory_add(&x->memory, r, err);
}

// ---- sums of devices and queues ----

static struct device_sum *sum_of(struct xpl_iree_explain *x, uint32_t device) {
    const uint64_t key = device;
    bool is_new;
    struct device_sum *const s = xpl_iree_table_put(&x->device_sums, &key, &is_new);
    if (s && is_new) s->spans.earliest = UINT64_MAX;
    return s;
}

static bool add_submission(struct xpl_iree_explain *x, uint32_t index) {
    const struct xpl_iree_execution *const e = xpl_iree_table_at(&x->dispatches.submissions, index);
    const struct xpl_iree_queue_key key = {e->key.stream_id, e->key.physical_device_ordinal,
                                           e->key.queue_ordinal};
    bool is_new;
    struct queue_sum *const q = xpl_iree_table_put(&x->queue_sums, &key, &is_new);
    struct device_sum *const d = q ? sum_of(x, key.physical_device_ordinal) : NULL;
    if (!d) return false;
    x->next_plus_1[index] = q->first_plus_1;
    q->first_plus_1 = index + 1;
    if (!e->spans.valid) return true;
    d->spans.valid++;
    if (e->spans.earliest < d->spans.earliest) d->spans.earliest = e->spans.earliest;
    if (e->spans.latest > d->spans.latest) d->spans.latest = e->spans.latest;
    return true;
}

static bool add_active(struct xpl_iree_explain *x, const struct xpl_iree_group *g) {
    struct device_sum *const d = sum_of(x, g->key.physical_device_ordinal);
    if (d) xpl_iree_add(&d->active, g->spans.total);
    return d != NULL;
}

static xpl_status_t sum_up(struct xpl_iree_explain *x, struct xpl_error *err) {
    const struct xpl_iree_table *const submissions = &x->dispatches.submissions;
    const struct xpl_iree_table *const groups = &x->dispatches.device.groups;
    x->next_plus_1 = xpl_sys_alloc((submissions->n + 1) * sizeof *x->next_plus_1);
    bool ok = x->next_plus_1 != NULL;
    for (size_t i = 0; ok && i < submissions->n; i++)
        ok = add_submission(x, (uint32_t)i);
    for (size_t i = 0; ok && i < groups->n; i++)
        ok = add_active(x, xpl_iree_table_at(groups, i));
    if (!ok) XPL_RETURN_OOM(err, "queues of the bundle");
    return XPL_OK;
}

// ---- rows of devices and queues ----

static void write_summary(const struct xpl_iree_explain *x) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_summary *const s = &x->summary;
    const struct xpl_iree_side *const device = &x->dispatches.device, *host = &x->dispatches.host;
    xpl_row_begin(r, "type", "explain_summary");
    xpl_row_u64(r, "file_records", s->records);
    xpl_row_u64(r, "chunk_records", s->chunks);
    xpl_row_u64(r, "unknown_records", s->unknown_records);
    xpl_row_u64(r, "unknown_chunks", s->unknown_chunks);
    xpl_row_u64(r, "truncated_chunks", s->truncated_chunks);
    xpl_row_u64(r, "dropped_records", s->dropped_records);
    xpl_row_u64(r, "non_ok_session_end_records", s->bad_ends);
    xpl_row_u64(r, "dispatches", device->matched);
    xpl_row_u64(r, "valid_dispatches", device->valid);
    xpl_row_u64(r, "invalid_dispatches", device->matched - device->valid);
    xpl_row_u64(r, "host_dispatches", host->matched);
    xpl_row_u64(r, "valid_host_dispatches", host->valid);
    xpl_row_u64(r, "invalid_host_dispatches", host->matched - host->valid);
    xpl_row_u64(r, "queues", x->model.queues.n);
    xpl_row_u64(r, "queue_events", x->queue_events);
    xpl_row_u64(r, "command_buffers", x->model.buffers.n);
    xpl_row_u64(r, "command_operations", x->model.n_operations);
    xpl_row_u64(r, "memory_events", x->memory.matched);
    xpl_iree_row_bad_end(r, s);
    xpl_row_end(r);
}

static void write_device(const struct xpl_iree_explain *x, const struct xpl_iree_device_row *d) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_fit fit = xpl_iree_clock_fit(&d->clock, XPL_IREE_TIME_HOST_CPU);
    const uint64_t device = d->key.physical_device_ordinal;
    const struct device_sum *const sum = xpl_iree_table_get(&x->device_sums, &device);
    // From the first start to the last end of its submissions.
    const double span = sum ? (double)xpl_iree_spans_length(&sum->spans) : 0;
    const uint64_t active = sum ? sum->active : 0;
    int64_t ns;
    const bool timed = active && xpl_iree_fit_ticks(&fit, active, &ns);
    xpl_row_begin(r, "type", "explain_device");
    xpl_row_u64(r, "physical_device_ordinal", device);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_u64(r, "clock_samples", d->clock.samples);
    xpl_row_fixed(r, "visible_span_ticks", span, 3);
    xpl_row_u64(r, "active_dispatch_ticks", active);
    xpl_row_fixed(r, "active_over_visible", span > 0 ? (double)active / span : 0, 6);
    xpl_row_fixed(r, "tick_frequency_hz", xpl_iree_fit_hz(&fit), 3);
    xpl_row_fixed(r, "visible_span_ns", span * xpl_iree_fit_ns_per_tick(&fit), 3);
    xpl_row_bool(r, "active_dispatch_time_ns_available", timed);
    xpl_row_i64(r, "active_dispatch_ns", timed ? ns : 0);
    xpl_row_end(r);
}

struct interval {
    uint64_t start, end;
};

static int by_start(const void *pa, const void *pb) {
    const struct interval *const a = pa, *const b = pb;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

struct busy {
    uint64_t submissions, valid, invalid, total, gaps;
    double ticks, gap_ticks, max_gap;
};

// Merges intervals that overlap or touch, and sums up the gaps.
static void merge(struct interval *v, size_t n, struct busy *b) {
    if (n == 0) return;
    xpl_sort(v, n, sizeof *v, by_start);
    struct interval now = v[0];
    for (size_t i = 1; i < n; i++) {
        if (v[i].start <= now.end) {
            if (v[i].end > now.end) now.end = v[i].end;
            continue;
        }
        const double gap = (double)(v[i].start - now.end);
        b->ticks += (double)(now.end - now.start);
        b->gaps++;
        b->gap_ticks += gap;
        if (gap > b->max_gap) b->max_gap = gap;
        now = v[i];
    }
    b->ticks += (double)(now.end - now.start);
}

static void add_busy(const struct xpl_iree_explain *x, const struct xpl_iree_queue_key *q,
                     struct interval *scratch, struct busy *b) {
    const struct queue_sum *const sum = xpl_iree_table_get(&x->queue_sums, q);
    size_t n = 0;
    for (uint32_t i = sum ? sum->first_plus_1 : 0; i; i = x->next_plus_1[i - 1]) {
        const struct xpl_iree_execution *const s =
            xpl_iree_table_at(&x->dispatches.submissions, i - 1);
        b->submissions++;
        xpl_iree_add(&b->total, s->spans.total);
        b->invalid += s->spans.valid != s->spans.count;
        if (!s->spans.valid) continue;
        b->valid++;
        scratch[n++] = (struct interval){s->spans.earliest, s->spans.latest};
    }
    merge(scratch, n, b);
}

static void write_queue(const struct xpl_iree_explain *x, const struct xpl_iree_queue_key *q,
                        const struct busy *b) {
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_fit fit = xpl_iree_model_fit(&x->model, q->physical_device_ordinal);
    const double ns_per_tick = xpl_iree_fit_ns_per_tick(&fit);
    const bool gaps = x->queue_events != 0; // without events of the queue a gap means nothing
    int64_t total;
    const bool timed = b->valid && xpl_iree_fit_ticks(&fit, b->total, &total);
    xpl_row_begin(r, "type", "explain_queue");
    xpl_iree_row_queue(r, q->physical_device_ordinal, q->queue_ordinal, q->stream_id);
    xpl_row_u64(r, "submissions", b->submissions);
    xpl_row_u64(r, "valid_submissions", b->valid);
    xpl_row_u64(r, "invalid_submissions", b->invalid);
    xpl_row_fixed(r, "busy_ticks", b->ticks, 3);
    xpl_row_u64(r, "total_dispatch_ticks", b->total);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_fixed(r, "busy_ns", b->ticks * ns_per_tick, 3);
    xpl_row_bool(r, "total_dispatch_time_ns_available", timed);
    xpl_row_i64(r, "total_dispatch_ns", timed ? total : 0);
    xpl_row_bool(r, "gap_analysis_available", gaps);
    xpl_row_u64(r, "gaps", gaps ? b->gaps : 0);
    xpl_row_fixed(r, "total_gap_ticks", gaps ? b->gap_ticks : 0, 3);
    xpl_row_fixed(r, "max_gap_ticks", gaps ? b->max_gap : 0, 3);
    xpl_row_fixed(r, "total_gap_ns", gaps ? b->gap_ticks * ns_per_tick : 0, 3);
    xpl_row_fixed(r, "max_gap_ns", gaps ? b->max_gap * ns_per_tick : 0, 3);
    xpl_row_end(r);
}

static xpl_status_t write_queues(const struct xpl_iree_explain *x, struct xpl_error *err) {
    struct interval *const scratch =
        xpl_sys_alloc((x->dispatches.submissions.n + 1) * sizeof *scratch);
    if (!scratch) XPL_RETURN_OOM(err, "queues of the bundle");
    for (size_t i = 0; i < x->model.queues.n; i++) {
        const struct xpl_iree_queue_key *const q = xpl_iree_table_at(&x->model.queues, i);
        struct busy b = {0};
        add_busy(x, q, scratch, &b);
        write_queue(x, q, &b);
    }
    xpl_sys_free(scratch);
    return XPL_OK;
}

// ---- sums and hints ----

static void write_operations(const struct xpl_iree_explain *x) {
    static const struct {
        const char *name;
        bool bytes;
        int op;
    } members[] = {
        {"copy_bytes", true, XPL_IREE_OP_COPY},     {"fill_bytes", true, XPL_IREE_OP_FILL},
        {"update_bytes", true, XPL_IREE_OP_UPDATE}, {"read_bytes", true, XPL_IREE_OP_READ},
        {"write_bytes", true, XPL_IREE_OP_WRITE},   {"dispatches", false, XPL_IREE_OP_DISPATCH},
        {"executes", false, XPL_IREE_OP_EXECUTE},   {"allocas", false, XPL_IREE_OP_ALLOCA},
        {"deallocas", false, XPL_IREE_OP_DEALLOCA}, {"host_calls", false, XPL_IREE_OP_HOST_CALL}};
    static const char *const strategies[XPL_IREE_N_STRATEGIES] = {
        "strategy_none", "strategy_inline", "strategy_device_barrier", "strategy_software_defer"};
    struct xpl_iree_rows *const r = x->run->rows;
    xpl_row_begin(r, "type", "explain_queue_operations");
    xpl_row_u64(r, "events", x->queue_events);
    for (size_t i = 0; i < XPL_IREE_N_STRATEGIES; i++)
        xpl_row_u64(r, strategies[i], x->strategies[i]);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        xpl_row_u64(r, members[i].name, (members[i].bytes ? x->bytes : x->ops)[members[i].op]);
    xpl_row_end(r);
}

static void write_pressure(struct xpl_iree_rows *r, const struct xpl_iree_memory_device *d) {
    const struct xpl_iree_balance *const b = d->balances;
    xpl_row_begin(r, "type", "explain_memory_pressure");
    xpl_row_u64(r, "physical_device_ordinal", d->physical_device_ordinal);
    xpl_row_u64(r, "slab_high_water_bytes", b[XPL_IREE_MEMORY_SLAB].high_water_bytes);
    xpl_row_u64(r, "pool_reserved_high_water_bytes", b[XPL_IREE_MEMORY_POOL].high_water_bytes);
    xpl_row_u64(r, "pool_materialized_high_water_bytes",
                b[XPL_IREE_MEMORY_MATERIALIZED].high_water_bytes);
    xpl_row_u64(r, "queue_inflight_high_water_bytes", b[XPL_IREE_MEMORY_QUEUE].high_water_bytes);
    xpl_row_u64(r, "buffer_high_water_bytes", b[XPL_IREE_MEMORY_BUFFER].high_water_bytes);
    xpl_row_u64(r, "pool_waits", d->events_of[XPL_IREE_POOL_WAIT]);
    xpl_row_end(r);
}

static void write_hint(const struct xpl_iree_explain *x, const char *severity, const char *category,
                       const char *message) {
    struct xpl_iree_rows *const r = x->run->rows;
    xpl_row_begin(r, "type", "explain_hint");
    xpl_row_text(r, "severity", severity);
    xpl_row_text(r, "category", category);
    xpl_row_text(r, "message", message);
}

static void write_hints(const struct xpl_iree_explain *x) {
    const struct xpl_iree_summary *const s = &x->summary;
    const struct xpl_iree_side *const device = &x->dispatches.device, *host = &x->dispatches.host;
    uint64_t waits = 0;
    for (size_t i = 0; i < x->memory.devices.n; i++) {
        const struct xpl_iree_memory_device *const d = xpl_iree_table_at(&x->memory.devices, i);
        waits += d->events_of[XPL_IREE_POOL_WAIT];
    }
    const struct {
        bool is, bad_end;
        const char *severity, *category, *message; // in IREE's words: they are compared
    } hints[] = {
        {s->unknown_records || s->unknown_chunks, false, "warning", "format",
         "unknown records or chunks were present; newer producer data may be missing from this "
         "analysis"},
        {s->truncated_chunks, false, "error", "format",
         "truncated chunks were present; timing and lifecycle totals may be incomplete"},
        {s->bad_ends, true, "error", "session",
         "profiling session end records reported non-OK status"},
        {device->matched != device->valid, false, "warning", "dispatch",
         "some dispatch events had missing or reversed timestamps and were excluded from timing "
         "totals"},
        {host->matched != host->valid, false, "warning", "dispatch",
         "some host execution dispatch spans had missing or reversed timestamps and were excluded "
         "from timing totals"},
        {x->queue_events == 0, false, "info", "queue",
         "queue event records are absent; queue dependency and gap hints are limited to dispatch "
         "timestamp intervals"},
        {waits, false, "warning", "memory",
         "pool wait events were observed; allocation readiness affected the captured queue "
         "schedule"},
        {xpl_iree_explain_ranks_hosts(x), false, "info", "dispatch",
         "device dispatch events are absent; top dispatch analysis is using host execution "
         "dispatch spans"},
        {!device->valid && !host->valid, false, "info", "dispatch",
         "no valid dispatch events were captured; enable queue profiling on a producer that emits "
         "device timestamps"}};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (!hints[i].is) continue;
        write_hint(x, hints[i].severity, hints[i].category, hints[i].message);
        if (hints[i].bad_end) {
            xpl_row_u64(x->run->rows, "non_ok_session_end_records", s->bad_ends);
            xpl_iree_row_bad_end(x->run->rows, s);
        }
        xpl_row_end(x->run->rows);
    }
}

static xpl_status_t write_all(const struct xpl_iree_explain *x, struct xpl_error *err) {
    write_summary(x);
    for (size_t i = 0; i < x->model.devices.n; i++)
        write_device(x, xpl_iree_table_at(&x->model.devices, i));
    XPL_TRY(write_queues(x, err));
    XPL_TRY(xpl_iree_explain_functions(x, err));
    xpl_iree_explain_dispatches(x);
    write_operations(x);
    for (size_t i = 0; i < x->memory.devices.n; i++)
        write_pressure(x->run->rows, xpl_iree_table_at(&x->memory.devices, i));
    write_hints(x);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_explain(struct xpl_iree_run *run, struct xpl_error *err) {
    struct xpl_iree_explain x = {.run = run};
    xpl_iree_model_init(&x.model);
    xpl_iree_summary_init(&x.summary);
    xpl_iree_memory_init(&x.memory, run, true);
    xpl_iree_dispatches_init(&x.dispatches, run, &x.model, XPL_IREE_BY_EVENT);
    x.dispatches.keep |= XPL_IREE_KEEPS_SUBMISSIONS;
    x.device_sums = (struct xpl_iree_table){.row_size = sizeof(struct device_sum),
                                            .key_size = sizeof(uint64_t)};
    x.queue_sums = (struct xpl_iree_table){.row_size = sizeof(struct queue_sum),
                                           .key_size = sizeof(struct xpl_iree_queue_key)};
    xpl_status_t st = xpl_iree_model_load(&x.model, run, err);
    if (st == XPL_OK) st = xpl_iree_walk(run, add_events, &x, err);
    if (st == XPL_OK) st = sum_up(&x, err);
    if (st == XPL_OK) st = write_all(&x, err);
    xpl_iree_table_fini(&x.device_sums);
    xpl_iree_table_fini(&x.queue_sums);
    xpl_sys_free(x.next_plus_1);
    xpl_iree_dispatches_fini(&x.dispatches);
    xpl_iree_memory_fini(&x.memory);
    xpl_iree_summary_fini(&x.summary);
    xpl_iree_model_fini(&x.model);
    return st;
}
