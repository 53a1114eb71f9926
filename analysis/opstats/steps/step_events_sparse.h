// SPDX-License-Identifier: Apache-2.0
// How long SparseCores were at work in each step.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_SPARSE_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_SPARSE_H_

#include <stddef.h>

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/step_db.h"
#include "base/arena.h"
#include "base/status.h"

// The SparseCores of a space, in plane order; the array lives in `arena`.
struct xpl_sparse_cores {
    struct xpl_sparse_core *v;
    size_t n;
};
// Fills *ret for `steps`, which all planes share.  RESOURCE_EXHAUSTED, DATA_LOSS, CANCELLED.
xpl_status_t xpl_sparse_core_steps(const struct xpl_convert *c, const struct xpl_steps *steps,
                                   struct xpl_arena *arena, struct xpl_sparse_cores *ret,
                                   struct xpl_error *err) XPL_NODISCARD;

#endif
