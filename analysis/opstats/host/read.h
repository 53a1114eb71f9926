// SPDX-License-Identifier: Apache-2.0
// Reads the events of a host line, or of a piece of one.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_READ_H_
#define XPL_ANALYSIS_OPSTATS_HOST_READ_H_

#include <stdint.h>

#include "analysis/opstats/host/cpu_line.h"
#include "analysis/opstats/host/host_ops.h"
#include "analysis/opstats/host/plan.h"
#include "analysis/opstats/host/runs.h"
#include "analysis/opstats/host/tf_functions.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/arena.h"
#include "base/status.h"

// What a line, or a piece of one, gave; NULL where there was nothing.
struct xpl_host_piece {
    uint32_t line;              // position in the plane
    uint32_t chunk, end_chunk;  // of the line's chunks; all of them for a whole line
    struct xpl_op_line *ops;    // whole lines only
    struct xpl_tf_calls *calls; // whole lines only
    struct xpl_cpu_line *cpu;
    struct xpl_step loose;
    struct xpl_host_runs runs;
};

// Reads a piece; what it gives lives in `arena`, which must be the same for all pieces that share
// `memory`.  The innermost ops that count as a device's stay open at the end of a piece that others
// of its line follow.
xpl_status_t xpl_host_piece_read(const struct xpl_host_plan *plan, struct xpl_host_piece *piece,
                                 struct xpl_cpu_memory *memory, struct xpl_arena *arena,
                                 struct xpl_steps *ret_steps, struct xpl_error *err) XPL_NODISCARD;
// Adds to the ops that earlier pieces of the line left open what of this piece runs inside them.
xpl_status_t xpl_host_piece_pass(const struct xpl_host_plan *plan,
                                 const struct xpl_host_piece *piece, struct xpl_cpu_carry *carry,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
