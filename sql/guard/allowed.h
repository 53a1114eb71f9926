// SPDX-License-Identifier: Apache-2.0
// The functions, tables and columns that a statement may use.  Everything else is refused,
// including additions of a later SQLite or schema.  Private to this folder.
#ifndef XPL_SQL_ALLOWED_H_
#define XPL_SQL_ALLOWED_H_

#include <stdbool.h>

#include "sql/guard/opens.h"

bool xpl_sql_allows_function(const char *name);
// How many of the first columns of a table are shown: 0, some, or XPL_SQL_SHOW_ALL.  `database` is
// "main" or "state".
xpl_sql_shown_fn xpl_sql_shown_columns;

#endif
