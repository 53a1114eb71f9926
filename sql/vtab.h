// SPDX-License-Identifier: Apache-2.0
// Code that virtual tables share; SQLite allocates their tables and cursors.  Private to this
// folder.
#ifndef XPL_SQL_VTAB_H_
#define XPL_SQL_VTAB_H_

#include <sqlite3.h>
#include <stddef.h>

#include "base/status.h"

// A module's xDisconnect.
int xpl_sql_vtab_free(sqlite3_vtab *v);
// A cursor of `size` bytes, which begins with SQLite's; all of it is zero.  SQLite's result code.
int xpl_sql_cursor_new(size_t size, sqlite3_vtab_cursor **ret);
// Tells SQLite why the cursor could not go on: the words of `err`.  Its result code for `st`.
int xpl_sql_cursor_fail(sqlite3_vtab_cursor *c, xpl_status_t st, const struct xpl_error *err);

#endif
