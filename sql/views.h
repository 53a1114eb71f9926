// SPDX-License-Identifier: Apache-2.0
// Views of metrics and histories (docs/schema.md), on a statement's connection.  Private to this
// folder.
#ifndef XPL_SQL_VIEWS_H_
#define XPL_SQL_VIEWS_H_

#include <sqlite3.h>
#include <stdbool.h>

#include "base/str.h"

// `has_store`: the store's rows of ops, kernels and steps are available.  `state`: the path of the
// history's database, whose labels and schedules' sessions the views join; if it cannot be read,
// they join nothing.  NULL without a store, which means without history.  A view is not created if
// the statement has no name like its own.  Returns SQLite's result code.
int xpl_sql_views_declare(sqlite3 *db, xpl_str_t statement, bool has_store, const char *state);

#endif
