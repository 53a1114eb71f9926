// SPDX-License-Identifier: Apache-2.0
// Builds the graph of a space out of its scans and finds the groups.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_BUILD_GRAPH_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_BUILD_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>

#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/scan/scan.h"

// Merges the scans into `g`.  Counterpart of EventForest::ConnectEvents in
// xla/tsl/profiler/utils/group_events.cc.
xpl_status_t xpl_grp_build_graph(struct xpl_groups *g, struct scan *scans, size_t n_scans,
                                 bool make_groups, struct xpl_error *err) XPL_NODISCARD;

#endif
