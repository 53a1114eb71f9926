// SPDX-License-Identifier: Apache-2.0
// Scans a TPU plane, which is grouped by one of its lines [ConnectIntraThreadTPU].
#ifndef XPL_ANALYSIS_GROUPING_SCAN_SCAN_TPU_H_
#define XPL_ANALYSIS_GROUPING_SCAN_SCAN_TPU_H_

#include "analysis/grouping/scan/scan.h"
#include "base/exec.h"

// Scans a whole plane; s->lines is its grouping line.  s->status and s->err say how it went.
void xpl_grp_scan_tpu(struct scan *s, struct xpl_exec *exec);

#endif
