// SPDX-License-Identifier: Apache-2.0
// Keeping the store clean: what is gone, outdated or free.
#include "base/clock.h"
#include "base/exec.h"
#include "storage/store/encoding.h"
#include "storage/store/sqlite/impl.h"

// How many results or profiles one call of xpl_store_maintain() removes: transactions stay short.
// OPS_BETWEEN_CHECKS: of SQLite, between two checks for cancellation.
enum { BATCH = 64, VACUUM_PAGES = 256, OPS_BETWEEN_CHECKS = 1000 };

static int remove_profile(struct xpl_sqlite_store *s, int64_t profile) {
    int64_t result = -1;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK) {
        rc = xpl_sqlite_ask(s, XPL_SQL_RESULT_OF_PROFILE, profile, &result);
        if (rc != SQLITE_OK || result < 0) break;
        rc = xpl_sqlite_delete_result(s, result);
    }
    if (rc == SQLITE_OK) rc = xpl_sqlite_delete_rows(s, profile);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_FILE_DEL, profile);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_PROFILE_DEL, profile);
    return rc == SQLITE_OK && sqlite3_changes(s->w->h) != 1 ? SQLITE_CORRUPT : rc;
}

static int sweep_gone(struct xpl_sqlite_store *s, int64_t gone_s, int *budget) {
    const int64_t now = xpl_unix_ms() / 1000;
    int64_t id = 0;
    int rc = xpl_sqlite_run_id(s, XPL_SQL_FILE_GONE, now);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run(s, XPL_SQL_FILE_BACK);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_PROFILE_GONE, now);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run(s, XPL_SQL_PROFILE_BACK);
    if (rc == SQLITE_OK) rc = xpl_sqlite_run_id(s, XPL_SQL_FILE_SWEEP, now - gone_s);
    while (rc == SQLITE_OK && *budget > 0) {
        rc = xpl_sqlite_ask(s, XPL_SQL_PROFILE_SWEEP, now - gone_s, &id);
        if (rc != SQLITE_OK || id < 0) break;
        rc = remove_profile(s, id);
        --*budget;
    }
    return rc;
}

// A result of that name in another version; -1: there is none.
static int find_stale(struct xpl_sqlite_store *s, const struct xpl_store_version *v, int64_t *ret) {
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

static int sweep_versions(struct xpl_sqlite_store *s, const struct xpl_store_maintenance *m,
                          int *budget) {
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < m->n_current; i++)
        while (rc == SQLITE_OK && *budget > 0) {
            int64_t id = -1;
            rc = find_stale(s, &m->current[i], &id);
            if (rc != SQLITE_OK || id < 0) break;
            rc = xpl_sqlite_delete_result(s, id);
            --*budget;
        }
    return rc;
}

static int sweep_names(struct xpl_sqlite_store *s) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_NAME_SWEEP, &rc);
    if (st) rc = xpl_db_run(st);
    if (rc == SQLITE_OK) s->rows_deleted = false;
    return rc;
}

static int sweep(struct xpl_sqlite_store *s, const struct xpl_store_maintenance *m, int *budget) {
    int rc = xpl_sqlite_flush_touches(s);
    if (rc == SQLITE_OK) rc = sweep_versions(s, m, budget);
    if (rc == SQLITE_OK && atomic_load(&s->tx.catalogue_known))
        rc = sweep_gone(s, m->gone_s, budget);
    if (rc == SQLITE_OK) rc = xpl_sqlite_make_room(s, 0);
    if (rc == SQLITE_OK && s->rows_deleted && *budget > 0) rc = sweep_names(s);
    return rc;
}

// Gives a part of the free pages back to the file system when they are more than a quarter of the
// file; *ret_more when that is not all.
static int shrink(struct xpl_sqlite_store *s, bool *ret_more) {
    int64_t pages = 0, unused = 0;
    int rc = xpl_sqlite_ask(s, XPL_SQL_PAGE_COUNT, 0, &pages);
    if (rc == SQLITE_OK) rc = xpl_sqlite_ask(s, XPL_SQL_FREE_COUNT, 0, &unused);
    if (rc != SQLITE_OK || unused < VACUUM_PAGES || unused < pages / 4) return rc;
    *ret_more = true;
    return xpl_db_exec(s->w, "PRAGMA incremental_vacuum(256)");
}

static int on_progress(void *cancel) {
    return xpl_cancel_is_set(cancel);
}

xpl_status_t xpl_sqlite_maintain(struct xpl_store *base, const struct xpl_store_maintenance *m,
                                 bool *ret_more, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool more = false;
    int budget = BATCH;
    if (ret_more) *ret_more = false;
    XPL_TRY(xpl_tx_begin(base, err)); // without a writer nothing is dropped
    // Statements that go through all files or names take seconds.
    sqlite3_progress_handler(s->w->h, OPS_BETWEEN_CHECKS, on_progress,
                             (void *)(uintptr_t)m->cancel);
    int rc = sweep(s, m, &budget);
    if (rc == SQLITE_OK) rc = shrink(s, &more);
    sqlite3_progress_handler(s->w->h, 0, NULL, NULL);
    XPL_TRY(xpl_tx_leave(&s->tx, true, rc, err));
    if (ret_more) *ret_more = more || budget == 0;
    // A log that readers still need stays; the next call tries again.
    pthread_mutex_lock(&s->tx.mu);
    if (s->w && !more && budget > 0) {
        (void)sqlite3_busy_timeout(s->w->h, 0);
        (void)sqlite3_wal_checkpoint_v2(s->w->h, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        (void)sqlite3_busy_timeout(s->w->h, XPL_DB_WRITE_BUSY_MS);
    }
    pthread_mutex_unlock(&s->tx.mu);
    return XPL_OK;
}
