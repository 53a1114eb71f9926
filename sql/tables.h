// SPDX-License-Identifier: Apache-2.0
// The tables of profiles, for SQLite.  Private to this folder.
#ifndef XPL_SQL_TABLES_H_
#define XPL_SQL_TABLES_H_

#include <sqlite3.h>

#include "sql/scan.h"

// What a statement's tables share.
struct xpl_sql_run {
    const struct xpl_sql_request *q;
    struct xpl_error err; // of the first profile that failed; SQLite only knows that one did
};

// Declares all tables on the connection; `run` outlives it.  SQLite's result code.
int xpl_sql_declare(sqlite3 *db, struct xpl_sql_run *run);

enum { XPL_SQL_LENGTH = 64 << 10 }; // of SQLite's texts and blobs

// How often each name comes, by bytes.  `names` are counted by the scan's filter.
struct xpl_sql_count {
    xpl_str_t name;
    uint64_t n;
};
struct xpl_sql_counts {
    struct xpl_arena arena;
    struct xpl_sql_count *v;
    size_t n;
};
xpl_status_t xpl_sql_count_names(struct xpl_sql_scan *s, struct xpl_sql_counts *ret) XPL_NODISCARD;

#endif
