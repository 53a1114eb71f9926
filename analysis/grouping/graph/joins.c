// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/joins.h"

#include <string.h>

#include "analysis/grouping/graph/crowded_keys.h"
#include "analysis/grouping/graph/link_sort.h"

// ---- joins ----

// The graph needs the consumers that are nodes, and of the producers those of the same keys, by key
// and the producers first.  Returns how many that are; writes them to `to` unless it is NULL.
static size_t join_links(const struct graph *gr, struct link *to) {
    const struct link *const c = gr->consumers, *const p = gr->producers;
    size_t at = 0, next = 0;
    for (size_t i = 0, end; i < gr->n_consumers; i = end) {
        const uint64_t key = link_key(&c[i]);
        for (end = i + 1; end < gr->n_consumers && link_key(&c[end]) == key;)
            end++;
        while (next < gr->n_producers && link_key(&p[next]) < key)
            next++;
        for (; next < gr->n_producers && link_key(&p[next]) == key; next++, at++)
            if (to) to[at] = p[next];
        if (to) memcpy(to + at, c + i, (end - i) * sizeof *c);
        at += end - i;
    }
    return at;
}

// Merges `extra` into the n links before it, from the end on.
static void add_sorted(struct link *v, size_t n, const struct link *extra, size_t n_extra) {
    for (size_t to = n + n_extra; n_extra > 0;) {
        const bool from_v = n > 0 && link_less(&extra[n_extra - 1], &v[n - 1]);
        v[--to] = from_v ? v[--n] : extra[--n_extra];
    }
}

static xpl_status_t merge_links(struct graph *gr, const struct extra_links *x) {
    const size_t joined = join_links(gr, NULL), total = joined + x->v.n;
    if (total >= MAX_LINKS) XPL_RETURN_OOM(gr->err, "event groups: links");
    gr->links = xpl_arena_array(&gr->temp, total, sizeof *gr->links);
    if (!gr->links) return xpl_grp_no_memory(gr);
    join_links(gr, gr->links);
    xpl_grp_sort_links(x->v.v, x->v.n);
    add_sorted(gr->links, joined, x->v.v, x->v.n);
    gr->n_links = (uint32_t)total;
    return XPL_OK;
}

// Turns runs of equal keys into joins.
static void number_joins(struct graph *gr) {
    struct link *const v = gr->links;
    for (uint32_t i = 0, end; i < gr->n_links; i = end) {
        const uint64_t key = link_key(&v[i]);
        for (end = i + 1; end < gr->n_links && link_key(&v[end]) == key;)
            end++;
        // Producers come first; without any there is nothing to link.
        const bool linked = !link_consumes(&v[i]) && link_consumes(&v[end - 1]);
        for (uint32_t k = i; k < end; k++)
            v[k].key_lo = linked ? i : NO_JOIN;
    }
    for (uint32_t i = gr->n_links; i-- > 0;) { // each node's links in ascending order
        struct node *const n = &gr->g->nodes[link_node(&v[i])];
        if (v[i].key_lo == NO_JOIN) continue;
        v[i].key_hi = n->links;
        n->links = i + 1;
    }
}

xpl_status_t xpl_grp_make_joins(struct graph *gr, struct extra_links *extra) {
    XPL_TRY(xpl_grp_drop_crowded(gr));
    XPL_TRY(merge_links(gr, extra));
    number_joins(gr);
    return XPL_OK;
}

// ---- labels of keys ----

// Of several producers the group that came first counts, and the first that runs eagerly or not.
void xpl_grp_make_labels(struct graph *gr) {
    struct link *const v = gr->producers;
    struct xpl_groups *const g = gr->g;
    size_t kept = 0;
    for (size_t i = 0; i < gr->n_producers; i++) {
        const uint32_t label = xpl_grp_node_label(&gr->g->nodes[link_node(&v[i])]);
        if (label == LABEL_NO_GROUP) continue;
        if (kept && link_key(&v[kept - 1]) == link_key(&v[i])) {
            uint32_t *const have = &v[kept - 1].end;
            const uint32_t flags = *have & LABEL_IN_EAGER ? *have : label;
            const uint32_t group = (label & LABEL_GROUP) < (*have & LABEL_GROUP) ? label : *have;
            *have = (flags & ~LABEL_GROUP) | (group & LABEL_GROUP);
            continue;
        }
        v[kept] = v[i];
        v[kept++].end = label;
    }
    g->labels = v;
    g->n_labels = (uint32_t)kept;
}
