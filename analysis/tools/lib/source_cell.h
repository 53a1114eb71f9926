// SPDX-License-Identifier: Apache-2.0
// The cell of a table that says where in the program's source an op comes from, as XProf's pages
// expect it: HTML with the stack as a tooltip.  Pure function; one thread per arena.
#ifndef XPL_ANALYSIS_TOOLS_LIB_SOURCE_CELL_H_
#define XPL_ANALYSIS_TOOLS_LIB_SOURCE_CELL_H_

#include <stdbool.h>

#include "analysis/opstats/opstats.h"

struct xpl_arena;

// "<div class='source-info-cell' title='STACK'>FILE:LINE</div>", what comes from the profile
// escaped; "" without a file, or with line -1.  *ret lives in `arena`.  False at its limit.
bool xpl_cell_of_source(const struct xpl_source_info *info, struct xpl_arena *arena, xpl_str_t *ret)
    __attribute__((warn_unused_result));

#endif
