// SPDX-License-Identifier: Apache-2.0
// What every file of the store needs: notices, the meaning of SQLite's codes, small statements.
#include <errno.h>
#include <stdarg.h>

#include "storage/sessions/path.h"
#include "storage/store/sqlite/impl.h"

void xpl_sqlite_notice(struct xpl_sqlite_store *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    xpl_notices_add(&s->notices, fmt, ap);
    va_end(ap);
}

bool xpl_sqlite_next_notice(struct xpl_store *base, char *buf, size_t size) {
    return xpl_notices_next(&xpl_sqlite_of(base)->notices, buf, size);
}

bool xpl_sqlite_is_damage(int rc) {
    return xpl_db_is_damage(rc) || (rc & 0xff) == SQLITE_CONSTRAINT;
}

xpl_status_t xpl_sqlite_fail(struct xpl_sqlite_store *s, int rc, struct xpl_error *err) {
    // What the last system call said; SQLite keeps it only for some failures.  Writing calls begin
    // with 0.
    const int os = errno;
    const xpl_status_t code = xpl_sqlite_is_damage(rc) ? XPL_DATA_LOSS : xpl_db_status(rc, os);
    XPL_RETURN_ERROR(err, code, "%s: %s", xpl_path_shown(s->path, &(struct xpl_path_text){0}),
                     sqlite3_errstr(rc));
}

// --- Small statements of the writer ---

int xpl_sqlite_run_id(struct xpl_sqlite_store *s, enum xpl_sql sql, int64_t id) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    if (st) rc = sqlite3_bind_int64(st, 1, id);
    return st && rc == SQLITE_OK ? xpl_db_run(st) : rc;
}

// First column of the first row of a statement with one integer parameter; -1 without a row.
int xpl_sqlite_ask(struct xpl_sqlite_store *s, enum xpl_sql sql, int64_t arg, int64_t *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    if (!st) return rc;
    if (sqlite3_bind_parameter_count(st)) rc = sqlite3_bind_int64(st, 1, arg);
    return rc == SQLITE_OK ? xpl_db_int(st, -1, ret) : rc;
}

int xpl_sqlite_run(struct xpl_sqlite_store *s, enum xpl_sql sql) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    return st ? xpl_db_run(st) : rc;
}

int xpl_sqlite_used(struct xpl_sqlite_store *s, uint64_t *ret) {
    int64_t pages = 0, unused = 0;
    int rc = xpl_sqlite_ask(s, XPL_SQL_PAGE_COUNT, 0, &pages);
    if (rc == SQLITE_OK) rc = xpl_sqlite_ask(s, XPL_SQL_FREE_COUNT, 0, &unused);
    if (rc == SQLITE_OK) *ret = (uint64_t)(pages - unused) * XPL_DB_PAGE;
    return rc;
}
