// SPDX-License-Identifier: Apache-2.0
// A graph in Graphviz's language, as XLA writes it.  XLA names nodes by their addresses, and writes
// the rules of its stylesheet in the order of a hash table; here both follow the program.
#include <stdio.h>

#include "analysis/tools/graph_viewer/impl.h"

static void dot_put(struct xpl_buf *b, const char *s) {
    xpl_buf_str(b, xpl_str_from(s));
}
static void put_span(struct xpl_buf *b, const struct graph *g, struct graph_span s) {
    xpl_buf_put(b, g->text.p + s.at, s.n);
}

// ---- the stylesheet: edges light up with their ends ----

// Half of the bytes of a graph: the numbers, which all three lines have, are formatted once.
static void put_rule(struct xpl_buf *b, const char *kind, uint32_t number, size_t edge,
                     const char *color) {
    char selector[80];
    if (b->n && b->p[b->n - 1] == '\n') xpl_buf_putc(b, '\n'); // after another rule
    (void)snprintf(selector, sizeof selector, "  %%23%s%u:hover ~ %%23edge%zu ", kind, number,
                   edge);
    dot_put(b, selector);
    dot_put(b, "text { fill: %23");
    dot_put(b, color);
    dot_put(b, "; }\n");
    dot_put(b, selector);
    dot_put(b, "path { stroke: %23");
    dot_put(b, color);
    dot_put(b, "; stroke-width: .2em; }\n");
    dot_put(b, selector);
    dot_put(b, "polygon { fill: %23");
    dot_put(b, color);
    dot_put(b, "; stroke: %23");
    dot_put(b, color);
    dot_put(b, "; stroke-width: .2em; }\n");
}

static void put_rules(struct xpl_buf *b, const struct graph *g, size_t k) {
    static const char from_color[] = "1976d2", to_color[] = "d32f2f";
    const struct graph_edge *const e = &g->edges.v[k];
    put_rule(b, "node", g->node_of[e->from], k + 1, from_color);
    if (e->to == GRAPH_NONE) {
        put_rule(b, "node", (uint32_t)g->nodes.n + 1, k + 1, to_color);
        return;
    }
    put_rule(b, "node", g->node_of[e->to], k + 1, to_color);
    const uint32_t from = graph_at(g, e->from)->computation;
    const uint32_t to = graph_at(g, e->to)->computation;
    if (graph_fused(g, e->from) && graph_is_root(g, e->from))
        put_rule(b, "clust", g->cluster_of[from], k + 1, from_color);
    if (graph_fused(g, e->to) && graph_at(g, e->to)->opcode == XPL_HLO_PARAMETER)
        put_rule(b, "clust", g->cluster_of[to], k + 1, to_color);
}

static void put_head(struct xpl_buf *b, const struct graph *g) {
    dot_put(b, "digraph G {\nrankdir = TB;\ncompound = true;\nlabel = <<b>");
    put_span(b, g, g->title);
    dot_put(b, "</b>>;\nlabelloc = t;\n"
               "// Disable the tooltip.  Interestingly, \"\" doesn't work!\n"
               "tooltip = \" \";\n"
               "// DOT graphs accept a stylesheet as a URI.  So naturally, an inline\n"
               "// stylesheet is a data URI!\n"
               "stylesheet=<\n  data:text/css,\n"
               "  @import url(https://fonts.googleapis.com/css?family=Roboto:400,700);\n"
               "  svg text {\n    font-family: 'Roboto';\n    font-size: 12px;\n  }\n\n  ");
    for (size_t k = 0; k < g->edges.n && !b->failed; k++)
        put_rules(b, g, k);
    dot_put(b, "\n>\n\n");
}

// ---- the body ----

static void put_node(struct xpl_buf *b, const struct graph *g, const struct graph_node *n) {
    const struct graph_scheme *const s = &xpl_graph_schemes[n->color];
    const bool loop = graph_at(g, n->instruction)->opcode == XPL_HLO_WHILE;
    xpl_buf_printf(b, "%u [label=<", n->instruction + 1);
    put_span(b, g, n->label);
    dot_put(b, ">, shape=");
    dot_put(b, n->shown == GRAPH_START ? "diamond" : loop ? "ellipse" : "rect");
    dot_put(b, ", tooltip=\"");
    put_span(b, g, n->tip);
    xpl_buf_printf(b, "\", style=\"%s\", fontcolor=\"%s\", color=\"%s\", fillcolor=\"%s\"];\n",
                   graph_dashed(n) ? "filled,dashed" : "filled", s->text, s->border, s->fill);
}

static void put_open(struct xpl_buf *b, const struct graph *g, const struct graph_cluster *c) {
    xpl_buf_printf(b, "subgraph cluster_%u {\n", c->computation + 1);
    if (!c->fusion)
        dot_put(b, "style=rounded; color=black;");
    else
        xpl_buf_printf(b, "style=\"rounded,filled,bold\"; fillcolor=\"%s\"; color=\"%s;\"",
                       graph_cluster_fill(c), c->start ? "#b71c1c" : "#c2c2c2");
    dot_put(b, "\nlabel = <");
    put_span(b, g, c->label);
    dot_put(b, ">;\nlabelloc = t;\ntooltip = \" \";\n");
}

static void put_edge(struct xpl_buf *b, const struct graph *g, const struct graph_edge *e) {
    if (e->kind == GRAPH_ROOT) {
        xpl_buf_printf(b, "%u -> cluster_%u [tooltip=\" \"];", e->from + 1, g->top + 1);
        return;
    }
    xpl_buf_printf(b, "%u -> %u [", e->from + 1, e->to + 1);
    if (e->kind == GRAPH_CALL) {
        xpl_buf_printf(b, "ltail=\"cluster_%u\", style=\"dashed\" tooltip=\"", e->cluster + 1);
        xpl_buf_str(b, g->m->computations[e->cluster].name);
        dot_put(b, " -> ");
        xpl_buf_str(b, graph_at(g, e->to)->name);
        dot_put(b, "\"];");
        return;
    }
    xpl_buf_printf(b, "arrowhead=%s tooltip=\"", e->small ? "empty" : "normal");
    xpl_buf_str(b, graph_at(g, e->from)->name);
    dot_put(b, " -> ");
    xpl_buf_str(b, graph_at(g, e->to)->name);
    dot_put(b, "\" ");
    if (e->kind == GRAPH_CONTROL)
        dot_put(b, "style=\"dotted\" color=\"gray\" label=\"ctrl\"");
    else if (e->operand != GRAPH_NONE)
        xpl_buf_printf(b, " headlabel=\"%u\", labeldistance=2", e->operand);
    dot_put(b, "];");
}

xpl_status_t xpl_graph_dot(const struct graph *g, struct xpl_buf *out, struct xpl_error *err) {
    put_head(out, g);
    for (size_t k = 0; k < g->items.n && !out->failed; k++) {
        const struct graph_item *const item = &g->items.v[k];
        switch ((enum graph_item_kind)item->kind) {
            case GRAPH_NODE: put_node(out, g, &g->nodes.v[item->index]); break;
            case GRAPH_OPEN: put_open(out, g, &g->clusters.v[item->index]); break;
            case GRAPH_CLOSE:
                xpl_buf_printf(out, "\n}  // cluster_%u\n\n",
                               g->clusters.v[item->index].computation + 1);
                break;
        }
    }
    const bool root = g->edges.n && g->edges.v[g->edges.n - 1].kind == GRAPH_ROOT;
    if (root)
        xpl_buf_printf(out,
                       "cluster_%u [label=<ROOT>, shape=circle, tooltip=\" \", style=\"filled\", "
                       "fontcolor=\"black\", color=\"#8c7b75\", fillcolor=\"#bcaaa4\"];\n",
                       g->top + 1);
    for (size_t k = 0; k < g->edges.n && !out->failed; k++) {
        if (k) xpl_buf_putc(out, '\n');
        put_edge(out, g, &g->edges.v[k]);
    }
    dot_put(out, "\n}");
    if (out->failed) XPL_RETURN_OOM(err, "graph");
    return XPL_OK;
}
