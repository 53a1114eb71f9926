// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void xpl_iree_model_init(struct xpl_iree_model *m) {
#define TABLE(row, key) (struct xpl_iree_table){.row_size = sizeof(struct row), .key_size = (key)}
    *m = (struct xpl_iree_model){
        .queues = TABLE(xpl_iree_queue_key, sizeof(struct xpl_iree_queue_key)),
        .executables = TABLE(xpl_iree_executable_row, 8),
        .functions = TABLE(xpl_iree_function_row, sizeof(struct xpl_iree_function_key)),
        .buffers = TABLE(xpl_iree_buffer_row, sizeof(struct xpl_iree_buffer_key)),
        .devices = TABLE(xpl_iree_device_row, sizeof(struct xpl_iree_device_key)),
        .metrics = TABLE(xpl_iree_metric_row, sizeof(struct xpl_iree_metric_key)),
        .uuids = TABLE(xpl_iree_uuid_row, sizeof(struct xpl_iree_device_key))};
#undef TABLE
    xpl_iree_sessions_init(&m->sessions);
}

void xpl_iree_model_fini(struct xpl_iree_model *m) {
    xpl_iree_table_fini(&m->queues);
    xpl_iree_table_fini(&m->executables);
    xpl_iree_table_fini(&m->functions);
    xpl_iree_table_fini(&m->buffers);
    xpl_iree_table_fini(&m->devices);
    xpl_iree_table_fini(&m->metrics);
    xpl_iree_table_fini(&m->uuids);
    xpl_iree_sessions_fini(&m->sessions);
    xpl_iree_scopes_fini(&m->scopes);
}

// ---- sessions ----

void xpl_iree_model_by_session(struct xpl_iree_model *m, const struct xpl_iree_bundle *bundle) {
    m->by_session = bundle->n_sessions > 1;
}

void xpl_iree_model_pass(struct xpl_iree_model *m) {
    if (!m->by_session) return;
    xpl_iree_sessions_fini(&m->sessions);
    xpl_iree_sessions_init(&m->sessions);
    xpl_iree_scopes_seal(&m->scopes);
    m->session = 0;
}

xpl_status_t xpl_iree_model_follow(struct xpl_iree_model *m, const struct xpl_iree_record *r,
                                   struct xpl_error *err) {
    if (m->by_session && !xpl_iree_sessions_follow(&m->sessions, r, NULL))
        XPL_RETURN_OOM(err, "sessions of the bundle");
    return XPL_OK;
}

uint32_t xpl_iree_model_scope(const struct xpl_iree_model *m, enum xpl_iree_scope_kind kind,
                              uint64_t a, uint64_t b) {
    const struct xpl_iree_scope_key key = {a, b, kind};
    return m->by_session ? xpl_iree_scopes_find(&m->scopes, key, m->session) : 0;
}

bool xpl_iree_model_describe(struct xpl_iree_model *m, enum xpl_iree_scope_kind kind, uint64_t a,
                             uint64_t b) {
    const struct xpl_iree_scope_key key = {a, b, kind};
    return !m->by_session || xpl_iree_scopes_add(&m->scopes, key, m->session);
}

// ---- one record each; false on OOM ----

static bool add_queue(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_queue q;
    bool is_new;
    xpl_iree_copy(item, &q);
    const struct xpl_iree_queue_key key = {q.stream_id, q.physical_device_ordinal, q.queue_ordinal};
    return xpl_iree_table_put(&m->queues, &key, &is_new) != NULL;
}

static bool add_executable(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_executable e;
    bool is_new;
    xpl_iree_copy(item, &e);
    struct xpl_iree_executable_row *const row =
        xpl_iree_table_put(&m->executables, &e.executable_id, &is_new);
    if (!row) return false;
    if (is_new || row->only_named) row->record = e;
    row->only_named = false;
    return true;
}

static bool add_function(struct xpl_iree_model *m, struct xpl_iree_run *run,
                         const struct xpl_iree_item *item, bool old_name) {
    struct xpl_iree_function f;
    bool is_new;
    xpl_iree_copy(item, &f);
    struct xpl_iree_executable_row *const e =
        xpl_iree_table_put(&m->executables, &f.executable_id, &is_new);
    if (!e) return false;
    if (is_new) {
        e->only_named = true;
        e->record.executable_id = f.executable_id;
        run->missing[XPL_IREE_MISSING_EXECUTABLE_OF_FUNCTION]++;
    }
    const struct xpl_iree_function_key key = {f.executable_id, f.function_ordinal, m->session};
    struct xpl_iree_function_row *const row = xpl_iree_table_put(&m->functions, &key, &is_new);
    if (!row || !is_new) return row != NULL;
    if (!xpl_iree_model_describe(m, XPL_IREE_SCOPE_FUNCTION, f.executable_id, f.function_ordinal))
        return false;
    row->record = f;
    // May be shorter than the data after the record if the caller allows it (statistics).
    row->name =
        xpl_str_sub((xpl_str_t){(const char *)item->tail.ptr, item->tail.len}, 0, f.name_length);
    row->old_name = old_name;
    const uint32_t self = (uint32_t)m->functions.n;
    if (e->last_plus_1) {
        struct xpl_iree_function_row *const last =
            xpl_iree_table_at(&m->functions, e->last_plus_1 - 1);
        last->next_plus_1 = self;
    } else {
        e->first_plus_1 = self;
    }
    e->last_plus_1 = self;
    return true;
}

static bool add_buffer(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_command_buffer b;
    bool is_new;
    xpl_iree_copy(item, &b);
    const struct xpl_iree_buffer_key key = {b.command_buffer_id, m->session};
    struct xpl_iree_buffer_row *const row = xpl_iree_table_put(&m->buffers, &key, &is_new);
    if (row && is_new) row->record = b;
    return row && xpl_iree_model_describe(m, XPL_IREE_SCOPE_BUFFER, b.command_buffer_id, 0);
}

static bool add_clock(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_clock_correlation c;
    xpl_iree_copy(item, &c);
    struct xpl_iree_device_row *const d = xpl_iree_model_device(m, c.physical_device_ordinal);
    if (d) xpl_iree_clock_add(&d->clock, &c);
    return d && xpl_iree_model_describe(m, XPL_IREE_SCOPE_CLOCK, c.physical_device_ordinal, 0);
}

static bool add_metric(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_metric_descriptor d;
    bool is_new;
    xpl_iree_copy(item, &d);
    const struct xpl_iree_metric_key key = {d.source_id, d.metric_id, m->session};
    struct xpl_iree_metric_row *const row = xpl_iree_table_put(&m->metrics, &key, &is_new);
    if (!row || !is_new) return row != NULL;
    if (!xpl_iree_model_describe(m, XPL_IREE_SCOPE_METRIC, d.source_id, d.metric_id)) return false;
    const xpl_str_t text = {(const char *)item->tail.ptr, item->tail.len};
    row->record = d;
    row->name = xpl_str_sub(text, 0, d.name_length);
    row->description = xpl_str_sub(text, d.name_length, d.description_length);
    return true;
}

static bool add_uuid(struct xpl_iree_model *m, const struct xpl_iree_item *item) {
    struct xpl_iree_device d;
    bool is_new;
    xpl_iree_copy(item, &d);
    const struct xpl_iree_device_key key = {d.physical_device_ordinal, m->session};
    struct xpl_iree_uuid_row *const row = xpl_iree_table_put(&m->uuids, &key, &is_new);
    if (!row) return false;
    row->has_uuid = (d.flags & XPL_IREE_DEVICE_HAS_UUID) != 0;
    if (row->has_uuid) memcpy(row->uuid, d.physical_device_uuid, sizeof row->uuid);
    return xpl_iree_model_describe(m, XPL_IREE_SCOPE_DEVICE, d.physical_device_ordinal, 0);
}

static void count_operation(struct xpl_iree_model *m, struct xpl_iree_run *run,
                            const struct xpl_iree_item *item) {
    struct xpl_iree_command_operation op;
    xpl_iree_copy(item, &op);
    m->n_operations++;
    if (!xpl_iree_model_has_buffer(m, op.command_buffer_id))
        run->missing[XPL_IREE_MISSING_BUFFER_OF_OPERATION]++;
}

static bool add_item(struct xpl_iree_model *m, struct xpl_iree_run *run,
                     const struct xpl_iree_record *r, const struct xpl_iree_item *item) {
    // Callers only need metadata here; events have no case.
    if (r->chunk == XPL_IREE_DEVICES) return add_uuid(m, item);
    if (r->chunk == XPL_IREE_QUEUES) return add_queue(m, item);
    if (r->chunk == XPL_IREE_EXECUTABLES) return add_executable(m, item);
    if (r->chunk == XPL_IREE_FUNCTIONS) return add_function(m, run, item, r->old_name);
    if (r->chunk == XPL_IREE_COMMAND_BUFFERS) return add_buffer(m, item);
    if (r->chunk == XPL_IREE_CLOCKS) return add_clock(m, item);
    if (r->chunk == XPL_IREE_METRIC_DESCRIPTORS) return add_metric(m, item);
    if (r->chunk == XPL_IREE_COMMAND_OPERATIONS) count_operation(m, run, item);
    return true;
}

xpl_status_t xpl_iree_model_add(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                const struct xpl_iree_record *r, struct xpl_error *err) {
    XPL_TRY(xpl_iree_model_follow(m, r, err));
    return xpl_iree_model_add_items(m, run, r, xpl_iree_items_of(r), err);
}

xpl_status_t xpl_iree_model_add_items(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                      const struct xpl_iree_record *r, struct xpl_iree_items items,
                                      struct xpl_error *err) {
    struct xpl_iree_item item;
    const uint32_t types = XPL_IREE_MODEL_CHUNKS | (uint32_t)m->by_session << XPL_IREE_DEVICES;
    if (r->chunk >= XPL_IREE_N_CHUNK_TYPES || !(types >> r->chunk & 1)) return XPL_OK;
    while (xpl_iree_item_next(&items, &item, NULL)) {
        if (m->by_session) xpl_iree_model_enter(m, r, xpl_iree_device_of(r, &item));
        if (!add_item(m, run, r, &item)) XPL_RETURN_OOM(err, "metadata of the bundle");
    }
    return XPL_OK;
}

struct loading {
    struct xpl_iree_model *model;
    struct xpl_iree_run *run;
};

static xpl_status_t load_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    const struct loading *const l = ctx;
    return xpl_iree_model_add(l->model, l->run, r, err);
}

xpl_status_t xpl_iree_model_load(struct xpl_iree_model *m, struct xpl_iree_run *run,
                                 struct xpl_error *err) {
    struct loading l = {m, run};
    // Where sessions begin and end no other walk says.
    return m->by_session ? xpl_iree_walk(run, load_record, &l, err)
                         : xpl_iree_walk_chunks(run, XPL_IREE_MODEL_CHUNKS, load_record, &l, err);
}

// ---- lookups ----

struct xpl_iree_device_row *xpl_iree_model_device(struct xpl_iree_model *m, uint32_t device) {
    const struct xpl_iree_device_key key = {device, m->session};
    bool is_new;
    return xpl_iree_table_put(&m->devices, &key, &is_new);
}

static const struct xpl_iree_uuid_row *uuid_of(const struct xpl_iree_model *m, uint32_t device,
                                               uint32_t session) {
    const struct xpl_iree_scope_key scope = {device, 0, XPL_IREE_SCOPE_DEVICE};
    const struct xpl_iree_device_key key = {device,
                                            xpl_iree_scopes_find(&m->scopes, scope, session)};
    return xpl_iree_table_get(&m->uuids, &key);
}

bool xpl_iree_model_clock_session(const struct xpl_iree_model *m, uint32_t device, uint32_t *ret) {
    *ret = xpl_iree_model_scope(m, XPL_IREE_SCOPE_CLOCK, device, 0);
    if (*ret == m->session || !m->by_session) return true;
    const struct xpl_iree_uuid_row *const a = uuid_of(m, device, m->session);
    const struct xpl_iree_uuid_row *const b = uuid_of(m, device, *ret);
    return !a || !b ||
           (a->has_uuid == b->has_uuid && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0);
}

const struct xpl_iree_clock *xpl_iree_model_clock(const struct xpl_iree_model *m, uint32_t device) {
    uint32_t session;
    if (!xpl_iree_model_clock_session(m, device, &session)) return NULL;
    const struct xpl_iree_device_key key = {device, session};
    const struct xpl_iree_device_row *const d = xpl_iree_table_get(&m->devices, &key);
    return d ? &d->clock : NULL;
}

struct xpl_iree_fit xpl_iree_model_fit(const struct xpl_iree_model *m, uint32_t device) {
    return xpl_iree_clock_fit(xpl_iree_model_clock(m, device), XPL_IREE_TIME_HOST_CPU);
}

bool xpl_iree_model_has_queue(const struct xpl_iree_model *m, uint32_t device, uint32_t queue,
                              uint64_t stream) {
    const struct xpl_iree_queue_key key = {stream, device, queue};
    return xpl_iree_table_get(&m->queues, &key) != NULL;
}

bool xpl_iree_model_has_buffer(const struct xpl_iree_model *m, uint64_t id) {
    const struct xpl_iree_buffer_key key = {id, 0};
    const struct xpl_iree_scope_key scope = {id, 0, XPL_IREE_SCOPE_BUFFER};
    return m->by_session ? xpl_iree_scopes_has(&m->scopes, scope)
                         : xpl_iree_table_get(&m->buffers, &key) != NULL;
}

static const struct xpl_iree_buffer_row *buffer_of(const struct xpl_iree_model *m, uint64_t id) {
    const struct xpl_iree_buffer_key key = {id,
                                            xpl_iree_model_scope(m, XPL_IREE_SCOPE_BUFFER, id, 0)};
    return xpl_iree_table_get(&m->buffers, &key);
}

const struct xpl_iree_function_row *xpl_iree_model_function(const struct xpl_iree_model *m,
                                                            uint64_t executable, uint32_t ordinal) {
    const uint32_t session = xpl_iree_model_scope(m, XPL_IREE_SCOPE_FUNCTION, executable, ordinal);
    const struct xpl_iree_function_key key = {executable, ordinal, session};
    return xpl_iree_table_get(&m->functions, &key);
}

const struct xpl_iree_metric_row *xpl_iree_model_metric(const struct xpl_iree_model *m,
                                                        uint64_t source, uint64_t metric) {
    const uint32_t session = xpl_iree_model_scope(m, XPL_IREE_SCOPE_METRIC, source, metric);
    const struct xpl_iree_metric_key key = {source, metric, session};
    return xpl_iree_table_get(&m->metrics, &key);
}

xpl_str_t xpl_iree_key(const struct xpl_iree_function_row *f, uint32_t device,
                       struct xpl_iree_function_key key, struct xpl_iree_key_text *text) {
    if (f && f->name.len) return f->name;
    const int n =
        device == XPL_IREE_NONE
            ? snprintf(text->text, sizeof text->text, "executable%" PRIu64 "#%" PRIu32,
                       key.executable_id, key.function_ordinal)
            : snprintf(text->text, sizeof text->text, "device%u/executable%" PRIu64 "#%" PRIu32,
                       device, key.executable_id, key.function_ordinal);
    return (xpl_str_t){text->text, (size_t)n};
}

xpl_str_t xpl_iree_dispatch_key(const struct xpl_iree_model *m, struct xpl_iree_run *run,
                                uint32_t device, struct xpl_iree_function_key key,
                                struct xpl_iree_key_text *text) {
    const struct xpl_iree_function_row *const f =
        xpl_iree_model_function(m, key.executable_id, key.function_ordinal);
    if (!f) run->missing[XPL_IREE_MISSING_FUNCTION]++;
    return xpl_iree_key(f, device, key, text);
}

xpl_str_t xpl_iree_operation_key(const struct xpl_iree_model *m, struct xpl_iree_run *run,
                                 const struct xpl_iree_command_operation *op,
                                 struct xpl_iree_key_text *text) {
    if (op->type != XPL_IREE_COMMAND_DISPATCH || op->executable_id == 0 ||
        op->function_ordinal == XPL_IREE_NONE)
        return xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_COMMAND, op->type));
    const struct xpl_iree_buffer_row *const b = buffer_of(m, op->command_buffer_id);
    const struct xpl_iree_function_key key = {op->executable_id, op->function_ordinal, 0};
    return xpl_iree_dispatch_key(m, run, b ? b->record.physical_device_ordinal : XPL_IREE_NONE, key,
                                 text);
}
