// SPDX-License-Identifier: Apache-2.0
// A group reaches a node from its parents: the enclosing node and, through joins, the producers of
// its input.  Roots follow in the order of level (descending), then time.  A root without a group
// and without an ancestor root of the same level starts one, which is propagated to all reachable
// nodes without a group.  So every node and every join is visited once.
#include "analysis/grouping/graph/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/xplane/metadata.h"
#include "base/std_sort.h"
#include "base/vec.h"

// ---- the name of a group ----

struct context {
    uint32_t wanted;                         // flags that are still searched for
    uint32_t graph_type, iter_num, step_num; // nodes + 1
};

static bool note_context(struct graph *gr, uint32_t node, void *ctx) {
    struct context *const c = ctx;
    const uint32_t have = gr->g->nodes[node].flags & c->wanted;
    if (have & NODE_GRAPH_TYPE) c->graph_type = node + 1;
    if (have & NODE_ITER_NUM) c->iter_num = node + 1;
    if (have & NODE_STEP_NUM) c->step_num = node + 1;
    c->wanted &= ~have;
    return c->wanted == 0;
}

static xpl_str_t event_name(const struct xpl_groups *g, uint32_t node) {
    const struct line_groups *lg;
    struct xpl_raw_event raw;
    if (!xpl_grp_node_event(g, node, &lg, &raw)) return (xpl_str_t){"", 0};
    const struct xpl_plane *const p = lg->line->plane;
    return p->event_md[xpl_event_md_at(p, raw.md_id)].name;
}

// Makes the name of the group that a root starts, in the arena of the result: "<graph type or event
// name> <iteration, step or group number>" [EventNode::GetGroupName].  False when out of memory.
static bool make_name(struct graph *gr, uint32_t root, xpl_str_t *ret) {
    const struct xpl_groups *const g = gr->g;
    struct context c = {.wanted =
                            gr->ctx_flags & (NODE_GRAPH_TYPE | NODE_ITER_NUM | NODE_STEP_NUM)};
    struct xpl_stat stat;
    xpl_str_t text = {"", 0};
    int64_t number = g->nodes[root].group;
    if (c.wanted && !xpl_grp_search(gr, root, note_context, &c)) return false;
    if (c.graph_type && xpl_grp_node_stat(g, c.graph_type - 1, XPL_STAT_GRAPH_TYPE, &stat))
        text = xpl_stat_str(&stat);
    else if (!(g->nodes[root].flags & NODE_IMPLICIT))
        text = event_name(g, root);
    if (c.iter_num && xpl_grp_node_stat(g, c.iter_num - 1, XPL_STAT_ITER_NUM, &stat))
        number = xpl_stat_int(&stat);
    else if (c.step_num && xpl_grp_node_stat(g, c.step_num - 1, XPL_STAT_STEP_NUM, &stat))
        number = xpl_stat_int(&stat);
    // A name that includes the number needs no further one.
    else if (g->batches && !c.graph_type && xpl_grp_batch_name(text) == XPL_BATCH_NUMBERED)
        return xpl_arena_str(g->arena, text, ret);
    const bool titled = c.graph_type || !(g->nodes[root].flags & NODE_IMPLICIT);
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%s%" PRId64, titled ? " " : "", number);
    char *const p = n < 0 ? NULL : xpl_arena_alloc(g->arena, text.len + (size_t)n);
    if (!p) return false;
    if (text.len) memcpy(p, text.ptr, text.len);
    memcpy(p + text.len, digits, (size_t)n);
    *ret = (xpl_str_t){p, text.len + (size_t)n};
    return true;
}

// Upstream searches the ancestors of each root anew; a profile can be made so that this is
// quadratic.  This many steps in all are enough for any real one; after that nothing more is found.
enum { SEARCH_BUDGET = 1 << 26 };

// ---- roots ----

static const struct root *root_of(const struct graph *gr, uint32_t node) {
    size_t lo = 0, hi = gr->n_roots; // in the order of nodes
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (gr->roots[mid].node == node) return &gr->roots[mid];
        if (gr->roots[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

struct same_level {
    uint32_t self;
    int32_t level;
    bool found;
};

static bool is_same_level(struct graph *gr, uint32_t node, void *ctx) {
    struct same_level *const s = ctx;
    if (node == s->self || !(gr->g->nodes[node].flags & NODE_ROOT)) return false;
    const struct root *const r = root_of(gr, node);
    s->found = r && r->level == s->level;
    return s->found;
}

// A root that consumes its own product is its own parent.
static bool is_own_parent(const struct graph *gr, uint32_t node) {
    for (uint32_t i = gr->g->nodes[node].links; i; i = gr->links[i - 1].key_hi) {
        if (!link_consumes(&gr->links[i - 1])) continue;
        const uint32_t join = gr->links[i - 1].key_lo;
        for (uint32_t k = join; k < gr->n_links && gr->links[k].key_lo == join &&
                                !link_consumes(&gr->links[k]); // producers come first
             k++)
            if (gr->links[k].end == node << LINK_NODE_SHIFT) return true;
    }
    return false;
}

// Whether a root starts a group [RootNeedsGrouping].
static bool starts_group(struct graph *gr, uint32_t node, int32_t level, bool *ret) {
    struct same_level s = {node, level, false};
    *ret = false;
    if (gr->g->nodes[node].group != NO_GROUP) return true;
    if ((gr->g->nodes[node].flags & NODE_ROOT) && is_own_parent(gr, node)) return true;
    if (!xpl_grp_search(gr, node, is_same_level, &s)) return false;
    *ret = !s.found;
    return true;
}

// [SortRootEventList]
static bool root_before(const void *ctx, const void *pa, const void *pb) {
    const struct root *const a = pa, *const b = pb;
    (void)ctx;
    return a->level != b->level ? a->level > b->level : (int64_t)a->begin < (int64_t)b->begin;
}

static int loop_order(const void *pa, const void *pb) {
    const struct root *const a = pa, *const b = pb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

// ---- propagation ----

// The nodes that a node encloses stand right behind it.
static bool find_subtrees(struct graph *gr) {
    const struct node *const v = gr->g->nodes;
    uint32_t *const ends = xpl_arena_array(&gr->temp, gr->g->n_nodes, sizeof *ends);
    gr->subtree_ends = ends;
    gr->visited = xpl_arena_zalloc(&gr->temp, (gr->n_links / 64 + 1) * sizeof *gr->visited);
    if (!ends || !gr->visited) return false;
    for (uint32_t i = 0; i < gr->g->n_nodes; i++)
        ends[i] = i + 1;
    for (uint32_t i = gr->g->n_nodes; i-- > 0;)
        if (v[i].parent && ends[v[i].parent - 1] < ends[i]) ends[v[i].parent - 1] = ends[i];
    return true;
}

// Whether this is the first time.
static bool visit_join(struct graph *gr, uint32_t join) {
    uint64_t *const word = &gr->visited[join / 64], bit = UINT64_C(1) << (join % 64);
    const bool first = !(*word & bit);
    *word |= bit;
    return first;
}

// Queues the consumers of a node's products: of each join once, as all of them get a group then.
static bool queue_consumers(struct graph *gr, uint32_t node) {
    for (uint32_t l = gr->g->nodes[node].links; l; l = gr->links[l - 1].key_hi) {
        const uint32_t join = gr->links[l - 1].key_lo;
        if (link_consumes(&gr->links[l - 1]) || !visit_join(gr, join)) continue;
        for (uint32_t k = join; k < gr->n_links && gr->links[k].key_lo == join; k++) {
            const struct link *const to = &gr->links[k];
            if (!link_consumes(to) || gr->g->nodes[link_node(to)].group != NO_GROUP) continue;
            uint32_t *const slot = xpl_vec_push(&gr->temp, &gr->to_visit);
            if (!slot) return false;
            *slot = link_node(to);
        }
    }
    return true;
}

// Gives the group to a node and its subtree.  A node that has a group already has given it to its
// subtree.
static bool mark_subtree(struct graph *gr, uint32_t node, uint32_t group) {
    struct node *const v = gr->g->nodes;
    const uint32_t end = gr->subtree_ends[node];
    for (uint32_t i = node; i < end;) {
        const bool passed = i != node && (v[i].flags & NODE_ASYNC);
        if (passed || v[i].group != NO_GROUP) {
            i = gr->subtree_ends[i];
            continue;
        }
        v[i].group = group;
        if (!queue_consumers(gr, i)) return false;
        i++;
    }
    return true;
}

static bool propagate_group(struct graph *gr, uint32_t root, uint32_t group) {
    bool ok = gr->g->nodes[root].group != NO_GROUP || mark_subtree(gr, root, group);
    while (ok && gr->to_visit.n) {
        const uint32_t node = gr->to_visit.v[--gr->to_visit.n];
        if (gr->g->nodes[node].group == NO_GROUP) ok = mark_subtree(gr, node, group);
    }
    gr->to_visit.n = 0;
    return ok;
}

// Starts group `id` at a root [ProcessRootEvent].
static bool start_group(struct graph *gr, uint32_t root, uint32_t id) {
    xpl_str_t name;
    if (!propagate_group(gr, root, id) || !make_name(gr, root, &name)) return false;
    while (gr->names.n <= id) {
        xpl_str_t *const slot = xpl_vec_push(&gr->temp, &gr->names);
        uint32_t *const start = slot ? xpl_vec_push(&gr->temp, &gr->starts) : NULL;
        if (!start) return false;
        *slot = (xpl_str_t){"", 0};
        *start = root;
    }
    gr->names.v[id] = name;
    gr->starts.v[id] = root;
    if (!(gr->g->nodes[root].flags & NODE_IMPLICIT)) gr->g->nodes[root].flags |= NODE_NAMED;
    return true;
}

// ---- groups ----

static bool is_tf_data_root(const struct graph *gr, const struct root *r) {
    struct xpl_stat step;
    if (!gr->n_tf_data_ids) return false;
    if (r->has_step) return xpl_grp_is_tf_data(gr, r->step);
    return xpl_grp_node_stat(gr->g, r->node, XPL_STAT_STEP_ID, &step) &&
           xpl_grp_is_tf_data(gr, xpl_stat_int(&step));
}

static bool group_roots(struct graph *gr, uint32_t *next) {
    struct root *const order = xpl_arena_array(&gr->temp, gr->n_roots, sizeof *order);
    size_t n = 0;
    if (!order) return false;
    for (size_t i = 0; i < gr->n_roots; i++)
        if (!is_tf_data_root(gr, &gr->roots[i])) order[n++] = gr->roots[i];
    xpl_std_sort(order, n, sizeof *order, root_before, NULL);
    for (size_t i = 0; i < n; i++) {
        bool starts;
        if (!starts_group(gr, order[i].node, order[i].level, &starts)) return false;
        if (starts && !start_group(gr, order[i].node, (*next)++)) return false;
    }
    return true;
}

static bool group_loops(struct graph *gr, uint32_t *next) {
    xpl_sort(gr->loop_roots.v, gr->loop_roots.n, sizeof *gr->loop_roots.v, loop_order);
    for (size_t i = 0; i < gr->loop_roots.n; i++)
        if (!start_group(gr, gr->loop_roots.v[i].node, (*next)++)) return false;
    return true;
}

static bool is_core_scan(const struct scan *s) {
    return s->plan->tpu && s->plan->plane->kind == XPL_PLANE_TPU_CORE &&
           s->plan->plane->core_id >= 0;
}

// Calls starts_group for the events of all TensorCores; true when each of them starts one.
static bool cores_need_grouping(struct graph *gr, bool *ret) {
    *ret = true;
    for (size_t i = 0; i < gr->n_scans && *ret; i++) {
        const struct scan *const s = &gr->scans[i];
        for (size_t k = 0; is_core_scan(s) && k < s->nodes.n && *ret; k++)
            if (!starts_group(gr, s->base + (uint32_t)k, 0, ret)) return false;
    }
    return true;
}

// When the host groups no device step, the steps of all cores are numbered in lock step.
static bool group_cores(struct graph *gr, uint32_t next) {
    bool all;
    if (!cores_need_grouping(gr, &all)) return false;
    for (size_t i = 0; all && i < gr->n_scans; i++) {
        const struct scan *const s = &gr->scans[i];
        uint32_t id = next;
        for (size_t k = 0; is_core_scan(s) && k < s->nodes.n; k++) {
            bool starts;
            if (!starts_group(gr, s->base + (uint32_t)k, 0, &starts)) return false;
            if (starts && !start_group(gr, s->base + (uint32_t)k, id++)) return false;
        }
    }
    return true;
}

// ---- is_eager ----

static bool find_eager(struct graph *gr, uint32_t node, void *ctx) {
    if (!(gr->g->nodes[node].flags & NODE_EAGER)) return false;
    *(uint32_t *)ctx = node + 1;
    return true;
}

// The nearest EagerExecute above decides [EventNode::IsEager].  Plain events have the answer of the
// node they are in.
static bool mark_eager(struct graph *gr) {
    struct node *const v = gr->g->nodes;
    if (!(gr->ctx_flags & NODE_EAGER)) return true;
    for (uint32_t i = 0; i < gr->g->n_nodes; i++) {
        uint32_t flags = 0;
        if (v[i].flags & NODE_EAGER) continue; // set by the scan
        if (v[i].flags & NODE_CONSUMES) {
            uint32_t found = 0;
            if (!xpl_grp_search(gr, i, find_eager, &found)) return false;
            if (found) flags = v[found - 1].flags & (NODE_IN_EAGER | NODE_IS_EAGER);
        } else if (v[i].parent) { // precedes it
            flags = v[v[i].parent - 1].flags & (NODE_IN_EAGER | NODE_IS_EAGER);
        }
        v[i].flags |= (uint16_t)flags;
    }
    return true;
}

xpl_status_t xpl_grp_propagate(struct graph *gr, bool make_groups) {
    struct xpl_groups *const g = gr->g;
    uint32_t next = 0;
    gr->budget = SEARCH_BUDGET;
    gr->seen = xpl_arena_zalloc(&gr->temp, (g->n_nodes / 64 + 1) * sizeof *gr->seen);
    if (!gr->seen) return xpl_grp_no_memory(gr);
    if (make_groups) {
        if (!find_subtrees(gr)) return xpl_grp_no_memory(gr);
        const bool ok = gr->loop_roots.n ? group_loops(gr, &next) : group_roots(gr, &next);
        if (!ok || !group_cores(gr, next)) return xpl_grp_no_memory(gr);
    }
    if (!mark_eager(gr)) return xpl_grp_no_memory(gr);
    g->names = xpl_arena_array(g->arena, gr->names.n, sizeof *g->names);
    g->starts = xpl_arena_array(g->arena, gr->starts.n, sizeof *g->starts);
    if (!g->names || !g->starts) return xpl_grp_no_memory(gr);
    if (gr->names.n) memcpy(g->names, gr->names.v, gr->names.n * sizeof *g->names);
    if (gr->names.n) memcpy(g->starts, gr->starts.v, gr->starts.n * sizeof *g->starts);
    g->n_groups = (uint32_t)gr->names.n;
    return XPL_OK;
}
