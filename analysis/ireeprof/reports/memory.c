// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/memory.h"

const struct xpl_iree_memory_rule xpl_iree_memory_rules[XPL_IREE_N_MEMORY_TYPES] = {
    [XPL_IREE_SLAB_ACQUIRE] = {XPL_IREE_MEMORY_SLAB, 1, true},
    [XPL_IREE_SLAB_RELEASE] = {XPL_IREE_MEMORY_SLAB, -1, true},
    [XPL_IREE_POOL_RESERVE] = {XPL_IREE_MEMORY_POOL, 1, false},
    [XPL_IREE_POOL_MATERIALIZE] = {XPL_IREE_MEMORY_POOL, 0, false},
    [XPL_IREE_POOL_RELEASE] = {XPL_IREE_MEMORY_POOL, -1, false},
    [XPL_IREE_POOL_WAIT] = {XPL_IREE_MEMORY_POOL, 0, false},
    [XPL_IREE_QUEUE_ALLOCA] = {XPL_IREE_MEMORY_QUEUE, 1, true},
    [XPL_IREE_QUEUE_DEALLOCA] = {XPL_IREE_MEMORY_QUEUE, -1, true},
    [XPL_IREE_BUFFER_ALLOCATE] = {XPL_IREE_MEMORY_BUFFER, 1, true},
    [XPL_IREE_BUFFER_FREE] = {XPL_IREE_MEMORY_BUFFER, -1, true},
    [XPL_IREE_BUFFER_IMPORT] = {XPL_IREE_MEMORY_IMPORT, 1, true},
    [XPL_IREE_BUFFER_UNIMPORT] = {XPL_IREE_MEMORY_IMPORT, -1, true},
};

const char *const xpl_iree_memory_kind_names[XPL_IREE_N_LIVES] = {
    "slab", "pool_reservation", "queue_allocation", "buffer_allocation", "imported_buffer"};

struct latest_key { // of a queue's allocation
    uint64_t allocation_id, physical_device_ordinal;
};
struct latest {
    struct latest_key key;
    uint64_t pool_id;
};

void xpl_iree_memory_init(struct xpl_iree_memory *m, const struct xpl_iree_run *run,
                          bool everything) {
    *m = (struct xpl_iree_memory){
        .run = run,
        .everything = everything,
        .devices = {.row_size = sizeof(struct xpl_iree_memory_device), .key_size = 8},
        .pools = {.row_size = sizeof(struct xpl_iree_pool),
                  .key_size = sizeof(struct xpl_iree_pool_key)},
        .allocations = {.row_size = sizeof(struct xpl_iree_allocation),
                        .key_size = sizeof(struct xpl_iree_allocation_key)},
        .reservations = {.row_size = sizeof(struct xpl_iree_reservation),
                         .key_size = sizeof(struct xpl_iree_allocation_key)},
        .partials = {.row_size = sizeof(struct xpl_iree_partial),
                     .key_size = sizeof(struct xpl_iree_allocation_key)},
        .latest = {.row_size = sizeof(struct latest), .key_size = sizeof(struct latest_key)}};
}

void xpl_iree_memory_fini(struct xpl_iree_memory *m) {
    xpl_iree_table_fini(&m->devices);
    xpl_iree_table_fini(&m->pools);
    xpl_iree_table_fini(&m->allocations);
    xpl_iree_table_fini(&m->reservations);
    xpl_iree_table_fini(&m->partials);
    xpl_iree_table_fini(&m->latest);
}

// ---- balances ----

static void open_balance(struct xpl_iree_balance *b, uint64_t bytes) {
    b->total_open_count++;
    b->current_count++;
    xpl_iree_add(&b->total_open_bytes, bytes);
    xpl_iree_add(&b->current_bytes, bytes);
    if (b->current_count > b->high_water_count) b->high_water_count = b->current_count;
    if (b->current_bytes > b->high_water_bytes) b->high_water_bytes = b->current_bytes;
}

static void close_balance(struct xpl_iree_balance *b, uint64_t bytes) {
    const uint64_t more = bytes > b->current_bytes ? bytes - b->current_bytes : 0;
    const bool partial = b->current_count == 0 || more;
    b->total_close_count++;
    xpl_iree_add(&b->total_close_bytes, bytes);
    if (b->current_count) b->current_count--;
    b->current_bytes -= bytes - more;
    b->partial_close_count += partial;
    xpl_iree_add(&b->partial_close_bytes, more);
}

// Without partial closes.
static struct xpl_iree_balance balance_of(const struct xpl_iree_small_balance *b) {
    return (struct xpl_iree_balance){.current_count = b->current_count,
                                     .high_water_count = b->high_water_count,
                                     .total_open_count = b->total_open_count,
                                     .total_close_count = b->total_close_count,
                                     .current_bytes = b->current_bytes,
                                     .high_water_bytes = b->high_water_bytes,
                                     .total_open_bytes = b->total_open_bytes,
                                     .total_close_bytes = b->total_close_bytes};
}

static struct xpl_iree_small_balance small_balance(const struct xpl_iree_balance *b) {
    return (struct xpl_iree_small_balance){.current_count = (uint32_t)b->current_count,
                                           .high_water_count = (uint32_t)b->high_water_count,
                                           .total_open_count = (uint32_t)b->total_open_count,
                                           .total_close_count = (uint32_t)b->total_close_count,
                                           .current_bytes = b->current_bytes,
                                           .high_water_bytes = b->high_water_bytes,
                                           .total_open_bytes = b->total_open_bytes,
                                           .total_close_bytes = b->total_close_bytes};
}

// One event, with its known facts.
struct event {
    const struct xpl_iree_memory_event *e;
    struct xpl_iree_memory_rule rule;
    bool known;             // of a type that has a rule
    bool reservation;       // of a reservation of a pool
    bool ends_materialized; // a release of a materialized one
    uint64_t pool_id;       // also where the event leaves it out
};

static void balance_life(const struct event *v, struct xpl_iree_balance *life) {
    // What a pool reserves is an allocation's only with the flag.
    if (v->rule.life > 0 && (v->rule.of_allocation || v->reservation))
        open_balance(life, v->e->length);
    if (v->rule.life < 0) close_balance(life, v->e->length);
}

static void balance_materialized(const struct event *v, struct xpl_iree_balance *materialized) {
    if (v->e->type == XPL_IREE_POOL_MATERIALIZE) open_balance(materialized, v->e->length);
    if (v->ends_materialized) close_balance(materialized, v->e->length);
}

static void balance(const struct event *v, struct xpl_iree_balance *life,
                    struct xpl_iree_balance *materialized) {
    balance_life(v, life);
    balance_materialized(v, materialized);
}

static bool add_to_device(struct xpl_iree_memory *m, const struct event *v) {
    const uint64_t key = v->e->physical_device_ordinal;
    bool is_new;
    struct xpl_iree_memory_device *const d = xpl_iree_table_put(&m->devices, &key, &is_new);
    if (!d) return false;
    d->events++;
    if (!v->known) return true;
    d->events_of[v->e->type]++;
    balance(v, &d->balances[v->rule.kind], &d->balances[XPL_IREE_MEMORY_MATERIALIZED]);
    return true;
}

static struct xpl_iree_pool *pool_of(struct xpl_iree_memory *m, const struct event *v,
                                     uint32_t kind, uint64_t pool_id) {
    const struct xpl_iree_pool_key key = {pool_id, v->e->memory_type, kind,
                                          v->e->physical_device_ordinal};
    bool is_new;
    struct xpl_iree_pool *const p = xpl_iree_table_put(&m->pools, &key, &is_new);
    if (p) p->buffer_usage |= v->e->buffer_usage;
    return p;
}

static bool add_to_pool(struct xpl_iree_memory *m, const struct event *v) {
    if (!v->known) return true;
    struct xpl_iree_pool *const p = pool_of(m, v, v->rule.kind, v->pool_id);
    if (!p) return false;
    p->events++;
    p->waits += v->e->type == XPL_IREE_POOL_WAIT;
    p->materializes += v->e->type == XPL_IREE_POOL_MATERIALIZE;
    balance(v, &p->life, &p->materialized);
    return true;
}

static void note_bytes(uint64_t *now, uint64_t *high, uint64_t value) {
    *now = value;
    if (value > *high) *high = value;
}

static void note_count(uint32_t *now, uint32_t *high, uint32_t value) {
    *now = value;
    if (value > *high) *high = value;
}

static bool add_pool_stats(struct xpl_iree_memory *m, const struct event *v) {
    const struct xpl_iree_memory_event *const e = v->e;
    if (!(e->flags & XPL_IREE_MEMORY_POOL_STATS) || e->pool_id == 0) return true;
    struct xpl_iree_pool *const p = pool_of(m, v, XPL_IREE_MEMORY_POOL, e->pool_id);
    if (!p) return false;
    if (p->stats++ == 0 || e->pool_bytes_free < p->free_low) p->free_low = e->pool_bytes_free;
    p->free = e->pool_bytes_free;
    p->budget = e->pool_budget_limit;
    note_bytes(&p->reserved, &p->reserved_high, e->pool_bytes_reserved);
    note_bytes(&p->committed, &p->committed_high, e->pool_bytes_committed);
    note_count(&p->reservations, &p->reservations_high, e->pool_reservation_count);
    note_count(&p->slabs, &p->slabs_high, e->pool_slab_count);
    return true;
}

static void describe(struct xpl_iree_allocation *a, const struct xpl_iree_memory_event *e) {
    if (a->first_event_id == 0) {
        a->first_event_id = e->event_id;
        a->first_ns = e->host_time_ns;
    }
    a->last_event_id = e->event_id;
    a->last_ns = e->host_time_ns;
    if (e->submission_id) {
        if (a->first_submission_id == 0) {
            a->first_submission_id = e->submission_id;
            a->first_queue = e->queue_ordinal;
        }
        a->last_submission_id = e->submission_id;
        a->last_queue = e->queue_ordinal;
    }
    if (!a->backing_id) a->backing_id = e->backing_id;
    a->flags |= e->flags;
    a->memory_type |= e->memory_type;
    a->buffer_usage |= e->buffer_usage;
    a->events++;
}

static struct xpl_iree_allocation_key key_of(const struct event *v) {
    return (struct xpl_iree_allocation_key){v->e->allocation_id, v->pool_id, v->rule.kind,
                                            v->e->physical_device_ordinal};
}

// Adds the partial closes of a balance to those of its allocation.
static bool add_partial(struct xpl_iree_memory *m, const struct event *v, bool materialized,
                        const struct xpl_iree_balance *b) {
    const struct xpl_iree_allocation_key key = key_of(v);
    bool is_new;
    if (!b->partial_close_count && !b->partial_close_bytes) return true;
    struct xpl_iree_partial *const p = xpl_iree_table_put(&m->partials, &key, &is_new);
    if (!p) return false;
    uint64_t *const bytes = materialized ? &p->materialized.bytes : &p->life.bytes;
    *(materialized ? &p->materialized.count : &p->life.count) += b->partial_close_count;
    xpl_iree_add(bytes, b->partial_close_bytes);
    return true;
}

static bool add_to_reservation(struct xpl_iree_memory *m, const struct event *v) {
    const struct xpl_iree_allocation_key key = key_of(v);
    const bool waits = v->e->type == XPL_IREE_POOL_WAIT;
    const bool materializes = v->e->type == XPL_IREE_POOL_MATERIALIZE;
    bool is_new;
    if (!v->reservation || !(waits || materializes || v->ends_materialized)) return true;
    struct xpl_iree_reservation *const r = xpl_iree_table_put(&m->reservations, &key, &is_new);
    if (!r) return false;
    r->waits += waits;
    r->materializes += materializes;
    struct xpl_iree_balance b = balance_of(&r->materialized);
    balance_materialized(v, &b);
    r->materialized = small_balance(&b);
    return add_partial(m, v, true, &b);
}

static bool add_to_allocation(struct xpl_iree_memory *m, const struct event *v) {
    if (!v->known || !(v->rule.of_allocation || v->reservation)) return true;
    const struct xpl_iree_allocation_key key = key_of(v);
    bool is_new;
    struct xpl_iree_allocation *const a = xpl_iree_table_put(&m->allocations, &key, &is_new);
    if (!a) return false;
    if (is_new) a->first_queue = a->last_queue = XPL_IREE_NONE;
    describe(a, v->e);
    struct xpl_iree_balance life = balance_of(&a->life);
    balance_life(v, &life);
    a->life = small_balance(&life);
    if (!add_partial(m, v, false, &life)) return false;
    if (!is_new || v->rule.kind != XPL_IREE_MEMORY_QUEUE) return true;
    const struct latest_key latest = {v->e->allocation_id, v->e->physical_device_ordinal};
    struct latest *const l = xpl_iree_table_put(&m->latest, &latest, &is_new);
    if (l) l->pool_id = v->pool_id;
    return l != NULL;
}

// ---- one event ----

// The pool of an event: that of its allocation where a queue's event leaves it out.
static uint64_t find_pool(const struct xpl_iree_memory *m, const struct event *v) {
    const struct latest_key key = {v->e->allocation_id, v->e->physical_device_ordinal};
    if (v->e->pool_id || v->rule.kind != XPL_IREE_MEMORY_QUEUE) return v->e->pool_id;
    const struct latest *const l = xpl_iree_table_get(&m->latest, &key);
    return l ? l->pool_id : 0;
}

static struct event event_of(const struct xpl_iree_memory *m,
                             const struct xpl_iree_memory_event *e) {
    struct event v = {.e = e, .known = e->type > 0 && e->type < XPL_IREE_N_MEMORY_TYPES};
    if (!v.known) return v;
    v.rule = xpl_iree_memory_rules[e->type];
    v.reservation = (e->flags & XPL_IREE_MEMORY_RESERVATION) != 0;
    v.pool_id = find_pool(m, &v);
    if (e->type != XPL_IREE_POOL_RELEASE || !v.reservation) return v;
    const struct xpl_iree_allocation_key key = key_of(&v);
    const struct xpl_iree_reservation *const a = xpl_iree_table_get(&m->reservations, &key);
    v.ends_materialized = a && (a->materialized.current_count || a->materialized.current_bytes);
    return v;
}

static bool matches(const struct xpl_iree_memory *m, const struct xpl_iree_memory_event *e) {
    return m->everything ||
           ((xpl_iree_id_is(m->run, e->event_id) || xpl_iree_id_is(m->run, e->allocation_id)) &&
            xpl_iree_glob_z(xpl_iree_name(XPL_IREE_NAMES_MEMORY, e->type), m->run->options.filter));
}

xpl_status_t xpl_iree_memory_add(struct xpl_iree_memory *m, const struct xpl_iree_record *r,
                                 struct xpl_error *err) {
    struct xpl_iree_items items = xpl_iree_items_of(r);
    struct xpl_iree_item item;
    if (r->chunk != XPL_IREE_MEMORY_EVENTS) return XPL_OK;
    if (xpl_iree_truncated(r)) {
        m->truncated_chunks++;
        m->dropped += r->dropped_record_count; // wraps around, as IREE's does
    }
    while (xpl_iree_item_next(&items, &item, NULL)) {
        struct xpl_iree_memory_event e;
        xpl_iree_copy(&item, &e);
        m->total++;
        if (!matches(m, &e)) continue;
        m->matched++;
        m->truncated_events += xpl_iree_truncated(r);
        const struct event v = event_of(m, &e);
        bool ok = add_to_device(m, &v) && add_to_reservation(m, &v);
        if (!m->everything)
            ok = ok && add_to_pool(m, &v) && add_pool_stats(m, &v) && add_to_allocation(m, &v);
        if (!ok) XPL_RETURN_OOM(err, "memory of the bundle");
        if (m->on_match) m->on_match(m->ctx, &e);
    }
    return XPL_OK;
}
