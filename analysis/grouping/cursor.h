// SPDX-License-Identifier: Apache-2.0
// Functions of cursors for the grouping code, beyond groups.h.
#ifndef XPL_ANALYSIS_GROUPING_CURSOR_H_
#define XPL_ANALYSIS_GROUPING_CURSOR_H_

#include "analysis/grouping/groups.h"

// The cursor then returns only the result of propagation, not groups of neighbouring events.
void xpl_grp_cursor_no_fill(struct xpl_group_cursor *c);

#endif
