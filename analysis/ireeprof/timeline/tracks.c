// SPDX-License-Identifier: Apache-2.0
// Tracks: what the first use of one says is its name.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/ireeprof/timeline/impl.h"
#include "analysis/perfetto/packet.h"

enum { LAST_RANK = 999999 };
#define FAILED UINT32_MAX

static uint64_t uuid_of(const struct xpl_iree_track_key *k) {
    uint64_t h = xpl_pf_mix(UINT64_C(0x1ee), k->kind);
    h = xpl_pf_mix(xpl_pf_mix(h, k->device), k->queue);
    h = xpl_pf_mix(xpl_pf_mix(h, k->a), k->b);
    return (k->variant ? xpl_pf_mix(h, k->variant) : h) | 1;
}

// The track of a key: as it is, when it is known (*ret_new false), else with these properties.
static struct xpl_iree_track *put(struct xpl_iree_timeline *t, struct xpl_iree_track_key key,
                                  uint32_t parent, uint32_t rank, bool *ret_new) {
    if (key.kind != XPL_IREE_TRACK_ROOT && key.kind != XPL_IREE_TRACK_DIAGNOSTICS)
        key.variant |= t->variant;
    struct xpl_iree_track *const r = xpl_iree_table_put(&t->tracks, &key, ret_new);
    if (!r || !*ret_new) return r;
    r->uuid = uuid_of(&key);
    r->parent_plus_1 = parent + 1; // FAILED + 1: none
    r->rank = rank;
    return r;
}

static uint32_t index_of(const struct xpl_iree_timeline *t, const struct xpl_iree_track *r) {
    return r ? (uint32_t)((size_t)((const uint8_t *)r - t->tracks.rows) / t->tracks.row_size)
             : FAILED;
}

// The index of a track that was defined before, as are those above it; FAILED: it was not.
static uint32_t known(struct xpl_iree_timeline *t, struct xpl_iree_track_key key) {
    key.variant |= t->variant;
    const uint32_t at = index_of(t, xpl_iree_table_get(&t->tracks, &key));
    if (at != FAILED) t->tracks.last = at;
    return at;
}

// A track with a name that is constant.
static uint32_t named(struct xpl_iree_timeline *t, struct xpl_iree_track_key key, uint32_t parent,
                      uint32_t rank, const char *name) {
    bool is_new;
    struct xpl_iree_track *const r = put(t, key, parent, rank, &is_new);
    if (r && is_new) r->name = xpl_str_from(name);
    return index_of(t, r);
}

static uint32_t finish(struct xpl_iree_timeline *t, struct xpl_iree_track *r, const char *text,
                       bool ordered) {
    r->ordered = ordered;
    return xpl_arena_str(&t->arena, xpl_str_from(text), &r->name) ? index_of(t, r) : FAILED;
}

uint32_t xpl_iree_track_root(struct xpl_iree_timeline *t) {
    const struct xpl_iree_track_key key = {.kind = XPL_IREE_TRACK_ROOT};
    bool is_new;
    struct xpl_iree_track *const r = put(t, key, FAILED, 0, &is_new);
    return r && is_new ? finish(t, r, "IREE HAL profile", true) : index_of(t, r);
}

uint32_t xpl_iree_track_diagnostics(struct xpl_iree_timeline *t) {
    const struct xpl_iree_track_key key = {.kind = XPL_IREE_TRACK_DIAGNOSTICS};
    return named(t, key, xpl_iree_track_root(t), 100000, "diagnostics");
}

uint32_t xpl_iree_track_device(struct xpl_iree_timeline *t, uint32_t device, const uint8_t *uuid) {
    const struct xpl_iree_track_key key = {.kind = XPL_IREE_TRACK_DEVICE, .device = device};
    char text[80];
    bool is_new;
    const uint32_t at = known(t, key);
    if (at != FAILED) return at;
    struct xpl_iree_track *const r = put(t, key, xpl_iree_track_root(t), device, &is_new);
    if (!r || !is_new) return index_of(t, r);
    int n = snprintf(text, sizeof text, "device[%" PRIu32 "]%s", device, uuid ? " " : "");
    for (size_t i = 0; uuid && i < 16; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%02x", uuid[i]);
    return finish(t, r, text, true);
}

uint32_t xpl_iree_track_queue(struct xpl_iree_timeline *t, uint32_t device, uint32_t queue,
                              const uint64_t *stream) {
    const bool none = queue == XPL_IREE_NO_QUEUE;
    const struct xpl_iree_track_key key = {
        .kind = XPL_IREE_TRACK_QUEUE, .device = device, .queue = queue};
    const uint32_t at = known(t, key);
    if (at != FAILED) return at;
    const uint32_t parent = xpl_iree_track_device(t, device, NULL);
    char text[80];
    bool is_new;
    struct xpl_iree_track *const r =
        parent == FAILED ? NULL : put(t, key, parent, none ? LAST_RANK : queue, &is_new);
    if (!r || !is_new) return index_of(t, r);
    int n = none ? snprintf(text, sizeof text, "device-scope events")
                 : snprintf(text, sizeof text, "queue[%" PRIu32 "]", queue);
    if (!none && stream)
        (void)snprintf(text + n, sizeof text - (size_t)n, " stream=%" PRIu64, *stream);
    const uint32_t index = finish(t, r, text, true);
    for (int kind = XPL_IREE_TRACK_QUEUE_EVENTS; kind <= XPL_IREE_TRACK_ALLOCATED; kind++)
        if (index == FAILED ||
            xpl_iree_track_of_queue(t, (enum xpl_iree_track_kind)kind, device, queue, 0) == FAILED)
            return FAILED;
    return index;
}

uint32_t xpl_iree_track_of_queue(struct xpl_iree_timeline *t, enum xpl_iree_track_kind kind,
                                 uint32_t device, uint32_t queue, uint64_t lane) {
    static const struct {
        const char *name;
        uint32_t rank;
    } kinds[] = {[XPL_IREE_TRACK_QUEUE_EVENTS] = {"host queue events", 0},
                 [XPL_IREE_TRACK_OPERATIONS] = {"command buffer operations", 100},
                 [XPL_IREE_TRACK_MEMORY] = {"host memory events", 4000},
                 [XPL_IREE_TRACK_ALLOCATED] = {"queue allocation bytes", 5000},
                 [XPL_IREE_TRACK_DISPATCH] = {"dispatch", 2000},
                 [XPL_IREE_TRACK_HOST] = {"host execution", 3000},
                 [XPL_IREE_TRACK_QUEUE_DEVICE] = {"device queue ops", 1000}};
    const struct xpl_iree_track_key key = {
        .kind = (uint32_t)kind, .device = device, .queue = queue, .a = lane};
    const uint32_t at = known(t, key);
    if (at != FAILED) return at;
    const uint32_t parent = xpl_iree_track_queue(t, device, queue, NULL);
    char text[80];
    bool is_new;
    struct xpl_iree_track *const r =
        parent == FAILED ? NULL : put(t, key, parent, kinds[kind].rank + (uint32_t)lane, &is_new);
    if (!r || !is_new) return index_of(t, r);
    r->counter = kind == XPL_IREE_TRACK_ALLOCATED;
    if (!lane) return finish(t, r, kinds[kind].name, false);
    (void)snprintf(text, sizeof text, "%s lane %" PRIu64, kinds[kind].name, lane);
    return finish(t, r, text, false);
}

// A track with a name of the bundle, or, where that is empty, "WHAT[id]" or "WHAT id".
static uint32_t with_name(struct xpl_iree_timeline *t, struct xpl_iree_track_key key,
                          uint32_t parent, uint64_t rank, xpl_str_t name, const char *otherwise) {
    bool is_new;
    struct xpl_iree_track *const r =
        parent == FAILED
            ? NULL
            : put(t, key, parent, rank < LAST_RANK ? (uint32_t)rank : LAST_RANK, &is_new);
    if (!r || !is_new) return index_of(t, r);
    r->name = name;
    return name.len ? index_of(t, r) : finish(t, r, otherwise, false);
}

// BLOCK.NAME, unless the name begins with the block's.
static bool name_counter(struct xpl_iree_timeline *t, const struct xpl_iree_timeline_counter *c,
                         xpl_str_t *ret) {
    char text[60];
    (void)snprintf(text, sizeof text, "counter[%" PRIu32 "]", c->record.counter_ordinal);
    const xpl_str_t name = c->name.len ? c->name : xpl_str_from(text);
    const bool has_block =
        c->block.len && !(xpl_str_starts(name, c->block) && name.len > c->block.len &&
                          name.ptr[c->block.len] == '_');
    if (!has_block) return xpl_arena_str(&t->arena, name, ret);
    char *const p = xpl_arena_alloc(&t->arena, c->block.len + 1 + name.len);
    if (!p) return false;
    memcpy(p, c->block.ptr, c->block.len);
    p[c->block.len] = '.';
    memcpy(p + c->block.len + 1, name.ptr, name.len);
    *ret = (xpl_str_t){p, c->block.len + 1 + name.len};
    return true;
}

uint32_t xpl_iree_track_counter(struct xpl_iree_timeline *t, bool range, uint32_t device,
                                const struct xpl_iree_timeline_set *set,
                                const struct xpl_iree_timeline_counter *c) {
    struct xpl_iree_track_key key = {
        .kind = range ? XPL_IREE_TRACK_RANGES : XPL_IREE_TRACK_COUNTERS, .device = device};
    char text[60];
    bool is_new;
    uint32_t at = xpl_iree_track_device(t, device, NULL);
    if (at != FAILED)
        at = named(t, key, at, range ? 8100 : 8000,
                   range ? "range counters" : "dispatch-scoped counters");
    if (at != FAILED) ((struct xpl_iree_track *)xpl_iree_table_at(&t->tracks, at))->ordered = true;
    key.kind++;
    key.a = set->key.counter_set_id;
    key.variant = (uint32_t)set->variant << 16;
    (void)snprintf(text, sizeof text, "counter set %" PRIu64, key.a);
    at = with_name(t, key, at, key.a, set->name, text);
    if (at != FAILED) ((struct xpl_iree_track *)xpl_iree_table_at(&t->tracks, at))->ordered = true;
    key.kind++;
    key.b = (uint64_t)set->variant << 32 | c->record.counter_ordinal;
    key.variant = (uint32_t)c->variant << 16;
    const uint32_t rank =
        c->record.counter_ordinal < LAST_RANK ? c->record.counter_ordinal : LAST_RANK;
    struct xpl_iree_track *const r = at == FAILED ? NULL : put(t, key, at, rank, &is_new);
    if (!r || !is_new) return index_of(t, r); // a name for each sample would be too many
    r->counter = true;
    return name_counter(t, c, &r->name) ? index_of(t, r) : FAILED;
}

uint32_t xpl_iree_track_metrics(struct xpl_iree_timeline *t, uint32_t device) {
    const struct xpl_iree_track_key key = {.kind = XPL_IREE_TRACK_METRICS, .device = device};
    const uint32_t parent = xpl_iree_track_device(t, device, NULL);
    const uint32_t at = parent == FAILED ? FAILED : named(t, key, parent, 9000, "device metrics");
    if (at != FAILED) ((struct xpl_iree_track *)xpl_iree_table_at(&t->tracks, at))->ordered = true;
    return at;
}

uint32_t xpl_iree_track_metric(struct xpl_iree_timeline *t, uint32_t device,
                               const struct xpl_iree_metric_row *metric) {
    static const struct {
        const char *name;
        uint32_t rank;
    } ranks[] = {
        {"clock.compute.current", 100}, {"clock.memory.current", 110}, {"activity.compute", 200},
        {"activity.memory", 210},       {"memory.local.used", 300},    {"memory.local.total", 310},
        {"memory.traffic.read", 320},   {"memory.traffic.write", 330}, {"temperature.edge", 400},
        {"temperature.hotspot", 410},   {"temperature.memory", 420},   {"power.socket", 500},
        {"energy.socket", 510},         {"throttle.status", 900},      {"performance.tier", 910}};
    struct xpl_iree_track_key key = {.kind = XPL_IREE_TRACK_METRIC,
                                     .device = device,
                                     .a = metric->key.source_id,
                                     .b = metric->key.metric_id};
    const uint64_t id = key.b < LAST_RANK ? key.b : LAST_RANK;
    const xpl_str_t name = metric->name;
    uint16_t variant;
    uint32_t rank = 10000 + (uint32_t)id;
    char text[60];
    bool is_new;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (xpl_str_eq(name, xpl_str_from(ranks[i].name))) rank = ranks[i].rank;
    if (!xpl_iree_timeline_variant(t, XPL_IREE_TRACK_METRIC, key.a, key.b, name, XPL_STR(""),
                                   &variant))
        return FAILED;
    key.variant = (uint32_t)variant << 16;
    const uint32_t parent = xpl_iree_track_metrics(t, device);
    struct xpl_iree_track *const r = parent == FAILED ? NULL : put(t, key, parent, rank, &is_new);
    if (!r || !is_new) return index_of(t, r);
    r->counter = true;
    r->name = name;
    (void)snprintf(text, sizeof text, "metric[%" PRIu64 "]", key.b);
    return name.len ? index_of(t, r) : finish(t, r, text, false);
}
