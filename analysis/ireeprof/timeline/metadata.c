// SPDX-License-Identifier: Apache-2.0
// The objects that events refer to, and the tracks that the bundle describes. Of several
// descriptions of an id in one session the last one counts, as in IREE's renderer; ids of different
// sessions are distinct.

#include "analysis/ireeprof/timeline/impl.h"
#include "analysis/perfetto/packet.h"
#include "base/vec.h"

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

static struct xpl_iree_place place_of(const struct xpl_iree_timeline *t,
                                      const struct xpl_iree_item *item) {
    return (struct xpl_iree_place){(uint64_t)(item->p - t->run->bundle->bytes.ptr),
                                   (uint32_t)t->chunks.n - 1, t->x.model.session};
}

static xpl_str_t tail_text(const struct xpl_iree_item *item) {
    return (xpl_str_t){(const char *)item->tail.ptr, item->tail.len};
}

// ---- clocks ----

int64_t xpl_iree_midpoint(int64_t a, int64_t b) {
    return (int64_t)(((i128)a + b) >> 1);
}

static bool add_clock(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_clock_correlation s;
    bool is_new;
    xpl_iree_copy(item, &s);
    const struct xpl_iree_device_key key = {s.physical_device_ordinal, t->x.model.session};
    const int64_t ns = xpl_iree_midpoint(s.host_time_begin_ns, s.host_time_end_ns);
    struct xpl_iree_timeline_clock *const c = xpl_iree_table_put(&t->clocks, &key, &is_new);
    if (!c) return false;
    if (is_new || s.device_tick < c->first_tick) c->first_tick = s.device_tick, c->first_ns = ns;
    if (is_new || s.device_tick >= c->last_tick) c->last_tick = s.device_tick, c->last_ns = ns;
    return true;
}

static u128 distance(u128 a, u128 b) {
    return a > b ? a - b : b - a;
}

bool xpl_iree_timeline_ns(const struct xpl_iree_timeline *t, uint32_t device, uint64_t tick,
                          int64_t *ret) {
    uint32_t session;
    if (!xpl_iree_model_clock_session(&t->x.model, device, &session)) return false;
    const struct xpl_iree_device_key key = {device, session};
    const struct xpl_iree_timeline_clock *const c = xpl_iree_table_get(&t->clocks, &key);
    if (!c) return false;
    const uint64_t ticks = c->last_tick - c->first_tick;
    const i128 span = (i128)c->last_ns - c->first_ns;
    const u128 from = distance(tick, c->first_tick), by = (u128)(span < 0 ? -span : span);
    // One sample tells no rate: a tick is taken for a nanosecond.
    u128 ns = from;
    if (ticks && (__builtin_mul_overflow(from, by, &ns) ||
                  __builtin_add_overflow(ns, (u128)(ticks / 2), &ns)))
        return false;
    if (ticks) ns /= ticks;
    if (ns > UINT64_MAX) return false;
    const bool back = (tick < c->first_tick) != (ticks && span < 0);
    const i128 at = (i128)c->first_ns + (back ? -(i128)ns : (i128)ns);
    if (at < INT64_MIN || at > INT64_MAX) return false;
    *ret = (int64_t)at;
    return true;
}

// ---- commands and functions ----

static bool add_buffer(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_command_buffer b;
    bool is_new;
    xpl_iree_copy(item, &b);
    const struct xpl_iree_buffer_key key = {b.command_buffer_id, t->x.model.session};
    struct xpl_iree_timeline_buffer *const row = xpl_iree_table_put(&t->buffers, &key, &is_new);
    if (row) row->described = true, row->record = b;
    return row != NULL;
}

static bool add_operation(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_command_operation op;
    bool is_new;
    xpl_iree_copy(item, &op);
    if (op.command_buffer_id == 0) return true;
    const struct xpl_iree_operation_key key = {op.command_buffer_id, op.command_index,
                                               t->x.model.session};
    const struct xpl_iree_buffer_key buffer = {op.command_buffer_id, t->x.model.session};
    struct xpl_iree_timeline_buffer *const b = xpl_iree_table_put(&t->buffers, &buffer, &is_new);
    struct xpl_iree_timeline_operation *const row =
        b ? xpl_iree_table_put(&t->operations, &key, &is_new) : NULL;
    if (!row ||
        !xpl_iree_model_describe(&t->x.model, XPL_IREE_SCOPE_OPERATIONS, op.command_buffer_id, 0))
        return false;
    row->place = place_of(t, item);
    b->operations++;
    if (op.type != XPL_IREE_COMMAND_DISPATCH) return true;
    b->dispatches++;
    b->dispatch = row->place;
    return true;
}

static bool add_function(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_function f;
    bool is_new;
    xpl_iree_copy(item, &f);
    const struct xpl_iree_function_key key = {f.executable_id, f.function_ordinal,
                                              t->x.model.session};
    if (f.executable_id == 0 || f.function_ordinal == XPL_IREE_NONE) return true;
    struct xpl_iree_timeline_function *const row = xpl_iree_table_put(&t->functions, &key, &is_new);
    if (row) row->name = tail_text(item);
    return row != NULL;
}

// ---- counters and metrics ----

static bool add_set(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_counter_set s;
    bool is_new;
    xpl_iree_copy(item, &s);
    const struct xpl_iree_set_key key = {s.counter_set_id, t->x.model.session};
    struct xpl_iree_timeline_set *const row = xpl_iree_table_put(&t->sets, &key, &is_new);
    if (row) row->described = true, row->record = s, row->name = tail_text(item);
    return row &&
           xpl_iree_model_describe(&t->x.model, XPL_IREE_SCOPE_COUNTERS, s.counter_set_id, 0);
}

static bool add_counter(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_timeline_counter *const c = xpl_iree_list_push(&t->counters);
    bool is_new;
    if (!c) return false;
    const xpl_str_t text = tail_text(item);
    xpl_iree_copy(item, &c->record);
    c->block = xpl_str_sub(text, 0, c->record.block_name_length);
    c->name = xpl_str_sub(text, c->record.block_name_length, c->record.name_length);
    c->sequence = (uint32_t)t->counters.n;
    c->session = t->x.model.session;
    const struct xpl_iree_set_key key = {c->record.counter_set_id, c->session};
    return xpl_iree_table_put(&t->sets, &key, &is_new) != NULL;
}

static bool add_source(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_metric_source s;
    bool is_new;
    xpl_iree_copy(item, &s);
    const struct xpl_iree_source_key key = {s.source_id, t->x.model.session};
    struct xpl_iree_timeline_source *const row = xpl_iree_table_put(&t->sources, &key, &is_new);
    if (row) row->name = tail_text(item);
    return row && xpl_iree_model_describe(&t->x.model, XPL_IREE_SCOPE_SOURCE, s.source_id, 0);
}

static int compare_sets(const struct xpl_iree_timeline_counter *a,
                        const struct xpl_iree_timeline_counter *b) {
    if (a->record.counter_set_id != b->record.counter_set_id)
        return a->record.counter_set_id < b->record.counter_set_id ? -1 : 1;
    if (a->session != b->session) return a->session < b->session ? -1 : 1;
    if (a->record.counter_ordinal != b->record.counter_ordinal)
        return a->record.counter_ordinal < b->record.counter_ordinal ? -1 : 1;
    return 0;
}

static int by_set(const void *pa, const void *pb) {
    const struct xpl_iree_timeline_counter *const a = pa, *const b = pb;
    const int c = compare_sets(a, b);
    return c ? c : a->sequence < b->sequence ? -1 : 1;
}

static int compare_texts(xpl_str_t a, xpl_str_t b) {
    if (a.len != b.len) return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.ptr, b.ptr, a.len) : 0;
}

// 0 for one counter that is described twice.
static int compare_counters(const struct xpl_iree_timeline_counter *a,
                            const struct xpl_iree_timeline_counter *b) {
    int c = compare_sets(a, b);
    if (c) return c;
    if (a->record.sample_value_offset != b->record.sample_value_offset)
        return a->record.sample_value_offset < b->record.sample_value_offset ? -1 : 1;
    if (a->record.sample_value_count != b->record.sample_value_count)
        return a->record.sample_value_count < b->record.sample_value_count ? -1 : 1;
    c = compare_texts(a->block, b->block);
    return c ? c : compare_texts(a->name, b->name);
}

static int by_counter(const void *pa, const void *pb) {
    const struct xpl_iree_timeline_counter *const a = pa, *const b = pb;
    const int c = compare_counters(a, b);
    return c ? c : a->sequence < b->sequence ? -1 : 1;
}

// Whether a sample of the set has the counter's values, and these are not more than are left of it.
// Counters share no values, so that all of them together have at most those of a sample: more would
// make the work for a sample larger than the sample.
static bool has_values(const struct xpl_iree_timeline_set *set, const struct xpl_iree_counter *c) {
    const uint64_t n = set->record.sample_value_count;
    return set->described && c->sample_value_count && c->sample_value_offset <= n &&
           n - c->sample_value_offset >= c->sample_value_count &&
           n - set->n_values >= c->sample_value_count;
}

// The counters are of the set that counts for the session in which they were described.
static void find_sets(struct xpl_iree_timeline *t) {
    struct xpl_iree_timeline_counter *const c = t->counters.v;
    for (uint32_t i = 0; i < t->counters.n; i++) {
        t->x.model.session = c[i].session;
        c[i].session = xpl_iree_model_scope(&t->x.model, XPL_IREE_SCOPE_COUNTERS,
                                            c[i].record.counter_set_id, 0);
    }
}

// Marks earlier descriptions, also with other counters between: each flush of a session, and each
// session of a set that it does not describe itself, may do so.
static void find_again(struct xpl_iree_timeline *t) {
    struct xpl_iree_timeline_counter *const c = t->counters.v;
    xpl_sort(c, t->counters.n, sizeof *c, by_counter);
    for (uint32_t i = 1; i < t->counters.n; i++)
        c[i].again = compare_counters(&c[i - 1], &c[i]) == 0;
    xpl_sort(c, t->counters.n, sizeof *c, by_set);
}

static bool name_variants(struct xpl_iree_timeline *t, struct xpl_iree_timeline_set *set,
                          struct xpl_iree_timeline_counter *c) {
    return xpl_iree_timeline_variant(t, XPL_IREE_TRACK_COUNTER_SET, c->record.counter_set_id, 0,
                                     set->name, XPL_STR(""), &set->variant) &&
           xpl_iree_timeline_variant(t, XPL_IREE_TRACK_COUNTER, c->record.counter_set_id,
                                     (uint64_t)set->variant << 32 | c->record.counter_ordinal,
                                     c->block, c->name, &c->variant);
}

bool xpl_iree_timeline_described(struct xpl_iree_timeline *t) {
    struct xpl_iree_timeline_counter *const c = t->counters.v;
    uint32_t kept = 0;
    find_sets(t);
    find_again(t);
    for (uint32_t i = 0; i < t->counters.n; i++) {
        const struct xpl_iree_set_key key = {c[i].record.counter_set_id, c[i].session};
        struct xpl_iree_timeline_set *const set = xpl_iree_table_get(&t->sets, &key);
        if (!set || c[i].again || !has_values(set, &c[i].record)) continue;
        if (!name_variants(t, set, &c[i])) return false;
        if (set->n++ == 0) set->first = kept;
        set->n_values += c[i].record.sample_value_count;
        c[kept++] = c[i];
    }
    t->counters.n = kept;
    return true;
}

// ---- relationships ----

// Adds a flow to an endpoint.
static bool iree_timeline_flow(struct xpl_iree_timeline *t, const struct xpl_iree_endpoint_key *key,
                               uint64_t id) {
    bool is_new;
    struct xpl_iree_endpoint *const e = xpl_iree_table_put(&t->endpoints, key, &is_new);
    struct xpl_iree_flow *const f = e ? xpl_iree_list_push(&t->flows) : NULL;
    if (!f) return false;
    f->id = id;
    if (e->last_plus_1)
        ((struct xpl_iree_flow *)t->flows.v)[e->last_plus_1 - 1].next_plus_1 = (uint32_t)t->flows.n;
    else
        e->first_plus_1 = (uint32_t)t->flows.n;
    e->last_plus_1 = (uint32_t)t->flows.n;
    return true;
}

static bool add_relationship(struct xpl_iree_timeline *t, const struct xpl_iree_item *item) {
    struct xpl_iree_relationship r;
    xpl_iree_copy(item, &r);
    const bool is_slice = r.target_type == XPL_IREE_END_DISPATCH ||
                          r.target_type == XPL_IREE_END_QUEUE_DEVICE ||
                          r.target_type == XPL_IREE_END_HOST;
    if (r.source_id == 0 || r.target_id == 0 || !is_slice) return true;
    struct xpl_iree_endpoint_key source = {.stream_id = r.stream_id,
                                           .id = r.source_id,
                                           .type = r.source_type,
                                           .device =
                                               xpl_iree_device_or_first(r.physical_device_ordinal),
                                           .queue = r.queue_ordinal,
                                           .session = t->x.model.session};
    struct xpl_iree_endpoint_key target = source;
    target.id = r.target_id, target.type = r.target_type;
    uint64_t id = xpl_pf_mix(xpl_pf_mix(1, r.relationship_id), r.stream_id);
    id = xpl_pf_mix(xpl_pf_mix(id, source.device), source.queue);
    id = xpl_pf_mix(xpl_pf_mix(id, source.type), source.id);
    id = xpl_pf_mix(xpl_pf_mix(id, target.type), target.id);
    if (source.session) id = xpl_pf_mix(id, source.session);
    id |= 1;
    return iree_timeline_flow(t, &target, id) && iree_timeline_flow(t, &source, id);
}

// ---- records ----

// Sessions may give devices of other UUIDs one ordinal.
static bool add_device(struct xpl_iree_timeline *t, const struct xpl_iree_device *d) {
    const uint32_t device = xpl_iree_device_or_first(d->physical_device_ordinal);
    const struct xpl_iree_device_key key = {device, t->x.model.session};
    const bool has_uuid = (d->flags & XPL_IREE_DEVICE_HAS_UUID) != 0;
    const xpl_str_t uuid = {(const char *)d->physical_device_uuid, has_uuid ? 16 : 0};
    bool is_new;
    if (!xpl_iree_timeline_variant(t, XPL_IREE_TRACK_DEVICE, device, 0, uuid, XPL_STR(""),
                                   &t->variant) ||
        !xpl_iree_model_describe(&t->x.model, XPL_IREE_SCOPE_DEVICE, device, 0))
        return false;
    struct xpl_iree_timeline_device *const row =
        t->x.model.by_session ? xpl_iree_table_put(&t->devices, &key, &is_new) : NULL;
    if (row) row->variant = t->variant;
    return (row || !t->x.model.by_session) &&
           xpl_iree_track_device(t, device, has_uuid ? d->physical_device_uuid : NULL) !=
               UINT32_MAX;
}

static bool add_track(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                      const struct xpl_iree_item *item) {
    struct xpl_iree_device d;
    struct xpl_iree_queue q;
    if (h->chunk == XPL_IREE_DEVICES) {
        xpl_iree_copy(item, &d);
        return add_device(t, &d);
    }
    xpl_iree_copy(item, &q);
    return xpl_iree_track_queue(t, xpl_iree_device_or_first(q.physical_device_ordinal),
                                q.queue_ordinal, &q.stream_id) != UINT32_MAX;
}

static bool add_item(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                     const struct xpl_iree_item *item) {
    static bool (*const adds[XPL_IREE_N_CHUNK_TYPES])(struct xpl_iree_timeline *,
                                                      const struct xpl_iree_item *) = {
        [XPL_IREE_FUNCTIONS] = add_function,
        [XPL_IREE_COMMAND_BUFFERS] = add_buffer,
        [XPL_IREE_COMMAND_OPERATIONS] = add_operation,
        [XPL_IREE_CLOCKS] = add_clock,
        [XPL_IREE_RELATIONSHIPS] = add_relationship,
        [XPL_IREE_COUNTER_SETS] = add_set,
        [XPL_IREE_COUNTERS] = add_counter,
        [XPL_IREE_METRIC_SOURCES] = add_source};
    if (h->chunk == XPL_IREE_DEVICES || h->chunk == XPL_IREE_QUEUES) return add_track(t, h, item);
    return !adds[h->chunk] || adds[h->chunk](t, item);
}

// While devices are described, the one of a queue is that of its session, if that precedes it.
static void enter_item(struct xpl_iree_timeline *t, const struct xpl_iree_record *h,
                       const struct xpl_iree_item *item) {
    if (!t->x.model.by_session) return;
    const uint32_t device = xpl_iree_device_of(h, item);
    xpl_iree_model_enter(&t->x.model, h, device);
    xpl_iree_timeline_take_device(t, device, t->x.model.session);
}

bool xpl_iree_timeline_describe(struct xpl_iree_timeline *t, const struct xpl_iree_record *h) {
    struct xpl_iree_items items = xpl_iree_items_of(h);
    struct xpl_iree_item item;
    struct xpl_iree_chunk_place *const c = xpl_iree_list_push(&t->chunks);
    bool ok = c != NULL;
    if (ok) *c = (struct xpl_iree_chunk_place){h->offset, h->index};
    t->has_queue_device |= h->chunk == XPL_IREE_QUEUE_DEVICE_EVENTS && h->payload.len;
    while (ok && !xpl_iree_timeline_stopped(t) && xpl_iree_item_next(&items, &item, NULL)) {
        enter_item(t, h, &item);
        ok = add_item(t, h, &item);
    }
    return ok;
}
