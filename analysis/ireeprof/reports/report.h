// SPDX-License-Identifier: Apache-2.0
// The reports on a bundle: a table with one row for each, which the command line and the daemon's
// tools show alike.
//
// Reports that IREE's `iree-profile` has are called as there, take the same options, and give rows
// that equal its JSON lines member by member on every bundle that it accepts.  Where it refuses a
// bundle they go on, and say what was left out: bundle->notes, and run->missing.  The others are
// ours.  Memory is that of groups and metadata; events are read again where rows of them are due.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_REPORT_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_REPORT_H_

#include "analysis/ireeprof/run.h"

// Options that a report may take; bits of xpl_iree_report.accepts.
enum {
    XPL_IREE_TAKES_FILTER = 1,
    XPL_IREE_TAKES_ID = 2,
    XPL_IREE_TAKES_DISPATCH_EVENTS = 4,
    XPL_IREE_TAKES_COUNTER_SAMPLES = 8,
};
struct xpl_iree_report {
    const char *name, *help;
    unsigned accepts;
    bool ours; // iree-profile has none of the name
    // Begins a row that gets the member "message".  NULL: of the type "warning".
    void (*begin_warning)(struct xpl_iree_run *run);
    // Writes the rows.  RESOURCE_EXHAUSTED; CANCELLED; ABORTED when rows->failed.
    xpl_status_t (*run)(struct xpl_iree_run *run, struct xpl_error *err);
};
// The table, in the order of help.
const struct xpl_iree_report *xpl_iree_reports(size_t *ret_n);
const struct xpl_iree_report *xpl_iree_report_find(xpl_str_t name); // NULL: none
// Runs a report and flushes its rows.  INVALID_ARGUMENT, in IREE's words, for options that it does
// not take.
xpl_status_t xpl_iree_report_run(const struct xpl_iree_report *report, struct xpl_iree_run *run,
                                 struct xpl_error *err) XPL_NODISCARD;

// A row for each thing that the report had to do without (xpl_iree_warning), for readers of rows
// alone: of the type "warning", or, in an export, diagnostics.
void xpl_iree_report_warn(const struct xpl_iree_report *report, struct xpl_iree_run *run);
// The bytes of the executable trace `id`, as they lie in the bundle.  NOT_FOUND: it has none.
xpl_status_t xpl_iree_trace_bytes(const struct xpl_iree_bundle *bundle, int64_t id,
                                  xpl_bytes_t *ret, struct xpl_error *err) XPL_NODISCARD;

#endif
