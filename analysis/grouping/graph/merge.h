// SPDX-License-Identifier: Apache-2.0
// Merges the results of the scans into the lists of one graph.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_MERGE_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_MERGE_H_

#include "analysis/grouping/graph/graph.h"

// Numbers the nodes of all scans, brings lines and lists over, and gives the scans' memory back.
xpl_status_t xpl_grp_merge_scans(struct graph *gr) XPL_NODISCARD;

#endif
