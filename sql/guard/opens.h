// SPDX-License-Identifier: Apache-2.0
// The tables that a statement's program opens, and how long it runs between checks of the clock.
// SQLite does not call the authorizer for every name: not for a column that FULL JOIN ... USING
// makes of two.  The program names all tables.  Private to this folder.
#ifndef XPL_SQL_OPENS_H_
#define XPL_SQL_OPENS_H_

#include <sqlite3.h>

#include "base/str.h"

enum { XPL_SQL_SHOW_ALL = 1 << 15 };

// A tree of a database whose bytes are hidden, but for its first `shown` columns.
struct xpl_sql_tree {
    int database, page, shown;
    char table[32];
};
struct xpl_sql_trees {
    struct xpl_sql_tree v[64];
    unsigned n;
};

// How many of a table's first columns are shown, of one of main or state.
typedef int xpl_sql_shown_fn(const char *table, const char *database);
// Lists those of the connection that are not shown in full.  SQLite's result code; SQLITE_FULL:
// there are too many.
int xpl_sql_trees_list(struct xpl_sql_trees *t, sqlite3 *db, xpl_sql_shown_fn *shown);
// Properties of a SELECT's program.
struct xpl_sql_program {
    const struct xpl_sql_tree *read; // the first tree of the list that it reads; NULL: none
    unsigned slow;                   // instructions that may read all of a long text
};
int xpl_sql_program_read(const struct xpl_sql_trees *t, sqlite3 *db, xpl_str_t select,
                         struct xpl_sql_program *ret);

#endif
