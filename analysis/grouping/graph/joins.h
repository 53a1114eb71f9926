// SPDX-License-Identifier: Apache-2.0
// Joins: all ends of links with one key meet in one.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_JOINS_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_JOINS_H_

#include "analysis/grouping/graph/extra_links.h"
#include "analysis/grouping/graph/graph.h"

// Makes the joins of the graph.  Keys that have too many producers and too many consumers are
// dropped.
xpl_status_t xpl_grp_make_joins(struct graph *gr, struct extra_links *extra) XPL_NODISCARD;
// The label that each key passes on, once groups are known: turns gr->producers into gr->g->labels.
void xpl_grp_make_labels(struct graph *gr);

#endif
