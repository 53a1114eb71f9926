// SPDX-License-Identifier: Apache-2.0
// A connection for an untrusted statement.  For sql/ only.
#ifndef XPL_SQL_GUARD_H_
#define XPL_SQL_GUARD_H_

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/exec.h"
#include "sql/guard/format.h"
#include "sql/guard/opens.h"
#include "sql/guard/texts.h"
#include "sql/sql.h"

struct xpl_sql_guard {
    struct xpl_exec exec; // passed to the readers of profiles: cancelled at the deadline
    struct xpl_exec *inner;
    uint64_t deadline_ns;
    atomic_bool is_late, is_stopped; // past the deadline; `inner` was cancelled
    bool reads_store;      // the statement reads tables of the database, not only of profiles
    unsigned functions;    // calls in the statement
    char refused[112];     // the first access that the authorizer refused
    char refused_name[64]; // its table or function; empty: neither
    struct xpl_sql_trees hidden;
    struct xpl_sql_format format;
    struct xpl_sql_texts texts;
};

void xpl_sql_guard_init(struct xpl_sql_guard *g, const struct xpl_sql_request *q);
// Opens the store read-only, or a database that is empty, with SQLite's own limits, and adds the
// views (sql/views.h).  The tables of profiles are declared next, and then xpl_sql_guard_restrict
// adds REGEXP, and functions in place of SQLite's, and lets nothing but reading happen.  *ret is
// the caller's to close in any case; NULL is possible.
xpl_status_t xpl_sql_guard_open(const struct xpl_sql_request *q, sqlite3 **ret,
                                struct xpl_error *err) XPL_NODISCARD;
int xpl_sql_guard_restrict(struct xpl_sql_guard *g, sqlite3 *db);
// Notes as refused the SELECT's accesses to hidden tables under names that SQLite does not report
// to the authorizer.  Returns SQLite's result code.
int xpl_sql_guard_inspect(struct xpl_sql_guard *g, sqlite3 *db, xpl_str_t select);
// After the connection was closed.
void xpl_sql_guard_fini(struct xpl_sql_guard *g);

// The part of a refused statement that does more than read, and its position.
struct xpl_sql_refusal {
    char what[112];
    size_t byte; // of the statement; its length: not known
};
// False: nothing is.
bool xpl_sql_guard_explain(const struct xpl_sql_guard *g, xpl_str_t statement,
                           struct xpl_sql_refusal *ret);

// Adds the tables that every statement has.
struct xpl_near;
void xpl_sql_guard_near(struct xpl_near *near);

#endif
