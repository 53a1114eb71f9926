// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/relations.h"

#include "base/exec.h"

bool xpl_grp_relate(struct xpl_group_relations *r, uint32_t parent, uint32_t child) {
    bool is_new;
    if (parent == child || parent == LABEL_NO_GROUP || child == LABEL_NO_GROUP) return true;
    if (!xpl_map_put(r->arena, &r->known, parent, child, &is_new)) return false;
    if (!is_new) return true;
    struct xpl_group_relation *const slot = xpl_vec_push(r->arena, &r->v);
    if (!slot) return false;
    *slot = (struct xpl_group_relation){parent, child};
    return true;
}

static uint32_t group_of(const struct graph *gr, uint32_t node) {
    return xpl_grp_node_label(&gr->g->nodes[node]) & LABEL_GROUP;
}

static bool relate_node(struct graph *gr, uint32_t node) {
    const struct node *const n = &gr->g->nodes[node];
    struct xpl_group_relations *const r = gr->g->relations;
    const uint32_t own = group_of(gr, node);
    if (own == LABEL_NO_GROUP) return true;
    if (n->parent && !(n->flags & NODE_ASYNC) &&
        !xpl_grp_relate(r, group_of(gr, n->parent - 1), own))
        return false;
    for (uint32_t l = n->links; l; l = gr->links[l - 1].key_hi) {
        if (!link_consumes(&gr->links[l - 1])) continue;
        const uint32_t join = gr->links[l - 1].key_lo; // producers come first
        for (uint32_t k = join;
             k < gr->n_links && gr->links[k].key_lo == join && !link_consumes(&gr->links[k]); k++)
            if (!xpl_grp_relate(r, group_of(gr, link_node(&gr->links[k])), own)) return false;
    }
    return true;
}

// Producers are sorted by key.
static bool keep_key_groups(struct graph *gr) {
    struct xpl_groups *const g = gr->g;
    struct link *const v = xpl_arena_array(g->arena, gr->n_producers, sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < gr->n_producers; i++) {
        struct link l = gr->producers[i];
        l.end = group_of(gr, link_node(&l));
        if (l.end == LABEL_NO_GROUP) continue;
        const struct link *const last = g->n_key_groups ? &v[g->n_key_groups - 1] : NULL;
        if (!last || link_key(last) != link_key(&l) || last->end != l.end) v[g->n_key_groups++] = l;
    }
    g->key_groups = v;
    return true;
}

xpl_status_t xpl_grp_relate_nodes(struct graph *gr) {
    for (uint32_t i = 0; i < gr->g->n_nodes; i++) {
        if (i % 65536 == 0 && xpl_exec_cancelled(gr->g->exec))
            XPL_RETURN_ERROR(gr->err, XPL_CANCELLED, "cancelled");
        if (!relate_node(gr, i)) return xpl_grp_no_memory(gr);
    }
    return keep_key_groups(gr) ? XPL_OK : xpl_grp_no_memory(gr);
}

size_t xpl_grp_key_groups(const struct xpl_groups *g, uint64_t key, const struct link **ret) {
    size_t lo = 0, hi = g->n_key_groups, n = 0;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (link_key(&g->key_groups[mid]) < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret = g->key_groups + lo;
    while (lo + n < g->n_key_groups && link_key(&g->key_groups[lo + n]) == key)
        n++;
    return n;
}
