// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/event_span.h"

#include "analysis/opstats/steps/span_list.h"
#include "base/arena.h"

void xpl_steps_init(struct xpl_steps *s, struct xpl_arena *arena) {
    *s = (struct xpl_steps){.arena = arena};
}

struct xpl_step *xpl_steps_find(const struct xpl_steps *s, int64_t id) {
    const uint64_t *slot = xpl_map_get(&s->by_id, (uint64_t)id, 0);
    return slot ? &s->v.v[*slot - 1] : NULL;
}

struct xpl_step *xpl_steps_put(struct xpl_steps *s, int64_t id) {
    bool is_new;
    uint64_t *slot = xpl_map_put(s->arena, &s->by_id, (uint64_t)id, 0, &is_new);
    if (!slot) return NULL;
    // A slot whose step could not be added keeps 0 and counts as new next time.
    if (*slot) return &s->v.v[*slot - 1];
    struct xpl_step *st = xpl_vec_push(s->arena, &s->v);
    if (!st) return NULL;
    *st = (struct xpl_step){.id = id};
    *slot = s->v.n;
    return st;
}

// ---- collecting ----

static void set_if_longer(struct xpl_timespan *to, struct xpl_timespan span) {
    if (span.duration_ps > to->duration_ps) *to = span;
}

void xpl_step_add_host_marker(struct xpl_step *st, struct xpl_timespan span) {
    set_if_longer(&st->host_marker, span);
}

static bool add_core_marker(struct xpl_step *st, uint32_t core_id, struct xpl_timespan span,
                            struct xpl_arena *arena) {
    struct xpl_core_marker **m = &st->core_markers;
    while (*m && (*m)->core_id != core_id)
        m = &(*m)->next;
    if (!*m) {
        *m = xpl_arena_zalloc(arena, sizeof **m);
        if (!*m) return false;
        (*m)->core_id = core_id;
    }
    set_if_longer(&(*m)->span, span);
    return true;
}

bool xpl_step_add_device_marker(struct xpl_step *st, uint32_t core_id, struct xpl_timespan span,
                                struct xpl_arena *arena) {
    set_if_longer(&st->device_marker, span);
    return add_core_marker(st, core_id, span, arena);
}

static struct xpl_span_list *list_of(struct xpl_step *st, enum xpl_span_type type,
                                     struct xpl_arena *arena) {
    for (struct xpl_span_list *l = st->spans; l; l = l->next)
        if (l->type == type) return l;
    struct xpl_span_list *l = xpl_arena_zalloc(arena, sizeof *l);
    if (!l) return NULL;
    l->type = type, l->next = st->spans;
    return st->spans = l;
}

bool xpl_step_add_span(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                       struct xpl_arena *arena) {
    struct xpl_span_list *l = list_of(st, type, arena);
    if (!l) return false;
    const struct xpl_packed_span s = {span.begin_ps, xpl_timespan_end(span)};
    if (type == XPL_SPAN_HOST_WAIT_INPUT || type == XPL_SPAN_HOST_TO_DEVICE)
        st->input_ps += span.duration_ps;
    return (type == XPL_SPAN_HOST_COMPUTE && xpl_span_list_absorb(l, s)) ||
           xpl_span_list_push(l, s, arena);
}

struct xpl_timespan xpl_step_open_span(const struct xpl_step *st, enum xpl_span_type type) {
    for (const struct xpl_span_list *l = st->spans; l; l = l->next)
        if (l->type == type && l->open_block)
            return (struct xpl_timespan){l->open.begin, l->open.end - l->open.begin};
    return (struct xpl_timespan){0};
}

bool xpl_step_add_union(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                        struct xpl_arena *arena) {
    struct xpl_span_list *l = list_of(st, type, arena);
    const struct xpl_packed_span s = {span.begin_ps, xpl_timespan_end(span)};
    if (!l) return false;
    return s.end <= s.begin || xpl_span_list_absorb(l, s) || xpl_span_list_push(l, s, arena);
}

bool xpl_step_add_collective(struct xpl_step *st, uint32_t core_id,
                             const struct xpl_all_reduce_info *info, struct xpl_arena *arena) {
    struct xpl_core_collectives **c = &st->collectives;
    while (*c && (*c)->core_id != core_id)
        c = &(*c)->next;
    if (!*c) {
        *c = xpl_arena_zalloc(arena, sizeof **c);
        if (!*c) return false;
        (*c)->core_id = core_id;
    }
    struct xpl_all_reduce_info *slot = xpl_vec_push(arena, &(*c)->v);
    if (!slot) return false;
    *slot = *info;
    return true;
}

static struct xpl_device_memory_transfer *transfers_of(struct xpl_step *st,
                                                       struct xpl_arena *arena) {
    if (!st->transfers)
        st->transfers = xpl_arena_zalloc(arena, XPL_STEP_TRANSFERS * sizeof *st->transfers);
    return st->transfers;
}

bool xpl_step_add_transfer(struct xpl_step *st, enum xpl_span_type type, struct xpl_timespan span,
                           uint64_t bytes, struct xpl_arena *arena) {
    int i;
    if (type == XPL_SPAN_HOST_TO_DEVICE)
        i = 0;
    else if (type == XPL_SPAN_DEVICE_TO_HOST)
        i = 1;
    else if (type == XPL_SPAN_DEVICE_TO_DEVICE)
        i = 2;
    else
        return true;
    if (!transfers_of(st, arena)) return false;
    st->transfers[i].occurrence++;
    st->transfers[i].time_us += (double)span.duration_ps / 1e6;
    st->transfers[i].bytes_transferred += bytes;
    return true;
}

struct xpl_op_metrics_db *xpl_step_put_ops(struct xpl_step *st, uint32_t core_id,
                                           struct xpl_arena *arena) {
    struct xpl_core_ops **o = &st->ops;
    while (*o && (*o)->core_id != core_id)
        o = &(*o)->next;
    if (!*o) {
        *o = xpl_arena_alloc(arena, sizeof **o);
        if (!*o) return NULL;
        (*o)->next = NULL, (*o)->core_id = core_id;
    }
    (*o)->db = (struct xpl_op_metrics_db){0};
    return &(*o)->db;
}

// ---- joining ----

void xpl_step_join_spans(struct xpl_step *src, struct xpl_step *dst) {
    // Lists of different lines stay apart: each is in the order of its line, so that sorting the
    // boundaries of a step is little more than merging them.
    struct xpl_span_list **tail = &src->spans;
    while (*tail)
        tail = &(*tail)->next;
    *tail = dst->spans;
    dst->spans = src->spans;
    src->spans = NULL;
}

static bool join_cores(struct xpl_step *src, struct xpl_step *dst, struct xpl_arena *arena) {
    for (struct xpl_core_marker *m = src->core_markers; m; m = m->next)
        if (!add_core_marker(dst, m->core_id, m->span, arena)) return false;
    // Collectives of a core that `dst` already knows are dropped: upstream inserts into its map.
    for (struct xpl_core_collectives *c = src->collectives, *next; c; c = next) {
        next = c->next;
        struct xpl_core_collectives **d = &dst->collectives;
        while (*d && (*d)->core_id != c->core_id)
            d = &(*d)->next;
        if (!*d) *d = c, c->next = NULL;
    }
    for (struct xpl_core_ops *o = src->ops; o; o = o->next) {
        struct xpl_op_metrics_db *db = xpl_step_put_ops(dst, o->core_id, arena);
        if (!db) return false;
        *db = o->db;
    }
    return true;
}

void xpl_step_add_work(struct xpl_step *st, struct xpl_timespan span) {
    struct xpl_timespan *const w = &st->work;
    const uint64_t end = xpl_timespan_end(span), last = xpl_timespan_end(*w);
    if (!span.duration_ps) return;
    if (!w->duration_ps) {
        *w = span;
        return;
    }
    if (xpl_time_is_before(span.begin_ps, w->begin_ps)) w->begin_ps = span.begin_ps;
    w->duration_ps = (xpl_time_is_before(last, end) ? end : last) - w->begin_ps;
}

static bool join_step(struct xpl_step *src, struct xpl_step *dst, struct xpl_arena *arena) {
    set_if_longer(&dst->host_marker, src->host_marker);
    set_if_longer(&dst->device_marker, src->device_marker);
    xpl_step_add_work(dst, src->work);
    dst->input_ps += src->input_ps;
    if (!dst->name.len) dst->name = src->name;
    xpl_step_join_spans(src, dst);
    if (src->transfers && !dst->transfers) {
        dst->transfers = src->transfers;
    } else if (src->transfers) {
        for (int i = 0; i < XPL_STEP_TRANSFERS; i++) {
            dst->transfers[i].occurrence += src->transfers[i].occurrence;
            dst->transfers[i].bytes_transferred += src->transfers[i].bytes_transferred;
            dst->transfers[i].time_us += src->transfers[i].time_us;
        }
    }
    return join_cores(src, dst, arena);
}

bool xpl_steps_union(struct xpl_steps *src, struct xpl_steps *dst) {
    for (size_t i = 0; i < src->v.n; i++) {
        struct xpl_step *d = xpl_steps_put(dst, src->v.v[i].id);
        if (!d || !join_step(&src->v.v[i], d, dst->arena)) return false;
    }
    return true;
}

bool xpl_steps_intersect(struct xpl_steps *src, struct xpl_steps *dst) {
    if (dst->v.n == 0) return xpl_steps_union(src, dst);
    struct xpl_steps both;
    xpl_steps_init(&both, dst->arena);
    for (size_t i = 0; i < dst->v.n; i++) {
        struct xpl_step *s = xpl_steps_find(src, dst->v.v[i].id);
        if (!s) continue;
        struct xpl_step *d = xpl_steps_put(&both, s->id);
        if (!d) return false;
        *d = dst->v.v[i];
        if (!join_step(s, d, dst->arena)) return false;
    }
    *dst = both;
    return true;
}

// ---- time of a step ----

struct xpl_timespan xpl_step_time(const struct xpl_step *st) {
    if (st->device_marker.begin_ps == 0 && st->device_marker.duration_ps == 0)
        return st->host_marker;
    if (xpl_timespan_includes(st->host_marker, st->device_marker)) return st->host_marker;
    return st->device_marker;
}

static const struct xpl_core_marker *core_marker(const struct xpl_step *st, uint32_t core_id) {
    const struct xpl_core_marker *m = st->core_markers;
    while (m && m->core_id != core_id)
        m = m->next;
    return m;
}

bool xpl_step_has_marker(const struct xpl_step *st, uint32_t core_id) {
    return core_marker(st, core_id) != NULL;
}

struct xpl_timespan xpl_step_time_on_core(const struct xpl_step *st, uint32_t core_id) {
    const struct xpl_core_marker *m = core_marker(st, core_id);
    return m ? m->span : (struct xpl_timespan){0};
}
