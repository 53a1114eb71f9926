// SPDX-License-Identifier: Apache-2.0
// Cuts the lines of a space into scans and runs them.
#ifndef XPL_ANALYSIS_GROUPING_RUN_SCANS_H_
#define XPL_ANALYSIS_GROUPING_RUN_SCANS_H_

#include <stdbool.h>
#include <stddef.h>

#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/precheck.h"
#include "analysis/grouping/scan/scan.h"

struct scan_job {
    struct xpl_groups *g;
    struct scan *scans;
    size_t n;
    struct xpl_arena_budget budget; // of all scans: a profile may have any number of planes
};

// Lists the scans of the space in `temp`.
xpl_status_t xpl_grp_list_scans(struct scan_job *job, const struct precheck *check,
                                struct xpl_arena *temp, struct xpl_error *err) XPL_NODISCARD;
// Runs them.  keep_executors: every executor event becomes a node.
xpl_status_t xpl_grp_run_scans(struct scan_job *job, bool keep_executors, struct xpl_error *err)
    XPL_NODISCARD;
// Gives back the memory of all scans.
void xpl_grp_end_scans(struct scan_job *job);

#endif
