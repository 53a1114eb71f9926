// SPDX-License-Identifier: Apache-2.0
#include "sql/vtab.h"

#include <string.h>

int xpl_sql_vtab_free(sqlite3_vtab *v) {
    sqlite3_free(v);
    return SQLITE_OK;
}

int xpl_sql_cursor_new(size_t size, sqlite3_vtab_cursor **ret) {
    sqlite3_vtab_cursor *const c = sqlite3_malloc64(size);
    if (!c) return SQLITE_NOMEM;
    memset(c, 0, size);
    *ret = c;
    return SQLITE_OK;
}

int xpl_sql_cursor_fail(sqlite3_vtab_cursor *c, xpl_status_t st, const struct xpl_error *err) {
    sqlite3_free(c->pVtab->zErrMsg);
    c->pVtab->zErrMsg = sqlite3_mprintf("%s", err->msg);
    return st == XPL_CANCELLED ? SQLITE_INTERRUPT : SQLITE_ERROR;
}
