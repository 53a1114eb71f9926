// SPDX-License-Identifier: Apache-2.0
// Rows of ireeperf-jsonl, one for each record of a bundle: for the export, and for timelines, whose
// events have the members of these rows.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_EXPORT_EXPORT_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_EXPORT_EXPORT_H_

#include "analysis/ireeprof/model.h"

enum { XPL_IREE_EXPORT_SCHEMA = 15 };

struct xpl_iree_export {
    struct xpl_iree_run *run; // its rows are written
    bool bare;                // rows have no schema and no type
    struct xpl_iree_model model;
};
// Begins a row, with its schema, type and record.
void xpl_iree_export_begin(struct xpl_iree_rows *r, const char *record_type, uint64_t index);
// The row of a typed record of chunk `h`.
void xpl_iree_export_item(const struct xpl_iree_export *x, const struct xpl_iree_record *h,
                          const struct xpl_iree_item *item);

// What is said of a file record that cannot be exported, or not wholly.
enum xpl_iree_diagnostic {
    XPL_IREE_UNKNOWN_RECORD,
    XPL_IREE_TRUNCATED_CHUNK,
    XPL_IREE_UNEXPORTED_CHUNK,
    XPL_IREE_N_DIAGNOSTICS
};
// Writes that row, when it is due; r NULL: only says whether it is.
bool xpl_iree_export_diagnostic(struct xpl_iree_rows *r, const struct xpl_iree_record *h,
                                enum xpl_iree_diagnostic which);

#endif
