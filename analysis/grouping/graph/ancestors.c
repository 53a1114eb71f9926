#include "analysis/grouping/graph/ancestors.h"

static bool enqueue(struct forest *f, uint32_t node, uint32_t delay) {
    uint64_t *const word = &f->seen[node / 64], bit = UINT64_C(1) << (node % 64);
    if (*word & bit) return true;
    struct search_entry *const slot = xpl_vec_push(&f->temp, &f->queue);
    if (!slot) return false;
    *slot = (struct search_entry){node, delay};
    if (delay == 0) *word |= bit;
    return true;
}

static bool enqueue_parents(struct forest *f, uint32_t node) {
    const struct node *const n = &f->g->nodes[node];
    if (n->parent && !enqueue(f, n->parent - 1, n->gap)) return false;
    for (uint32_t i = n->links; i; i = f->links[i - 1].key_hi) {
        if (!link_consumes(&f->links[i - 1])) continue;
        const uint32_t hub = f->links[i - 1].key_lo;
        for (uint32_t k = hub; k < f->n_links && f->links[k].key_lo == hub; k++) {
            const struct link *const from = &f->links[k];
            if (link_consumes(from)) break; // producers come first
            if (f->budget) f->budget--;
            if (!enqueue(f, link_node(from), link_gap(from))) return false;
        }
    }
    return true;
}

// Calls fn for `start` and its ancestors until it returns true.  False when out of memory.
bool xpl_grp_search(struct forest *f, uint32_t start,
                    bool (*fn)(struct forest *f, uint32_t node, void *ctx), void *ctx) {
    bool ok = enqueue(f, start, 0);
    for (size_t i = 0; ok && i < f->queue.n && f->budget; i++) {
        const struct search_entry e = f->queue.v[i];
        f->budget--;
        if (e.delay) { // a plain event in between
            ok = enqueue(f, e.node, e.delay - 1);
            continue;
        }
        if (fn(f, e.node, ctx)) break;
        ok = enqueue_parents(f, e.node);
    }
    for (size_t i = 0; i < f->queue.n; i++)
        f->seen[f->queue.v[i].node / 64] = 0;
    f->queue.n = 0;
    return ok;
}
