// SPDX-License-Identifier: Apache-2.0
// What the events of a host plane can mean, decided once per metadata entry.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_PLAN_H_
#define XPL_ANALYSIS_OPSTATS_HOST_PLAN_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/host/host_ops.h"
#include "analysis/opstats/host/input_work.h"
#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

// Which statistics of events have to be read.
enum {
    XPL_HOST_STAGE_ID = 1 << 0,
    XPL_HOST_STAGE_NAME = 1 << 1,
    XPL_HOST_TF_OP = 1 << 2,
    XPL_HOST_TF_CALL = 1 << 3,
    XPL_HOST_HLO_OP = 1 << 4,
};

enum {
    XPL_HOST_MARKER = 1 << 0,      // an explicit marker of a step
    XPL_HOST_NOT_COMPUTE = 1 << 1, // the eager runtime itself
    XPL_HOST_FRAMEWORK = 1 << 2,   // "name:Type", an op that counts as a device's
    XPL_HOST_INPUT = 1 << 3,       // with cpu: tf.data at work, see input_work.h
    XPL_HOST_LAUNCH = 1 << 4,      // with cpu: launches an execution, see runs.h
    XPL_HOST_CALL = 1 << 5,        // with cpu: calls a function that does
};

// What a statistic is to an event, by its id alone.  Most carry none of these.
enum {
    XPL_HOST_ID_HELPS = 1 << 0,   // is read when the event is
    XPL_HOST_ID_DECIDES = 1 << 1, // makes that the event is read
    XPL_HOST_ID_HLO_OP = 1 << 2,  // decides, too; see xpl_host_read_head
    XPL_HOST_ID_MODULE = 1 << 3,
    XPL_HOST_ID_PROGRAM = 1 << 4,
    XPL_HOST_ID_KEY = XPL_HOST_ID_HLO_OP | XPL_HOST_ID_MODULE | XPL_HOST_ID_PROGRAM,
    XPL_HOST_ID_EAGER = 1 << 5, // is_eager, which grouping decides
    // Decide where they name what tf.data runs; are read as HELPS.
    XPL_HOST_ID_CONTEXT_TYPE = 1 << 6,
    XPL_HOST_ID_CONTEXT_ID = 1 << 7,
    XPL_HOST_ID_RUN = 1 << 8, // run_id; is read as HELPS
    XPL_HOST_ID_CONTEXT = XPL_HOST_ID_CONTEXT_TYPE | XPL_HOST_ID_CONTEXT_ID,
};

struct xpl_host_md {
    uint32_t op; // index + 1 into ops; 0: not an op
    uint8_t flags;
    uint8_t span; // enum xpl_span_type
    bool plain;   // an event of it is host work like any other, unless its statistics matter
};

struct xpl_host_plan {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_host_md *md; // by position in plane->event_md
    XPL_VEC(struct xpl_host_op) ops;
    unsigned stats; // XPL_HOST_...
    // XPL_HOST_ID_... by id of a statistic, up to n_wanted.
    uint16_t *wanted;
    uint32_t n_wanted;
    bool steps, inputs_only;        // steps wanted; only their input_ps
    bool any_ops, groups, cpu;      // some metadata is an op; run group cursors; count as device
    bool whole_lines;               // some of this takes the order of a whole line
    struct xpl_map op_of_id;        // with STAGE_ID: stage or metadata id to index + 1 into ops
    struct xpl_map async_producers; // with STAGE_NAME: (type, id) of events that produce
    struct xpl_input_work input;    // with cpu
};

// What it holds lives in `arena`.  RESOURCE_EXHAUSTED, DATA_LOSS, CANCELLED.
xpl_status_t xpl_host_plan_make(const struct xpl_convert *c, const struct xpl_plane *plane,
                                struct xpl_arena *arena, struct xpl_host_plan *ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
