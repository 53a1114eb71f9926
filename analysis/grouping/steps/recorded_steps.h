// SPDX-License-Identifier: Apache-2.0
// Step events of device planes as the file records them.
#ifndef XPL_ANALYSIS_GROUPING_STEPS_RECORDED_STEPS_H_
#define XPL_ANALYSIS_GROUPING_STEPS_RECORDED_STEPS_H_

#include "analysis/grouping/graph/result.h"
#include "base/arena.h"
#include "base/status.h"

// Reads all events of a line into to[0 .. line->n_events - 1], with the groups that propagation or
// their own stats gave them.
xpl_status_t xpl_grp_read_steps(const struct xpl_groups *g, const struct xpl_line *line,
                                struct xpl_arena *temp, struct xpl_step_event *to,
                                struct xpl_error *err) XPL_NODISCARD;
// Copies the step lines of a space that arrived grouped, or of one that is not grouped at all, to
// pg->steps.
xpl_status_t xpl_grp_keep_recorded_steps(struct xpl_groups *g, struct plane_groups *pg,
                                         struct xpl_error *err) XPL_NODISCARD;

#endif
