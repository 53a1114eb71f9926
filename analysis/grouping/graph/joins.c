#include "analysis/grouping/graph/joins.h"

#include <string.h>

#include "analysis/grouping/graph/crowded_keys.h"
#include "analysis/grouping/graph/link_sort.h"

// ---- hubs ----

// The graph needs the consumers that are nodes, and of the producers those of the same keys, by key
// and the producers first.  Returns how many that are; writes them to `to` unless it is NULL.
static size_t join_links(const struct forest *f, struct link *to) {
    const struct link *const c = f->consumers, *const p = f->producers;
    size_t at = 0, next = 0;
    for (size_t i = 0, end; i < f->n_consumers; i = end) {
        const uint64_t key = link_key(&c[i]);
        for (end = i + 1; end < f->n_consumers && link_key(&c[end]) == key;)
            end++;
        while (next < f->n_producers && link_key(&p[next]) < key)
            next++;
        for (; next < f->n_producers && link_key(&p[next]) == key; next++, at++)
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

static xpl_status_t merge_links(struct forest *f, const struct extra_links *x) {
    const size_t joined = join_links(f, NULL), total = joined + x->v.n;
    if (total >= MAX_LINKS) XPL_RETURN_OOM(f->err, "event groups: links");
    f->links = xpl_arena_array(&f->temp, total, sizeof *f->links);
    if (!f->links) return xpl_grp_no_memory(f);
    join_links(f, f->links);
    xpl_grp_sort_links(x->v.v, x->v.n);
    add_sorted(f->links, joined, x->v.v, x->v.n);
    f->n_links = (uint32_t)total;
    return XPL_OK;
}

// Turns runs of equal keys into hubs.
static void make_hubs(struct forest *f) {
    struct link *const v = f->links;
    for (uint32_t i = 0, end; i < f->n_links; i = end) {
        const uint64_t key = link_key(&v[i]);
        for (end = i + 1; end < f->n_links && link_key(&v[end]) == key;)
            end++;
        // Producers come first; without any there is nothing to link.
        const bool linked = !link_consumes(&v[i]) && link_consumes(&v[end - 1]);
        for (uint32_t k = i; k < end; k++)
            v[k].key_lo = linked ? i : NO_HUB;
    }
    for (uint32_t i = f->n_links; i-- > 0;) { // each node's links in ascending order
        struct node *const n = &f->g->nodes[link_node(&v[i])];
        if (v[i].key_lo == NO_HUB) continue;
        v[i].key_hi = n->links;
        n->links = i + 1;
    }
}

xpl_status_t xpl_grp_make_joins(struct forest *f, struct extra_links *extra) {
    XPL_TRY(xpl_grp_drop_crowded(f));
    XPL_TRY(merge_links(f, extra));
    make_hubs(f);
    return XPL_OK;
}

// ---- what keys pass on ----

// Of several producers the group that came first counts, and the first that runs eagerly or not.
void xpl_grp_make_labels(struct forest *f) {
    struct link *const v = f->producers;
    struct xpl_groups *const g = f->g;
    size_t kept = 0;
    for (size_t i = 0; i < f->n_producers; i++) {
        const uint32_t label = xpl_grp_node_label(&f->g->nodes[link_node(&v[i])]);
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
