// SPDX-License-Identifier: Apache-2.0
// Copies of capture plans, for jobs that outlive the request that began them.
#ifndef XPL_SERVER_CAPTURE_JOBS_PLAN_COPY_H_
#define XPL_SERVER_CAPTURE_JOBS_PLAN_COPY_H_

#include "base/arena.h"
#include "capture/capture.h"

// A copy of the plan with all that it refers to, in `arena`, but for whom it asks for its turn.
// False when out of memory.
bool xpl_capture_plan_copy(const struct xpl_capture_plan *from, struct xpl_arena *arena,
                           struct xpl_capture_plan *ret);

#endif
