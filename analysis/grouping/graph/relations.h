// SPDX-License-Identifier: Apache-2.0
// Relations between groups: upstream's parents and children of a group (GroupMetadata).  A group
// that reaches an event of another group has that group as its child; so each parent of an event,
// by nesting or by link, whose group differs from the event's, makes a pair.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_RELATIONS_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_RELATIONS_H_

#include "analysis/grouping/graph/graph.h"

// After propagation and before labels are made: adds the pairs of all nodes, and collects the data
// for pairs of events that are not nodes.
xpl_status_t xpl_grp_relate_nodes(struct graph *gr) XPL_NODISCARD;

// Adds a pair once.  False when memory ran out.
bool xpl_grp_relate(struct xpl_group_relations *r, uint32_t parent, uint32_t child) XPL_NODISCARD;

// The groups of the producers of a key: [*ret, *ret + returned), in no order.
size_t xpl_grp_key_groups(const struct xpl_groups *g, uint64_t key, const struct link **ret);

#endif
