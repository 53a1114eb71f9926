// SPDX-License-Identifier: Apache-2.0
// The drawing of a graph as a page with SVG.  XProf sends DOT and programs from elsewhere that lay
// it out in the browser; its page then looks for the elements that Graphviz makes: groups of class
// node and cluster, the name of an op in the first text of a node and the second of a cluster.
#include <math.h>
#include <string.h>

#include "analysis/tools/graph_viewer/layout.h"

static void html_put(struct xpl_buf *b, const char *s) {
    xpl_buf_str(b, xpl_str_from(s));
}

// ---- texts ----

static const struct tag {
    const char *text;
    const char *begin; // NULL: the line ends
} tags[] = {
    {"<br/>", NULL},      {"<b>", "<tspan font-weight=\"bold\">"},
    {"</b>", "</tspan>"}, {"<i>", "<tspan font-style=\"italic\">"},
    {"</i>", "</tspan>"},
};

static const struct tag *tag_at(xpl_str_t s) {
    for (size_t k = 0; k < sizeof tags / sizeof *tags; k++)
        if (xpl_str_starts(s, xpl_str_from(tags[k].text))) return &tags[k];
    return NULL;
}

// One character as text of the page; `escaped`: &lt; &gt; &quot; are there already.
static void put_char(struct xpl_buf *b, xpl_str_t rest, bool escaped) {
    const char c = rest.len ? rest.ptr[0] : ' ';
    const bool entity = escaped && (xpl_str_starts(rest, XPL_STR("&lt;")) ||
                                    xpl_str_starts(rest, XPL_STR("&gt;")) ||
                                    xpl_str_starts(rest, XPL_STR("&quot;")));
    if (c == '&' && !entity)
        html_put(b, "&amp;");
    else if (c == '<')
        html_put(b, "&lt;");
    else if (c == '>')
        html_put(b, "&gt;");
    else
        xpl_buf_putc(b, ((uint8_t)c < ' ' && c != '\n') || c == 0x7f ? ' ' : c);
}

static void put_tip(struct xpl_buf *b, xpl_str_t s) {
    html_put(b, "<title>");
    for (size_t i = 0; i < s.len; i++)
        put_char(b, xpl_str_sub(s, i, SIZE_MAX), true);
    html_put(b, "</title>\n");
}

// A label, a text for each line around x.  Bold and italic end with the line.  `split`: bold text
// is a separate element, as in Graphviz.
static void put_label(struct xpl_buf *b, xpl_str_t s, double x, double y, bool split) {
    enum { LINE = 15 };
    bool open = false, within = false; // a text, a span in it
    for (size_t i = 0; i < s.len && !b->failed; i++) {
        const xpl_str_t rest = xpl_str_sub(s, i, SIZE_MAX);
        const struct tag *const t = s.ptr[i] == '<' ? tag_at(rest) : NULL;
        const bool ends = t && (!t->begin || (split && t->text[1] == 'b'));
        if (t) i += strlen(t->text) - 1;
        if (ends && open) {
            html_put(b, within ? "</tspan></text>\n" : "</text>\n");
            y += LINE;
            open = within = false;
        }
        if (t && !t->begin) continue;
        const bool span = t && t->text[1] != '/';
        if (t && !span && !within) continue;
        if (!open) xpl_buf_printf(b, "<text x=\"%.1f\" y=\"%.1f\">", x, y);
        open = true;
        if (!t) {
            put_char(b, rest, true);
        } else if (span != within) {
            html_put(b, t->begin);
            within = span;
        }
    }
    if (open) html_put(b, within ? "</tspan></text>\n" : "</text>\n");
}

// The instruction of a node, whose label may be another ("Parameter 0"); for our page.  Names of
// instructions have no quotes: XLA does not allow them, and reading replaces them.
static void put_instruction(struct xpl_buf *b, xpl_str_t name) {
    html_put(b, " data-op=\"");
    for (size_t i = 0; i < name.len; i++)
        put_char(b, xpl_str_sub(name, i, SIZE_MAX), false);
    html_put(b, "\">\n");
}

static xpl_str_t span_text(const struct graph *g, struct graph_span s) {
    return (xpl_str_t){(const char *)g->text.p + s.at, s.n};
}

// ---- nodes and clusters ----

static void put_node(struct xpl_buf *b, const struct graph *g, const struct graph_layout *l,
                     uint32_t k) {
    const struct graph_node *const n = &g->nodes.v[k];
    const struct graph_scheme *const s = &xpl_graph_schemes[n->color];
    const struct graph_box *const p = &l->nodes[k];
    const double x = p->x + p->w / 2, y = p->y + p->h / 2;
    const struct graph_extent e = xpl_graph_extent(g, n->label);
    xpl_buf_printf(b, "<g id=\"node%u\" class=\"node\"", k + 1);
    put_instruction(b, graph_at(g, n->instruction)->name);
    put_tip(b, span_text(g, n->tip));
    if (n->shown == GRAPH_START)
        xpl_buf_printf(b, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\"", x, p->y,
                       p->x + p->w, y, x, p->y + p->h, p->x, y);
    else if (graph_at(g, n->instruction)->opcode == XPL_HLO_WHILE)
        xpl_buf_printf(b, "<ellipse cx=\"%.1f\" cy=\"%.1f\" rx=\"%.1f\" ry=\"%.1f\"", x, y,
                       p->w / 2, p->h / 2);
    else
        xpl_buf_printf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", p->x, p->y,
                       p->w, p->h);
    xpl_buf_printf(b, " fill=\"%s\" stroke=\"%s\"%s />\n<g fill=\"%s\">", s->fill, s->border,
                   graph_dashed(n) ? " stroke-dasharray=\"5,2\"" : "", s->text);
    put_label(b, span_text(g, n->label), x, y - (double)(e.lines - 1) * 15 / 2 + 4, false);
    html_put(b, "</g></g>\n");
}

static void put_cluster(struct xpl_buf *b, const struct graph *g, const struct graph_layout *l,
                        uint32_t k) {
    const struct graph_cluster *const c = &g->clusters.v[k];
    const struct graph_box *const p = &l->clusters[k];
    xpl_buf_printf(b,
                   "<g id=\"clust%u\" class=\"cluster\">\n<rect x=\"%.1f\" y=\"%.1f\" "
                   "width=\"%.1f\" height=\"%.1f\" rx=\"10\" fill=\"%s\" stroke=\"%s\"/>\n",
                   k + 1, p->x, p->y, p->w, p->h, c->fusion ? graph_cluster_fill(c) : "none",
                   c->fusion ? (c->start ? "#b71c1c" : "#c2c2c2") : "black");
    put_label(b, span_text(g, c->label), p->x + p->w / 2, p->y + 18, true);
    html_put(b, "</g>\n");
}

// ---- edges ----

static void put_edge(struct xpl_buf *b, const struct graph *g, const struct graph_layout *l,
                     size_t k) {
    const struct graph_edge *const e = &g->edges.v[k];
    if (e->to == GRAPH_NONE || !g->node_of[e->from] || !g->node_of[e->to]) return;
    const struct graph_box *const a = &l->nodes[g->node_of[e->from] - 1];
    const struct graph_box *const z = &l->nodes[g->node_of[e->to] - 1];
    const double x1 = a->x + a->w / 2, y1 = a->y + a->h, y2 = z->y;
    // Operands arrive side by side, in their order.
    const uint32_t n = g->m->edges[e->to].n_operands;
    const double share = e->operand == GRAPH_NONE ? 0.5 : (e->operand + 1.0) / (n + 1.0);
    const double x2 = z->x + z->w * (0.25 + share / 2), bend = fmax(fabs(y2 - y1) / 2, 20);
    xpl_buf_printf(b, "<g id=\"edge%zu\" class=\"edge\">\n", k + 1);
    html_put(b, "<title>");
    for (unsigned end = 0; end < 2; end++) {
        const xpl_str_t name = graph_at(g, end ? e->to : e->from)->name;
        if (end) html_put(b, " -&gt; ");
        for (size_t i = 0; i < name.len; i++)
            put_char(b, xpl_str_sub(name, i, SIZE_MAX), false);
    }
    xpl_buf_printf(b,
                   "</title>\n<path d=\"M%.1f,%.1fC%.1f,%.1f %.1f,%.1f %.1f,%.1f\"%s "
                   "marker-end=\"url(#%s)\"/></g>\n",
                   x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2,
                   e->kind == GRAPH_CONTROL ? " stroke-dasharray=\"1,3\""
                   : e->kind == GRAPH_CALL  ? " stroke-dasharray=\"5,2\""
                                            : "",
                   e->small ? "empty" : "full");
}

// ---- the page ----

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>HLO graph</title>\n"
    "<style>body{margin:0;font-family:Roboto,Arial,sans-serif}p{margin:8px}\n"
    "svg{max-width:100%;height:auto}input:checked~svg{max-width:none}\n"
    "text{font-size:12px;text-anchor:middle}.edge path{fill:none;stroke:#333}\n"
    ".node,.cluster{cursor:pointer}.node:hover>:nth-child(2),.cluster:hover>rect{stroke:#000;"
    "stroke-width:3}\n"
    ".edge:hover path{stroke:#d32f2f;stroke-width:3}</style></head><body>\n";
static const char markers[] =
    "<defs><marker id=\"full\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" "
    "markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0L10,5L0,10z\" fill=\"#333\"/></marker>"
    "<marker id=\"empty\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" "
    "markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0L10,5L0,10z\" fill=\"#fff\" "
    "stroke=\"#333\"/></marker></defs>\n";

xpl_status_t xpl_graph_html(const struct graph *g, const struct graph_layout *l,
                            struct xpl_buf *out, struct xpl_error *err) {
    html_put(out, page_head);
    html_put(out, "<input type=\"checkbox\" id=\"full-size\"><label for=\"full-size\">full "
                  "size</label>\n");
    xpl_buf_printf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                   "viewBox=\"0 0 %.0f %.0f\">\n",
                   l->all.w, l->all.h, l->all.w, l->all.h);
    html_put(out, markers);
    put_label(out, span_text(g, g->title), l->all.w / 2, 18, false);
    for (uint32_t k = 0; k < g->clusters.n && !out->failed; k++)
        put_cluster(out, g, l, k);
    for (size_t k = 0; k < g->edges.n && !out->failed; k++)
        put_edge(out, g, l, k);
    for (uint32_t k = 0; k < g->nodes.n && !out->failed; k++)
        put_node(out, g, l, k);
    html_put(out, "</svg>\n</body></html>\n");
    if (out->failed) XPL_RETURN_OOM(err, "graph");
    return XPL_OK;
}
