// SPDX-License-Identifier: Apache-2.0
// Report statistics: events summed up by their subject, as IREE's programs print at their end with
// --print_device_statistics.
#include <string.h>

#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/impl.h"

// Kinds of rows, numbered and named as IREE does.
enum row_type {
    DISPATCH_FUNCTION = 1,
    DISPATCH_BUFFER,
    DISPATCH_OPERATION,
    QUEUE_DEVICE,
    QUEUE_HOST,
    HOST_FUNCTION,
    HOST_BUFFER,
    HOST_OPERATION,
    HOST_QUEUE,
    MEMORY
};
static const char *const row_names[] = {"unknown",
                                        "dispatch_function",
                                        "dispatch_command_buffer",
                                        "dispatch_command_operation",
                                        "queue_device_operation",
                                        "queue_host_operation",
                                        "host_execution_function",
                                        "host_execution_command_buffer",
                                        "host_execution_command_operation",
                                        "host_execution_queue_operation",
                                        "memory_lifecycle"};
enum domain { NO_TIME, TICKS, HOST_NS };
static const char *const domain_names[] = {"none", "device_tick", "iree_host_time_ns"};
static const char *const unit_names[] = {"none", "device_tick", "ns"};
enum { HAS_TIMING = 1, HAS_PAYLOAD = 2, HAS_OPERATIONS = 4, HAS_TILES = 8 }; // flags of a row

struct row_key {
    uint64_t executable_id, command_buffer_id;
    uint32_t type, domain, physical_device_ordinal, queue_ordinal;
    uint32_t event_type, function_ordinal, command_index, zero;
};
struct sums {
    uint32_t flags;
    uint64_t samples, invalid, operations, payload_bytes, tiles, tile_ns;
    uint64_t first_start, last_end, total, min, max;
};
struct row {
    struct row_key key;
    struct sums sums;
};

// Events that count for the same rows: they are summed up once, and their sums added to the rows at
// the end.
enum { MOST_ROWS = 4, LATELY = 256 };
struct kind {
    struct row_key key; // of its events: the key of any of the rows
    struct sums sums;
    uint32_t n_rows, rows[MOST_ROWS]; // in the table of rows
};

// What one event adds.
struct sample {
    bool timed; // start and end are a span
    uint64_t start, end, operations, payload_bytes, tiles, tile_ns;
};

struct statistics {
    struct xpl_iree_table rows;     // struct row
    struct xpl_iree_table kinds;    // struct kind
    uint32_t lately_plus_1[LATELY]; // kinds of events of lately, by a part of their keys
    struct xpl_iree_model model;
    uint64_t dropped;
    struct xpl_iree_run *run;
};

static void init_sums(struct sums *s) {
    s->first_start = s->min = UINT64_MAX;
}

// Adds the row of a key to those that events of a kind count for. Rows are in the order in which
// their first events do.
static bool add_row(struct statistics *s, struct kind *kind, const struct row_key *key) {
    bool is_new;
    struct row *const r = xpl_iree_table_put(&s->rows, key, &is_new);
    if (!r) return false;
    if (is_new) init_sums(&r->sums);
    kind->rows[kind->n_rows++] = (uint32_t)s->rows.last;
    return true;
}

static bool add_dispatch_rows(struct statistics *s, struct kind *kind) {
    struct row_key function = kind->key, buffer = kind->key, operation = kind->key;
    const bool has_function = function.executable_id && function.function_ordinal != XPL_IREE_NONE;
    const bool has_buffer = buffer.command_buffer_id != 0;
    const bool has_operation = has_buffer && operation.command_index != XPL_IREE_NONE;
    function.command_buffer_id = 0, function.command_index = XPL_IREE_NONE;
    buffer.type = DISPATCH_BUFFER, buffer.executable_id = 0;
    buffer.function_ordinal = buffer.command_index = XPL_IREE_NONE;
    operation.type = DISPATCH_OPERATION;
    return (!has_function || add_row(s, kind, &function)) &&
           (!has_buffer || add_row(s, kind, &buffer)) &&
           (!has_operation || add_row(s, kind, &operation));
}

// A host event counts for its queue, its function, its command buffer and its operation there.
static bool add_host_rows(struct statistics *s, struct kind *kind) {
    const struct row_key *const k = &kind->key;
    struct row_key queue = *k, function = *k, buffer = *k, operation = *k;
    const bool has_function = k->executable_id && k->function_ordinal != XPL_IREE_NONE;
    const bool has_operation = k->command_buffer_id && k->command_index != XPL_IREE_NONE;
    function.event_type = buffer.event_type = operation.event_type = 0;
    queue.executable_id = buffer.executable_id = 0;
    queue.function_ordinal = buffer.function_ordinal = XPL_IREE_NONE;
    queue.command_index = function.command_index = buffer.command_index = XPL_IREE_NONE;
    function.type = HOST_FUNCTION, function.command_buffer_id = 0;
    buffer.type = HOST_BUFFER;
    operation.type = HOST_OPERATION;
    return add_row(s, kind, &queue) && (!has_function || add_row(s, kind, &function)) &&
           (!k->command_buffer_id || add_row(s, kind, &buffer)) &&
           (!has_operation || add_row(s, kind, &operation));
}

// The kind is new to the table, or forgotten by those of lately.
static struct kind *find_kind(struct statistics *s, const struct row_key *key, uint32_t *lately) {
    bool is_new, ok = true;
    struct kind *const kind = xpl_iree_table_put(&s->kinds, key, &is_new);
    if (!kind) return NULL;
    *lately = (uint32_t)s->kinds.last + 1;
    if (!is_new) return kind;
    init_sums(&kind->sums);
    if (key->type == DISPATCH_FUNCTION)
        ok = add_dispatch_rows(s, kind);
    else if (key->type == HOST_QUEUE)
        ok = add_host_rows(s, kind);
    else
        ok = add_row(s, kind, key);
    return ok ? kind : NULL;
}

// By their members: words of two that were just written would have to wait for them.
static inline bool is_key(const struct row_key *a, const struct row_key *b) {
    return ((a->executable_id ^ b->executable_id) | (a->command_buffer_id ^ b->command_buffer_id) |
            (a->type ^ b->type) | (a->domain ^ b->domain) |
            (a->physical_device_ordinal ^ b->physical_device_ordinal) |
            (a->queue_ordinal ^ b->queue_ordinal) | (a->event_type ^ b->event_type) |
            (a->function_ordinal ^ b->function_ordinal) | (a->command_index ^ b->command_index)) ==
           0;
}

// The kind of events of a key: a few take turns, so it is mostly among those of lately.
static inline struct kind *kind_of(struct statistics *s, const struct row_key *key) {
    const uint32_t mixed = key->type * 37 + key->event_type * 5 + key->command_index * 3;
    uint32_t *const lately = &s->lately_plus_1[(mixed + key->function_ordinal) % LATELY];
    struct kind *const kind = *lately ? xpl_iree_table_at(&s->kinds, *lately - 1) : NULL;
    return kind && is_key(&kind->key, key) ? kind : find_kind(s, key, lately);
}

static inline void add_sample(struct sums *r, const struct sample *v) {
    r->samples++;
    xpl_iree_add(&r->operations, v->operations);
    xpl_iree_add(&r->payload_bytes, v->payload_bytes);
    if (v->operations) r->flags |= HAS_OPERATIONS;
    if (v->payload_bytes) r->flags |= HAS_PAYLOAD;
    if (v->tiles) {
        xpl_iree_add(&r->tiles, v->tiles);
        xpl_iree_add(&r->tile_ns, v->tile_ns);
        r->flags |= HAS_TILES;
    }
    if (!v->timed) {
        r->invalid++;
        return;
    }
    const uint64_t duration = v->end - v->start;
    r->flags |= HAS_TIMING;
    xpl_iree_add(&r->total, duration);
    if (v->start < r->first_start) r->first_start = v->start;
    if (v->end > r->last_end) r->last_end = v->end;
    if (duration < r->min) r->min = duration;
    if (duration > r->max) r->max = duration;
}

static inline bool add(struct statistics *s, const struct row_key *key, const struct sample *v) {
    struct kind *const kind = kind_of(s, key);
    if (kind) add_sample(&kind->sums, v);
    return kind != NULL;
}

static void add_sums(struct sums *to, const struct sums *v) {
    to->flags |= v->flags;
    to->samples += v->samples;
    to->invalid += v->invalid;
    xpl_iree_add(&to->operations, v->operations);
    xpl_iree_add(&to->payload_bytes, v->payload_bytes);
    xpl_iree_add(&to->tiles, v->tiles);
    xpl_iree_add(&to->tile_ns, v->tile_ns);
    xpl_iree_add(&to->total, v->total);
    if (v->first_start < to->first_start) to->first_start = v->first_start;
    if (v->last_end > to->last_end) to->last_end = v->last_end;
    if (v->min < to->min) to->min = v->min;
    if (v->max > to->max) to->max = v->max;
}

static void sum_up_rows(struct statistics *s) {
    for (size_t i = 0; i < s->kinds.n; i++) {
        const struct kind *const kind = xpl_iree_table_at(&s->kinds, i);
        for (uint32_t k = 0; k < kind->n_rows; k++) {
            struct row *const r = xpl_iree_table_at(&s->rows, kind->rows[k]);
            add_sums(&r->sums, &kind->sums);
        }
    }
}

// Of events of one queue; their function, buffer and operation are filled in where they have them.
static inline struct row_key key_of(enum row_type type, uint32_t device, uint32_t queue) {
    static const enum domain domains[] = {
        [DISPATCH_FUNCTION] = TICKS, [DISPATCH_BUFFER] = TICKS,  [DISPATCH_OPERATION] = TICKS,
        [QUEUE_DEVICE] = TICKS,      [QUEUE_HOST] = HOST_NS,     [HOST_FUNCTION] = HOST_NS,
        [HOST_BUFFER] = HOST_NS,     [HOST_OPERATION] = HOST_NS, [HOST_QUEUE] = HOST_NS,
        [MEMORY] = NO_TIME};
    return (struct row_key){.type = type,
                            .domain = domains[type],
                            .physical_device_ordinal = device,
                            .queue_ordinal = queue,
                            .function_ordinal = XPL_IREE_NONE,
                            .command_index = XPL_IREE_NONE};
}

// An end of 0 does not make ticks invalid here: it is before any start.
static struct sample sample_of_ticks(uint64_t start, uint64_t end) {
    return (struct sample){.timed = start != 0 && end >= start, .start = start, .end = end};
}

static struct sample sample_of_host(int64_t start_ns, int64_t end_ns) {
    const bool timed = xpl_iree_host_valid(start_ns, end_ns);
    return (struct sample){.timed = timed,
                           .start = timed ? (uint64_t)start_ns : 0,
                           .end = timed ? (uint64_t)end_ns : 0};
}

static bool add_dispatch(struct statistics *s, const struct xpl_iree_record *r,
                         const struct xpl_iree_item *item) {
    struct xpl_iree_dispatch_event e;
    xpl_iree_copy(item, &e);
    const struct sample v = sample_of_ticks(e.start_tick, e.end_tick);
    struct row_key key = key_of(DISPATCH_FUNCTION, r->physical_device_ordinal, r->queue_ordinal);
    key.executable_id = e.executable_id, key.function_ordinal = e.function_ordinal;
    key.command_buffer_id = e.command_buffer_id, key.command_index = e.command_index;
    return add(s, &key, &v);
}

static bool add_queue_device(struct statistics *s, const struct xpl_iree_item *item) {
    struct xpl_iree_queue_device_event e;
    xpl_iree_copy(item, &e);
    struct sample v = sample_of_ticks(e.start_tick, e.end_tick);
    struct row_key key = key_of(QUEUE_DEVICE, e.physical_device_ordinal, e.queue_ordinal);
    v.operations = e.operation_count, v.payload_bytes = e.payload_length;
    key.event_type = e.type, key.command_buffer_id = e.command_buffer_id;
    return add(s, &key, &v);
}

static bool add_queue_host(struct statistics *s, const struct xpl_iree_item *item) {
    struct xpl_iree_queue_event e;
    xpl_iree_copy(item, &e);
    struct sample v = sample_of_host(e.host_time_ns, e.ready_host_time_ns);
    struct row_key key = key_of(QUEUE_HOST, e.physical_device_ordinal, e.queue_ordinal);
    v.operations = e.operation_count, v.payload_bytes = e.payload_length;
    key.event_type = e.type, key.command_buffer_id = e.command_buffer_id;
    return add(s, &key, &v);
}

static bool add_host(struct statistics *s, const struct xpl_iree_item *item) {
    struct xpl_iree_host_event e;
    xpl_iree_copy(item, &e);
    struct sample v = sample_of_host(e.start_host_time_ns, e.end_host_time_ns);
    struct row_key key = key_of(HOST_QUEUE, e.physical_device_ordinal, e.queue_ordinal);
    v.operations = e.operation_count, v.payload_bytes = e.payload_length;
    v.tiles = e.tile_count;
    v.tile_ns = e.tile_duration_sum_ns > 0 ? (uint64_t)e.tile_duration_sum_ns : 0;
    key.event_type = e.type, key.command_buffer_id = e.command_buffer_id;
    key.executable_id = e.executable_id, key.function_ordinal = e.function_ordinal;
    key.command_index = e.command_index;
    return add(s, &key, &v);
}

static bool add_memory(struct statistics *s, const struct xpl_iree_item *item) {
    struct xpl_iree_memory_event e;
    xpl_iree_copy(item, &e);
    const struct sample v = {.payload_bytes = e.length};
    struct row_key key = key_of(MEMORY, e.physical_device_ordinal, e.queue_ordinal);
    key.event_type = e.type;
    return add(s, &key, &v);
}

// Adds the events of a chunk, with a separate loop for each type; false on OOM.
static bool add_items(struct statistics *s, const struct xpl_iree_record *r,
                      struct xpl_iree_items *items) {
    struct xpl_iree_item item;
    bool ok = true;
    if (r->chunk == XPL_IREE_DISPATCH_EVENTS)
        while (ok && xpl_iree_item_next(items, &item, NULL))
            ok = add_dispatch(s, r, &item);
    if (r->chunk == XPL_IREE_QUEUE_DEVICE_EVENTS)
        while (ok && xpl_iree_item_next(items, &item, NULL))
            ok = add_queue_device(s, &item);
    if (r->chunk == XPL_IREE_QUEUE_EVENTS)
        while (ok && xpl_iree_item_next(items, &item, NULL))
            ok = add_queue_host(s, &item);
    if (r->chunk == XPL_IREE_HOST_EVENTS)
        while (ok && xpl_iree_item_next(items, &item, NULL))
            ok = add_host(s, &item);
    if (r->chunk == XPL_IREE_MEMORY_EVENTS)
        while (ok && xpl_iree_item_next(items, &item, NULL))
            ok = add_memory(s, &item);
    // Of others nothing is summed up, and nothing is wrong where lengths do not count.
    while (ok && !items->by_size && xpl_iree_item_next(items, &item, NULL))
        ;
    return ok;
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct statistics *const s = ctx;
    struct xpl_iree_items items = xpl_iree_items_by_size(r);
    if (r->record_type != XPL_IREE_RECORD_CHUNK) return XPL_OK;
    xpl_iree_add(&s->dropped, r->dropped_record_count);
    items.any_tail = r->chunk == XPL_IREE_FUNCTIONS; // IREE's cuts names, and goes on
    if (r->chunk == XPL_IREE_CLOCKS || r->chunk == XPL_IREE_FUNCTIONS)
        return xpl_iree_model_add_items(&s->model, s->run, r, items, err);
    if (!add_items(s, r, &items)) XPL_RETURN_OOM(err, "statistics of the bundle");
    return XPL_OK;
}

// ---- rows ----

// The fit that scales a row's durations: this report falls back on the brackets of host time.
static struct xpl_iree_fit fit_of(const struct statistics *s, const struct row *row) {
    const struct xpl_iree_clock *const c =
        xpl_iree_model_clock(&s->model, row->key.physical_device_ordinal);
    if (row->key.domain != TICKS || !c) return (struct xpl_iree_fit){0};
    const bool host_cpu = (c->first.flags & c->last.flags & XPL_IREE_CLOCK_HOST_CPU) &&
                          c->first.host_cpu_timestamp_ns <= INT64_MAX &&
                          c->last.host_cpu_timestamp_ns <= INT64_MAX;
    return xpl_iree_clock_fit(c, host_cpu ? XPL_IREE_TIME_HOST_CPU : XPL_IREE_TIME_BRACKET);
}

static void put_ns(const struct statistics *s, const char *name, const struct row *row,
                   uint64_t duration) {
    const struct xpl_iree_fit fit = fit_of(s, row);
    int64_t ns;
    if ((row->sums.flags & HAS_TIMING) && row->key.domain == HOST_NS)
        xpl_row_u64(s->run->rows, name, duration);
    else if ((row->sums.flags & HAS_TIMING) && xpl_iree_fit_ticks(&fit, duration, &ns))
        xpl_row_i64(s->run->rows, name, ns);
    else
        xpl_row_null(s->run->rows, name);
}

static void put_name(struct xpl_iree_rows *r, const char *name, xpl_str_t v) {
    if (v.len)
        xpl_row_str(r, name, v);
    else
        xpl_row_null(r, name);
}

static void put_key(const struct statistics *s, const struct row *row) {
    struct xpl_iree_rows *const r = s->run->rows;
    const struct row_key *const k = &row->key;
    const struct xpl_iree_function_row *const f =
        xpl_iree_model_function(&s->model, k->executable_id, k->function_ordinal);
    xpl_str_t event = {0};
    if (k->type == QUEUE_DEVICE || k->type == QUEUE_HOST || k->type == HOST_QUEUE)
        event = xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_OP, k->event_type));
    if (k->type == MEMORY)
        event = xpl_str_from(xpl_iree_name(XPL_IREE_NAMES_MEMORY, k->event_type));
    xpl_row_u64(r, "physical_device_ordinal", k->physical_device_ordinal);
    xpl_row_u64(r, "queue_ordinal", k->queue_ordinal);
    xpl_row_u64(r, "event_type", k->event_type);
    put_name(r, "event_name", event);
    xpl_row_u64(r, "executable_id", k->executable_id);
    xpl_row_u64(r, "command_buffer_id", k->command_buffer_id);
    xpl_row_u64(r, "function_ordinal", k->function_ordinal);
    xpl_row_u64(r, "command_index", k->command_index);
    // Rows equal IREE's, which has no names from bundles of the old dialect here.
    put_name(r, "function_name", f && !f->old_name ? f->name : (xpl_str_t){0});
}

static void write_row(const struct statistics *s, const struct row *row) {
    struct xpl_iree_rows *const r = s->run->rows;
    const bool timed = (row->sums.flags & HAS_TIMING) != 0;
    xpl_row_begin(r, "type", "statistics_row");
    xpl_row_text(r, "row_type", row_names[row->key.type]);
    xpl_row_u64(r, "row_type_value", row->key.type);
    xpl_row_text(r, "time_domain", domain_names[row->key.domain]);
    xpl_row_u64(r, "time_domain_value", row->key.domain);
    xpl_row_text(r, "duration_unit", unit_names[row->key.domain]);
    xpl_row_u64(r, "flags", row->sums.flags);
    xpl_row_bool(r, "has_timing", timed);
    xpl_row_bool(r, "has_payload_bytes", row->sums.flags & HAS_PAYLOAD);
    xpl_row_bool(r, "has_operation_count", row->sums.flags & HAS_OPERATIONS);
    xpl_row_bool(r, "has_tile_totals", row->sums.flags & HAS_TILES);
    put_key(s, row);
    xpl_row_u64(r, "sample_count", row->sums.samples);
    xpl_row_u64(r, "invalid_sample_count", row->sums.invalid);
    xpl_row_u64(r, "operation_count", row->sums.operations);
    xpl_row_u64(r, "payload_bytes", row->sums.payload_bytes);
    xpl_row_u64(r, "tile_count", row->sums.tiles);
    xpl_row_u64(r, "tile_duration_sum_ns", row->sums.tile_ns);
    xpl_row_u64(r, "first_start_time", timed ? row->sums.first_start : 0);
    xpl_row_u64(r, "last_end_time", row->sums.last_end);
    xpl_row_u64(r, "total_duration", row->sums.total);
    xpl_row_u64(r, "minimum_duration", timed ? row->sums.min : 0);
    xpl_row_u64(r, "maximum_duration", row->sums.max);
    put_ns(s, "total_duration_ns", row, row->sums.total);
    put_ns(s, "minimum_duration_ns", row, row->sums.min);
    put_ns(s, "maximum_duration_ns", row, row->sums.max);
    xpl_row_end(r);
}

xpl_status_t xpl_iree_report_statistics(struct xpl_iree_run *run, struct xpl_error *err) {
    struct statistics s = {
        .rows = {.row_size = sizeof(struct row), .key_size = sizeof(struct row_key)},
        .kinds = {.row_size = sizeof(struct kind), .key_size = sizeof(struct row_key)},
        .run = run};
    uint64_t missing[XPL_IREE_N_MISSING];
    memcpy(missing, run->missing, sizeof missing);
    xpl_iree_model_init(&s.model);
    const xpl_status_t st = xpl_iree_walk(run, add_record, &s, err);
    memcpy(run->missing, missing, sizeof missing); // this report's model has only functions
    if (st == XPL_OK) {
        sum_up_rows(&s);
        xpl_row_begin(run->rows, "type", "statistics_summary");
        xpl_row_u64(run->rows, "row_count", s.rows.n);
        xpl_row_u64(run->rows, "dropped_record_count", s.dropped);
        xpl_row_end(run->rows);
    }
    for (size_t i = 0; st == XPL_OK && i < s.rows.n; i++)
        write_row(&s, xpl_iree_table_at(&s.rows, i));
    xpl_iree_table_fini(&s.rows);
    xpl_iree_table_fini(&s.kinds);
    xpl_iree_model_fini(&s.model);
    return st;
}
