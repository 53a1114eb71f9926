// SPDX-License-Identifier: Apache-2.0
// Report command: command buffers, their recorded commands, and their executions.
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/rows_dispatch.h"

struct operations {
    struct xpl_iree_dispatches *d;
    bool write; // else count
    uint64_t matched;
};

static void write_operation(struct operations *o, const struct xpl_iree_command_operation *op,
                            xpl_str_t key) {
    struct xpl_iree_rows *const r = o->d->run->rows;
    xpl_row_begin(r, "type", "command_operation");
    xpl_iree_row_members(r, XPL_IREE_COMMAND_OPERATIONS, 0, 7, op); // to block_command_ordinal
    xpl_row_str(r, "key", key);
    xpl_iree_row_members(r, XPL_IREE_COMMAND_OPERATIONS, 7, 12, op);
    xpl_row_end(r);
}

// Counts or writes the operations of a record that --id and --filter choose.
static xpl_status_t visit_operations(void *ctx, const struct xpl_iree_record *r,
                                     struct xpl_error *err) {
    (void)err;
    struct operations *const o = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    const xpl_str_t filter = o->d->run->options.filter;
    if (r->chunk != XPL_IREE_COMMAND_OPERATIONS) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        struct xpl_iree_command_operation op;
        struct xpl_iree_key_text text;
        xpl_iree_copy(&item, &op);
        if (!xpl_iree_id_is(o->d->run, op.command_buffer_id)) continue;
        const xpl_str_t key = xpl_iree_operation_key(o->d->model, o->d->run, &op, &text);
        if (!xpl_iree_glob_z(xpl_iree_name(XPL_IREE_NAMES_COMMAND, op.type), filter) &&
            !xpl_iree_glob(key, filter))
            continue;
        o->matched++;
        if (o->write) write_operation(o, &op, key);
    }
    return XPL_OK;
}

static void write_execution(const struct xpl_iree_dispatches *d, const struct xpl_iree_execution *x,
                            bool host) {
    struct xpl_iree_rows *const r = d->run->rows;
    if (!xpl_iree_id_is(d->run, x->key.command_buffer_id)) return;
    xpl_row_begin(r, "type", host ? "command_host_execution" : "command_execution");
    if (host) xpl_iree_row_host_domains(r);
    xpl_row_u64(r, "command_buffer_id", x->key.command_buffer_id);
    xpl_row_u64(r, "submission_id", x->key.submission_id);
    xpl_iree_row_queue(r, x->key.physical_device_ordinal, x->key.queue_ordinal, x->key.stream_id);
    if (host)
        xpl_iree_row_host_spans(r, &x->spans);
    else
        xpl_iree_row_spans(d, x);
    xpl_row_end(r);
}

static void write_summary(const struct xpl_iree_dispatches *d, uint64_t matched) {
    struct xpl_iree_rows *const r = d->run->rows;
    xpl_row_begin(r, "type", "command_summary");
    xpl_row_str(r, "filter", d->run->options.filter);
    xpl_row_u64(r, "command_buffers", d->model->buffers.n);
    xpl_row_u64(r, "executions", d->device.executions.n);
    xpl_row_u64(r, "host_executions", d->host.executions.n);
    xpl_row_u64(r, "command_operations", d->model->n_operations);
    xpl_row_u64(r, "matched_command_operations", matched);
    xpl_iree_row_sides(d);
    xpl_row_end(r);
}

static void write_buffers(const struct xpl_iree_dispatches *d) {
    static const struct xpl_iree_field fields[] = {
        XPL_F(U64, command_buffer, command_buffer_id),
        XPL_F(U32, command_buffer, physical_device_ordinal), XPL_F(U64, command_buffer, mode),
        XPL_F(U64, command_buffer, command_categories), XPL_F(U64, command_buffer, queue_affinity)};
    for (size_t i = 0; i < d->model->buffers.n; i++) {
        const struct xpl_iree_buffer_row *const b = xpl_iree_table_at(&d->model->buffers, i);
        if (!xpl_iree_id_is(d->run, b->key.command_buffer_id)) continue;
        xpl_row_begin(d->run->rows, "type", "command_buffer");
        XPL_ROW_FIELDS(d->run->rows, fields, &b->record);
        xpl_row_end(d->run->rows);
    }
}

static xpl_status_t write_command(struct xpl_iree_dispatches *d, struct xpl_error *err) {
    struct operations o = {.d = d};
    // Operations are many, so they are read again instead of kept.
    const uint64_t missing = d->run->missing[XPL_IREE_MISSING_FUNCTION];
    XPL_TRY(
        xpl_iree_walk_chunks(d->run, 1u << XPL_IREE_COMMAND_OPERATIONS, visit_operations, &o, err));
    d->run->missing[XPL_IREE_MISSING_FUNCTION] = missing;
    write_summary(d, o.matched);
    write_buffers(d);
    o.write = true;
    XPL_TRY(
        xpl_iree_walk_chunks(d->run, 1u << XPL_IREE_COMMAND_OPERATIONS, visit_operations, &o, err));
    for (size_t i = 0; i < d->device.executions.n; i++)
        write_execution(d, xpl_iree_table_at(&d->device.executions, i), false);
    for (size_t i = 0; i < d->host.executions.n; i++)
        write_execution(d, xpl_iree_table_at(&d->host.executions, i), true);
    return XPL_OK;
}

xpl_status_t xpl_iree_report_command(struct xpl_iree_run *run, struct xpl_error *err) {
    return xpl_iree_projection(run, XPL_IREE_BY_COMMAND_BUFFER, write_command, err);
}
