// SPDX-License-Identifier: Apache-2.0
// Removing results and rows, and keeping the store within its limit.
#include "base/clock.h"
#include "storage/store/sqlite/impl.h"

int xpl_sqlite_delete_result(struct xpl_sqlite_store *s, int64_t id) {
    int rc = xpl_sqlite_run_id(s, XPL_SQL_DATA_DEL, id);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_RESULT_PROFILE_DEL, id);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_RESULT_DEL, id);
    // An index that shows what is not there would otherwise keep the loops below going for ever.
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

static int run_each(struct xpl_sqlite_store *s, const enum xpl_sql *each, size_t n,
                    int64_t profile_id) {
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
        sqlite3_stmt *st = xpl_db_stmt(s->w, each[i], &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, profile_id);
        if (rc == SQLITE_OK) rc = xpl_db_run(st);
        if (sqlite3_changes(s->w->h) > 0) s->rows_deleted = true;
    }
    return rc;
}

int xpl_sqlite_delete_rows_of(struct xpl_sqlite_store *s, int64_t profile_id,
                              enum xpl_rows_kind kind) {
    static const enum xpl_sql ops[] = {XPL_SQL_OP_DEL, XPL_SQL_KERNEL_DEL},
                              times[] = {XPL_SQL_STEP_DEL, XPL_SQL_MEMORY_DEL};
    return run_each(s, kind == XPL_ROWS_OPS ? ops : times, 2, profile_id);
}

int xpl_sqlite_delete_rows(struct xpl_sqlite_store *s, int64_t profile_id) {
    static const enum xpl_sql of_profile[] = {XPL_SQL_PROFILE_NO_ROWS};
    int rc = xpl_sqlite_delete_rows_of(s, profile_id, XPL_ROWS_OPS);
    if (rc == SQLITE_OK) rc = xpl_sqlite_delete_rows_of(s, profile_id, XPL_ROWS_TIMES);
    if (rc == SQLITE_OK) rc = run_each(s, of_profile, 1, profile_id);
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

int xpl_sqlite_flush_touches(struct xpl_sqlite_store *s) {
    const int64_t now = xpl_unix_ms();
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < STORE_TOUCHES; i++) {
        if (!atomic_load_explicit(&s->touched[i], memory_order_relaxed)) continue;
        const int64_t id = atomic_exchange(&s->touched[i], 0);
        sqlite3_stmt *st = id ? xpl_db_stmt(s->w, XPL_SQL_RESULT_TOUCH, &rc) : NULL;
        if (!st) continue;
        rc = sqlite3_bind_int64(st, 1, id);
        if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, now);
        if (rc == SQLITE_OK) rc = xpl_db_run(st);
    }
    return rc;
}

// Removes the result that was not used for longest, or else the oldest rows; *ret false when there
// is nothing left to remove.
static int evict_one(struct xpl_sqlite_store *s, bool *ret) {
    int64_t id = -1;
    int rc = xpl_sqlite_ask(s, XPL_SQL_RESULT_OLDEST, s->tx_last_old, &id);
    *ret = id >= 0;
    if (rc == SQLITE_OK && id >= 0) {
        atomic_fetch_add(&s->evicted, 1);
        return xpl_sqlite_delete_result(s, id);
    }
    // Rows of this transaction are younger than its beginning.
    if (rc == SQLITE_OK) rc = xpl_sqlite_ask(s, XPL_SQL_PROFILE_OLD_ROWS, s->tx.began_ms, &id);
    *ret = id >= 0;
    return rc == SQLITE_OK && id >= 0 ? xpl_sqlite_delete_rows(s, id) : rc;
}

int xpl_sqlite_make_room(struct xpl_sqlite_store *s, uint64_t need) {
    const uint64_t limit = s->o.limit_bytes;
    uint64_t used = 0;
    if (limit == 0) return SQLITE_OK;
    if (need > limit / 2) return SQLITE_TOOBIG; // it would drive out everything else
    int rc = xpl_sqlite_used(s, &used);
    if (rc != SQLITE_OK || used + need <= limit) return rc;
    rc = xpl_sqlite_flush_touches(s);
    // Some more than needed, so that not every put has to do it again.
    const uint64_t goal = limit - limit / 20;
    bool more = true;
    while (rc == SQLITE_OK && more && used + need > goal) {
        rc = evict_one(s, &more);
        if (rc == SQLITE_OK) rc = xpl_sqlite_used(s, &used);
    }
    return rc == SQLITE_OK && used + need > limit ? SQLITE_TOOBIG : rc;
}
