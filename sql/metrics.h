// SPDX-License-Identifier: Apache-2.0
// The table of runs' metrics, for SQLite.  Private to this folder.
#ifndef XPL_SQL_METRICS_H_
#define XPL_SQL_METRICS_H_

#include "sql/tables.h"

#define XPL_SQL_METRICS "run_metrics"

// Declares it on the connection; `run` outlives it.  SQLite's result code.
int xpl_sql_metrics_declare(sqlite3 *db, struct xpl_sql_tables *run);

#endif
