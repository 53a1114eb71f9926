// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: the reports of the table, one file each.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_IMPL_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_IMPL_H_

#include "analysis/ireeprof/run.h"

xpl_status_t xpl_iree_report_summary(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_explain(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_dispatch(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_executable(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_command(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_queue(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_memory(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_statistics(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_counter(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_cat(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_export(struct xpl_iree_run *run, struct xpl_error *err);
void xpl_iree_export_begin_warning(struct xpl_iree_run *run);
xpl_status_t xpl_iree_report_functions(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_iterations(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_latency(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_usage(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_self(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_sessions(struct xpl_iree_run *run, struct xpl_error *err);
xpl_status_t xpl_iree_report_att(struct xpl_iree_run *run, struct xpl_error *err);

#endif
