// SPDX-License-Identifier: Apache-2.0
// The tables of profiles, for SQLite.  Private to this folder.
#ifndef XPL_SQL_TABLES_H_
#define XPL_SQL_TABLES_H_

#include <sqlite3.h>

#include "sql/scan.h"

struct xpl_near;

// Data that a statement's tables share.
struct xpl_sql_tables {
    const struct xpl_sql_request *q;
    struct xpl_arena_budget cursors; // of all cursors: a statement may have dozens
    struct xpl_error err; // of the first profile that failed; SQLite only knows that one did
};

// Declares all tables on the connection; `run` outlives it.  SQLite's result code.
int xpl_sql_declare(sqlite3 *db, struct xpl_sql_tables *run);
// Adds the columns of those that a statement names.
void xpl_sql_near_columns(xpl_str_t statement, struct xpl_near *near);
// Whether it is the name of one of them.
bool xpl_sql_is_declared(const char *name);

// The kinds of columns.
enum xpl_sql_column {
    // The texts that constrain the scan have the order of enum xpl_sql_text.
    SESSION,
    HOST,
    PLANE,
    LINE,
    NAME,
    MODULE,
    OPCODE,
    START,
    DURATION,
    END,
    ID,
    EVENT, // name of a statistic's event
    VALUE,
    INHERITED,
    LINES,
    EVENTS,
    PLANE_ID,
    LINE_ID,
    DISPLAY,
    TIMESTAMP,
    SESSION_MTIME, // from here on of instructions
    SESSION_CAPTURED,
    PROGRAM_ID,
    COMPUTATION,
    SHAPE,
    CATEGORY,
    FRAMEWORK_OP,
    SOURCE,
    OCCURRENCES,
    TIME,
    SELF_TIME,
    FLOPS,
    BYTES,
    GFLOPS_RATE,
    GIB_RATE,
    INTENSITY,
    PEAK, // of memory
    CAPACITY,
};
// Gives SQLite the value of the scan's row in the column.
void xpl_sql_put_column(sqlite3_context *x, const struct xpl_sql_scan *s,
                        enum xpl_sql_column which);
void xpl_sql_put_text(sqlite3_context *x, xpl_str_t s);

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
