// SPDX-License-Identifier: Apache-2.0
// Reports cat and att: the headers of records, and the executable traces among them.
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/report.h"

static xpl_status_t write_record(void *ctx, const struct xpl_iree_record *h,
                                 struct xpl_error *err) {
    (void)err;
    const struct xpl_iree_run *const run = ctx;
    struct xpl_iree_rows *const r = run->rows;
    xpl_row_begin(r, "type", "record");
    xpl_row_u64(r, "index", h->index);
    xpl_row_text(r, "record_type", xpl_iree_name(XPL_IREE_NAMES_RECORD, h->record_type));
    xpl_row_u64(r, "record_type_value", h->record_type);
    xpl_row_u64(r, "record_length", h->record_length);
    xpl_row_u64(r, "payload_length", h->payload_length);
    xpl_row_str(r, "content_type", h->content_type);
    xpl_row_str(r, "name", h->name);
    xpl_row_u64(r, "session_id", h->session_id);
    xpl_row_u64(r, "stream_id", h->stream_id);
    xpl_row_u64(r, "event_id", h->event_id);
    xpl_row_u64(r, "executable_id", h->executable_id);
    xpl_row_u64(r, "command_buffer_id", h->command_buffer_id);
    xpl_row_u64(r, "physical_device_ordinal", h->physical_device_ordinal);
    xpl_row_u64(r, "queue_ordinal", h->queue_ordinal);
    xpl_row_u64(r, "chunk_flags", h->chunk_flags);
    xpl_row_u64(r, "session_status_code", h->session_status_code);
    xpl_row_text(r, "session_status", xpl_iree_name(XPL_IREE_NAMES_STATUS, h->session_status_code));
    xpl_row_end(r);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_cat(struct xpl_iree_run *run, struct xpl_error *err) {
    const struct xpl_iree_header *const h = &run->bundle->header;
    struct xpl_iree_rows *const r = run->rows;
    xpl_row_begin(r, "type", "file");
    xpl_row_text(r, "magic", "IRPF");
    xpl_row_u64(r, "version_major", h->version_major);
    xpl_row_u64(r, "version_minor", h->version_minor);
    xpl_row_u64(r, "header_length", h->header_length);
    xpl_row_u64(r, "flags", h->flags);
    xpl_row_end(r);
    return xpl_iree_walk(run, write_record, run, err);
}

// ---- att ----

static xpl_status_t write_trace(void *ctx, const struct xpl_iree_record *h, struct xpl_error *err) {
    enum { LENGTHS = 2 }; // at the end of the export's row; here the bytes follow
    const struct xpl_iree_export_row *const row = &xpl_iree_export_rows[XPL_IREE_TRACES];
    (void)err;
    const struct xpl_iree_run *const run = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(h);
    struct xpl_iree_item item;
    struct xpl_iree_trace t;
    if (h->chunk != XPL_IREE_TRACES || !xpl_iree_item_next(&items, &item, NULL)) return XPL_OK;
    xpl_iree_copy(&item, &t);
    if (!xpl_iree_id_is(run, t.trace_id)) return XPL_OK;
    xpl_row_begin(run->rows, "type", "att_trace");
    xpl_row_fields(run->rows, row->fields, row->n - LENGTHS, &t);
    xpl_row_u64(run->rows, "raw_bytes", t.data_length);
    xpl_row_u64(run->rows, "raw_offset", (uint64_t)(item.tail.ptr - run->bundle->bytes.ptr));
    xpl_row_end(run->rows);
    return XPL_OK;
}

xpl_status_t xpl_iree_trace_bytes(const struct xpl_iree_bundle *bundle, int64_t id,
                                  xpl_bytes_t *ret, struct xpl_error *err) {
    struct xpl_iree_cursor c = {.bundle = bundle};
    struct xpl_iree_record h;
    struct xpl_iree_item item;
    struct xpl_iree_trace t;
    while (xpl_iree_next(&c, &h)) {
        struct xpl_iree_items items = xpl_iree_items_of(&h);
        if (h.chunk != XPL_IREE_TRACES || !xpl_iree_item_next(&items, &item, NULL)) continue;
        xpl_iree_copy(&item, &t);
        if (id < 0 || t.trace_id != (uint64_t)id) continue;
        if (items.left_out)
            XPL_RETURN_ERROR(
                err, XPL_FAILED_PRECONDITION,
                "rows of ireeperf-jsonl do not have the bytes of traces: ask the bundle "
                "that they were made of");
        *ret = item.tail;
        return XPL_OK;
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "the bundle has no executable trace of this id");
}

xpl_status_t xpl_iree_report_att(struct xpl_iree_run *run, struct xpl_error *err) {
    return xpl_iree_walk(run, write_trace, run, err);
}
