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
    uint64_t *visited;      // a bit per join, by its first link: its consumers were queued
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

// ---- ancestors.c ----

// Search among the ancestors of a node, the nearest first.

// Calls fn for `start` and its ancestors until it returns true, or the budget of the graph is
// spent.  False when out of memory.
bool xpl_grp_search(struct graph *gr, uint32_t start,
                    bool (*fn)(struct graph *gr, uint32_t node, void *ctx), void *ctx);

// ---- extra_links.c ----

// Links other than those of producers and consumers: launch to kernel, executor to iterator, and
// the iterations of TensorFlow's loops.

struct extra_links {
    XPL_VEC(struct link) v;
};

// Finds them.  Also fills gr->loop_roots.  False when out of memory.
bool xpl_grp_find_extra_links(struct graph *gr, struct extra_links *ret);

// ---- joins.c ----

// Joins: all ends of links with one key meet in one.

// Makes the joins of the graph.  Keys that have too many producers and too many consumers are
// dropped.
xpl_status_t xpl_grp_make_joins(struct graph *gr, struct extra_links *extra) XPL_NODISCARD;
// The label that each key passes on, once groups are known: turns gr->producers into gr->g->labels.
void xpl_grp_make_labels(struct graph *gr);

// ---- link_sort.c ----

// Sorts links by key.

// By key; of equal keys producers come first, then by node.
static inline bool link_less(const struct link *a, const struct link *b) {
    const uint64_t ka = link_key(a), kb = link_key(b);
    return ka != kb ? ka < kb : a->end < b->end;
}

// In place.
void xpl_grp_sort_links(struct link *v, size_t n);

// ---- merge.c ----

// Merges the results of the scans into the lists of one graph.

// Numbers the nodes of all scans, brings lines and lists over, and gives the scans' memory back.
xpl_status_t xpl_grp_merge_scans(struct graph *gr) XPL_NODISCARD;

// ---- propagate.c ----

// Finds the roots' groups and propagates them over the graph.  Counterpart of
// EventForest::CreateEventGroups and its helpers in xla/tsl/profiler/utils/group_events.cc.

// Gives nodes their groups (unless only is_eager is needed) and sets NODE_IS_EAGER.
xpl_status_t xpl_grp_propagate(struct graph *gr, bool make_groups) XPL_NODISCARD;

#endif
