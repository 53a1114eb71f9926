// SPDX-License-Identifier: Apache-2.0
// What the grouping code asks of cursors beyond groups.h.
#ifndef XPL_ANALYSIS_GROUPING_CURSOR_H_
#define XPL_ANALYSIS_GROUPING_CURSOR_H_

#include "analysis/grouping/groups.h"

// The cursor then says only what propagation said, not what comes from neighbouring events.
void xpl_grp_cursor_no_fill(struct xpl_group_cursor *c);

#endif
