// SPDX-License-Identifier: Apache-2.0
// --table: the tables in a tool's answer as text for a person.
#ifndef XPL_CLI_DATA_TABLE_H_
#define XPL_CLI_DATA_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Prints every DataTable of an answer, one below the other, and the steps of pod_viewer as one.
// Columns in which no row says anything (0, "", false) are left out, and so is HTML around a text.
// False, with nothing printed: the answer is no JSON or has no tables, or memory ran out.
bool xpl_data_table_print(const void *answer, size_t n, FILE *out);

#endif
