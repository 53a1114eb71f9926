// SPDX-License-Identifier: Apache-2.0
// Scans a long line on many threads.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_SCAN_LONG_H_
#define XPL_ANALYSIS_GROUPING_SCAN_SCAN_LONG_H_

#include "analysis/grouping/scan/line_state.h"
#include "base/exec.h"

// Scans the chunks of a line in parallel, with the result of a scan in file order.  *ret_unsorted:
// the line must be scanned in another order, and this result is invalid.
xpl_status_t xpl_grp_scan_long(struct line_state *st, struct xpl_exec *exec, bool *ret_unsorted)
    XPL_NODISCARD;

#endif
