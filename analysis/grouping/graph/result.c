// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/result.h"

#include "base/arena.h"

const struct line_groups *xpl_grp_find_line(const struct plane_groups *pg,
                                            const struct xpl_line *line) {
    uint32_t lo = 0, hi = pg->n_lines;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (pg->lines[mid].line == line) return &pg->lines[mid];
        if (pg->lines[mid].line->index < line->index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

// ---- spans of a grouping line ----

// Their number in the tree, whose leaf i is node size + i.
static size_t size_of_tree(const struct plane_groups *pg) {
    size_t size = 1;
    while (size < pg->n_spans)
        size *= 2;
    return size;
}

static struct span join_spans(struct span a, struct span b) {
    return (struct span){a.begin > b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

bool xpl_grp_make_span_tree(struct plane_groups *pg, struct xpl_arena *arena) {
    const size_t size = size_of_tree(pg);
    struct span *const v = pg->span_tree = xpl_arena_zalloc(arena, 2 * size * sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < pg->n_spans; i++)
        v[size + i] = pg->spans[i].span;
    for (size_t i = size; i-- > 1;) // the greatest begin, and the greatest end, of both halves
        v[i] = join_spans(v[2 * i], v[2 * i + 1]);
    return true;
}

size_t xpl_grp_next_span(const struct plane_groups *pg, size_t from, struct span span) {
    const size_t size = size_of_tree(pg);
    const struct span *const v = pg->span_tree;
    size_t at = size + from;
    if (from >= pg->n_spans) return pg->n_spans;
    while (v[at].begin <= span.end && v[at].end < span.begin) { // none in here: the next part
        while (at & 1)
            at /= 2;
        if (!at) return pg->n_spans;
        at++;
    }
    while (at < size) {
        at *= 2;
        if (v[at].begin <= span.end && v[at].end < span.begin) at++;
    }
    return at - size < pg->n_spans ? at - size : pg->n_spans;
}

// ---- nodes ----

// The line of a node.
static const struct line_groups *grp_line_of(const struct xpl_groups *g, uint32_t node) {
    uint32_t lo = 0, hi = g->n_scanned;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (g->scanned[mid]->first_node <= node)
            lo = mid;
        else
            hi = mid;
    }
    return g->scanned[lo];
}

bool xpl_grp_node_event(const struct xpl_groups *g, uint32_t node, const struct line_groups **lg,
                        struct xpl_raw_event *ret) {
    const struct node *const n = &g->nodes[node];
    *lg = grp_line_of(g, node);
    return xpl_raw_event_at((*lg)->line, node_at(n), ret);
}

bool xpl_grp_node_stat(const struct xpl_groups *g, uint32_t node, enum xpl_stat_type type,
                       struct xpl_stat *ret) {
    const struct line_groups *lg;
    struct xpl_raw_event raw;
    if (!xpl_grp_node_event(g, node, &lg, &raw)) return false;
    return xpl_stats_get((struct xpl_stats){lg->line->plane, raw.stats, raw.end, XEVENT_STATS},
                         type, ret);
}

uint32_t xpl_grp_launch_scope(const struct xpl_groups *g, uint64_t correlation) {
    if (g->launch_scopes) {
        const uint64_t i = correlation - g->launch_min;
        return i < g->n_launch_scopes ? g->launch_scopes[i] : 0;
    }
    const uint64_t *const scope = xpl_map_get(&g->launches, correlation, 0);
    return scope ? (uint32_t)*scope : 0;
}

uint32_t xpl_grp_label(const struct xpl_groups *g, uint64_t key, uint32_t *hint) {
    const struct link *const v = g->labels;
    uint32_t lo = *hint, hi = g->n_labels; // once found: v[lo].key <= key < v[hi].key
    if (hi == 0) return LABEL_NO_GROUP;
    if (link_key(&v[lo]) <= key) {
        for (uint32_t step = 1; hi - lo > step; step *= 2) {
            if (link_key(&v[lo + step]) > key) {
                hi = lo + step;
                break;
            }
            lo += step;
        }
    } else {
        hi = lo;
        for (uint32_t step = 1; hi > 0; step *= 2) {
            lo = hi > step ? hi - step : 0;
            if (link_key(&v[lo]) <= key) break;
            hi = lo;
        }
    }
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (link_key(&v[mid]) <= key)
            lo = mid;
        else
            hi = mid;
    }
    *hint = lo;
    return link_key(&v[lo]) == key ? v[lo].end : LABEL_NO_GROUP;
}

// ---- answers ----

bool xpl_groups_empty(const struct xpl_groups *g) {
    return g->empty;
}

bool xpl_groups_arrived_grouped(const struct xpl_groups *g) {
    return g->grouped;
}

bool xpl_groups_made(const struct xpl_groups *g, int64_t group_id) {
    return group_id >= 0 && group_id < g->n_groups;
}

xpl_str_t xpl_groups_name(const struct xpl_groups *g, int64_t group_id) {
    return xpl_groups_made(g, group_id) ? g->names[group_id] : (xpl_str_t){"", 0};
}

bool xpl_groups_annotation(const struct xpl_groups *g, int64_t group_id, int64_t *ret_begin_ps,
                           int64_t *ret_duration_ps) {
    const struct line_groups *lg;
    struct xpl_raw_event raw;
    if (!xpl_groups_made(g, group_id) || g->nodes[g->starts[group_id]].flags & NODE_IMPLICIT ||
        !xpl_grp_node_event(g, g->starts[group_id], &lg, &raw) ||
        lg->line->plane->kind != XPL_PLANE_HOST_THREADS)
        return false;
    *ret_begin_ps = (int64_t)((uint64_t)lg->line->timestamp_ns * 1000 + raw.offset_ps);
    *ret_duration_ps = (int64_t)raw.duration_ps;
    return true;
}

const struct xpl_step_event *xpl_groups_steps(const struct xpl_groups *g,
                                              const struct xpl_plane *plane, size_t *ret_n) {
    *ret_n = g->planes[plane->index].n_steps;
    return g->planes[plane->index].steps;
}

const struct xpl_step_event *xpl_groups_modules(const struct xpl_groups *g,
                                                const struct xpl_plane *plane, size_t *ret_n) {
    *ret_n = g->planes[plane->index].n_modules;
    return g->planes[plane->index].modules;
}

bool xpl_groups_steps_are_recorded(const struct xpl_groups *g, const struct xpl_plane *plane) {
    return g->planes[plane->index].steps_recorded;
}

bool xpl_groups_replaces_line(const struct xpl_groups *g, const struct xpl_line *line) {
    const struct plane_groups *const pg = &g->planes[line->plane->index];
    if (pg->steps_recorded)
        return xpl_str_eq(line->name, XPL_STR(XPL_LINE_STEPS)) ||
               xpl_str_eq(line->name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
    if (pg->step_line) return pg->step_line == line;
    return !g->grouped && pg->plan.plane->kind == XPL_PLANE_GPU && line->id == XPL_LINE_ID_STEPS;
}
