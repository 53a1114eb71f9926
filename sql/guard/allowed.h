// SPDX-License-Identifier: Apache-2.0
// What of SQLite and of databases a statement may use: what is not listed is refused, also what a
// later SQLite or a later schema adds.  Private to this folder.
#ifndef XPL_SQL_ALLOWED_H_
#define XPL_SQL_ALLOWED_H_

#include <stdbool.h>

#include "sql/guard/opens.h"

bool xpl_sql_allows_function(const char *name);
// How many of the first columns of a table are shown: 0, some, or XPL_SQL_SHOW_ALL.  `database` is
// "main" or "state".
xpl_sql_shown_fn xpl_sql_shown_columns;

#endif
