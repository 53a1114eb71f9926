// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

static bool enqueue(struct graph *gr, uint32_t node, uint32_t delay) {
    uint64_t *const word = &gr->seen[node / 64], bit = UINT64_C(1) << (node % 64);
    if (*word & bit) return true;
    struct search_entry *const slot = xpl_vec_push(&gr->temp, &gr->queue);
    if (!slot) return false;
    *slot = (struct search_entry){node, delay};
    if (delay == 0) *word |= bit;
    return true;
}

static bool enqueue_parents(struct graph *gr, uint32_t node) {
    const struct node *const n = &gr->g->nodes[node];
    if (n->parent && !enqueue(gr, n->parent - 1, n->gap)) return false;
    for (uint32_t i = n->links; i; i = gr->links[i - 1].key_hi) {
        if (!link_consumes(&gr->links[i - 1])) continue;
        const uint32_t join = gr->links[i - 1].key_lo;
        for (uint32_t k = join; k < gr->n_links && gr->links[k].key_lo == join; k++) {
            const struct link *const from = &gr->links[k];
            if (link_consumes(from)) break; // producers come first
            if (gr->budget) gr->budget--;
            if (!enqueue(gr, link_node(from), link_gap(from))) return false;
        }
    }
    return true;
}

// Calls fn for `start` and its ancestors until it returns true.  False when out of memory.
bool xpl_grp_search(struct graph *gr, uint32_t start,
                    bool (*fn)(struct graph *gr, uint32_t node, void *ctx), void *ctx) {
    bool ok = enqueue(gr, start, 0);
    for (size_t i = 0; ok && i < gr->queue.n && gr->budget; i++) {
        const struct search_entry e = gr->queue.v[i];
        gr->budget--;
        if (e.delay) { // a plain event in between
            ok = enqueue(gr, e.node, e.delay - 1);
            continue;
        }
        if (fn(gr, e.node, ctx)) break;
        ok = enqueue_parents(gr, e.node);
    }
    for (size_t i = 0; i < gr->queue.n; i++)
        gr->seen[gr->queue.v[i].node / 64] = 0;
    gr->queue.n = 0;
    return ok;
}
