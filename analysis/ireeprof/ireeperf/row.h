// SPDX-License-Identifier: Apache-2.0
// Private to analysis/ireeprof/ireeperf/: a row and the typed record that it becomes.
#ifndef XPL_ANALYSIS_IREEPROF_IREEPERF_ROW_H_
#define XPL_ANALYSIS_IREEPROF_IREEPERF_ROW_H_

#include "analysis/ireeprof/ireeperf/line.h"
#include "analysis/ireeprof/ireeperf/records.h"

enum { XPL_IREEPERF_TEXTS = 3 };
struct xpl_ireeperf_row {
    struct xpl_ireeperf_head head;
    uint8_t record[sizeof(struct xpl_iree_region_event)]; // of head.chunk: the longest is this one
    xpl_str_t texts[XPL_IREEPERF_TEXTS]; // strings that follow it, as they stand in the row
    struct xpl_ireeperf_line values;     // at the first value of its list; p NULL: there is none
};

// Reads the members of a row of row->head.chunk.  NULL, or why that cannot be done.
const char *xpl_ireeperf_row_read(xpl_str_t line, struct xpl_ireeperf_row *row);
// Appends it to the records.  NULL, or why that cannot be done; nothing is appended then.
const char *xpl_ireeperf_row_put(const struct xpl_ireeperf_row *row,
                                 struct xpl_ireeperf_records *w);

#endif
