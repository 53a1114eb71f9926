// SPDX-License-Identifier: Apache-2.0
// Views of metrics and histories (docs/schema.md), on a statement's connection.  Private to this
// folder.
#ifndef XPL_SQL_VIEWS_H_
#define XPL_SQL_VIEWS_H_

#include <sqlite3.h>
#include <stdbool.h>

#include "base/str.h"

// `has_store`: its rows of ops, kernels and steps are there.  `state`: the path of the history's
// database, whose labels and sessions of schedules the views join; one that cannot be read has
// none.  NULL without a store: there is no history.  Views that the statement cannot mean, as no
// name like theirs is in it, are not made.  SQLite's result code.
int xpl_sql_views_declare(sqlite3 *db, xpl_str_t statement, bool has_store, const char *state);

#endif
