// SPDX-License-Identifier: Apache-2.0
#include "sql/guard/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sql/tables.h"

enum { MOST_ARGUMENTS = 32 };

// The part of a conversion between "%" and its letter.
struct conversion {
    bool has_precision;
    int64_t precision;
};

// Reads up to the letter; stars take arguments, from v[*arg] on.
static const char *read_conversion(const char *p, int n, sqlite3_value **v, int *arg,
                                   struct conversion *ret) {
    *ret = (struct conversion){0};
    for (; *p && strchr("-+ #!,.*l0123456789", *p); p++) {
        if (*p == '.')
            ret->has_precision = true;
        else if (*p == '*' && *arg < n) {
            const int64_t given = sqlite3_value_int(v[(*arg)++]);
            if (ret->has_precision) ret->precision = given < 0 ? -given : given;
        } else if (ret->has_precision && *p >= '0' && *p <= '9' && ret->precision < INT32_MAX)
            ret->precision = 10 * ret->precision + (*p - '0');
    }
    return p;
}

// Why the format takes too long; NULL: it does not.  SQLite writes a character as often as its
// precision says, up to 2^31 times, also when the text has long been too long, and all digits of
// numbers before it drops zeros ("%!.9f").  It looks at no clock meanwhile.
static const char *too_long(const char *p, int n, sqlite3_value **v) {
    int64_t digits = 0;
    int arg = 1;
    while ((p = strchr(p, '%'))) {
        struct conversion c;
        p = read_conversion(p + 1, n, v, &arg, &c);
        if (*p == 'c' && c.has_precision) return "printf: a precision of %c is not allowed";
        if (*p && strchr("eEfgG", *p)) digits += c.precision;
        if (digits > XPL_SQL_LENGTH) return "printf: more than 65536 digits after points";
        arg += *p != '%' && *p != 'n';
        p += *p != 0;
    }
    return NULL;
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
    const char *const why = text ? too_long(text, n, v) : NULL;
    if (why) {
        sqlite3_result_error(x, why, -1);
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
