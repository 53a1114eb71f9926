// SPDX-License-Identifier: Apache-2.0
// The results of scanning a line: nodes, the ends of links between lines, and roots.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_NODE_H_
#define XPL_ANALYSIS_GROUPING_SCAN_NODE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/regions.h"
#include "analysis/xplane/xspace.h"

#define NO_GROUP 0xffffffffu

enum {
    NODE_ASYNC = 1 << 0, // neither has a parent nor is one
    NODE_ROOT = 1 << 1,
    NODE_EXECUTOR = 1 << 2,
    NODE_EAGER = 1 << 3, // EagerExecute
    NODE_GRAPH_TYPE = 1 << 4,
    NODE_ITER_NUM = 1 << 5,
    NODE_STEP_NUM = 1 << 6,
    NODE_IMPLICIT = 1 << 7,
    NODE_NAMED = 1 << 8,    // carries its group's name as step_name
    NODE_CONSUMES = 1 << 9, // has parents in addition to the enclosing one
    // Of the nearest enclosing EagerExecute, or of this one: it exists; it runs op by op.
    NODE_IN_EAGER = 1 << 10,
    NODE_IS_EAGER = 1 << 11,
};
// An event that can start, join or carry a group across lines.
struct node {
    uint32_t at_lo;     // its event's position in the line (xpl_event.at), 40 bits
    uint8_t at_hi, gap; // gap: events between it and the enclosing node
    uint16_t flags;
    uint32_t parent; // enclosing node + 1, 0 for none
    uint32_t group;
    uint32_t links; // first link + 1
};
static inline uint64_t node_at(const struct node *n) {
    return (uint64_t)n->at_hi << 32 | n->at_lo;
}

// One end of a link between lines.  All with the same key meet in a join.
struct link {
    uint32_t key_lo, key_hi; // in a join: its first link, and the node's next link + 1
    uint32_t end;            // LINK_CONSUMER | node | gap; in labels: LABEL_* | group
};
#define LINK_CONSUMER   0x80000000u
#define LINK_NODE_SHIFT 5
#define LINK_MAX_GAP    31u // gap: events between the producer and the node, the producer included
#define LABEL_IN_EAGER  0x80000000u
#define LABEL_IS_EAGER  0x40000000u
#define LABEL_GROUP     0x3fffffffu
#define LABEL_NO_GROUP  LABEL_GROUP
#define MAX_NODES       0x03fffff0u
#define MAX_LINKS       0xfffffff0u
static inline uint64_t link_key(const struct link *l) {
    return (uint64_t)l->key_hi << 32 | l->key_lo;
}
static inline bool link_consumes(const struct link *l) {
    return l->end & LINK_CONSUMER;
}
static inline uint32_t link_node(const struct link *l) {
    return (l->end & ~LINK_CONSUMER) >> LINK_NODE_SHIFT;
}
static inline uint32_t link_gap(const struct link *l) {
    return l->end & LINK_MAX_GAP;
}

struct root {
    uint32_t node;
    int32_t level;
    uint64_t begin;
    int64_t step; // that it belongs to
    bool has_step;
};
struct launch {
    uint64_t correlation;
    uint32_t scope; // node + 1, 0 for none
};
// Children of the links of EventForest::ConnectInterThread: equal stats, and of the parents the
// last one counts.
enum pair_kind { PAIR_ITERATOR, PAIR_KERNEL };
struct pair {
    uint64_t key; // of step id and iteration of the executor; correlation id of the launch
    uint32_t node;
    enum pair_kind kind;
};

struct explicit_region { // of a line out of order
    struct region region;
    uint32_t scope; // node + 1
};

enum nesting_kind {
    LINE_NONE,     // no event has a group but by its own stats
    LINE_NESTED,   // stack of nodes, consumers and kernels
    LINE_EXPLICIT, // scope per event
    LINE_NODES,    // TPU: each event of the grouping line is a node
};

struct line_groups {
    const struct xpl_line *line;
    enum nesting_kind kind;
    uint32_t first_node, n_nodes;
    uint32_t *chunk_tops;            // scope (node + 1) before each chunk of the line
    uint32_t *explicit_scope;        // scope (node + 1) of each event
    struct explicit_region *regions; // of a line out of order
    uint32_t n_regions;
};

// The label that a node passes on: LABEL_* | group.
static inline uint32_t xpl_grp_node_label(const struct node *n) {
    return (n->flags & NODE_IN_EAGER ? LABEL_IN_EAGER : 0) |
           (n->flags & NODE_IS_EAGER ? LABEL_IS_EAGER : 0) |
           (n->group == NO_GROUP ? LABEL_NO_GROUP : n->group);
}

#endif
