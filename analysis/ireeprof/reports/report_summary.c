// SPDX-License-Identifier: Apache-2.0
// Report summary: counts of everything, and clocks and dispatches of devices.
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/summary.h"

void xpl_iree_summary_init(struct xpl_iree_summary *s) {
    *s = (struct xpl_iree_summary){
        .devices = {.row_size = sizeof(struct xpl_iree_summary_device), .key_size = 8}};
}

void xpl_iree_summary_fini(struct xpl_iree_summary *s) {
    xpl_iree_table_fini(&s->devices);
}

static struct xpl_iree_summary_device *device_of(struct xpl_iree_summary *s, uint32_t ordinal) {
    const uint64_t key = ordinal;
    bool is_new;
    struct xpl_iree_summary_device *const d = xpl_iree_table_put(&s->devices, &key, &is_new);
    if (d && is_new) d->min_ticks = d->earliest_tick = UINT64_MAX;
    return d;
}

// ---- typed records; false on OOM ----

static bool add_device(struct xpl_iree_summary *s, const struct xpl_iree_item *item) {
    struct xpl_iree_device v;
    xpl_iree_copy(item, &v);
    struct xpl_iree_summary_device *const d = device_of(s, v.physical_device_ordinal);
    if (!d) return false;
    d->device_records++;
    d->queues = v.queue_count;
    return true;
}

static bool add_queue(struct xpl_iree_summary *s, const struct xpl_iree_item *item) {
    struct xpl_iree_queue v;
    xpl_iree_copy(item, &v);
    struct xpl_iree_summary_device *const d = device_of(s, v.physical_device_ordinal);
    if (d) d->queue_records++;
    return d != NULL;
}

static bool add_clock(struct xpl_iree_summary *s, const struct xpl_iree_item *item) {
    struct xpl_iree_clock_correlation v;
    xpl_iree_copy(item, &v);
    struct xpl_iree_summary_device *const d = device_of(s, v.physical_device_ordinal);
    if (d) xpl_iree_clock_add(&d->clock, &v);
    return d != NULL;
}

static void add_dispatch(struct xpl_iree_summary_device *d, const struct xpl_iree_item *item) {
    struct xpl_iree_dispatch_event e;
    xpl_iree_copy(item, &e);
    d->dispatches++;
    if (!xpl_iree_ticks_valid(e.start_tick, e.end_tick)) return;
    const uint64_t ticks = e.end_tick - e.start_tick;
    d->valid++;
    xpl_iree_add(&d->total_ticks, ticks);
    if (ticks < d->min_ticks) d->min_ticks = ticks;
    if (ticks > d->max_ticks) d->max_ticks = ticks;
    if (e.start_tick < d->earliest_tick) d->earliest_tick = e.start_tick;
    if (e.end_tick > d->latest_tick) d->latest_tick = e.end_tick;
}

static void add_span(uint64_t *invalid, uint64_t *total, int64_t start, int64_t end) {
    if (xpl_iree_host_valid(start, end))
        xpl_iree_add(total, (uint64_t)(end - start));
    else
        ++*invalid;
}

static bool add_metric_sample(struct xpl_iree_summary *s, const struct xpl_iree_item *item) {
    struct xpl_iree_metric_sample v;
    xpl_iree_copy(item, &v);
    struct xpl_iree_summary_device *const d = device_of(s, v.physical_device_ordinal);
    if (!d) return false;
    const bool invalid = !xpl_iree_host_valid(v.host_time_begin_ns, v.host_time_end_ns);
    d->metric_samples++;
    d->metric_values += v.value_count;
    d->invalid_metric_samples += invalid;
    s->metric_values += v.value_count;
    s->invalid_metric_samples += invalid;
    return true;
}

// Records of which more is summed up than that they are there, events aside; false on OOM.
static bool add_item(struct xpl_iree_summary *s, const struct xpl_iree_record *r,
                     const struct xpl_iree_item *item) {
    struct xpl_iree_trace trace;
    if (r->chunk == XPL_IREE_DEVICES) return add_device(s, item);
    if (r->chunk == XPL_IREE_QUEUES) return add_queue(s, item);
    if (r->chunk == XPL_IREE_CLOCKS) return add_clock(s, item);
    if (r->chunk == XPL_IREE_METRIC_SAMPLES) return add_metric_sample(s, item);
    if (r->chunk == XPL_IREE_CODE_OBJECTS) xpl_iree_add(&s->code_object_bytes, item->tail.len);
    if (r->chunk == XPL_IREE_TRACES) {
        xpl_iree_copy(item, &trace);
        xpl_iree_add(&s->trace_bytes, trace.data_length);
    }
    return true;
}

// Nearly all records are events, so that each kind of them has a separate loop. These return how
// many there are.

static uint64_t add_dispatches(struct xpl_iree_summary_device *d, struct xpl_iree_items *items) {
    struct xpl_iree_item item;
    uint64_t n = 0;
    for (; xpl_iree_item_next(items, &item, NULL); n++)
        add_dispatch(d, &item);
    return n;
}

static uint64_t add_host_events(struct xpl_iree_summary *s, struct xpl_iree_items *items) {
    struct xpl_iree_item item;
    struct xpl_iree_host_event e;
    uint64_t n = 0;
    for (; xpl_iree_item_next(items, &item, NULL); n++) {
        xpl_iree_copy(&item, &e);
        add_span(&s->invalid_host, &s->host_ns, e.start_host_time_ns, e.end_host_time_ns);
    }
    return n;
}

static uint64_t add_regions(struct xpl_iree_summary *s, struct xpl_iree_items *items) {
    struct xpl_iree_item item;
    struct xpl_iree_region_event e;
    uint64_t n = 0;
    for (; xpl_iree_item_next(items, &item, NULL); n++) {
        xpl_iree_copy(&item, &e);
        add_span(&s->invalid_regions, &s->region_ns, e.start_host_time_ns, e.end_host_time_ns);
    }
    return n;
}

static uint64_t count_items(struct xpl_iree_items *items) {
    struct xpl_iree_item item;
    uint64_t n = 0;
    while (xpl_iree_item_next(items, &item, NULL))
        n++;
    return n;
}

static bool add_items(struct xpl_iree_summary *s, const struct xpl_iree_record *r,
                      struct xpl_iree_items *items) {
    uint64_t *const n = &s->records_of[r->chunk];
    struct xpl_iree_item item;
    if (r->chunk == XPL_IREE_DISPATCH_EVENTS) {
        struct xpl_iree_summary_device *const d = device_of(s, r->physical_device_ordinal);
        if (d) *n += add_dispatches(d, items);
        return d != NULL;
    }
    if (r->chunk == XPL_IREE_HOST_EVENTS) {
        *n += add_host_events(s, items);
    } else if (r->chunk == XPL_IREE_REGION_EVENTS) {
        *n += add_regions(s, items);
    } else if (items->type->events && r->chunk != XPL_IREE_METRIC_SAMPLES) {
        *n += count_items(items);
    } else {
        for (; xpl_iree_item_next(items, &item, NULL); ++*n)
            if (!add_item(s, r, &item)) return false;
    }
    return true;
}

static bool add_chunk(struct xpl_iree_summary *s, const struct xpl_iree_record *r) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    // What IREE calls unknown is counted so, although its functions are read.
    if (r->chunk == XPL_IREE_UNKNOWN_CHUNK || r->old_name) {
        s->unknown_chunks++;
        return true;
    }
    s->chunks_of[r->chunk]++;
    items.any_tail = r->chunk == XPL_IREE_FUNCTIONS; // IREE's summary does not look at names
    return add_items(s, r, &items);
}

xpl_status_t xpl_iree_summary_add(struct xpl_iree_summary *s, const struct xpl_iree_record *r,
                                  struct xpl_error *err) {
    s->records++;
    if (r->record_type == XPL_IREE_RECORD_BEGIN) {
        s->begins++;
    } else if (r->record_type == XPL_IREE_RECORD_END) {
        s->ends++;
        if (r->session_status_code != 0 && s->bad_ends++ == 0) s->first_bad_end = *r;
    } else if (r->record_type != XPL_IREE_RECORD_CHUNK) {
        s->unknown_records++;
    } else {
        s->chunks++;
        if (xpl_iree_truncated(r)) {
            s->truncated_chunks++;
            s->dropped_records += r->dropped_record_count; // wraps around, as IREE's does
        }
        if (!add_chunk(s, r)) XPL_RETURN_OOM(err, "devices of the bundle");
    }
    return XPL_OK;
}

// ---- rows ----

void xpl_iree_row_bad_end(struct xpl_iree_rows *rows, const struct xpl_iree_summary *s) {
    const struct xpl_iree_record *const end = &s->first_bad_end;
    if (!s->bad_ends) return;
    xpl_row_u64(rows, "first_non_ok_session_id", end->session_id);
    xpl_row_u64(rows, "first_non_ok_stream_id", end->stream_id);
    xpl_row_u64(rows, "first_non_ok_event_id", end->event_id);
    xpl_row_u64(rows, "first_non_ok_status_code", end->session_status_code);
    xpl_row_text(rows, "first_non_ok_status",
                 xpl_iree_name(XPL_IREE_NAMES_STATUS, end->session_status_code));
}

// Members that are counts of chunks, of their records, or of something else.
struct count {
    const char *name;
    enum { CHUNKS, RECORDS, VALUE } what;
    enum xpl_iree_chunk chunk;
    size_t offset; // VALUE: in struct xpl_iree_summary
};
#define CHUNKS_OF(n, c)                                                                            \
    { (n), CHUNKS, (c), 0 }
#define RECORDS_OF(n, c)                                                                           \
    { (n), RECORDS, (c), 0 }
#define VALUE_OF(n, m)                                                                             \
    { (n), VALUE, XPL_IREE_NO_CHUNK, offsetof(struct xpl_iree_summary, m) }
static const struct count counts[] = {
    CHUNKS_OF("device_chunks", XPL_IREE_DEVICES),
    CHUNKS_OF("queue_chunks", XPL_IREE_QUEUES),
    CHUNKS_OF("executable_chunks", XPL_IREE_EXECUTABLES),
    RECORDS_OF("executable_records", XPL_IREE_EXECUTABLES),
    CHUNKS_OF("executable_code_object_chunks", XPL_IREE_CODE_OBJECTS),
    RECORDS_OF("executable_code_object_records", XPL_IREE_CODE_OBJECTS),
    VALUE_OF("executable_code_object_data_bytes", code_object_bytes),
    CHUNKS_OF("executable_code_object_load_chunks", XPL_IREE_CODE_OBJECT_LOADS),
    RECORDS_OF("executable_code_object_load_records", XPL_IREE_CODE_OBJECT_LOADS),
    CHUNKS_OF("executable_function_chunks", XPL_IREE_FUNCTIONS),
    RECORDS_OF("executable_function_records", XPL_IREE_FUNCTIONS),
    CHUNKS_OF("command_buffer_chunks", XPL_IREE_COMMAND_BUFFERS),
    RECORDS_OF("command_buffer_records", XPL_IREE_COMMAND_BUFFERS),
    CHUNKS_OF("command_operation_chunks", XPL_IREE_COMMAND_OPERATIONS),
    RECORDS_OF("command_operation_records", XPL_IREE_COMMAND_OPERATIONS),
    CHUNKS_OF("clock_correlation_chunks", XPL_IREE_CLOCKS),
    CHUNKS_OF("dispatch_event_chunks", XPL_IREE_DISPATCH_EVENTS),
    CHUNKS_OF("queue_event_chunks", XPL_IREE_QUEUE_EVENTS),
    RECORDS_OF("queue_event_records", XPL_IREE_QUEUE_EVENTS),
    CHUNKS_OF("queue_device_event_chunks", XPL_IREE_QUEUE_DEVICE_EVENTS),
    RECORDS_OF("queue_device_event_records", XPL_IREE_QUEUE_DEVICE_EVENTS),
    CHUNKS_OF("host_execution_event_chunks", XPL_IREE_HOST_EVENTS),
    RECORDS_OF("host_execution_event_records", XPL_IREE_HOST_EVENTS),
    VALUE_OF("invalid_host_execution_event_records", invalid_host),
    VALUE_OF("total_host_execution_duration_ns", host_ns),
    CHUNKS_OF("command_region_event_chunks", XPL_IREE_REGION_EVENTS),
    RECORDS_OF("command_region_event_records", XPL_IREE_REGION_EVENTS),
    VALUE_OF("invalid_command_region_event_records", invalid_regions),
    VALUE_OF("total_command_region_duration_ns", region_ns),
    CHUNKS_OF("memory_event_chunks", XPL_IREE_MEMORY_EVENTS),
    RECORDS_OF("memory_event_records", XPL_IREE_MEMORY_EVENTS),
    CHUNKS_OF("event_relationship_chunks", XPL_IREE_RELATIONSHIPS),
    RECORDS_OF("event_relationship_records", XPL_IREE_RELATIONSHIPS),
    CHUNKS_OF("counter_set_chunks", XPL_IREE_COUNTER_SETS),
    RECORDS_OF("counter_set_records", XPL_IREE_COUNTER_SETS),
    CHUNKS_OF("counter_chunks", XPL_IREE_COUNTERS),
    RECORDS_OF("counter_records", XPL_IREE_COUNTERS),
    CHUNKS_OF("counter_sample_chunks", XPL_IREE_COUNTER_SAMPLES),
    RECORDS_OF("counter_sample_records", XPL_IREE_COUNTER_SAMPLES),
    CHUNKS_OF("device_metric_source_chunks", XPL_IREE_METRIC_SOURCES),
    RECORDS_OF("device_metric_source_records", XPL_IREE_METRIC_SOURCES),
    CHUNKS_OF("device_metric_descriptor_chunks", XPL_IREE_METRIC_DESCRIPTORS),
    RECORDS_OF("device_metric_descriptor_records", XPL_IREE_METRIC_DESCRIPTORS),
    CHUNKS_OF("device_metric_sample_chunks", XPL_IREE_METRIC_SAMPLES),
    RECORDS_OF("device_metric_sample_records", XPL_IREE_METRIC_SAMPLES),
    VALUE_OF("device_metric_values", metric_values),
    VALUE_OF("invalid_device_metric_sample_records", invalid_metric_samples),
    CHUNKS_OF("executable_trace_chunks", XPL_IREE_TRACES),
    RECORDS_OF("executable_trace_records", XPL_IREE_TRACES),
    VALUE_OF("executable_trace_data_bytes", trace_bytes),
    VALUE_OF("unknown_chunks", unknown_chunks),
    VALUE_OF("truncated_chunks", truncated_chunks),
    VALUE_OF("dropped_records", dropped_records),
};

static void write_counts(struct xpl_iree_rows *r, const struct xpl_iree_summary *s) {
    xpl_row_begin(r, "type", "summary");
    xpl_row_u64(r, "file_records", s->records);
    xpl_row_u64(r, "session_begin_records", s->begins);
    xpl_row_u64(r, "chunk_records", s->chunks);
    xpl_row_u64(r, "session_end_records", s->ends);
    xpl_row_u64(r, "non_ok_session_end_records", s->bad_ends);
    xpl_row_u64(r, "unknown_records", s->unknown_records);
    xpl_iree_row_bad_end(r, s);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const struct count *const c = &counts[i];
        uint64_t v;
        if (c->what == VALUE)
            memcpy(&v, (const char *)s + c->offset, sizeof v);
        else
            v = c->what == CHUNKS ? s->chunks_of[c->chunk] : s->records_of[c->chunk];
        xpl_row_u64(r, c->name, v);
    }
    xpl_row_end(r);
}

// Whether all valid dispatches lie between the first and the last clock correlation.
static bool covered(const struct xpl_iree_summary_device *d) {
    const struct xpl_iree_clock *const c = &d->clock;
    return c->samples >= 2 && d->valid && !c->unaligned &&
           (c->first.flags & c->last.flags & XPL_IREE_CLOCK_DEVICE_TICK) &&
           c->first.device_tick <= d->earliest_tick && d->latest_tick <= c->last.device_tick;
}

static void write_device(struct xpl_iree_rows *r, const struct xpl_iree_summary_device *d) {
    const struct xpl_iree_fit fit = xpl_iree_clock_fit(&d->clock, XPL_IREE_TIME_HOST_CPU);
    const double average = d->valid ? (double)d->total_ticks / (double)d->valid : 0;
    const double ns_per_tick = xpl_iree_fit_ns_per_tick(&fit);
    int64_t min, max, total;
    bool timed = d->valid && xpl_iree_fit_ticks(&fit, d->min_ticks, &min);
    timed = timed && xpl_iree_fit_ticks(&fit, d->max_ticks, &max);
    timed = timed && xpl_iree_fit_ticks(&fit, d->total_ticks, &total);
    if (!timed) min = max = total = 0;
    xpl_row_begin(r, "type", "device_summary");
    xpl_row_u64(r, "physical_device_ordinal", d->physical_device_ordinal);
    xpl_row_u64(r, "device_records", d->device_records);
    xpl_row_u64(r, "queue_records", d->queue_records);
    xpl_row_u64(r, "queues", d->queues);
    xpl_row_u64(r, "clock_samples", d->clock.samples);
    xpl_row_u64(r, "invalid_clock_alignment_samples", d->clock.unaligned);
    xpl_row_bool(r, "clock_fit_available", fit.valid);
    xpl_row_fixed(r, "ns_per_tick", ns_per_tick, 9);
    xpl_row_fixed(r, "tick_frequency_hz", xpl_iree_fit_hz(&fit), 3);
    xpl_row_i64(r, "min_clock_uncertainty_ns", d->clock.min_uncertainty_ns);
    xpl_row_i64(r, "max_clock_uncertainty_ns", d->clock.max_uncertainty_ns);
    xpl_row_u64(r, "dispatches", d->dispatches);
    xpl_row_u64(r, "valid_dispatches", d->valid);
    xpl_row_u64(r, "invalid_dispatches", d->dispatches - d->valid);
    xpl_row_u64(r, "min_dispatch_ticks", d->valid ? d->min_ticks : 0);
    xpl_row_fixed(r, "avg_dispatch_ticks", average, 3);
    xpl_row_u64(r, "max_dispatch_ticks", d->max_ticks);
    xpl_row_u64(r, "total_dispatch_ticks", d->total_ticks);
    xpl_row_u64(r, "earliest_dispatch_start_tick", d->valid ? d->earliest_tick : 0);
    xpl_row_u64(r, "latest_dispatch_end_tick", d->latest_tick);
    xpl_row_bool(r, "dispatch_ticks_covered_by_clock_samples", covered(d));
    xpl_row_bool(r, "dispatch_time_available", timed);
    xpl_row_i64(r, "min_dispatch_ns", min);
    xpl_row_fixed(r, "avg_dispatch_ns", timed ? average * ns_per_tick : 0, 3);
    xpl_row_i64(r, "max_dispatch_ns", max);
    xpl_row_i64(r, "total_dispatch_ns", total);
    xpl_row_u64(r, "device_metric_samples", d->metric_samples);
    xpl_row_u64(r, "device_metric_values", d->metric_values);
    xpl_row_u64(r, "invalid_device_metric_samples", d->invalid_metric_samples);
    xpl_row_end(r);
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    return xpl_iree_summary_add(ctx, r, err);
}

xpl_status_t xpl_iree_report_summary(struct xpl_iree_run *run, struct xpl_error *err) {
    struct xpl_iree_summary s;
    xpl_iree_summary_init(&s);
    const xpl_status_t st = xpl_iree_walk(run, add_record, &s, err);
    if (st == XPL_OK) write_counts(run->rows, &s);
    for (size_t i = 0; st == XPL_OK && i < s.devices.n; i++)
        write_device(run->rows, xpl_iree_table_at(&s.devices, i));
    xpl_iree_summary_fini(&s);
    return st;
}
