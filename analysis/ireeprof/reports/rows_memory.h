// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/reports/: the members of a memory event, of the report memory and of
// exports.
#ifndef XPL_ANALYSIS_IREEPROF_REPORTS_ROWS_MEMORY_H_
#define XPL_ANALYSIS_IREEPROF_REPORTS_ROWS_MEMORY_H_

#include "analysis/ireeprof/row.h"

void xpl_iree_put_memory_event(struct xpl_iree_rows *r, const struct xpl_iree_memory_event *e);

#endif
