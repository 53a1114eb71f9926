// SPDX-License-Identifier: Apache-2.0
// What a transaction needs of SQLite: who may write, and what a failure leaves behind.

#include "storage/store/sqlite/impl.h"

static struct xpl_sqlite_store *store_of(struct xpl_tx *t) {
    return xpl_sqlite_of(&t->base);
}

// Makes sure that there is a writer to write with, repairing what other threads have noticed.
static xpl_status_t get_ready(struct xpl_sqlite_store *s, struct xpl_error *err) {
    if (s->w && (atomic_load(&s->lost) || xpl_db_moved(s->w))) {
        xpl_sqlite_notice(s, "%s was removed while it was in use; a new one is begun", s->path);
        xpl_sqlite_detach(s, false);
        XPL_TRY(xpl_sqlite_attach(s, err));
    } else if (s->w && atomic_load(&s->broken)) {
        xpl_sqlite_rebuild(s, "found while reading");
    } else if (!s->w) {
        XPL_TRY(xpl_sqlite_try_again(s, err));
    }
    if (s->w) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not written by this process", s->path);
}

static void roll_back(struct xpl_tx *t, int rc) {
    const struct xpl_sqlite_store *const s = store_of(t);
    (void)rc;
    if (s->w && !sqlite3_get_autocommit(s->w->h)) (void)xpl_db_exec(s->w, "ROLLBACK");
}

// A broken database is moved aside; a connection that cannot even roll back, or that may not write
// any more, is made anew.
static void recover(struct xpl_sqlite_store *s, int rc) {
    roll_back(&s->tx, rc);
    if (xpl_sqlite_is_damage(rc))
        xpl_sqlite_rebuild(s, sqlite3_errstr(rc));
    else if (s->w && ((rc & 0xff) == SQLITE_READONLY || !sqlite3_get_autocommit(s->w->h)))
        xpl_sqlite_rebuild(s, NULL);
}

static xpl_status_t open_tx(struct xpl_tx *t, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = store_of(t);
    XPL_TRY(get_ready(s, err));
    int rc = SQLITE_OK;
    sqlite3_stmt *begin = xpl_db_stmt(s->w, XPL_SQL_BEGIN, &rc);
    if (begin) rc = xpl_db_run(begin);
    sqlite3_stmt *max = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_RESULT_MAX_ID, &rc);
    s->tx_last_old = 0;
    if (max) rc = xpl_db_int(max, 0, &s->tx_last_old);
    if (rc == SQLITE_OK) return XPL_OK;
    const xpl_status_t st = xpl_sqlite_fail(s, rc, err);
    recover(s, rc);
    return st;
}

static int commit(struct xpl_tx *t) {
    int rc = SQLITE_OK;
    sqlite3_stmt *const st = xpl_db_stmt(store_of(t)->w, XPL_SQL_COMMIT, &rc);
    return st ? xpl_db_run(st) : rc;
}

static void ended(struct xpl_tx *t, bool committed) {
    struct xpl_sqlite_store *const s = store_of(t);
    uint64_t used = 0;
    if (!committed && t->code != SQLITE_OK) recover(s, t->code);
    if (committed && xpl_sqlite_used(s, &used) == SQLITE_OK) atomic_store(&s->used_bytes, used);
}

static xpl_status_t fail(struct xpl_tx *t, int rc, struct xpl_error *err) {
    return xpl_sqlite_fail(store_of(t), rc, err);
}

const struct xpl_tx_ops xpl_sqlite_tx = {.open = open_tx,
                                         .commit = commit,
                                         .roll_back = roll_back,
                                         .ended = ended,
                                         .fail = fail,
                                         .too_big = SQLITE_TOOBIG};
