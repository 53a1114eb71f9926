// SPDX-License-Identifier: Apache-2.0
// Report queue: queues, submissions of dispatches, and the operations of queues.
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/rows_dispatch.h"

// The kinds of events of queues, in the order in which they are counted and written.
enum { QUEUE, DEVICE, HOST, N_KINDS };

// What the three kinds have in common.
struct queue_event {
    int kind;
    uint32_t type, physical_device_ordinal, queue_ordinal;
    uint64_t submission_id, stream_id;
    union {
        struct xpl_iree_queue_event queue;
        struct xpl_iree_queue_device_event device;
        struct xpl_iree_host_event host;
    } u;
};

static void set_common(struct queue_event *ret, uint32_t type, uint32_t physical_device_ordinal,
                       uint32_t queue_ordinal, uint64_t submission_id, uint64_t stream_id) {
    ret->type = type;
    ret->physical_device_ordinal = physical_device_ordinal;
    ret->queue_ordinal = queue_ordinal;
    ret->submission_id = submission_id;
    ret->stream_id = stream_id;
}

// The next event of a chunk of queue, queue device or host events.
static bool next_event(const struct xpl_iree_record *r, struct xpl_iree_items *items,
                       struct queue_event *ret) {
    struct xpl_iree_item item;
    if (!xpl_iree_item_next(items, &item, NULL)) return false;
    if (r->chunk == XPL_IREE_QUEUE_EVENTS) {
        const struct xpl_iree_queue_event *const e = &ret->u.queue;
        ret->kind = QUEUE;
        xpl_iree_copy(&item, &ret->u.queue);
        set_common(ret, e->type, e->physical_device_ordinal, e->queue_ordinal, e->submission_id,
                   e->stream_id);
    } else if (r->chunk == XPL_IREE_QUEUE_DEVICE_EVENTS) {
        const struct xpl_iree_queue_device_event *const e = &ret->u.device;
        ret->kind = DEVICE;
        xpl_iree_copy(&item, &ret->u.device);
        set_common(ret, e->type, e->physical_device_ordinal, e->queue_ordinal, e->submission_id,
                   e->stream_id);
    } else {
        const struct xpl_iree_host_event *const e = &ret->u.host;
        ret->kind = HOST;
        xpl_iree_copy(&item, &ret->u.host);
        set_common(ret, e->type, e->physical_device_ordinal, e->queue_ordinal, e->submission_id,
                   e->stream_id);
    }
    return true;
}

static bool matches(const struct xpl_iree_run *run, const struct queue_event *e) {
    return xpl_iree_id_is(run, e->submission_id) &&
           xpl_iree_glob_z(xpl_iree_name(XPL_IREE_NAMES_OP, e->type), run->options.filter);
}

struct events {
    struct xpl_iree_dispatches *d;
    int kind; // that is written now
    uint64_t n[N_KINDS], truncated, dropped;
};

static xpl_status_t count_events(void *ctx, const struct xpl_iree_record *r,
                                 struct xpl_error *err) {
    (void)err;
    struct events *const c = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct queue_event e;
    if (xpl_iree_truncated(r)) {
        c->truncated++;
        c->dropped += r->dropped_record_count; // wraps around, as IREE's does
    }
    while (next_event(r, &items, &e)) {
        if (!matches(c->d->run, &e)) continue;
        c->n[e.kind]++;
        if (!xpl_iree_model_has_queue(c->d->model, e.physical_device_ordinal, e.queue_ordinal,
                                      e.stream_id))
            c->d->run->missing[XPL_IREE_MISSING_QUEUE]++;
    }
    return XPL_OK;
}

// ---- rows ----

static void write_queue_event(struct xpl_iree_rows *r, const struct xpl_iree_queue_event *e) {
    xpl_row_begin(r, "type", "queue_event");
    xpl_iree_row_members(r, XPL_IREE_QUEUE_EVENTS, 0, 2, e);  // event_id, op
    xpl_iree_row_members(r, XPL_IREE_QUEUE_EVENTS, 3, 16, e); // flags to payload_length
    xpl_row_end(r);
}

static void write_device_event(const struct xpl_iree_dispatches *d,
                               const struct xpl_iree_queue_device_event *e) {
    static const struct xpl_iree_field fields[] = {
        XPL_F(U64, queue_device_event, event_id),
        XPL_F_NAME(queue_device_event, type, "op", OP),
        XPL_F(U32, queue_device_event, flags),
        XPL_F(U64, queue_device_event, submission_id),
        XPL_F(U64, queue_device_event, command_buffer_id),
        XPL_F(U64, queue_device_event, allocation_id),
        XPL_F(U32, queue_device_event, physical_device_ordinal),
        XPL_F(U32, queue_device_event, queue_ordinal),
        XPL_F(U64, queue_device_event, stream_id),
        XPL_F(U32, queue_device_event, operation_count),
        XPL_F(U64, queue_device_event, payload_length),
        XPL_F(U64, queue_device_event, start_tick),
        XPL_F(U64, queue_device_event, end_tick)};
    struct xpl_iree_rows *const r = d->run->rows;
    const bool valid = xpl_iree_ticks_valid(e->start_tick, e->end_tick);
    const struct xpl_iree_fit fit = xpl_iree_model_fit(d->model, e->physical_device_ordinal);
    const uint64_t ticks = valid ? e->end_tick - e->start_tick : 0;
    int64_t ns;
    (void)xpl_iree_fit_ticks(&fit, ticks, &ns);
    xpl_row_begin(r, "type", "queue_device_event");
    XPL_ROW_FIELDS(r, fields, e);
    xpl_row_u64(r, "duration_ticks", ticks);
    xpl_row_bool(r, "valid", valid);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_i64(r, "duration_ns", ns);
    xpl_row_end(r);
}

static void write_host_event(struct xpl_iree_rows *r, const struct xpl_iree_host_event *e) {
    static const struct xpl_iree_field fields[] = {
        XPL_F(U64, host_event, event_id),
        XPL_F_NAME(host_event, type, "op", OP),
        XPL_F(U32, host_event, flags),
        XPL_F(U32, host_event, status_code),
        XPL_F(U64, host_event, submission_id),
        XPL_F(U64, host_event, command_buffer_id),
        XPL_F(U32, host_event, command_index),
        XPL_F(U64, host_event, executable_id),
        XPL_F(U32, host_event, function_ordinal),
        XPL_F(U64, host_event, allocation_id),
        XPL_F(U32, host_event, physical_device_ordinal),
        XPL_F(U32, host_event, queue_ordinal),
        XPL_F(U64, host_event, stream_id),
        XPL_F(U32, host_event, operation_count),
        XPL_F(U64, host_event, payload_length),
        XPL_F(U64, host_event, tile_count),
        XPL_F(I64, host_event, tile_duration_sum_ns),
        XPL_F_CONST("host_time_domain", "iree_host_time_ns"),
        XPL_F(I64, host_event, start_host_time_ns),
        XPL_F(I64, host_event, end_host_time_ns)};
    const bool valid = xpl_iree_host_valid(e->start_host_time_ns, e->end_host_time_ns);
    xpl_row_begin(r, "type", "host_execution_event");
    XPL_ROW_FIELDS(r, fields, e);
    xpl_row_i64(r, "duration_ns", valid ? e->end_host_time_ns - e->start_host_time_ns : 0);
    xpl_row_bool(r, "valid", valid);
    xpl_row_end(r);
}

// Writes the events of the kind whose turn it is.
static xpl_status_t write_events(void *ctx, const struct xpl_iree_record *r,
                                 struct xpl_error *err) {
    (void)err;
    const struct events *const c = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct queue_event e;
    while (next_event(r, &items, &e)) {
        if (!matches(c->d->run, &e)) continue;
        if (e.kind == QUEUE) write_queue_event(c->d->run->rows, &e.u.queue);
        if (e.kind == DEVICE) write_device_event(c->d, &e.u.device);
        if (e.kind == HOST) write_host_event(c->d->run->rows, &e.u.host);
    }
    return XPL_OK;
}

static void write_summary(const struct events *c) {
    const struct xpl_iree_dispatches *const d = c->d;
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_begin(r, "type", "queue_summary");
    xpl_row_str(r, "filter", d->run->options.filter);
    xpl_row_u64(r, "queues", d->model->queues.n);
    xpl_row_u64(r, "queue_events", c->n[QUEUE]);
    xpl_row_u64(r, "queue_device_events", c->n[DEVICE]);
    xpl_row_u64(r, "host_execution_events", c->n[HOST]);
    xpl_row_u64(r, "truncated_chunks", c->truncated);
    xpl_row_u64(r, "dropped_records", c->dropped);
    xpl_row_u64(r, "submissions", d->submissions.n);
    xpl_iree_row_sides(d);
    xpl_row_u64(r, "host_command_executions", d->host.executions.n);
    xpl_row_end(r);
}

static void write_queues(const struct xpl_iree_dispatches *d) {
    struct xpl_iree_rows *const r = d->run->rows;
    for (size_t i = 0; i < d->model->queues.n; i++) {
        const struct xpl_iree_queue_key *const q = xpl_iree_table_at(&d->model->queues, i);
        xpl_row_begin(r, "type", "queue");
        xpl_iree_row_queue(r, q->physical_device_ordinal, q->queue_ordinal, q->stream_id);
        xpl_row_end(r);
    }
    for (size_t i = 0; i < d->submissions.n; i++) {
        const struct xpl_iree_execution *const x = xpl_iree_table_at(&d->submissions, i);
        xpl_row_begin(r, "type", "queue_submission");
        xpl_row_u64(r, "submission_id", x->key.submission_id);
        xpl_iree_row_queue(r, x->key.physical_device_ordinal, x->key.queue_ordinal,
                           x->key.stream_id);
        xpl_iree_row_spans(d, x);
        xpl_row_end(r);
    }
}

static xpl_status_t write_queue(struct xpl_iree_dispatches *d, struct xpl_error *err) {
    static const int order[N_KINDS] = {DEVICE, HOST, QUEUE};
    static const uint32_t types[N_KINDS] = {[QUEUE] = 1u << XPL_IREE_QUEUE_EVENTS,
                                            [DEVICE] = 1u << XPL_IREE_QUEUE_DEVICE_EVENTS,
                                            [HOST] = 1u << XPL_IREE_HOST_EVENTS};
    struct events c = {.d = d};
    XPL_TRY(xpl_iree_walk_chunks(d->run, types[QUEUE] | types[DEVICE] | types[HOST], count_events,
                                 &c, err));
    write_summary(&c);
    write_queues(d);
    for (size_t i = 0; i < N_KINDS; i++) {
        c.kind = order[i];
        if (c.n[c.kind])
            XPL_TRY(xpl_iree_walk_chunks(d->run, types[c.kind], write_events, &c, err));
    }
    return XPL_OK;
}

xpl_status_t xpl_iree_report_queue(struct xpl_iree_run *run, struct xpl_error *err) {
    return xpl_iree_projection(run, XPL_IREE_BY_SUBMISSION, write_queue, err);
}
