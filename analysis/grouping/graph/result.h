// SPDX-License-Identifier: Apache-2.0
// The result of grouping a space, and lookups in it.  Read-only once it is built; any thread.
#ifndef XPL_ANALYSIS_GROUPING_GRAPH_RESULT_H_
#define XPL_ANALYSIS_GROUPING_GRAPH_RESULT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/groups.h"
#include "analysis/grouping/plan/plan.h"
#include "analysis/grouping/plan/span.h"
#include "analysis/grouping/scan/node.h"
#include "analysis/xplane/event_read.h"

// Where the group of ungrouped events of a GPU plane changes.
struct run {
    uint64_t begin, duration; // of the run's first event
    uint32_t order;           // its line, to break ties
    int64_t group;
};
struct group_span {
    struct span span;
    int64_t group, after, shown; // after: for lines behind the grouping line
    bool has_group, has_after, has_shown;
};

struct plane_groups {
    struct plan plan;
    struct line_groups *lines; // those that are scanned, in order
    uint32_t n_lines;
    struct run *runs; // GPU
    size_t n_runs;
    struct xpl_step_event *steps;
    size_t n_steps;
    struct xpl_step_event *modules; // of a TPU without steps: its programs' executions
    size_t n_modules;
    bool steps_recorded;              // as recorded in the file, from all step lines
    const struct xpl_line *step_line; // TPU: the line that `steps` replaces
    struct group_span *spans;         // TPU: events of the grouping line, merged
    size_t n_spans;
    struct span *span_tree;           // xpl_grp_next_span
    const struct xpl_line *span_line; // modules that replace steps; NULL if the plane has steps
    bool any_group;
};

struct xpl_groups {
    const struct xpl_xspace *xs;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct plane_groups *planes;
    struct node *nodes;
    uint32_t n_nodes;
    struct line_groups **scanned; // lines with nodes, by first node
    uint32_t n_scanned;
    xpl_str_t *names; // of groups
    uint32_t *starts; // of groups: the nodes that start them
    uint32_t n_groups;
    bool grouped;        // the space arrived grouped: own stats count
    bool computed;       // groups were searched for
    struct link *labels; // by key: group and eagerness of its producers
    uint32_t n_labels;
    bool empty;
    bool batches;                          // Keras' batches are groups
    struct xpl_group_relations *relations; // NULL: not requested
    struct link *key_groups; // with relations: by key, the groups of its producers in `end`
    size_t n_key_groups;
    // Launches by correlation id, node + 1: dense from `launch_min`, or in a map.
    uint32_t *launch_scopes;
    uint64_t launch_min, n_launch_scopes;
    struct xpl_map launches;
    uint64_t flow_salt; // of the ids of flows
};

// Scope (node + 1) of the launch of a kernel; 0 when unknown.
uint32_t xpl_grp_launch_scope(const struct xpl_groups *g, uint64_t correlation);
// The scan's result for a line, or NULL when the line was not scanned.
const struct line_groups *xpl_grp_find_line(const struct plane_groups *pg,
                                            const struct xpl_line *line);
// The first of the plane's spans from `from` on that begins after `span` ends, or does not end
// before it begins; n_spans: none.
size_t xpl_grp_next_span(const struct plane_groups *pg, size_t from, struct span span);
// Once the spans are known.  False without memory.
bool xpl_grp_make_span_tree(struct plane_groups *pg, struct xpl_arena *arena);
// The event of a node (not of a region).
bool xpl_grp_node_event(const struct xpl_groups *g, uint32_t node, const struct line_groups **lg,
                        struct xpl_raw_event *ret);

// First stat of that type of a node's event.
bool xpl_grp_node_stat(const struct xpl_groups *g, uint32_t node, enum xpl_stat_type type,
                       struct xpl_stat *ret);

// The label that the producers of a key pass on: LABEL_* | group; LABEL_NO_GROUP for none.  *hint:
// where the last search ended, 0 at first; successive searches are mostly close to each other.
uint32_t xpl_grp_label(const struct xpl_groups *g, uint64_t key, uint32_t *hint);

#endif
