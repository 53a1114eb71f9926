// SPDX-License-Identifier: Apache-2.0
// From a computation to nodes, clusters and edges, in the order in which XLA writes them.
#include "analysis/tools/graph_viewer/impl.h"

// ---- edges ----

struct walk {
    struct graph *g;
    struct xpl_error *err;
    struct { // by instruction: edges to `to` so far
        uint32_t to, n;
    } * counts;
};

// Where an edge from an instruction begins: a fusion that is drawn as a cluster, at its root.
static uint32_t edge_begin(struct graph *g, uint32_t i) {
    if (graph_at(g, i)->opcode == XPL_HLO_GET_TUPLE_ELEMENT && g->m->edges[i].n_operands)
        i = graph_uses(g, i)[0];
    while (xpl_graph_opened(g, i) && graph_spend(g, 1)) {
        size_t end;
        const size_t first = xpl_graph_calls(g, i, &end);
        i = g->m->computations[g->m->calls.v[first].computation].root;
    }
    return i;
}

static bool has_no_edge(struct graph *g, uint32_t from) {
    return xpl_graph_shown(g, from) == GRAPH_HIDDEN ||
           graph_at(g, from)->opcode == XPL_HLO_CONSTANT || xpl_graph_plain_broadcast(g, from) ||
           xpl_graph_merged(g, from);
}

static xpl_status_t add_edge(struct walk *w, struct graph_edge e) {
    enum { MOST = 64 }; // from one node to another, and one more
    struct graph *const g = w->g;
    if (e.to != GRAPH_NONE && e.kind != GRAPH_CALL) {
        if (w->counts[e.from].to == e.to + 1 && w->counts[e.from].n > MOST) return XPL_OK;
        e.from = edge_begin(g, e.from);
        if (has_no_edge(g, e.from)) return XPL_OK;
        if (w->counts[e.from].to != e.to + 1) w->counts[e.from].n = 0;
        w->counts[e.from].to = e.to + 1;
        w->counts[e.from].n++;
    }
    e.small = xpl_graph_small(g, e.from);
    struct graph_edge *const slot = xpl_vec_push(g->arena, &g->edges);
    if (!slot) XPL_RETURN_OOM(w->err, "graph");
    *slot = e;
    return XPL_OK;
}

static xpl_status_t add_incoming(struct walk *w, uint32_t i) {
    struct graph *const g = w->g;
    const struct hlo_edges *const e = &g->m->edges[i];
    const struct hlo_computation *const c = &g->m->computations[graph_at(g, i)->computation];
    struct graph_edge edge = {.to = i, .operand = GRAPH_NONE};
    if (graph_at(g, i)->opcode == XPL_HLO_PARAMETER && c->fusion != UINT32_MAX) {
        struct xpl_hlo_message in;
        if (graph_at(g, i)->computation == g->top) return XPL_OK;
        graph_read(g, i, &in);
        edge.from =
            graph_operand(g, c->fusion, (uint64_t)xpl_hlo_int(&in, HLO_INSTR_PARAMETER_NUMBER));
        return edge.from == GRAPH_NONE ? XPL_OK : add_edge(w, edge);
    }
    const uint32_t *const uses = graph_uses(g, i);
    for (uint32_t k = 0; k < e->n_operands + e->n_control; k++) {
        const bool control = k >= e->n_operands;
        edge.from = uses[k];
        edge.kind = control ? GRAPH_CONTROL : GRAPH_OPERAND;
        edge.operand = !control && e->n_operands > 1 ? k : GRAPH_NONE;
        XPL_TRY(add_edge(w, edge));
    }
    return XPL_OK;
}

// ---- nodes and clusters ----

static bool has_no_node(struct graph *g, uint32_t i) {
    const bool plain =
        graph_at(g, i)->opcode == XPL_HLO_CONSTANT || xpl_graph_plain_broadcast(g, i);
    return (plain && !graph_is_root(g, i)) || xpl_graph_merged(g, i) || xpl_graph_opened(g, i);
}

static xpl_status_t add_item(struct graph *g, enum graph_item_kind kind, uint32_t index,
                             struct xpl_error *err) {
    struct graph_item *const slot = xpl_vec_push(g->arena, &g->items);
    if (!slot) XPL_RETURN_OOM(err, "graph");
    *slot = (struct graph_item){(uint8_t)kind, index};
    return XPL_OK;
}

static xpl_status_t add_node(struct walk *w, uint32_t i, uint32_t cluster) {
    struct graph *const g = w->g;
    if (has_no_node(g, i)) return XPL_OK;
    struct graph_node node = {.instruction = i,
                              .cluster = cluster,
                              .color = (uint8_t)xpl_graph_color(g, i),
                              .shown = (uint8_t)xpl_graph_shown(g, i)};
    XPL_TRY(xpl_graph_node_label(g, i, &node.label, w->err));
    xpl_graph_tip(g, i, &node.tip);
    struct graph_node *const slot = xpl_vec_push(g->arena, &g->nodes);
    if (!slot) XPL_RETURN_OOM(w->err, "graph");
    *slot = node;
    g->node_of[i] = (uint32_t)g->nodes.n;
    XPL_TRY(add_item(g, GRAPH_NODE, (uint32_t)g->nodes.n - 1, w->err));
    return add_incoming(w, i);
}

static xpl_status_t add_cluster(struct walk *w, uint32_t caller, uint32_t computation,
                                uint32_t parent) {
    struct graph *const g = w->g;
    struct graph_cluster c = {.computation = computation,
                              .caller = caller,
                              .parent = parent,
                              .fusion = graph_at(g, caller)->opcode == XPL_HLO_FUSION,
                              .start = xpl_graph_shown(g, caller) == GRAPH_START};
    if (c.fusion && !c.start) c.color = (uint8_t)xpl_graph_heat(g, caller);
    XPL_TRY(xpl_graph_cluster_label(g, &c, &c.label, w->err));
    struct graph_cluster *const slot = xpl_vec_push(g->arena, &g->clusters);
    if (!slot) XPL_RETURN_OOM(w->err, "graph");
    *slot = c;
    g->cluster_of[computation] = (uint32_t)g->clusters.n;
    return add_item(g, GRAPH_OPEN, (uint32_t)g->clusters.n - 1, w->err);
}

// ---- the walk ----

// A computation that is being drawn.  Programs may nest as deep as they are long: the stack is our
// own.
struct place {
    uint32_t computation, cluster;
    uint32_t next;          // instruction
    size_t call, calls_end; // of it; call == calls_end: its own node is next
    bool entered;           // its calls were found
};

// One call of an instruction: an edge, and a cluster when it is the first.  *ret_opened: the
// caller draws its inside next.
static xpl_status_t add_call(struct walk *w, const struct place *at, uint32_t computation,
                             bool *ret_opened) {
    struct graph *const g = w->g;
    *ret_opened = false;
    if (!xpl_graph_shows_inside(g, computation)) return XPL_OK;
    if (graph_at(g, at->next)->opcode != XPL_HLO_FUSION) {
        const struct graph_edge e = {.from = edge_begin(g, g->m->computations[computation].root),
                                     .to = at->next,
                                     .operand = GRAPH_NONE,
                                     .cluster = computation,
                                     .kind = GRAPH_CALL};
        XPL_TRY(add_edge(w, e));
    }
    if (g->cluster_of[computation]) return XPL_OK;
    *ret_opened = true;
    return add_cluster(w, at->next, computation, at->cluster);
}

static xpl_status_t walk(struct walk *w) {
    struct graph *const g = w->g;
    XPL_VEC(struct place) stack = {0};
    struct place here = {.computation = g->top, .cluster = GRAPH_NONE};
    here.next = g->m->computations[g->top].first;
    for (;;) {
        const struct hlo_computation *const c = &g->m->computations[here.computation];
        if (here.next == c->first + c->n) {
            if (here.cluster != GRAPH_NONE) XPL_TRY(add_item(g, GRAPH_CLOSE, here.cluster, w->err));
            if (!stack.n) return XPL_OK;
            here = stack.v[--stack.n];
            continue;
        }
        if (!here.entered) {
            if (!graph_spend(g, 1) || here.next % 256 == 0) XPL_TRY(xpl_graph_check(g, w->err));
            here.entered = true;
            here.call = here.calls_end = 0;
            if (xpl_graph_shown(g, here.next) != GRAPH_HIDDEN)
                here.call = xpl_graph_calls(g, here.next, &here.calls_end);
        }
        if (here.call < here.calls_end) {
            const uint32_t computation = g->m->calls.v[here.call++].computation;
            bool opened;
            XPL_TRY(add_call(w, &here, computation, &opened));
            if (!opened) continue;
            struct place *const slot = xpl_vec_push(g->arena, &stack);
            if (!slot) XPL_RETURN_OOM(w->err, "graph");
            *slot = here;
            here = (struct place){.computation = computation,
                                  .cluster = g->cluster_of[computation] - 1,
                                  .next = g->m->computations[computation].first};
            continue;
        }
        if (xpl_graph_shown(g, here.next) != GRAPH_HIDDEN)
            XPL_TRY(add_node(w, here.next, here.cluster));
        here.next++;
        here.entered = false;
    }
}

// ---- the whole ----

static void put_title(struct graph *g) {
    const struct xpl_hlo_module *const m = g->m;
    const struct hlo_computation *const c = &m->computations[g->top];
    struct xpl_buf *const b = &g->text;
    g->title.at = b->n;
    if (g->start != GRAPH_NONE) {
        xpl_buf_printf(b, "Neighborhood of %u nodes around ", g->width);
        xpl_buf_str(b, graph_at(g, g->start)->name);
    }
    xpl_buf_str(b, XPL_STR("<br/>Computation "));
    xpl_buf_str(b, c->name);
    if (c->fusion != UINT32_MAX) {
        xpl_buf_str(b, XPL_STR(" (in fusion instruction "));
        xpl_buf_str(b, graph_at(g, c->fusion)->name);
        xpl_buf_str(b, XPL_STR(")"));
    }
    if (g->top == m->entry) {
        xpl_buf_str(b, XPL_STR("<br/>ENTRY computation"));
    } else if (c->fusion == UINT32_MAX && g->callers[g->top].any) {
        xpl_buf_str(b, XPL_STR("<br/>Caller instructions: "));
        uint32_t last = GRAPH_NONE;
        for (size_t k = 0, n = 0; k < m->calls.n; k++) {
            const uint32_t i = m->calls.v[k].instruction;
            if (m->calls.v[k].computation != g->top || i == last) continue;
            if (n++) xpl_buf_str(b, XPL_STR(", "));
            xpl_buf_str(b, graph_at(g, i)->name);
            last = i;
        }
    }
    g->title.n = b->n - g->title.at;
}

xpl_status_t xpl_graph_build(struct graph *g, size_t limit, struct xpl_error *err) {
    struct walk w = {.g = g, .err = err};
    xpl_buf_init(&g->text, limit);
    xpl_buf_init(&g->scratch, limit);
    g->cache = xpl_hlo_text_cache_new(g->arena);
    w.counts = xpl_arena_zalloc(g->arena, g->m->n_instructions * sizeof *w.counts);
    if (!g->cache || !w.counts || !xpl_graph_facts(g)) XPL_RETURN_OOM(err, "graph");
    if (g->start != GRAPH_NONE) {
        g->top = graph_at(g, g->start)->computation;
        XPL_TRY(xpl_graph_filter(g, err));
    }
    put_title(g);
    XPL_TRY(walk(&w));
    const uint32_t root = edge_begin(g, g->m->computations[g->top].root);
    const bool shown = xpl_graph_shown(g, root) != GRAPH_HIDDEN &&
                       graph_at(g, root)->opcode != XPL_HLO_CONSTANT &&
                       !xpl_graph_plain_broadcast(g, root);
    if (shown)
        XPL_TRY(add_edge(
            &w, (struct graph_edge){
                    .from = root, .to = GRAPH_NONE, .operand = GRAPH_NONE, .kind = GRAPH_ROOT}));
    return xpl_graph_check(g, err);
}

void xpl_graph_fini(struct graph *g) {
    xpl_buf_fini(&g->text);
    xpl_buf_fini(&g->scratch);
}
