// SPDX-License-Identifier: Apache-2.0
// Scans the lines of a host or GPU plane for nodes.  Counterpart of EventForest::ConnectIntraThread
// in xla/tsl/profiler/utils/group_events.cc.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_SCAN_LINES_H_
#define XPL_ANALYSIS_GROUPING_SCAN_SCAN_LINES_H_

#include "analysis/grouping/scan/scan.h"
#include "base/exec.h"

// Scans the lines of `s`.  s->status and s->err say how it went.
void xpl_grp_scan_lines(struct scan *s, struct xpl_exec *exec);

#endif
