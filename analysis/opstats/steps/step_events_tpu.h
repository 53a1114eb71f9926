// SPDX-License-Identifier: Apache-2.0
// Steps of the op line of a TensorCore or SparseCore.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_TPU_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_TPU_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/device/tpu_ops.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

// Ops of one step on one core, before they are written down.
struct xpl_core_step {
    int64_t id;
    struct xpl_tpu_ops ops;
};
struct xpl_core_steps {
    uint32_t core_id;
    struct xpl_tpu_plane plane; // metadata decoded while events are read lives in the line's arena
    XPL_VEC(struct xpl_core_step) v;
};
// The ops of a TensorCore or SparseCore, by step; *ret gets the steps with their collectives.
// Events count that are in a step of `markers`; spans live in ret->arena.
xpl_status_t xpl_core_line_steps(const struct xpl_convert *c, const struct xpl_line *line,
                                 const struct xpl_steps *markers, struct xpl_core_steps *core,
                                 struct xpl_steps *ret, struct xpl_error *err) XPL_NODISCARD;
// Writes the ops of the steps that `steps` has; strings go to `result`.  One thread.
bool xpl_core_steps_finish(struct xpl_core_steps *core, struct xpl_steps *steps,
                           struct xpl_arena *result) XPL_NODISCARD;

#endif
