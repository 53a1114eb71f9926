// SPDX-License-Identifier: Apache-2.0
// Search among the ancestors of a node, the nearest first.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_ANCESTORS_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_ANCESTORS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/graph/graph.h"

// Calls fn for `start` and its ancestors until it returns true, or the budget of the graph is
// spent.  False when out of memory.
bool xpl_grp_search(struct graph *gr, uint32_t start,
                    bool (*fn)(struct graph *gr, uint32_t node, void *ctx), void *ctx);

#endif
