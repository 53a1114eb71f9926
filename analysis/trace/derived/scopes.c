// SPDX-License-Identifier: Apache-2.0
// Scope ranges: the tree that the profile records, and the chains of ids above an event's own.
#include "analysis/trace/derived/impl.h"

#include "base/map.h"
#include "base/vec.h"

struct scope_node {
    int64_t parent;
    uint32_t parent_node; // + 1; 0: not a child of anything
};
// The chain of each node, for all planes.
struct scope_mark {
    uint32_t depth; // ids on the way up, its own included; 0: not walked yet
    uint32_t stamp; // number of the last walk that visited it
    bool in_cycle;
    int64_t last;   // the last id on the way up
    int64_t before; // in a cycle: the id that leads here
};
struct xpl_scope_tree {
    struct xpl_map index; // id to node
    XPL_VEC(struct scope_node) nodes;
    struct scope_mark *marks;
    uint32_t walk;
};

// An edge is a statistic of the plane of scope ranges: its metadata id is the child, its value the
// parent.
static bool read_edge(xpl_bytes_t message, int64_t *child, int64_t *parent) {
    enum { STAT_MD_ID = 1, STAT_INT = 4 };
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    *child = *parent = 0;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type == XPL_WIRE_VARINT && f.num == STAT_MD_ID) *child = (int64_t)f.u;
        if (f.type == XPL_WIRE_VARINT && f.num == STAT_INT) *parent = (int64_t)f.u;
    }
    return r == XPL_WIRE_END;
}

static bool add_edge(struct xpl_scope_tree *t, struct xpl_arena *a, int64_t child, int64_t parent) {
    bool added;
    uint64_t *const slot = xpl_map_put(a, &t->index, (uint64_t)child, 0, &added);
    if (!slot) return false;
    if (!added) return true;
    struct scope_node *const n = xpl_vec_push(a, &t->nodes);
    if (!n || t->nodes.n >= UINT32_MAX) return false;
    *n = (struct scope_node){.parent = parent};
    *slot = t->nodes.n - 1;
    return true;
}

// ---- chains ----

// The walk up from a scope marks all that it visits, so that each is walked once.  A cycle ends
// where it closes: its ids count once, that of the scope where the walk began twice.
static void walk_scopes(struct xpl_scope_tree *w, uint32_t from) {
    const struct scope_node *const nodes = w->nodes.v;
    uint32_t length = 1, last = from; // scopes on the way that are not marked
    w->walk++;
    w->marks[from].stamp = w->walk;
    for (uint32_t next; (next = nodes[last].parent_node) != 0; last = next - 1, length++) {
        if (w->marks[next - 1].depth || w->marks[next - 1].stamp == w->walk) break;
        w->marks[next - 1].stamp = w->walk;
    }
    const uint32_t end = nodes[last].parent_node; // + 1; 0: nothing above
    struct scope_mark top = {.depth = 1, .last = nodes[last].parent};
    uint32_t cycle = 0, at = from;
    if (end && w->marks[end - 1].depth) {
        top = w->marks[end - 1];
        if (top.in_cycle) {
            top.depth--;
            top.last = top.before;
        }
    } else if (end) { // closes on this way
        uint32_t before = last;
        for (uint32_t i = end - 1;; i = nodes[i].parent_node - 1) {
            cycle++;
            if (i == last) break;
            before = i;
        }
        // The scope below names the id of a scope.
        top = (struct scope_mark){.depth = cycle,
                                  .last = cycle > 1 ? nodes[before].parent : nodes[last].parent};
    }
    int64_t id = nodes[last].parent, before = top.last; // of the first scope in the cycle
    for (uint32_t left = length; left > 0; left--, at = nodes[at].parent_node - 1) {
        struct scope_mark *const m = &w->marks[at];
        if (left > cycle) {
            m->depth = left - cycle + top.depth;
            m->last = top.last;
            continue;
        }
        *m =
            (struct scope_mark){.depth = cycle + 1, .in_cycle = true, .last = id, .before = before};
        before = id;
        id = nodes[at].parent;
    }
}

xpl_status_t xpl_scope_tree_new(const struct xpl_xspace *xs, struct xpl_arena *arena,
                                struct xpl_scope_tree **ret, struct xpl_error *err) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_SCOPE_RANGE_ID));
    struct xpl_scope_tree *const t = xpl_arena_zalloc(arena, sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "scope ranges");
    *ret = t;
    if (!p) return XPL_OK;
    struct xpl_wire w = {p->stats.p, p->stats.end};
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        int64_t child, parent;
        if (f.num != p->stats.field || f.type != XPL_WIRE_LEN) continue;
        if (!read_edge(f.len, &child, &parent)) break;
        if (!add_edge(t, arena, child, parent)) XPL_RETURN_OOM(err, "scope ranges");
    }
    for (size_t i = 0; i < t->nodes.n; i++) {
        const uint64_t *const slot = xpl_map_get(&t->index, (uint64_t)t->nodes.v[i].parent, 0);
        t->nodes.v[i].parent_node = slot ? (uint32_t)*slot + 1 : 0;
    }
    t->marks = xpl_arena_zalloc(arena, t->nodes.n * sizeof *t->marks);
    if (!t->marks) XPL_RETURN_OOM(err, "scope ranges");
    for (uint32_t i = 0; i < t->nodes.n; i++)
        if (!t->marks[i].depth) walk_scopes(t, i);
    return XPL_OK;
}

struct xpl_scope_chain xpl_scope_chain_of(const struct xpl_scope_tree *t, int64_t innermost) {
    struct xpl_scope_chain c = {.depth = 1, .innermost = innermost, .root = innermost};
    const uint64_t *const slot = xpl_map_get(&t->index, (uint64_t)innermost, 0);
    if (!slot) return c;
    c.node = (uint32_t)*slot + 1;
    c.depth = t->marks[c.node - 1].depth;
    c.root = t->marks[c.node - 1].last;
    return c;
}

void xpl_scope_chain_ids(const struct xpl_scope_tree *t, const struct xpl_scope_chain *c,
                         int64_t *ret) {
    int64_t id = c->innermost;
    uint32_t node = c->node;
    for (uint32_t i = c->depth; i-- > 0;) {
        ret[i] = id;
        if (node == 0) continue;
        id = t->nodes.v[node - 1].parent;
        node = t->nodes.v[node - 1].parent_node;
    }
}
