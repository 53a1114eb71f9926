// Keeping the store within its limit, and clean.
#include "storage/store/sqlite/impl.h"

// How many results or profiles one call of xpl_store_maintain() removes: transactions stay short.
enum { BATCH = 64, VACUUM_PAGES = 256 };

static int run_with_id(struct xpl_store *s, enum xpl_sql sql, int64_t id) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    if (st) rc = sqlite3_bind_int64(st, 1, id);
    return st && rc == SQLITE_OK ? xpl_db_run(st) : rc;
}

// First column of the first row of a statement with one integer parameter; -1 without a row.
static int ask_int(struct xpl_store *s, enum xpl_sql sql, int64_t arg, int64_t *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    if (!st) return rc;
    if (sqlite3_bind_parameter_count(st)) rc = sqlite3_bind_int64(st, 1, arg);
    return rc == SQLITE_OK ? xpl_db_int(st, -1, ret) : rc;
}

int xpl_store_used(struct xpl_store *s, uint64_t *ret) {
    int64_t pages = 0, unused = 0;
    int rc = ask_int(s, XPL_SQL_PAGE_COUNT, 0, &pages);
    if (rc == SQLITE_OK) rc = ask_int(s, XPL_SQL_FREE_COUNT, 0, &unused);
    if (rc == SQLITE_OK) *ret = (uint64_t)(pages - unused) * XPL_DB_PAGE;
    return rc;
}

int xpl_store_delete_result(struct xpl_store *s, int64_t id) {
    int rc = run_with_id(s, XPL_SQL_DATA_DEL, id);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_RESULT_PROFILE_DEL, id);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_RESULT_DEL, id);
    // An index that shows what is not there would otherwise keep the loops below going for ever.
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

int xpl_store_flush_touches(struct xpl_store *s) {
    const int64_t now = xpl_store_now_ms();
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
static int evict_one(struct xpl_store *s, bool *ret) {
    int64_t id = -1;
    int rc = ask_int(s, XPL_SQL_RESULT_OLDEST, s->tx_last_old, &id);
    *ret = id >= 0;
    if (rc == SQLITE_OK && id >= 0) {
        atomic_fetch_add(&s->evicted, 1);
        return xpl_store_delete_result(s, id);
    }
    // Rows of this transaction are younger than its beginning.
    if (rc == SQLITE_OK) rc = ask_int(s, XPL_SQL_PROFILE_OLD_ROWS, s->tx_began_ms, &id);
    *ret = id >= 0;
    return rc == SQLITE_OK && id >= 0 ? xpl_store_delete_rows(s, id) : rc;
}

int xpl_store_make_room(struct xpl_store *s, uint64_t need) {
    const uint64_t limit = s->o.limit_bytes;
    uint64_t used = 0;
    if (limit == 0) return SQLITE_OK;
    if (need > limit / 2) return SQLITE_TOOBIG; // it would drive out everything else
    int rc = xpl_store_used(s, &used);
    if (rc != SQLITE_OK || used + need <= limit) return rc;
    rc = xpl_store_flush_touches(s);
    // Some more than needed, so that not every put has to do it again.
    const uint64_t goal = limit - limit / 20;
    bool more = true;
    while (rc == SQLITE_OK && more && used + need > goal) {
        rc = evict_one(s, &more);
        if (rc == SQLITE_OK) rc = xpl_store_used(s, &used);
    }
    return rc == SQLITE_OK && used + need > limit ? SQLITE_TOOBIG : rc;
}

// --- Maintenance ---

static int remove_profile(struct xpl_store *s, int64_t profile) {
    int64_t result = -1;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK) {
        rc = ask_int(s, XPL_SQL_RESULT_OF_PROFILE, profile, &result);
        if (rc != SQLITE_OK || result < 0) break;
        rc = xpl_store_delete_result(s, result);
    }
    if (rc == SQLITE_OK) rc = xpl_store_delete_rows(s, profile);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_FILE_DEL, profile);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_PROFILE_DEL, profile);
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

static int run_plain(struct xpl_store *s, enum xpl_sql sql) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, sql, &rc);
    return st ? xpl_db_run(st) : rc;
}

static int sweep_gone(struct xpl_store *s, int64_t gone_s, int *budget) {
    const int64_t now = xpl_store_now_ms() / 1000;
    int64_t id = 0;
    int rc = run_with_id(s, XPL_SQL_FILE_GONE, now);
    if (rc == SQLITE_OK) rc = run_plain(s, XPL_SQL_FILE_BACK);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_PROFILE_GONE, now);
    if (rc == SQLITE_OK) rc = run_plain(s, XPL_SQL_PROFILE_BACK);
    if (rc == SQLITE_OK) rc = run_with_id(s, XPL_SQL_FILE_SWEEP, now - gone_s);
    while (rc == SQLITE_OK && *budget > 0) {
        rc = ask_int(s, XPL_SQL_PROFILE_SWEEP, now - gone_s, &id);
        if (rc != SQLITE_OK || id < 0) break;
        rc = remove_profile(s, id);
        --*budget;
    }
    return rc;
}

// A result of that name in another version; -1: there is none.
static int find_stale(struct xpl_store *s, const struct xpl_store_version *v, int64_t *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_RESULT_STALE, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, v->version);
    if (rc == SQLITE_OK) rc = xpl_db_bind_text(st, 2, xpl_store_kind_name(v->kind));
    if (rc == SQLITE_OK) rc = xpl_db_bind_text(st, 3, v->name);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, ret);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static int sweep_versions(struct xpl_store *s, const struct xpl_store_maintenance *m, int *budget) {
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < m->n_current; i++)
        while (rc == SQLITE_OK && *budget > 0) {
            int64_t id = -1;
            rc = find_stale(s, &m->current[i], &id);
            if (rc != SQLITE_OK || id < 0) break;
            rc = xpl_store_delete_result(s, id);
            --*budget;
        }
    return rc;
}

static int sweep_names(struct xpl_store *s) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_NAME_SWEEP, &rc);
    if (st) rc = xpl_db_run(st);
    if (rc == SQLITE_OK) s->rows_deleted = false;
    return rc;
}

static int sweep(struct xpl_store *s, const struct xpl_store_maintenance *m, int *budget) {
    int rc = xpl_store_flush_touches(s);
    if (rc == SQLITE_OK) rc = sweep_versions(s, m, budget);
    if (rc == SQLITE_OK && s->catalogue_known) rc = sweep_gone(s, m->gone_s, budget);
    if (rc == SQLITE_OK) rc = xpl_store_make_room(s, 0);
    if (rc == SQLITE_OK && s->rows_deleted && *budget > 0) rc = sweep_names(s);
    return rc;
}

// Gives a part of the free pages back to the file system when they are more than a quarter of the
// file; *ret_more when that is not all.
static int shrink(struct xpl_store *s, bool *ret_more) {
    int64_t pages = 0, unused = 0;
    int rc = ask_int(s, XPL_SQL_PAGE_COUNT, 0, &pages);
    if (rc == SQLITE_OK) rc = ask_int(s, XPL_SQL_FREE_COUNT, 0, &unused);
    if (rc != SQLITE_OK || unused < VACUUM_PAGES || unused < pages / 4) return rc;
    *ret_more = true;
    return xpl_db_exec(s->w, "PRAGMA incremental_vacuum(256)");
}

xpl_status_t xpl_store_maintain(struct xpl_store *s, const struct xpl_store_maintenance *m,
                                bool *ret_more, struct xpl_error *err) {
    bool own, more = false;
    int budget = BATCH;
    if (ret_more) *ret_more = false;
    XPL_TRY(xpl_store_enter(s, &own, err));
    if (!own)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: maintenance inside a transaction");
    int rc = sweep(s, m, &budget);
    if (rc == SQLITE_OK) rc = shrink(s, &more);
    XPL_TRY(xpl_store_leave(s, own, rc, err));
    if (ret_more) *ret_more = more || budget == 0;
    // A log that readers still need stays; the next call tries again.
    pthread_mutex_lock(&s->write_mu);
    if (s->w && !more && budget > 0) {
        (void)sqlite3_busy_timeout(s->w->h, 0);
        (void)sqlite3_wal_checkpoint_v2(s->w->h, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        (void)sqlite3_busy_timeout(s->w->h, XPL_DB_WRITE_BUSY_MS);
    }
    pthread_mutex_unlock(&s->write_mu);
    return XPL_OK;
}
