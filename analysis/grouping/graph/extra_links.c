// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/span.h"
#include "base/map.h"
#include "base/vec.h"

static bool add_edge(struct graph *gr, struct extra_links *x, uint64_t join, uint32_t parent,
                     uint32_t child) {
    struct link *l = xpl_vec_push(&gr->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)join, (uint32_t)(join >> 32), parent << LINK_NODE_SHIFT};
    l = xpl_vec_push(&gr->temp, &x->v);
    if (!l) return false;
    *l = (struct link){(uint32_t)join, (uint32_t)(join >> 32),
                       LINK_CONSUMER | child << LINK_NODE_SHIFT};
    gr->g->nodes[child].flags |= NODE_CONSUMES;
    return true;
}

// An executor event's step and iteration.
static bool executor_ids(const struct xpl_groups *g, uint32_t node, struct xpl_stat *step,
                         struct xpl_stat *iter) {
    return (g->nodes[node].flags & NODE_EXECUTOR) &&
           xpl_grp_node_stat(g, node, XPL_STAT_STEP_ID, step) &&
           xpl_grp_node_stat(g, node, XPL_STAT_ITER_NUM, iter);
}

// The last executor + 1 of each key that an iterator asks for.
static bool find_executors(struct graph *gr, struct xpl_map *ret) {
    for (size_t i = 0; i < gr->n_pairs; i++)
        if (gr->pairs[i].kind == PAIR_ITERATOR &&
            !xpl_map_put(&gr->temp, ret, gr->pairs[i].key, 0, NULL))
            return false;
    for (size_t i = 0; ret->n && i < gr->n_executors; i++) {
        uint64_t *const v = xpl_map_get(ret, link_key(&gr->executors[i]), 0);
        if (v) *v = gr->executors[i].end + 1;
    }
    return true;
}

// Launch to kernel, and executor to iterator: of several parents the last counts.
static bool add_pair_edges(struct graph *gr, struct extra_links *x) {
    struct xpl_map executors = {0};
    if (!find_executors(gr, &executors)) return false;
    for (size_t i = 0; i < gr->n_pairs; i++) {
        const struct pair *const p = &gr->pairs[i];
        const uint64_t *const v =
            p->kind == PAIR_ITERATOR ? xpl_map_get(&executors, p->key, 0) : NULL;
        const uint32_t parent = p->kind == PAIR_KERNEL ? xpl_grp_launch_scope(gr->g, p->key)
                                : v                    ? (uint32_t)*v
                                                       : 0;
        if (parent && !add_edge(gr, x, xpl_grp_pair_key(p->node), parent - 1, p->node))
            return false;
    }
    return true;
}

// ---- loops of TensorFlow [ProcessTensorFlowLoop] ----

struct iteration_event {
    int64_t step, iter;
    uint64_t begin;
    uint32_t node;
    bool loop; // its step iterates
};

static int iteration_cmp(const void *pa, const void *pb) {
    const struct iteration_event *const a = pa, *const b = pb;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->iter != b->iter) return a->iter < b->iter ? -1 : 1;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

struct iterations {
    XPL_VEC(struct iteration_event) v;
};

static bool gather_iterations(struct graph *gr, struct iterations *ret) {
    for (uint32_t i = 0; i < gr->g->n_nodes; i++) {
        struct xpl_stat step, iter;
        const struct line_groups *lg;
        struct xpl_raw_event raw;
        if (!executor_ids(gr->g, i, &step, &iter) || !xpl_grp_node_event(gr->g, i, &lg, &raw) ||
            xpl_grp_is_tf_data(gr, xpl_stat_int(&step)))
            continue;
        struct iteration_event *const e = xpl_vec_push(&gr->temp, &ret->v);
        if (!e) return false;
        *e = (struct iteration_event){xpl_stat_int(&step), xpl_stat_int(&iter),
                                      span_of(lg->line, raw.offset_ps, 0).begin, i, false};
    }
    return true;
}

// A step iterates unless its only iteration is 0.
static void mark_loops(struct iteration_event *v, size_t n) {
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && v[end].step == v[i].step;)
            end++;
        const bool loop = v[i].iter != 0 || v[end - 1].iter != 0;
        for (size_t k = i; k < end; k++)
            v[k].loop = loop;
    }
}

// The first event of each iteration becomes a root and the parent of the others; these roots
// replace all others.
static bool add_loops(struct graph *gr, struct extra_links *x) {
    struct iterations all = {0};
    bool any = false;
    for (size_t i = 0; i < gr->n_scans; i++)
        any |= gr->scans[i].has_loops;
    if (!any) return true;
    if (!gather_iterations(gr, &all)) return false;
    xpl_sort(all.v.v, all.v.n, sizeof *all.v.v, iteration_cmp);
    mark_loops(all.v.v, all.v.n);
    const struct iteration_event *first = NULL;
    for (size_t i = 0; i < all.v.n; i++) {
        const struct iteration_event *const e = &all.v.v[i];
        if (!e->loop) continue;
        if (first && first->step == e->step && first->iter == e->iter) {
            if (!add_edge(gr, x, xpl_grp_pair_key(LINK_CONSUMER | first->node), first->node,
                          e->node))
                return false;
            continue;
        }
        first = e;
        struct root *const r = xpl_vec_push(&gr->temp, &gr->loop_roots);
        if (!r) return false;
        *r = (struct root){.node = e->node, .begin = e->begin};
    }
    return true;
}

bool xpl_grp_find_extra_links(struct graph *gr, struct extra_links *ret) {
    return add_loops(gr, ret) && add_pair_edges(gr, ret);
}
