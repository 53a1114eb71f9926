// SPDX-License-Identifier: Apache-2.0
// Report memory: memory events, balances of devices and pools, lives of allocations.
#include <assert.h>

#include "analysis/ireeprof/fields.h"
#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/export/export_fields.h"
#include "analysis/ireeprof/reports/impl.h"
#include "analysis/ireeprof/reports/memory.h"

// When a device allocated and freed for its queue: alloca and dealloca events of queues.
struct life_key {
    uint64_t submission_id, allocation_id;
    uint32_t physical_device_ordinal, queue_ordinal, type, zero;
};
struct life {
    struct life_key key;
    uint64_t event_id, start_tick, end_tick; // of the first event by its id
};

struct report {
    struct xpl_iree_run *run;
    struct xpl_iree_memory memory;
    struct xpl_iree_model model;
    struct xpl_iree_table lives; // struct life
};

// ---- events ----

static void write_event(void *ctx, const struct xpl_iree_memory_event *e) {
    struct xpl_iree_rows *const r = ctx;
    const struct xpl_iree_export_row *const row = &xpl_iree_export_rows[XPL_IREE_MEMORY_EVENTS];
    xpl_row_begin(r, "type", "memory_event");
    xpl_row_fields(r, row->fields, row->n, e);
    xpl_row_end(r);
}

static bool add_life(struct report *p, const struct xpl_iree_item *item) {
    struct xpl_iree_queue_device_event e;
    bool is_new;
    xpl_iree_copy(item, &e);
    if (e.type != XPL_IREE_OP_ALLOCA && e.type != XPL_IREE_OP_DEALLOCA) return true;
    const struct life_key key = {e.submission_id, e.allocation_id, e.physical_device_ordinal,
                                 e.queue_ordinal, e.type,          0};
    struct life *const l = xpl_iree_table_put(&p->lives, &key, &is_new);
    if (!l || (!is_new && e.event_id >= l->event_id)) return l != NULL;
    l->event_id = e.event_id, l->start_tick = e.start_tick, l->end_tick = e.end_tick;
    return true;
}

static xpl_status_t add_record(void *ctx, const struct xpl_iree_record *r, struct xpl_error *err) {
    struct report *const p = ctx;
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    XPL_TRY(xpl_iree_model_add(&p->model, p->run, r, err));
    if (r->chunk != XPL_IREE_QUEUE_DEVICE_EVENTS) return xpl_iree_memory_add(&p->memory, r, err);
    while (xpl_iree_item_next(&items, &item, NULL))
        if (!add_life(p, &item)) XPL_RETURN_OOM(err, "memory of the bundle");
    return XPL_OK;
}

// ---- rows ----

static void put_balance(struct xpl_iree_rows *r, const char *prefix,
                        const struct xpl_iree_balance *b) {
#define MEMBER(m)                                                                                  \
    { "_" #m, sizeof #m, offsetof(struct xpl_iree_balance, m) }
    static const struct {
        const char *name;
        size_t length, offset;
    } members[] = {MEMBER(current_count),       MEMBER(high_water_count),
                   MEMBER(total_open_count),    MEMBER(total_close_count),
                   MEMBER(partial_close_count), MEMBER(current_bytes),
                   MEMBER(high_water_bytes),    MEMBER(total_open_bytes),
                   MEMBER(total_close_bytes),   MEMBER(partial_close_bytes)};
#undef MEMBER
    char name[64];
    const size_t n = strlen(prefix);
    assert(n + 24 < sizeof name);
    memcpy(name, prefix, n);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        uint64_t v;
        memcpy(name + n, members[i].name, members[i].length + 1);
        memcpy(&v, (const char *)b + members[i].offset, sizeof v);
        xpl_row_number(r, name, n + members[i].length, v);
    }
}

static void write_device(struct xpl_iree_rows *r, const struct xpl_iree_memory_device *d) {
    static const struct {
        const char *name;
        int type;
    } types[] = {{"slab_acquires", XPL_IREE_SLAB_ACQUIRE},
                 {"slab_releases", XPL_IREE_SLAB_RELEASE},
                 {"pool_reserves", XPL_IREE_POOL_RESERVE},
                 {"pool_materializes", XPL_IREE_POOL_MATERIALIZE},
                 {"pool_releases", XPL_IREE_POOL_RELEASE},
                 {"pool_waits", XPL_IREE_POOL_WAIT},
                 {"queue_allocas", XPL_IREE_QUEUE_ALLOCA},
                 {"queue_deallocas", XPL_IREE_QUEUE_DEALLOCA},
                 {"buffer_allocates", XPL_IREE_BUFFER_ALLOCATE},
                 {"buffer_frees", XPL_IREE_BUFFER_FREE},
                 {"buffer_imports", XPL_IREE_BUFFER_IMPORT},
                 {"buffer_unimports", XPL_IREE_BUFFER_UNIMPORT}};
    static const struct {
        const char *prefix;
        enum xpl_iree_memory_kind kind;
    } kinds[] = {{"slab", XPL_IREE_MEMORY_SLAB},
                 {"pool_reserved", XPL_IREE_MEMORY_POOL},
                 {"pool_materialized", XPL_IREE_MEMORY_MATERIALIZED},
                 {"queue_inflight", XPL_IREE_MEMORY_QUEUE},
                 {"buffer", XPL_IREE_MEMORY_BUFFER},
                 {"imported_buffer", XPL_IREE_MEMORY_IMPORT}};
    xpl_row_begin(r, "type", "memory_device");
    xpl_row_u64(r, "physical_device_ordinal", d->physical_device_ordinal);
    xpl_row_u64(r, "events", d->events);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        xpl_row_u64(r, types[i].name, d->events_of[types[i].type]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        put_balance(r, kinds[i].prefix, &d->balances[kinds[i].kind]);
    xpl_row_end(r);
}

static void write_pool(struct xpl_iree_rows *r, const struct xpl_iree_pool *p) {
    xpl_row_begin(r, "type", "memory_pool");
    xpl_row_text(r, "kind", xpl_iree_memory_kind_names[p->key.kind]);
    xpl_row_u64(r, "physical_device_ordinal", p->key.physical_device_ordinal);
    xpl_row_u64(r, "pool_id", p->key.pool_id);
    xpl_row_u64(r, "memory_type", p->key.memory_type);
    xpl_row_u64(r, "buffer_usage", p->buffer_usage);
    xpl_row_u64(r, "events", p->events);
    xpl_row_u64(r, "waits", p->waits);
    xpl_row_u64(r, "materializes", p->materializes);
    put_balance(r, "lifecycle", &p->life);
    put_balance(r, "materialized", &p->materialized);
    xpl_row_bool(r, "pool_stats_available", p->stats != 0);
    xpl_row_u64(r, "pool_stats_samples", p->stats);
    xpl_row_u64(r, "pool_bytes_reserved", p->reserved);
    xpl_row_u64(r, "pool_bytes_reserved_high_water", p->reserved_high);
    xpl_row_u64(r, "pool_bytes_free", p->free);
    xpl_row_u64(r, "pool_bytes_free_low_water", p->free_low);
    xpl_row_u64(r, "pool_bytes_committed", p->committed);
    xpl_row_u64(r, "pool_bytes_committed_high_water", p->committed_high);
    xpl_row_u64(r, "pool_budget_limit", p->budget);
    xpl_row_u64(r, "pool_reservation_count", p->reservations);
    xpl_row_u64(r, "pool_reservation_high_water_count", p->reservations_high);
    xpl_row_u64(r, "pool_slab_count", p->slabs);
    xpl_row_u64(r, "pool_slab_high_water_count", p->slabs_high);
    xpl_row_end(r);
}

static const struct life *find_life(const struct report *p, const struct xpl_iree_allocation *a,
                                    bool end) {
    const uint64_t submission = end ? a->last_submission_id : a->first_submission_id;
    const struct life_key key = {submission,
                                 a->key.allocation_id,
                                 a->key.physical_device_ordinal,
                                 end ? a->last_queue : a->first_queue,
                                 end ? XPL_IREE_OP_DEALLOCA : XPL_IREE_OP_ALLOCA,
                                 0};
    if (a->key.kind != XPL_IREE_MEMORY_QUEUE || submission == 0 ||
        key.queue_ordinal == XPL_IREE_NONE)
        return NULL;
    return xpl_iree_table_get(&p->lives, &key);
}

// The life of an allocation as its device timed it.
struct xpl_iree_device_life {
    uint64_t alloca_event, dealloca_event, start_tick, end_tick, ticks;
    uint32_t available, timed; // 0 or 1
    int64_t ns;
};

static void put_device_life(const struct report *p, const struct xpl_iree_allocation *a) {
    struct xpl_iree_rows *const r = p->run->rows;
    const struct life *const begin = find_life(p, a, false), *const end = find_life(p, a, true);
    const bool valid = begin && end && xpl_iree_ticks_valid(begin->start_tick, begin->end_tick) &&
                       xpl_iree_ticks_valid(end->start_tick, end->end_tick) &&
                       end->end_tick >= begin->start_tick;
    const uint64_t ticks = valid ? end->end_tick - begin->start_tick : 0;
    const struct xpl_iree_fit fit = xpl_iree_model_fit(&p->model, a->key.physical_device_ordinal);
    int64_t ns = 0;
    const bool timed = valid && xpl_iree_fit_ticks(&fit, ticks, &ns);
    const struct xpl_iree_device_life v = {.alloca_event = begin ? begin->event_id : 0,
                                           .dealloca_event = end ? end->event_id : 0,
                                           .available = valid,
                                           .start_tick = valid ? begin->start_tick : 0,
                                           .end_tick = valid ? end->end_tick : 0,
                                           .ticks = ticks,
                                           .timed = timed,
                                           .ns = ns};
    static const struct xpl_iree_field fields[] = {
        XPL_F_AS(U64, device_life, alloca_event, "alloca_device_event_id"),
        XPL_F_AS(U64, device_life, dealloca_event, "dealloca_device_event_id"),
        XPL_F_IS(device_life, available, "device_lifetime_available"),
        XPL_F_AS(U64, device_life, start_tick, "device_lifetime_start_tick"),
        XPL_F_AS(U64, device_life, end_tick, "device_lifetime_end_tick"),
        XPL_F_AS(U64, device_life, ticks, "device_lifetime_duration_ticks"),
        XPL_F_IS(device_life, timed, "device_lifetime_time_ns_available"),
        XPL_F_AS(I64, device_life, ns, "device_lifetime_duration_ns")};
    XPL_ROW_FIELDS(r, fields, &v);
}

// What an allocation has beside its row.
struct xpl_iree_beside {
    struct xpl_iree_reservation reservation;
    struct xpl_iree_partial partial;
};

// Zeros where it has none.
static struct xpl_iree_beside beside(const struct report *p, const struct xpl_iree_allocation *a) {
    const struct xpl_iree_memory *const m = &p->memory;
    struct xpl_iree_beside ret = {0};
    const struct xpl_iree_reservation *const r =
        a->key.kind == XPL_IREE_MEMORY_POOL ? xpl_iree_table_get(&m->reservations, &a->key) : NULL;
    const struct xpl_iree_partial *const partial = xpl_iree_table_get(&m->partials, &a->key);
    if (r) ret.reservation = *r;
    if (partial) ret.partial = *partial;
    return ret;
}

static bool is_open(const struct xpl_iree_allocation *a, const struct xpl_iree_beside *b) {
    return a->life.current_bytes || b->reservation.materialized.current_bytes;
}

#define COUNTS(as, T, member)                                                                      \
    XPL_F_AS(U32, T, member.current_count, as "_current_count"),                                   \
        XPL_F_AS(U32, T, member.high_water_count, as "_high_water_count"),                         \
        XPL_F_AS(U32, T, member.total_open_count, as "_total_open_count"),                         \
        XPL_F_AS(U32, T, member.total_close_count, as "_total_close_count")
#define BYTES(as, T, member)                                                                       \
    XPL_F_AS(U64, T, member.current_bytes, as "_current_bytes"),                                   \
        XPL_F_AS(U64, T, member.high_water_bytes, as "_high_water_bytes"),                         \
        XPL_F_AS(U64, T, member.total_open_bytes, as "_total_open_bytes"),                         \
        XPL_F_AS(U64, T, member.total_close_bytes, as "_total_close_bytes")
#define PARTIAL(as, of, what) XPL_F_AS(U64, beside, partial.of.what, as "_partial_close_" #what)

static void put_times(struct xpl_iree_rows *r, const struct xpl_iree_allocation *a) {
    static const struct xpl_iree_field fields[] = {
        XPL_F(U64, allocation, first_event_id), XPL_F(U64, allocation, last_event_id),
        XPL_F_AS(I64, allocation, first_ns, "first_host_time_ns"),
        XPL_F_AS(I64, allocation, last_ns, "last_host_time_ns"),
        XPL_F_CONST("host_time_domain", "iree_host_time_ns")};
    static const struct xpl_iree_field more[] = {
        XPL_F(U64, allocation, first_submission_id), XPL_F(U64, allocation, last_submission_id),
        XPL_F_AS(U32, allocation, first_queue, "first_queue_ordinal"),
        XPL_F_AS(U32, allocation, last_queue, "last_queue_ordinal")};
    int64_t ns;
    // More than a number holds wraps around, as in IREE's tool.
    (void)__builtin_sub_overflow(a->last_ns, a->first_ns, &ns);
    if (a->last_ns < a->first_ns) ns = 0;
    XPL_ROW_FIELDS(r, fields, a);
    xpl_row_i64(r, "duration_ns", ns);
    XPL_ROW_FIELDS(r, more, a);
}

static void put_balances(struct xpl_iree_rows *r, const struct xpl_iree_allocation *a,
                         const struct xpl_iree_beside *b) {
    static const struct xpl_iree_field counts[] = {COUNTS("lifecycle", allocation, life)};
    static const struct xpl_iree_field partial[] = {PARTIAL("lifecycle", life, count)};
    static const struct xpl_iree_field bytes[] = {BYTES("lifecycle", allocation, life)};
    static const struct xpl_iree_field materialized[] = {
        PARTIAL("lifecycle", life, bytes), COUNTS("materialized", beside, reservation.materialized),
        PARTIAL("materialized", materialized, count),
        BYTES("materialized", beside, reservation.materialized),
        PARTIAL("materialized", materialized, bytes)};
    XPL_ROW_FIELDS(r, counts, a);
    XPL_ROW_FIELDS(r, partial, b);
    XPL_ROW_FIELDS(r, bytes, a);
    XPL_ROW_FIELDS(r, materialized, b);
}

static void write_allocation(const struct report *p, const struct xpl_iree_allocation *a) {
    static const struct xpl_iree_field fields[] = {
        XPL_F_AS(U32, allocation, key.physical_device_ordinal, "physical_device_ordinal"),
        XPL_F_AS(U64, allocation, key.allocation_id, "allocation_id"),
        XPL_F_AS(U64, allocation, key.pool_id, "pool_id"),
        XPL_F(U64, allocation, backing_id),
        XPL_F_BIT(allocation, "externally_owned", XPL_IREE_MEMORY_EXTERNAL),
        XPL_F(U64, allocation, memory_type),
        XPL_F(U64, allocation, buffer_usage),
        XPL_F(U32, allocation, events)};
    static const struct xpl_iree_field pool[] = {
        XPL_F_AS(U32, beside, reservation.waits, "waits"),
        XPL_F_AS(U32, beside, reservation.materializes, "materializes")};
    const struct xpl_iree_beside b = beside(p, a);
    struct xpl_iree_rows *const r = p->run->rows;
    xpl_row_begin(r, "type", "memory_allocation");
    xpl_row_text(r, "kind", xpl_iree_memory_kind_names[a->key.kind]);
    XPL_ROW_FIELDS(r, fields, a);
    XPL_ROW_FIELDS(r, pool, &b);
    xpl_row_bool(r, "open_at_end", is_open(a, &b));
    put_times(r, a);
    put_device_life(p, a);
    put_balances(r, a, &b);
    xpl_row_end(r);
}
#undef COUNTS
#undef BYTES
#undef PARTIAL

static void write_summary(const struct report *p) {
    const struct xpl_iree_memory *const m = &p->memory;
    struct xpl_iree_rows *const r = p->run->rows;
    uint64_t open = 0, partial = 0;
    for (size_t i = 0; i < m->allocations.n; i++) {
        const struct xpl_iree_allocation *const a = xpl_iree_table_at(&m->allocations, i);
        const struct xpl_iree_beside b = beside(p, a);
        open += is_open(a, &b);
        partial += b.partial.life.count + b.partial.materialized.count;
    }
    xpl_row_begin(r, "type", "memory_summary");
    xpl_row_str(r, "filter", p->run->options.filter);
    xpl_row_i64(r, "id_filter", p->run->options.id);
    xpl_row_u64(r, "total_events", m->total);
    xpl_row_u64(r, "matched_events", m->matched);
    xpl_row_u64(r, "truncated_chunks", m->truncated_chunks);
    xpl_row_u64(r, "dropped_records", m->dropped);
    xpl_row_u64(r, "truncated_matched_events", m->truncated_events);
    xpl_row_u64(r, "devices", m->devices.n);
    xpl_row_u64(r, "pools", m->pools.n);
    xpl_row_u64(r, "allocation_lifecycles", m->allocations.n);
    xpl_row_u64(r, "open_allocation_lifecycles", open);
    xpl_row_u64(r, "partial_lifecycle_closes", partial);
    xpl_row_end(r);
}

static void write_rows(const struct report *p) {
    const struct xpl_iree_memory *const m = &p->memory;
    struct xpl_iree_rows *const r = p->run->rows;
    write_summary(p);
    for (size_t i = 0; i < m->devices.n; i++)
        write_device(r, xpl_iree_table_at(&m->devices, i));
    for (size_t i = 0; i < m->pools.n; i++)
        write_pool(r, xpl_iree_table_at(&m->pools, i));
    // For a person, allocations one by one only on request.
    const bool all = r->format == XPL_IREE_JSONL || p->run->options.id >= 0;
    for (size_t i = 0; all && i < m->allocations.n; i++)
        write_allocation(p, xpl_iree_table_at(&m->allocations, i));
}

xpl_status_t xpl_iree_report_memory(struct xpl_iree_run *run, struct xpl_error *err) {
    struct report p = {
        .run = run,
        .lives = {.row_size = sizeof(struct life), .key_size = sizeof(struct life_key)}};
    xpl_iree_model_init(&p.model);
    xpl_iree_memory_init(&p.memory, run, false);
    if (run->rows->format == XPL_IREE_JSONL) p.memory.on_match = write_event;
    p.memory.ctx = run->rows;
    const xpl_status_t st = xpl_iree_walk(run, add_record, &p, err);
    if (st == XPL_OK) write_rows(&p);
    xpl_iree_memory_fini(&p.memory);
    xpl_iree_model_fini(&p.model);
    xpl_iree_table_fini(&p.lives);
    return st;
}
