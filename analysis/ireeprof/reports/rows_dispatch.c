// SPDX-License-Identifier: Apache-2.0
// Rows about dispatches that several reports write.
#include "analysis/ireeprof/reports/rows_dispatch.h"
#include "base/cleanup.h"

static void put_three(struct xpl_iree_rows *r, const char *name, const uint32_t v[3]) {
    xpl_row_open(r, name, '[');
    for (size_t i = 0; i < 3; i++)
        xpl_row_u64(r, NULL, v[i]);
    xpl_row_close(r, ']');
}

void xpl_iree_row_host_domains(struct xpl_iree_rows *r) {
    xpl_row_text(r, "timing_source", "host_execution_event");
    xpl_row_text(r, "time_domain", "iree_host_time_ns");
    xpl_row_text(r, "duration_time_domain", "iree_host_duration_ns");
}

void xpl_iree_row_queue(struct xpl_iree_rows *r, uint32_t device, uint32_t queue, uint64_t stream) {
    xpl_row_u64(r, "physical_device_ordinal", device);
    xpl_row_u64(r, "queue_ordinal", queue);
    xpl_row_u64(r, "stream_id", stream);
}

// dispatch_event or host_dispatch_event; ctx is a struct xpl_iree_dispatches (xpl_iree_match_fn).
static void iree_row_dispatch(void *ctx, const struct xpl_iree_dispatch *e, xpl_str_t key) {
    const struct xpl_iree_dispatches *const d = ctx;
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_begin(r, "type", e->host ? "host_dispatch_event" : "dispatch_event");
    if (e->host) xpl_iree_row_host_domains(r);
    xpl_iree_row_queue(r, e->physical_device_ordinal, e->queue_ordinal, e->stream_id);
    xpl_row_u64(r, "event_id", e->event_id);
    xpl_row_u64(r, "submission_id", e->submission_id);
    xpl_row_u64(r, "command_buffer_id", e->command_buffer_id);
    xpl_row_u64(r, "command_index", e->command_index);
    xpl_row_u64(r, "executable_id", e->executable_id);
    xpl_row_u64(r, "function_ordinal", e->function_ordinal);
    xpl_row_str(r, "key", key);
    xpl_row_u64(r, "flags", e->flags);
    if (e->host) xpl_row_u64(r, "status_code", e->status_code);
    put_three(r, "workgroup_count", e->workgroup_count);
    put_three(r, "workgroup_size", e->workgroup_size);
    if (e->host) {
        xpl_row_i64(r, "start_host_time_ns", e->start_ns);
        xpl_row_i64(r, "end_host_time_ns", e->end_ns);
        xpl_row_u64(r, "duration_ns", e->duration);
        xpl_row_bool(r, "valid", e->valid);
        xpl_row_u64(r, "tile_count", e->tile_count);
        xpl_row_i64(r, "tile_duration_sum_ns", e->tile_duration_sum_ns);
    } else {
        const struct xpl_iree_fit fit = xpl_iree_model_fit(d->model, e->physical_device_ordinal);
        int64_t ns;
        (void)xpl_iree_fit_ticks(&fit, e->duration, &ns);
        xpl_row_u64(r, "start_tick", e->start);
        xpl_row_u64(r, "end_tick", e->end);
        xpl_row_u64(r, "duration_ticks", e->duration);
        xpl_row_bool(r, "valid", e->valid);
        xpl_row_bool(r, "clock_fit_available", fit.valid);
        xpl_row_text(r, "device_tick_domain", "device_tick");
        xpl_row_text(r, "duration_time_domain", "device_tick_duration_ns");
        xpl_row_i64(r, "duration_ns", ns);
    }
    xpl_row_end(r);
}

// Minimum, average, deviation (unless it is negative), maximum and total, whose names end in unit.
static void put_times(struct xpl_iree_rows *r, const char *const names[5],
                      const double avg_stddev[2], const int64_t min_max_total[3]) {
    xpl_row_i64(r, names[0], min_max_total[0]);
    xpl_row_fixed(r, names[1], avg_stddev[0], 3);
    if (names[2]) xpl_row_fixed(r, names[2], avg_stddev[1], 3);
    xpl_row_i64(r, names[3], min_max_total[1]);
    xpl_row_i64(r, names[4], min_max_total[2]);
}

static void put_counts(struct xpl_iree_rows *r, const char *name, const struct xpl_iree_spans *s) {
    xpl_row_u64(r, name, s->count);
    xpl_row_u64(r, "valid", s->valid);
    xpl_row_u64(r, "invalid", s->count - s->valid);
}

static void put_device_times(const struct xpl_iree_dispatches *d, const struct xpl_iree_group *g,
                             bool in_executable) {
    struct xpl_iree_rows *const r = d->run->rows;
    const struct xpl_iree_fit fit = xpl_iree_model_fit(d->model, g->key.physical_device_ordinal);
    const uint64_t valid = g->spans.valid;
    const double ns_per_tick = xpl_iree_fit_ns_per_tick(&fit);
    const double stddev = xpl_iree_group_stddev(g);
    // The report of executables divides, that of dispatches has the running mean.
    const double exact = valid ? (double)g->spans.total / (double)valid : 0;
    const double average = in_executable ? exact : g->mean;
    int64_t min, max, total;
    bool timed = valid && xpl_iree_fit_ticks(&fit, g->min, &min);
    timed = timed && xpl_iree_fit_ticks(&fit, g->max, &max);
    timed = timed && xpl_iree_fit_ticks(&fit, g->spans.total, &total);
    if (!timed) min = max = total = 0;
    xpl_row_u64(r, "min_ticks", valid ? g->min : 0);
    xpl_row_fixed(r, "avg_ticks", average, 3);
    if (!in_executable) xpl_row_fixed(r, "stddev_ticks", stddev, 3);
    xpl_row_u64(r, "max_ticks", g->max);
    xpl_row_u64(r, "total_ticks", g->spans.total);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_bool(r, "time_ns_available", timed);
    const char *const names[5] = {"min_ns", "avg_ns", in_executable ? NULL : "stddev_ns", "max_ns",
                                  "total_ns"};
    put_times(r, names,
              (double[2]){timed ? average * ns_per_tick : 0, timed ? stddev * ns_per_tick : 0},
              (int64_t[3]){min, max, total});
}

static void put_host_times(struct xpl_iree_rows *r, const struct xpl_iree_group *g) {
    static const char *const names[5] = {"min_ns", "avg_ns", "stddev_ns", "max_ns", "total_ns"};
    const bool valid = g->spans.valid != 0;
    put_times(r, names, (double[2]){g->mean, xpl_iree_group_stddev(g)},
              (int64_t[3]){valid ? (int64_t)g->min : 0, (int64_t)g->max, (int64_t)g->spans.total});
    xpl_row_u64(r, "total_tile_count", g->spans.tile_count);
    xpl_row_i64(r, "total_tile_duration_sum_ns", g->spans.tile_duration_sum_ns);
}

void xpl_iree_row_group(const struct xpl_iree_dispatches *d, const struct xpl_iree_group *g,
                        bool host, bool in_executable) {
    struct xpl_iree_rows *const r = d->run->rows;
    struct xpl_iree_key_text text;
    const struct xpl_iree_function_row *const f =
        xpl_iree_model_function(d->model, g->key.executable_id, g->key.function_ordinal);
    const struct xpl_iree_function_key key = {g->key.executable_id, g->key.function_ordinal, 0};
    // A report of executables calls nameless functions without the device.
    const uint32_t device = in_executable ? XPL_IREE_NONE : g->key.physical_device_ordinal;
    static const char *const types[2][2] = {
        {"dispatch_group", "host_dispatch_group"},
        {"executable_function_dispatch_group", "executable_function_host_dispatch_group"}};
    xpl_row_begin(r, "type", types[in_executable][host]);
    if (host) xpl_iree_row_host_domains(r);
    xpl_row_u64(r, "physical_device_ordinal", g->key.physical_device_ordinal);
    xpl_row_u64(r, "executable_id", g->key.executable_id);
    xpl_row_u64(r, "function_ordinal", g->key.function_ordinal);
    xpl_row_str(r, "key", xpl_iree_key(f, device, key, &text));
    put_counts(r, in_executable ? "dispatches" : "count", &g->spans);
    if (host)
        put_host_times(r, g);
    else
        put_device_times(d, g, in_executable);
    if (!in_executable) {
        put_three(r, "last_workgroup_count", g->last_workgroup_count);
        put_three(r, "last_workgroup_size", g->last_workgroup_size);
    }
    xpl_row_end(r);
}

void xpl_iree_row_spans(const struct xpl_iree_dispatches *d, const struct xpl_iree_execution *x) {
    struct xpl_iree_rows *const r = d->run->rows;
    const struct xpl_iree_fit fit = xpl_iree_model_fit(d->model, x->key.physical_device_ordinal);
    const double span = (double)xpl_iree_spans_length(&x->spans);
    int64_t total;
    const bool timed = x->spans.valid != 0 && xpl_iree_fit_ticks(&fit, x->spans.total, &total);
    put_counts(r, "dispatches", &x->spans);
    xpl_row_fixed(r, "span_ticks", span, 3);
    xpl_row_u64(r, "total_dispatch_ticks", x->spans.total);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_bool(r, "total_dispatch_time_ns_available", timed);
    xpl_row_fixed(r, "span_ns", span * xpl_iree_fit_ns_per_tick(&fit), 3);
    xpl_row_i64(r, "total_dispatch_ns", timed ? total : 0);
}

void xpl_iree_row_host_spans(struct xpl_iree_rows *r, const struct xpl_iree_spans *s) {
    put_counts(r, "dispatches", s);
    xpl_row_u64(r, "span_ns", xpl_iree_spans_length(s));
    xpl_row_u64(r, "total_dispatch_ns", s->total);
    xpl_row_u64(r, "total_tile_count", s->tile_count);
    xpl_row_i64(r, "total_tile_duration_sum_ns", s->tile_duration_sum_ns);
}

void xpl_iree_row_sides(const struct xpl_iree_dispatches *d) {
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_u64(r, "matched_dispatches", d->device.matched);
    xpl_row_u64(r, "valid_dispatches", d->device.valid);
    xpl_row_u64(r, "invalid_dispatches", d->device.matched - d->device.valid);
    xpl_row_u64(r, "matched_host_dispatches", d->host.matched);
    xpl_row_u64(r, "valid_host_dispatches", d->host.valid);
    xpl_row_u64(r, "invalid_host_dispatches", d->host.matched - d->host.valid);
}

void xpl_iree_row_dispatch_summary(const struct xpl_iree_dispatches *d) {
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_begin(r, "type", "dispatch_summary");
    xpl_row_text(r, "mode", d->run->options.dispatch_events ? "events" : "aggregate");
    xpl_row_str(r, "filter", d->run->options.filter);
    xpl_row_u64(r, "total_dispatches", d->device.total);
    xpl_row_u64(r, "matched_dispatches", d->device.matched);
    xpl_row_u64(r, "valid_dispatches", d->device.valid);
    xpl_row_u64(r, "invalid_dispatches", d->device.matched - d->device.valid);
    xpl_row_u64(r, "aggregate_groups", d->device.groups.n);
    xpl_row_u64(r, "total_host_dispatches", d->host.total);
    xpl_row_u64(r, "matched_host_dispatches", d->host.matched);
    xpl_row_u64(r, "valid_host_dispatches", d->host.valid);
    xpl_row_u64(r, "invalid_host_dispatches", d->host.matched - d->host.valid);
    xpl_row_u64(r, "host_aggregate_groups", d->host.groups.n);
    xpl_row_end(r);
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    return xpl_iree_dispatches_add(ctx, r, err);
}

xpl_status_t xpl_iree_projection(struct xpl_iree_run *run, enum xpl_iree_subject subject,
                                 xpl_iree_projection_fn *write, struct xpl_error *err) {
    static const uint32_t kEvents = 1u << XPL_IREE_DISPATCH_EVENTS | 1u << XPL_IREE_HOST_EVENTS;
    XPL_AUTO(xpl_iree_model_fini) struct xpl_iree_model model;
    XPL_AUTO(xpl_iree_dispatches_fini) struct xpl_iree_dispatches d;
    xpl_iree_model_init(&model);
    xpl_iree_dispatches_init(&d, run, &model, subject);
    if (subject == XPL_IREE_BY_COMMAND_BUFFER) d.keep = XPL_IREE_KEEPS_EXECUTIONS;
    // Queues have the number of executions of command buffers.
    if (subject == XPL_IREE_BY_SUBMISSION)
        d.keep = XPL_IREE_KEEPS_EXECUTIONS | XPL_IREE_KEEPS_SUBMISSIONS;
    if (run->options.dispatch_events) {
        d.keep = 0;
        d.on_match = iree_row_dispatch;
        d.ctx = &d;
    }
    XPL_TRY(xpl_iree_model_load(&model, run, err));
    XPL_TRY(xpl_iree_walk_chunks(run, kEvents, add_record, &d, err));
    if (!run->options.dispatch_events) return write(&d, err);
    xpl_iree_row_dispatch_summary(&d);
    return XPL_OK;
}
