// SPDX-License-Identifier: Apache-2.0
// Ops on one host thread: how often each ran, and for how long without what it called.
// Rules: XProf's convert/xplane_to_op_metrics_db.cc (CollectTfActivities, ProcessTfActivities),
// convert/op_stack.h and HostOpMetricsDbBuilder of utils/op_utils.cc.
//
// XProf writes two activities per op event, begin and end, sorts all of them and runs them through
// a stack.  Events nearly always stand in the order in which they began, so here the begins come
// as they are and only the ends that are due wait in a heap; a line where that does not hold is
// said to be out of order and is done again through xpl_op_line_sort.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_HOST_OPS_H_
#define XPL_ANALYSIS_OPSTATS_HOST_HOST_OPS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/steps/event_span.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct xpl_arena;

// What an op event is called in the table.
struct xpl_host_op {
    xpl_str_t name, type;
    int64_t id;     // stage of an input pipeline, 0 otherwise
    bool is_infeed; // an InfeedEnqueue op
    bool crosses;   // ops inside it may end after it, and count: an op of PyTorch
};

struct xpl_host_op_entry {
    const struct xpl_host_op *op;
    uint32_t occurrences;
    bool is_eager;
    uint64_t time_ps, self_time_ps;
};

enum { XPL_RECENT_OPS = 16 };
// Ops of one line.  Zero-initialise but for `arena`, which holds everything.  One thread.
struct xpl_op_line {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_host_op_entry) entries; // in the order in which each op first ended
    uint64_t total_time_ps, total_op_time_ps;
    uint64_t infeed_duration_ps, infeed_start_diff_ps;
    bool out_of_order;
    // private
    struct xpl_map entry_of;          // op to index + 1
    uint32_t recent[XPL_RECENT_OPS];  // the same of ops that ended lately, by their addresses
    XPL_VEC(struct xpl_open_op) open; // and free places
    uint32_t innermost, free_place;   // from 1
    XPL_VEC(struct xpl_due_op) due;   // a heap
    struct xpl_timespan last_infeed;
    uint64_t first_ps, last_begin_ps, last_ps;
    uint32_t last_id;
};

// An event of `op`, which must last as long as the line's result.  Once the line is out of order
// this does nothing.  False at the arena's limit.
bool xpl_op_line_add(struct xpl_op_line *l, const struct xpl_host_op *op, struct xpl_timespan span,
                     bool is_eager) __attribute__((warn_unused_result));
// Call once after the last event.
bool xpl_op_line_finish(struct xpl_op_line *l) __attribute__((warn_unused_result));

// The way for lines out of order: collect all events, then sort.
struct xpl_op_event {
    const struct xpl_host_op *op;
    struct xpl_timespan span;
    bool is_eager;
};
// Replaces what *l has found by what these events give.
bool xpl_op_line_sort(struct xpl_op_line *l, const struct xpl_op_event *events, size_t n)
    __attribute__((warn_unused_result));

#endif
