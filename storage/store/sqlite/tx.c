// SPDX-License-Identifier: Apache-2.0
// Transactions: who may write, and what a failure leaves behind.
#include <errno.h>

#include "storage/store/sqlite/impl.h"

// The store in whose transaction this thread is.
static _Thread_local const struct xpl_sqlite_store *tx_of;

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

static void roll_back(struct xpl_sqlite_store *s) {
    if (s->w && !sqlite3_get_autocommit(s->w->h)) (void)xpl_db_exec(s->w, "ROLLBACK");
}

// A broken database is moved aside; a connection that cannot even roll back, or that may not write
// any more, is made anew.
static void recover(struct xpl_sqlite_store *s, int rc) {
    roll_back(s);
    if (xpl_sqlite_is_damage(rc))
        xpl_sqlite_rebuild(s, sqlite3_errstr(rc));
    else if (s->w && ((rc & 0xff) == SQLITE_READONLY || !sqlite3_get_autocommit(s->w->h)))
        xpl_sqlite_rebuild(s, NULL);
}

static xpl_status_t open_tx(struct xpl_sqlite_store *s, struct xpl_error *err) {
    pthread_mutex_lock(&s->write_mu);
    errno = 0;
    xpl_status_t st = get_ready(s, err);
    int rc = SQLITE_OK;
    if (st == XPL_OK) {
        sqlite3_stmt *begin = xpl_db_stmt(s->w, XPL_SQL_BEGIN, &rc);
        if (begin) rc = xpl_db_run(begin);
        int64_t last = 0;
        sqlite3_stmt *max = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_RESULT_MAX_ID, &rc);
        if (max) rc = xpl_db_int(max, 0, &last);
        if (rc != SQLITE_OK) {
            st = xpl_sqlite_fail(s, rc, err);
            recover(s, rc);
        }
        s->tx_last_old = last;
    }
    if (st != XPL_OK) {
        pthread_mutex_unlock(&s->write_mu);
        return st;
    }
    s->tx_status = XPL_OK;
    s->tx_rc = SQLITE_OK;
    s->tx_puts = 0;
    s->tx_began_ms = xpl_sqlite_now_ms();
    s->tx_catalogue = false;
    tx_of = s;
    return XPL_OK;
}

static xpl_status_t tx_report(const struct xpl_sqlite_store *s, struct xpl_error *err) {
    if (err && err->code == XPL_OK) *err = s->tx_err;
    return s->tx_status;
}

static void tx_failed(struct xpl_sqlite_store *s, int rc) {
    s->tx_err = (struct xpl_error){0};
    s->tx_status = xpl_sqlite_fail(s, rc, &s->tx_err);
    s->tx_rc = rc;
    roll_back(s);
}

static xpl_status_t close_tx(struct xpl_sqlite_store *s, bool commit, struct xpl_error *err) {
    errno = 0;
    if (!commit) {
        roll_back(s);
        s->tx_status = XPL_CANCELLED;
    } else if (s->tx_status == XPL_OK) {
        int rc = SQLITE_OK;
        sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_COMMIT, &rc);
        if (st) rc = xpl_db_run(st);
        if (rc != SQLITE_OK) tx_failed(s, rc);
    }
    uint64_t used = 0;
    if (s->tx_status == XPL_OK) {
        atomic_fetch_add(&s->puts, s->tx_puts);
        if (s->tx_catalogue) {
            s->catalogue_at = s->tx_catalogue_at;
            atomic_store(&s->catalogue_known, true);
        }
        if (xpl_sqlite_used(s, &used) == SQLITE_OK) atomic_store(&s->used_bytes, used);
    } else {
        atomic_fetch_add(&s->dropped, s->tx_puts);
        if (s->tx_rc != SQLITE_OK) recover(s, s->tx_rc);
    }
    const xpl_status_t st = commit ? tx_report(s, err) : XPL_OK;
    tx_of = NULL;
    pthread_mutex_unlock(&s->write_mu);
    return st;
}

xpl_status_t xpl_sqlite_enter(struct xpl_sqlite_store *s, bool *ret_own, struct xpl_error *err) {
    *ret_own = tx_of != s;
    errno = 0;
    xpl_status_t st = XPL_OK;
    if (*ret_own)
        st = open_tx(s, err);
    else if (s->tx_status != XPL_OK)
        st = tx_report(s, err);
    if (st != XPL_OK) atomic_fetch_add(&s->dropped, 1);
    return st;
}

xpl_status_t xpl_sqlite_leave(struct xpl_sqlite_store *s, bool own, int rc, struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    if (rc == SQLITE_OK) {
        s->tx_puts++;
    } else {
        atomic_fetch_add(&s->dropped, 1);
        if (rc == SQLITE_TOOBIG) // only this one is not kept
            st = xpl_sqlite_fail(s, rc, err);
        else
            tx_failed(s, rc);
    }
    if (!own) return st != XPL_OK ? st : tx_report(s, err);
    const xpl_status_t closed = close_tx(s, true, err);
    return st != XPL_OK ? st : closed;
}

xpl_status_t xpl_sqlite_begin(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    if (tx_of == s)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: a transaction is open already");
    return open_tx(s, err);
}

xpl_status_t xpl_sqlite_commit(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    if (tx_of != s) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: no transaction is open");
    return close_tx(s, true, err);
}

void xpl_sqlite_rollback(struct xpl_store *base) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    if (tx_of == s) (void)close_tx(s, false, NULL);
}
