// SPDX-License-Identifier: Apache-2.0
// Step events of a GPU plane, and where the groups of its ungrouped events come from. Counterparts:
// ProcessUngroupedEvents and DeriveStepEventsFromGroups (XProf derived_timeline.cc).
#ifndef XPL_ANALYSIS_GROUPING_STEPS_GPU_STEPS_H_
#define XPL_ANALYSIS_GROUPING_STEPS_GPU_STEPS_H_

#include "analysis/grouping/graph/result.h"
#include "base/status.h"

// Fills pg->runs and pg->steps.
xpl_status_t xpl_grp_build_gpu(struct xpl_groups *g, struct plane_groups *pg, struct xpl_error *err)
    XPL_NODISCARD;

#endif
