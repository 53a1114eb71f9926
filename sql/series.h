// SPDX-License-Identifier: Apache-2.0
// Functions over a series of values, for windows.  Private to this folder.
#ifndef XPL_SQL_SERIES_H_
#define XPL_SQL_SERIES_H_

#include <sqlite3.h>

#include "base/exec.h"

// Adds median(X), and level_starts(X): a JSON array of the places, from 1 on, of the values with
// which another level begins, as xpl_series_changes has them.  They fail when `exec` is
// cancelled.  SQLite's result code.
int xpl_sql_series_declare(sqlite3 *db, struct xpl_exec *exec);

#endif
