// SPDX-License-Identifier: Apache-2.0
// Step events of a TPU plane, and where the groups of its other lines come from.  Counterparts:
// MergeHostSteps and GroupLine (xla group_events.cc).
#ifndef XPL_ANALYSIS_GROUPING_STEPS_TPU_STEPS_H_
#define XPL_ANALYSIS_GROUPING_STEPS_TPU_STEPS_H_

#include "analysis/grouping/graph/result.h"
#include "base/status.h"

// Fills pg->steps and pg->spans.
xpl_status_t xpl_grp_build_tpu(struct xpl_groups *g, struct plane_groups *pg, struct xpl_error *err)
    XPL_NODISCARD;

#endif
