// SPDX-License-Identifier: Apache-2.0
// The name of a group.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_GROUP_NAME_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_GROUP_NAME_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/graph/graph.h"

// Makes the name of the group that a root starts, in the arena of the result: "<graph type or event
// name> <iteration, step or group number>" [EventNode::GetGroupName].  False when out of memory.
bool xpl_grp_make_name(struct graph *gr, uint32_t root, xpl_str_t *ret);

#endif
