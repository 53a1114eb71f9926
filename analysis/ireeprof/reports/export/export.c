// SPDX-License-Identifier: Apache-2.0
// Rows of records: members of the record by table, and those that are computed, with names in place
// of ids and device ticks mapped to time.
#include "analysis/ireeprof/reports/export/export.h"

#include <string.h>

#include "analysis/ireeprof/reports/export/export_fields.h"

void xpl_iree_export_begin(struct xpl_iree_rows *r, const char *record_type, uint64_t index) {
    xpl_row_begin(r, NULL, record_type);
    xpl_row_u64(r, "schema_version", XPL_IREE_EXPORT_SCHEMA);
    xpl_row_text(r, "record_type", record_type);
    xpl_row_u64(r, "source_record_index", index);
}

// ---- members that are computed ----

// A span of device ticks; nothing of it when it is not `present`.
static void put_ticks(const struct xpl_iree_export *x, uint32_t device, uint64_t start,
                      uint64_t end, bool present, const char *valid_name) {
    struct xpl_iree_rows *const r = x->run->rows;
    const bool valid = present && xpl_iree_ticks_valid(start, end);
    struct xpl_iree_fit fit = xpl_iree_model_fit(&x->model, device);
    int64_t from, to, ns;
    // Times far before and far behind the samples may be further apart than a number holds.
    const bool timed = valid && xpl_iree_fit_time(&fit, start, &from) &&
                       xpl_iree_fit_time(&fit, end, &to) && to >= from &&
                       !__builtin_sub_overflow(to, from, &ns);
    if (!timed) from = to = ns = 0, fit = (struct xpl_iree_fit){0};
    xpl_row_u64(r, "duration_ticks", valid ? end - start : 0);
    xpl_row_bool(r, valid_name, valid);
    xpl_row_bool(r, "derived_time_available", timed);
    xpl_row_text(r, "derived_time_domain", "driver_host_cpu_timestamp_ns");
    xpl_row_text(r, "derived_time_basis", "first_last_clock_correlation");
    xpl_row_u64(r, "clock_fit_first_sample_id", fit.first_sample_id);
    xpl_row_u64(r, "clock_fit_last_sample_id", fit.last_sample_id);
    xpl_row_i64(r, "start_driver_host_cpu_time_ns", from);
    xpl_row_i64(r, "end_driver_host_cpu_time_ns", to);
    xpl_row_text(r, "duration_time_domain", "device_tick_duration_ns");
    xpl_row_i64(r, "duration_ns", ns);
}

// The length of a bracket, which is how uncertain its time is.
static void put_uncertainty(struct xpl_iree_rows *r, int64_t begin, int64_t end) {
    int64_t ns;
    if (end < begin || __builtin_sub_overflow(end, begin, &ns)) ns = 0;
    xpl_row_i64(r, "host_time_uncertainty_ns", ns);
}

static const struct xpl_iree_field host_span[] = {
    XPL_F_SPAN(host_event, start_host_time_ns, "duration_ns"),
    XPL_F_IS_SPAN(host_event, start_host_time_ns, "valid")};
static const struct xpl_iree_field region_span[] = {
    XPL_F_SPAN(region_event, start_host_time_ns, "duration_ns"),
    XPL_F_IS_SPAN(region_event, start_host_time_ns, "valid")};

static void put_key(const struct xpl_iree_export *x, uint32_t device, uint64_t executable,
                    uint32_t ordinal) {
    const struct xpl_iree_function_key key = {executable, ordinal, 0};
    struct xpl_iree_key_text text;
    xpl_row_str(x->run->rows, "key", xpl_iree_dispatch_key(&x->model, x->run, device, key, &text));
}

// ---- the middle of a row, where it is split ----

static void put_middle(const struct xpl_iree_export *x, const struct xpl_iree_record *h,
                       const struct xpl_iree_item *item) {
    struct xpl_iree_rows *const r = x->run->rows;
    struct xpl_iree_command_operation op;
    struct xpl_iree_dispatch_event dispatch;
    struct xpl_iree_host_event host;
    struct xpl_iree_metric_descriptor metric;
    struct xpl_iree_metric_sample sample;
    struct xpl_iree_key_text text;
    if (h->chunk == XPL_IREE_FUNCTIONS) {
        xpl_row_str(r, "name", (xpl_str_t){(const char *)item->tail.ptr, item->tail.len});
    } else if (h->chunk == XPL_IREE_COMMAND_OPERATIONS) {
        xpl_iree_copy(item, &op);
        xpl_row_str(r, "key", xpl_iree_operation_key(&x->model, x->run, &op, &text));
    } else if (h->chunk == XPL_IREE_DISPATCH_EVENTS) {
        xpl_iree_copy(item, &dispatch);
        put_key(x, h->physical_device_ordinal, dispatch.executable_id, dispatch.function_ordinal);
    } else if (h->chunk == XPL_IREE_HOST_EVENTS) {
        xpl_iree_copy(item, &host);
        if (host.executable_id && host.function_ordinal != XPL_IREE_NONE)
            put_key(x, host.physical_device_ordinal, host.executable_id, host.function_ordinal);
        else
            xpl_row_null(r, "key");
    } else if (h->chunk == XPL_IREE_REGION_EVENTS) {
        XPL_ROW_FIELDS(r, region_span, item->p);
    } else if (h->chunk == XPL_IREE_METRIC_DESCRIPTORS) {
        xpl_iree_copy(item, &metric);
        const bool producers = metric.metric_id >= XPL_IREE_FIRST_PRODUCERS;
        xpl_row_bool(r, "builtin", metric.metric_id != 0 && !producers);
        xpl_row_bool(r, "producer_specific", producers);
    } else {
        xpl_iree_copy(item, &sample);
        put_uncertainty(r, sample.host_time_begin_ns, sample.host_time_end_ns);
    }
}

// ---- the end of a row ----

static void put_uuid(struct xpl_iree_rows *r, const struct xpl_iree_item *item) {
    struct xpl_iree_device d;
    xpl_iree_copy(item, &d);
    if (!(d.flags & XPL_IREE_DEVICE_HAS_UUID)) {
        xpl_row_null(r, "physical_device_uuid");
        return;
    }
    uint64_t halves[2];
    memcpy(halves, d.physical_device_uuid, sizeof halves);
    // Hashes are printed as numbers, UUIDs byte by byte.
    halves[0] = __builtin_bswap64(halves[0]), halves[1] = __builtin_bswap64(halves[1]);
    xpl_row_hash(r, "physical_device_uuid", halves, true);
}

// Names that follow a record, one behind the other.
static void put_names(struct xpl_iree_rows *r, xpl_bytes_t tail, const char *const *names,
                      const uint32_t *lengths, size_t n) {
    const xpl_str_t text = {(const char *)tail.ptr, tail.len};
    size_t at = 0;
    for (size_t i = 0; i < n; at += lengths[i++])
        xpl_row_str(r, names[i], xpl_str_sub(text, at, lengths[i]));
}

static void put_values(struct xpl_iree_rows *r, const struct xpl_iree_item *item) {
    xpl_row_open(r, "values", '[');
    for (size_t i = 0; i + 8 <= item->tail.len; i += 8) {
        uint64_t v;
        memcpy(&v, item->tail.ptr + i, sizeof v);
        xpl_row_u64(r, NULL, v);
    }
    xpl_row_close(r, ']');
}

static void put_metric_value(const struct xpl_iree_export *x, uint64_t source,
                             const struct xpl_iree_metric_value *v) {
    static const struct xpl_iree_field fields[] = {
        XPL_F_NAME(metric_descriptor, unit, "unit", METRIC_UNIT),
        XPL_F_NAME(metric_descriptor, value_kind, "value_kind", METRIC_KIND),
        XPL_F_NAME(metric_descriptor, semantic, "semantic", METRIC_SEMANTIC),
        XPL_F_NAME(metric_descriptor, plot_hint, "plot_hint", PLOT_HINT)};
    static const struct xpl_iree_metric_row unknown;
    struct xpl_iree_rows *const r = x->run->rows;
    const struct xpl_iree_metric_row *m = xpl_iree_model_metric(&x->model, source, v->metric_id);
    double f64;
    if (!m) {
        x->run->missing[XPL_IREE_MISSING_DESCRIPTOR]++;
        m = &unknown;
    }
    memcpy(&f64, &v->value_bits, sizeof f64);
    xpl_row_open(r, NULL, '{');
    xpl_row_u64(r, "metric_id", v->metric_id);
    xpl_row_str(r, "name", m->name);
    XPL_ROW_FIELDS(r, fields, &m->record);
    xpl_row_u64(r, "flags", v->flags);
    if (m->record.value_kind == XPL_IREE_METRIC_I64)
        xpl_row_i64(r, "value", (int64_t)v->value_bits);
    else if (m->record.value_kind == XPL_IREE_METRIC_U64)
        xpl_row_u64(r, "value", v->value_bits);
    else if (m->record.value_kind == XPL_IREE_METRIC_F64)
        xpl_row_double(r, "value", f64);
    else
        xpl_row_null(r, "value");
    xpl_row_u64(r, "value_bits", v->value_bits);
    xpl_row_close(r, '}');
}

static void put_metric_values(const struct xpl_iree_export *x, const struct xpl_iree_item *item) {
    struct xpl_iree_metric_sample s;
    struct xpl_iree_metric_value v;
    xpl_iree_copy(item, &s);
    xpl_row_open(x->run->rows, "values", '[');
    for (size_t i = 0; i + sizeof v <= item->tail.len; i += sizeof v) {
        memcpy(&v, item->tail.ptr + i, sizeof v);
        put_metric_value(x, s.source_id, &v);
    }
    xpl_row_close(x->run->rows, ']');
}

// Of metadata.
static void put_metadata_end(const struct xpl_iree_export *x, const struct xpl_iree_record *h,
                             const struct xpl_iree_item *item) {
    static const char *const names[] = {"block", "name", "description"};
    struct xpl_iree_rows *const r = x->run->rows;
    struct xpl_iree_executable e;
    struct xpl_iree_function f;
    struct xpl_iree_clock_correlation c;
    struct xpl_iree_counter n;
    struct xpl_iree_metric_descriptor d;
    if (h->chunk == XPL_IREE_DEVICES) {
        put_uuid(r, item);
    } else if (h->chunk == XPL_IREE_EXECUTABLES) {
        xpl_iree_copy(item, &e);
        xpl_row_hash(r, "code_object_hash", e.code_object_hash, e.flags & XPL_IREE_HAS_HASH);
    } else if (h->chunk == XPL_IREE_FUNCTIONS) {
        xpl_iree_copy(item, &f);
        xpl_row_hash(r, "function_hash", f.function_hash, f.flags & XPL_IREE_HAS_HASH);
    } else if (h->chunk == XPL_IREE_CLOCKS) {
        xpl_iree_copy(item, &c);
        put_uncertainty(r, c.host_time_begin_ns, c.host_time_end_ns);
    } else if (h->chunk == XPL_IREE_COUNTER_SETS || h->chunk == XPL_IREE_METRIC_SOURCES) {
        xpl_row_str(r, "name", (xpl_str_t){(const char *)item->tail.ptr, item->tail.len});
    } else if (h->chunk == XPL_IREE_COUNTERS) {
        xpl_iree_copy(item, &n);
        const uint32_t lengths[] = {n.block_name_length, n.name_length, n.description_length};
        put_names(r, item->tail, names, lengths, 3);
    } else if (h->chunk == XPL_IREE_METRIC_DESCRIPTORS) {
        xpl_iree_copy(item, &d);
        put_names(r, item->tail, names + 1, (uint32_t[]){d.name_length, d.description_length}, 2);
    }
}

// Of events.
static void put_event_end(const struct xpl_iree_export *x, const struct xpl_iree_record *h,
                          const struct xpl_iree_item *item) {
    struct xpl_iree_dispatch_event e;
    struct xpl_iree_queue_device_event q;
    struct xpl_iree_counter_sample s;
    if (h->chunk == XPL_IREE_DISPATCH_EVENTS) {
        xpl_iree_copy(item, &e);
        put_ticks(x, h->physical_device_ordinal, e.start_tick, e.end_tick, true, "valid");
    } else if (h->chunk == XPL_IREE_QUEUE_DEVICE_EVENTS) {
        xpl_iree_copy(item, &q);
        put_ticks(x, q.physical_device_ordinal, q.start_tick, q.end_tick, true, "valid");
    } else if (h->chunk == XPL_IREE_HOST_EVENTS) {
        XPL_ROW_FIELDS(x->run->rows, host_span, item->p);
    } else if (h->chunk == XPL_IREE_COUNTER_SAMPLES) {
        xpl_iree_copy(item, &s);
        put_ticks(x, s.physical_device_ordinal, s.start_tick, s.end_tick,
                  s.flags & XPL_IREE_SAMPLE_HAS_TICKS, "device_tick_range_valid");
        put_values(x->run->rows, item);
    } else if (h->chunk == XPL_IREE_METRIC_SAMPLES) {
        put_metric_values(x, item);
    } else {
        put_metadata_end(x, h, item);
    }
}

// ---- rows ----

void xpl_iree_export_item(const struct xpl_iree_export *x, const struct xpl_iree_record *h,
                          const struct xpl_iree_item *item) {
    const struct xpl_iree_export_row *const row = &xpl_iree_export_rows[h->chunk];
    struct xpl_iree_rows *const r = x->run->rows;
    const size_t first = row->split ? row->split : row->n;
    if (x->bare)
        xpl_row_u64(r, "source_record_index", h->index);
    else
        xpl_iree_export_begin(r, row->record_type, h->index);
    if (h->chunk == XPL_IREE_DISPATCH_EVENTS) { // the record's header says where it ran
        xpl_row_u64(r, "physical_device_ordinal", h->physical_device_ordinal);
        xpl_row_u64(r, "queue_ordinal", h->queue_ordinal);
        xpl_row_u64(r, "stream_id", h->stream_id);
    }
    xpl_row_fields(r, row->fields, first, item->p);
    if (row->split) {
        put_middle(x, h, item);
        xpl_row_fields(r, row->fields + first, row->n - row->last - first, item->p);
    }
    put_event_end(x, h, item);
    xpl_row_fields(r, row->fields + row->n - row->last, row->last, item->p);
    if (!x->bare) xpl_row_end(r);
}

static void begin_diagnostic(struct xpl_iree_rows *r, const struct xpl_iree_record *h,
                             const char *severity, const char *category, const char *message) {
    xpl_iree_export_begin(r, "diagnostic", h->index);
    xpl_row_text(r, "severity", severity);
    xpl_row_text(r, "category", category);
    xpl_row_str(r, "content_type", h->content_type);
    xpl_row_text(r, "message", message);
}

bool xpl_iree_export_diagnostic(struct xpl_iree_rows *r, const struct xpl_iree_record *h,
                                enum xpl_iree_diagnostic which) {
    const bool is_chunk = h->record_type == XPL_IREE_RECORD_CHUNK;
    const bool is_session =
        h->record_type == XPL_IREE_RECORD_BEGIN || h->record_type == XPL_IREE_RECORD_END;
    const bool is[] = {[XPL_IREE_UNKNOWN_RECORD] = !is_chunk && !is_session,
                       [XPL_IREE_TRUNCATED_CHUNK] = is_chunk && xpl_iree_truncated(h),
                       [XPL_IREE_UNEXPORTED_CHUNK] =
                           is_chunk && (h->chunk == XPL_IREE_UNKNOWN_CHUNK ||
                                        !xpl_iree_export_rows[h->chunk].record_type)};
    if (!is[which] || !r) return is[which];
    switch (which) {
        case XPL_IREE_UNKNOWN_RECORD:
            begin_diagnostic(r, h, "warning", "unknown_record", "unknown profile file record type");
            break;
        case XPL_IREE_TRUNCATED_CHUNK:
            begin_diagnostic(r, h, "error", "truncated_chunk",
                             "chunk was marked truncated by the producer");
            xpl_row_u64(r, "dropped_records", h->dropped_record_count);
            break;
        case XPL_IREE_UNEXPORTED_CHUNK:
        case XPL_IREE_N_DIAGNOSTICS:
            begin_diagnostic(r, h, "warning", "unknown_chunk",
                             "unknown profile chunk content type");
            break;
    }
    xpl_row_end(r);
    return true;
}
