// SPDX-License-Identifier: Apache-2.0
// Keys that so many events produce and consume that XProf links none of them
// [ConnectContextGroups].
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_CROWDED_KEYS_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_CROWDED_KEYS_H_

#include "analysis/grouping/graph/graph.h"

// Drops the producers of keys that have too many producers and too many consumers.  (Producers that
// nothing of interest encloses are not stored and not counted.)
xpl_status_t xpl_grp_drop_crowded(struct graph *gr) XPL_NODISCARD;

#endif
