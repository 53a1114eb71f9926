// SPDX-License-Identifier: Apache-2.0
// Added lines: equal neighbours become one event, by nesting level.
// Rules: DerivedXLineBuilder (XProf utils/derived_timeline.cc).
#include "analysis/trace/derived/impl.h"

int64_t xpl_dplane_start_ns(const struct xpl_plane *p) {
    int64_t start = p->n_lines ? INT64_MAX : 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].timestamp_ns < start) start = p->lines[i].timestamp_ns;
    return start;
}

struct xpl_dline *xpl_dline_new(struct xpl_dplane *p, int64_t id, xpl_str_t name) {
    struct xpl_dline *const l = xpl_arena_zalloc(&p->temp, sizeof *l);
    struct xpl_dline **const slot = l ? xpl_vec_push(&p->temp, &p->lines) : NULL;
    if (!slot) return NULL;
    *slot = l;
    l->plane = p;
    l->id = id;
    l->name = name;
    l->timestamp_ns = p->start_ns;
    l->gpu = p->plane->kind == XPL_PLANE_GPU;
    return l;
}

static struct xpl_added *event_at(const struct xpl_dline *l, size_t level) {
    return &l->events.v[l->open.v[level].event];
}

// Nested events of one span would be drawn in any order: each level down gets 1 ns shorter, as far
// as the innermost has nanoseconds to spare [AdjustDurationForTraceViewer].
static void shrink_nested(struct xpl_dline *l, size_t level) {
    if (l->open.n < level + 2) return;
    const int64_t most = (int64_t)(event_at(l, l->open.n - 1)->duration / 1000) - 1;
    int64_t shrink = 0;
    uint64_t begin = 0, duration = 0;
    for (size_t i = level; i < l->open.n; i++) {
        struct xpl_added *const e = event_at(l, i);
        if (shrink < most && i > level && e->begin == begin && e->duration == duration) shrink++;
        begin = e->begin;
        duration = e->duration;
        if (!shrink) continue;
        const uint64_t end = begin + duration - 1000 * (uint64_t)shrink;
        e->duration = end < begin ? 0 : end - begin;
    }
}

void xpl_dline_close(struct xpl_dline *l, size_t level) {
    shrink_nested(l, level);
    if (l->open.n > level) l->open.n = level;
    if (level > 0) return;
    for (uint32_t i = 0; i < l->n_dependents; i++)
        xpl_dline_close(l->dependents[i], 0);
}

// Whether the event belongs to the last one of the level [ShouldExpand].
static bool continues(const struct xpl_dline *l, uint32_t level, uint32_t md,
                      const struct xpl_dspan *span, struct xpl_dscope scope) {
    const struct xpl_dlevel *const last = &l->open.v[level];
    const struct xpl_added *const e = event_at(l, level);
    if (last->md != md || last->has_group != span->has_group ||
        (span->has_group && last->group != span->group) ||
        (last->has_scope && scope.set && last->scope != scope.id))
        return false;
    return l->gpu || span->has_group || e->begin + e->duration + 2 * e->duration >= span->begin;
}

static void extend(struct xpl_added *e, const struct xpl_dspan *span) {
    const uint64_t end = e->begin + e->duration, other = span->begin + span->duration;
    const uint64_t last = other > end ? other : end;
    if (span->begin < e->begin) e->begin = span->begin;
    e->duration = last < e->begin ? 0 : last - e->begin;
}

bool xpl_dline_put(struct xpl_dline *l, uint32_t level, uint32_t md, const struct xpl_dspan *span,
                   struct xpl_dscope scope) {
    if (level < l->open.n && continues(l, level, md, span, scope)) {
        extend(event_at(l, level), span);
        return true;
    }
    xpl_dline_close(l, level);
    struct xpl_added *const e = xpl_vec_push(&l->plane->temp, &l->events);
    struct xpl_dlevel *const open = e ? xpl_vec_push(&l->plane->temp, &l->open) : NULL;
    if (!open || l->events.n > UINT32_MAX) return false;
    *e = (struct xpl_added){.begin = span->begin,
                            .duration = span->duration,
                            .group = span->has_group ? span->group : 0,
                            .md = md,
                            .extra = span->has_group};
    *open = (struct xpl_dlevel){.event = (uint32_t)(l->events.n - 1),
                                .md = md,
                                .has_group = span->has_group,
                                .has_scope = scope.set,
                                .group = span->group,
                                .scope = scope.id};
    return true;
}

struct xpl_extra *xpl_dline_extra(struct xpl_dline *l, uint32_t level, enum xpl_extra_kind kind) {
    struct xpl_added *const e = event_at(l, level);
    if (e->extra >> 1 == 0) {
        const uint32_t extra = xpl_dplane_extra(l->plane, kind);
        if (extra == 0) return NULL;
        e->extra |= extra << 1;
    }
    return &l->plane->extras.v[e->extra >> 1];
}

bool xpl_dline_put_op(struct xpl_dline *scopes, struct xpl_dline *ops, uint32_t op,
                      const struct xpl_dspan *span) {
    static const struct xpl_dscope none = {0};
    struct xpl_dplane *const p = ops->plane;
    const struct xpl_dop o = p->ops.v[op];
    for (uint32_t i = 0; i < o.n_scopes; i++)
        if (!xpl_dline_put(scopes, i, p->lists.v[o.first_scope + i], span, none)) return false;
    if (o.n_scopes) xpl_dline_close(scopes, o.n_scopes);
    return xpl_dline_put(ops, 0, o.md, span, none);
}
