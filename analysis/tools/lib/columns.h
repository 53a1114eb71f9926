// SPDX-License-Identifier: Apache-2.0
// What the numbers of a DataTable's column are, where its label does not say it truly.
#ifndef XPL_ANALYSIS_TOOLS_LIB_COLUMNS_H_
#define XPL_ANALYSIS_TOOLS_LIB_COLUMNS_H_

#include <stdbool.h>

#include "base/str.h"

// Whether 1 is all, though the id or the label says percent.  `of_steps`: the table has a column
// "step", as roofline_model's, whose shares are fractions under ids that are percent elsewhere
// (hlo_stats).
bool xpl_column_is_fraction(xpl_str_t id, bool of_steps);

#endif
