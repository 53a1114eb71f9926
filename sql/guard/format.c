// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/format.h"

#include <stdbool.h>
#include <string.h>

#include "sql/tables.h"

enum { MOST_ARGUMENTS = 32 };

// Whether a character has a precision.  SQLite writes it so many times, up to 2^31, also when the
// text has long been too long, and looks at no clock meanwhile.
static bool repeats(const char *p) {
    while ((p = strchr(p, '%'))) {
        const size_t n = strspn(++p, "-+ #!,.*l0123456789");
        if (p[n] == 'c' && memchr(p, '.', n)) return true;
        p += n + (p[n] != 0);
    }
    return false;
}

static int prepare(struct xpl_sql_format *f, int n) {
    char text[32 + 2 * MOST_ARGUMENTS] = "SELECT printf(";
    int rc = SQLITE_OK;
    if (f->st && f->n == n) return SQLITE_OK;
    if (n > MOST_ARGUMENTS) return SQLITE_TOOBIG;
    if (!f->db) {
        rc =
            sqlite3_open_v2(":memory:", &f->db,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
        if (rc != SQLITE_OK) {
            (void)sqlite3_close(f->db);
            f->db = NULL;
            return rc;
        }
        (void)sqlite3_limit(f->db, SQLITE_LIMIT_LENGTH, XPL_SQL_LENGTH);
    }
    for (int i = 0; i < n; i++)
        strcat(text, i ? ",?" : "?");
    strcat(text, ")");
    (void)sqlite3_finalize(f->st);
    f->st = NULL;
    f->n = n;
    return sqlite3_prepare_v2(f->db, text, -1, &f->st, NULL);
}

static int bind(sqlite3_stmt *st, int at, sqlite3_value *v) {
    switch (sqlite3_value_type(v)) {
        case SQLITE_INTEGER: return sqlite3_bind_int64(st, at, sqlite3_value_int64(v));
        case SQLITE_FLOAT: return sqlite3_bind_double(st, at, sqlite3_value_double(v));
        case SQLITE_NULL: return sqlite3_bind_null(st, at);
        default: break;
    }
    const char *const text = (const char *)sqlite3_value_text(v);
    if (!text) return SQLITE_NOMEM;
    return sqlite3_bind_text(st, at, text, sqlite3_value_bytes(v), SQLITE_STATIC);
}

static void format(sqlite3_context *x, int n, sqlite3_value **v) {
    struct xpl_sql_format *const f = sqlite3_user_data(x);
    const char *const text = n ? (const char *)sqlite3_value_text(v[0]) : NULL;
    if (text && repeats(text)) {
        sqlite3_result_error(x, "printf: a precision of %c is not allowed", -1);
        return;
    }
    int rc = prepare(f, n);
    for (int i = 0; i < n && rc == SQLITE_OK; i++)
        rc = bind(f->st, i + 1, v[i]);
    if (rc == SQLITE_OK) rc = sqlite3_step(f->st);
    if (rc == SQLITE_ROW)
        sqlite3_result_value(x, sqlite3_column_value(f->st, 0));
    else
        sqlite3_result_error_code(x, rc);
    if (!f->st) return;
    (void)sqlite3_reset(f->st);
    (void)sqlite3_clear_bindings(f->st);
}

int xpl_sql_format_declare(struct xpl_sql_format *f, sqlite3 *db) {
    const int kind = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    const int rc = sqlite3_create_function(db, "printf", -1, kind, f, format, NULL, NULL);
    if (rc != SQLITE_OK) return rc;
    return sqlite3_create_function(db, "format", -1, kind, f, format, NULL, NULL);
}

void xpl_sql_format_fini(struct xpl_sql_format *f) {
    (void)sqlite3_finalize(f->st);
    (void)sqlite3_close(f->db);
}
