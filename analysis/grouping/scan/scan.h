// SPDX-License-Identifier: Apache-2.0
// A scan for nodes: events that can start, join or carry a group across lines.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_SCAN_H_
#define XPL_ANALYSIS_GROUPING_SCAN_SCAN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/plan/plan.h"
#include "analysis/grouping/scan/node.h"
#include "analysis/grouping/scan/segments.h"
#include "base/arena.h"
#include "base/status.h"

// A few neighbouring lines of a host or GPU plane, or a whole TPU plane.
struct scan {
    const struct plan *plan;
    struct line_groups *lines; // neighbours in a plane; of a TPU plane its grouping line
    uint32_t n_lines;
    bool keep_executors; // make all of them nodes
    bool wide;           // it has the exec for itself: others would wait for it
    // While scanning, nodes are numbered from 0 and the data of lines is in nodes_arena.
    struct xpl_arena nodes_arena, links_arena;
    struct seg_list nodes, producers, consumers, roots, launches, pairs, tf_data_ids;
    struct seg_list executors; // links: by step id and iteration
    bool has_loops;            // an executor event of another iteration than 0
    // Once merged: where its parts begin among those of all scans, and the flags of its nodes.
    uint32_t base; // nodes
    size_t producers_at, consumers_at, executors_at, roots_at, pairs_at, ids_at;
    uint32_t flags;
    xpl_status_t status;
    struct xpl_error err;
};

// Empties the lists of a scan.
void xpl_grp_init_lists(struct scan *s);
// Records why a scan failed: at the event of the cursor, or out of memory when it is NULL.
xpl_status_t xpl_grp_scan_failed(struct scan *s, const struct xpl_event_cursor *c) XPL_NODISCARD;
// Gives the memory of a scan back.
void xpl_grp_scan_fini(struct scan *s);

#endif
