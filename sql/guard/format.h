// SPDX-License-Identifier: Apache-2.0
// printf() and format() of statements, which SQLite's own would run for minutes.  Private to this
// folder.
#ifndef XPL_SQL_FORMAT_H_
#define XPL_SQL_FORMAT_H_

#include <sqlite3.h>

struct xpl_sql_format { // zeroed
    sqlite3 *db;        // where SQLite's own is called
    sqlite3_stmt *st;   // of `n` arguments
    int n;
};

// Declares both in place of SQLite's.  `f` outlives the connection.
int xpl_sql_format_declare(struct xpl_sql_format *f, sqlite3 *db);
void xpl_sql_format_fini(struct xpl_sql_format *f);

#endif
