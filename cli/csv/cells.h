// SPDX-License-Identifier: Apache-2.0
// Cells of CSV (RFC 4180): texts in quotes, lines that end in CR LF.  A text that a spreadsheet
// would run as a formula gets an apostrophe, as in the pages' exports.
#ifndef XPL_CLI_CSV_CELLS_H_
#define XPL_CLI_CSV_CELLS_H_

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void xpl_csv_text(FILE *out, const char *text, size_t n);
// A number, a text, yes or no as true or false; nothing of null; of a list its members with spaces
// between them.
void xpl_csv_value(FILE *out, const json_t *v);
void xpl_csv_end_line(FILE *out);

#endif
