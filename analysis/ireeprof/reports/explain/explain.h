// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/explain/: the report in the making, and its rankings.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_EXPLAIN_EXPLAIN_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_EXPLAIN_EXPLAIN_H_

#include "analysis/ireeprof/reports/dispatches.h"
#include "analysis/ireeprof/reports/memory.h"
#include "analysis/ireeprof/reports/summary.h"

struct xpl_iree_explain {
    struct xpl_iree_run *run;
    struct xpl_iree_model model;
    struct xpl_iree_summary summary;
    struct xpl_iree_dispatches dispatches;
    struct xpl_iree_memory memory;
    uint64_t queue_events, ops[XPL_IREE_N_OPS], bytes[XPL_IREE_N_OPS];
    uint64_t strategies[XPL_IREE_N_STRATEGIES];
    struct xpl_iree_table device_sums, queue_sums; // struct device_sum, struct queue_sum
    uint32_t *next_plus_1;                         // by submission: the next one of its queue
};

// Whether the dispatches of hosts are ranked: there is no valid one of a device.
bool xpl_iree_explain_ranks_hosts(const struct xpl_iree_explain *x);
// Rows of the functions that took the most time.  RESOURCE_EXHAUSTED on OOM.
xpl_status_t xpl_iree_explain_functions(const struct xpl_iree_explain *x, struct xpl_error *err)
    XPL_NODISCARD;
// Rows of the longest dispatches, longest first; of devices when there are any.
void xpl_iree_explain_dispatches(const struct xpl_iree_explain *x);

#endif
