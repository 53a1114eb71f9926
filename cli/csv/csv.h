// SPDX-License-Identifier: Apache-2.0
// The tables that are in a command's JSON, as CSV: a header with units, then the rows.
#ifndef XPL_CLI_CSV_CSV_H_
#define XPL_CLI_CSV_CSV_H_

#include <jansson.h>

#include "cli/args.h"

// Writes the section of `doc` that --section names, else the one called `preset`, else the first
// of the command's row, where the answer goes.  Returns the program's exit status.
int xpl_csv_show(const struct xpl_args *a, const json_t *doc, const char *preset);
// The same of a document's text when CSV is asked for, else the text as it is.
int xpl_csv_show_text(const struct xpl_args *a, const void *p, size_t n, const char *preset);

#endif
