// SPDX-License-Identifier: Apache-2.0
// Finds the roots' groups and propagates them over the graph.  Counterpart of
// EventForest::CreateEventGroups and its helpers in xla/tsl/profiler/utils/group_events.cc.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_PROPAGATE_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_PROPAGATE_H_

#include <stdbool.h>

#include "analysis/grouping/graph/graph.h"

// Gives nodes their groups (unless only is_eager is needed) and sets NODE_IS_EAGER.
xpl_status_t xpl_grp_propagate(struct graph *gr, bool make_groups) XPL_NODISCARD;

#endif
