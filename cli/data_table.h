// SPDX-License-Identifier: Apache-2.0
// --format table and csv: the tables in a tool's answer as text for a person, with the units that
// the tool's columns have.
#ifndef XPL_CLI_DATA_TABLE_H_
#define XPL_CLI_DATA_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Prints every DataTable of an answer, one below the other, the steps of pod_viewer as one, and the
// units of kernel_utilization.
// Columns in which no row says anything (0, "", false) are left out, and so are tables without
// columns and HTML around a text.
// False, with nothing printed: the answer is no JSON or has no tables, or memory ran out.
bool xpl_data_table_print(const char *tool, const void *answer, size_t n, FILE *out);
// Writes the table number `only` of an answer, counted from 1, or of 0 the first that has columns,
// as CSV: all columns, by their ids, with the units of their cells.  False, with nothing written:
// there is none.
bool xpl_data_table_csv(const char *tool, const void *answer, size_t n, size_t only, FILE *out);

#endif
