// SPDX-License-Identifier: Apache-2.0
// The graph of nodes while it is built.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_GRAPH_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/scan/node.h"
#include "analysis/grouping/scan/scan.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

struct search_entry {
    uint32_t node, delay; // so many plain events before it
};

struct graph {
    struct xpl_groups *g;
    struct xpl_arena temp;
    struct scan *scans;
    size_t n_scans;
    struct link *producers, *consumers; // all, by key
    size_t n_producers, n_consumers;
    struct link *executors; // in order; `end` is the node
    size_t n_executors;
    struct pair *pairs;
    size_t n_pairs;
    struct link *links; // of the graph
    uint32_t n_links;
    struct root *roots;
    size_t n_roots;
    XPL_VEC(struct root) loop_roots; // when there are any, they replace the others
    int64_t *tf_data_ids;            // sorted
    size_t n_tf_data_ids;
    uint64_t *seen;         // a bit per node, for searches
    uint32_t *subtree_ends; // node behind the last one that a node encloses
    XPL_VEC(struct search_entry) queue;
    XPL_VEC(uint32_t) to_visit; // nodes from which a group is still propagated
    XPL_VEC(xpl_str_t) names;   // of groups
    XPL_VEC(uint32_t) starts;   // the nodes that start them
    uint64_t budget;            // steps left for searches
    uint32_t ctx_flags;         // which context stats occur at all
    struct xpl_error *err;
};

#define NO_JOIN 0xffffffffu
bool xpl_grp_is_tf_data(const struct graph *gr, int64_t step);

// Records that memory ran out.
xpl_status_t xpl_grp_no_memory(struct graph *gr) XPL_NODISCARD;

#endif
