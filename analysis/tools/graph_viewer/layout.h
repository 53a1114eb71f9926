// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools: where the parts of a graph stand, and the drawing.
#ifndef XPL_ANALYSIS_TOOLS_GRAPH_VIEWER_LAYOUT_H_
#define XPL_ANALYSIS_TOOLS_GRAPH_VIEWER_LAYOUT_H_

#include "analysis/tools/graph_viewer/impl.h"

struct graph_box { // points; x and y: its upper left corner
    double x, y, w, h;
};
struct graph_layout {
    struct graph_box *nodes, *clusters; // by their numbers
    struct graph_box all;
};

// Lines of a label, and characters of the longest.
struct graph_extent {
    size_t lines, longest;
};
struct graph_extent xpl_graph_extent(const struct graph *g, struct graph_span label);

// Lays a graph out in g->arena.  RESOURCE_EXHAUSTED at its limit or that of work, CANCELLED.
xpl_status_t xpl_graph_layout(struct graph *g, struct graph_layout *ret, struct xpl_error *err)
    XPL_NODISCARD;

// A page with the drawing as SVG.  It needs nothing else and has no script; elements are named and
// grouped as Graphviz does it, which XProf's page looks for.
xpl_status_t xpl_graph_html(const struct graph *g, const struct graph_layout *l,
                            struct xpl_buf *out, struct xpl_error *err) XPL_NODISCARD;

#endif
