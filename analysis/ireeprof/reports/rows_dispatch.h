// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: rows about dispatches that several reports write.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_ROWS_DISPATCH_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_ROWS_DISPATCH_H_

#include "analysis/ireeprof/reports/dispatches.h"

// --- Members of a row that is begun ---

// Where times of hosts come from.
void xpl_iree_row_host_domains(struct xpl_iree_rows *r);
void xpl_iree_row_queue(struct xpl_iree_rows *r, uint32_t device, uint32_t queue, uint64_t stream);
// Counts and times of an execution or a submission on a device, or on a host.
void xpl_iree_row_spans(const struct xpl_iree_dispatches *d, const struct xpl_iree_execution *x);
void xpl_iree_row_host_spans(struct xpl_iree_rows *r, const struct xpl_iree_spans *s);
// How many dispatches matched, and were valid.
void xpl_iree_row_sides(const struct xpl_iree_dispatches *d);

// --- Rows ---

void xpl_iree_row_group(const struct xpl_iree_dispatches *d, const struct xpl_iree_group *g,
                        bool host, bool in_executable);
void xpl_iree_row_dispatch_summary(const struct xpl_iree_dispatches *d);

// A report of dispatches: collects metadata and dispatches, and lets `write` write the rows of the
// sums; with --dispatch_events writes each dispatch and the summary instead.
typedef xpl_status_t xpl_iree_projection_fn(struct xpl_iree_dispatches *d, struct xpl_error *err);
xpl_status_t xpl_iree_projection(struct xpl_iree_run *run, enum xpl_iree_subject subject,
                                 xpl_iree_projection_fn *write, struct xpl_error *err)
    XPL_NODISCARD;

#endif
