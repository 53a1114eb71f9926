// SPDX-License-Identifier: Apache-2.0
// The export ireeperf-jsonl (schema 15): every record as a row, in the order of the file; or the
// bundle as a trace.
#include "analysis/ireeprof/fields.h"
#include "analysis/ireeprof/reports/export/export.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/timeline/timeline.h"

static void write_schema(const struct xpl_iree_run *run) {
    static const struct xpl_iree_field fields[] = {
        XPL_F_CONST("format", "ireeperf-jsonl"),
        XPL_F_CONST("contract", "schema_versioned_interchange"),
        XPL_F_CONST("row_key", "record_type"), XPL_F_CONST("source_format", "ireeprof")};
    static const struct xpl_iree_field domains[] = {
        {.name = "time_domains", .kind = XPL_IREE_OBJECT},
        XPL_F_CONST("iree_host_time_ns", "iree_time_now monotonic nanoseconds"),
        XPL_F_CONST("device_tick", "raw physical-device timestamp ticks"),
        XPL_F_CONST("driver_host_cpu_timestamp_ns", "driver-sampled CPU timestamp nanoseconds"),
        XPL_F_CONST("driver_host_system_timestamp",
                    "driver-sampled system timestamp units scaled by host_system_frequency_hz"),
        XPL_F_CONST("device_tick_duration_ns",
                    "duration nanoseconds derived from device_tick clock fit"),
        {.kind = XPL_IREE_END},
        {.name = "clock_fit", .kind = XPL_IREE_OBJECT},
        XPL_F_CONST("basis", "first_last_clock_correlation"),
        XPL_F_CONST("rounding", "nearest_integer_nanosecond"),
        {.kind = XPL_IREE_END}};
    struct xpl_iree_rows *const r = run->rows;
    xpl_row_begin(r, NULL, "schema");
    xpl_row_u64(r, "schema_version", XPL_IREE_EXPORT_SCHEMA);
    xpl_row_text(r, "record_type", "schema");
    XPL_ROW_FIELDS(r, fields, &(char){0});
    xpl_row_u64(r, "source_version_major", run->bundle->header.version_major);
    xpl_row_u64(r, "source_version_minor", run->bundle->header.version_minor);
    XPL_ROW_FIELDS(r, domains, &(char){0});
    xpl_row_end(r);
}

void xpl_iree_export_begin_warning(struct xpl_iree_run *run) {
    // Behind the last record: it is about the whole bundle.
    xpl_iree_export_begin(run->rows, "diagnostic", run->bundle->n_records);
    // An error tells readers of the rows that the bundle was incomplete (ireeperf/).
    xpl_row_text(run->rows, "severity", xpl_iree_is_partial(run) ? "error" : "warning");
    xpl_row_text(run->rows, "category", "bundle");
    xpl_row_text(run->rows, "content_type", "");
}

static void write_session(struct xpl_iree_rows *r, const struct xpl_iree_record *h) {
    xpl_iree_export_begin(r, "session", h->index);
    xpl_row_text(r, "event", h->record_type == XPL_IREE_RECORD_BEGIN ? "begin" : "end");
    xpl_row_u64(r, "session_id", h->session_id);
    xpl_row_u64(r, "stream_id", h->stream_id);
    xpl_row_u64(r, "event_id", h->event_id);
    xpl_row_u64(r, "session_status_code", h->session_status_code);
    xpl_row_text(r, "session_status", xpl_iree_name(XPL_IREE_NAMES_STATUS, h->session_status_code));
    xpl_row_end(r);
}

static xpl_status_t write_record(void *ctx, const struct xpl_iree_record *h,
                                 struct xpl_error *err) {
    (void)err;
    const struct xpl_iree_export *const x = ctx;
    struct xpl_iree_rows *const r = x->run->rows;
    struct xpl_iree_items items = xpl_iree_items_of(h);
    struct xpl_iree_item item;
    if (h->record_type == XPL_IREE_RECORD_BEGIN || h->record_type == XPL_IREE_RECORD_END) {
        write_session(r, h);
        return XPL_OK;
    }
    for (int i = 0; i < XPL_IREE_N_DIAGNOSTICS; i++)
        (void)xpl_iree_export_diagnostic(r, h, (enum xpl_iree_diagnostic)i);
    if (xpl_iree_export_diagnostic(NULL, h, XPL_IREE_UNEXPORTED_CHUNK)) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL))
        xpl_iree_export_item(x, h, &item);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_export(struct xpl_iree_run *run, struct xpl_error *err) {
    if (run->options.trace) return xpl_iree_timeline_write(run, err);
    struct xpl_iree_export x = {.run = run};
    xpl_iree_model_init(&x.model);
    xpl_status_t st = xpl_iree_model_load(&x.model, run, err);
    if (st == XPL_OK) {
        write_schema(run);
        st = xpl_iree_walk(run, write_record, &x, err);
    }
    xpl_iree_model_fini(&x.model);
    return st;
}
