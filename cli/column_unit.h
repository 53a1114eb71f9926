// SPDX-License-Identifier: Apache-2.0
// What the numbers of a column are, in the tables of tools' answers: their ids and labels say so,
// each table in its own way.
#ifndef XPL_CLI_COLUMN_UNIT_H_
#define XPL_CLI_COLUMN_UNIT_H_

#include <stdbool.h>

enum xpl_column_unit {
    XPL_COLUMN_NUMBER,
    XPL_COLUMN_US,
    XPL_COLUMN_MS,
    XPL_COLUMN_BYTES,
    XPL_COLUMN_FRACTION, // 1 is all
    XPL_COLUMN_PERCENT,  // 100 is all
};

// `of_steps`: the table has a column "step", as roofline_model's, whose shares are fractions under
// ids that are percent elsewhere (hlo_stats).
enum xpl_column_unit xpl_column_unit_of(const char *id, const char *label, bool of_steps);

#endif
