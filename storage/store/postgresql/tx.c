// SPDX-License-Identifier: Apache-2.0
// Transactions: what a failure leaves behind.
#include <string.h>

#include "storage/store/postgresql/impl.h"

// The store in whose transaction this thread is.
static _Thread_local const struct xpl_pg_store *tx_of;

// Settings are those of the transaction: a pooler gives the next one another connection.  What a
// crash of the server loses can be made again.
static const char begin_sql[] =
    "BEGIN; SET LOCAL synchronous_commit=off; SET LOCAL lock_timeout='4s';"
    "SET LOCAL statement_timeout='8s'; SET LOCAL idle_in_transaction_session_timeout='60s'";

// A connection in doubt is not used again.
static void after_failure(struct xpl_pg_store *s, enum xpl_pg_rc rc) {
    if (!s->w) return;
    char why[XPL_PG_WHY];
    memcpy(why, s->w->why, sizeof why);
    const bool over = rc == XPL_PG_AWAY || rc == XPL_PG_READONLY || rc == XPL_PG_SCHEMA;
    if (over || xpl_pg_exec(s->w, "ROLLBACK") != XPL_PG_OK) xpl_pg_writer_lost(s, why);
}

static enum xpl_pg_rc start(struct xpl_pg_store *s) {
    const int64_t week = xpl_pg_this_week();
    enum xpl_pg_rc rc = XPL_PG_OK;
    if (s->week != week) rc = xpl_pg_make_week(s->w, week);
    if (rc == XPL_PG_OK) s->week = week;
    return rc == XPL_PG_OK ? xpl_pg_exec(s->w, begin_sql) : rc;
}

static xpl_status_t open_tx(struct xpl_pg_store *s, struct xpl_error *err) {
    pthread_mutex_lock(&s->write_mu);
    xpl_pg_take_writer(s);
    xpl_status_t st = XPL_OK;
    const enum xpl_pg_rc rc = s->w ? start(s) : XPL_PG_OK;
    if (!s->w) {
        st = xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                           "%s: not written by this process now", s->name);
    } else if (rc != XPL_PG_OK) {
        st = xpl_pg_fail(s, rc, s->w->why, err);
        after_failure(s, rc);
    }
    if (st != XPL_OK) {
        pthread_mutex_unlock(&s->write_mu);
        return st;
    }
    s->tx_status = XPL_OK;
    s->tx_rc = XPL_PG_OK;
    s->tx_puts = 0;
    s->tx_bytes = 0;
    s->tx_first_id = INT64_MAX;
    s->tx_began_ms = xpl_pg_now_ms();
    s->tx_catalogue = false;
    tx_of = s;
    return XPL_OK;
}

static xpl_status_t tx_report(const struct xpl_pg_store *s, struct xpl_error *err) {
    if (err && err->code == XPL_OK) *err = s->tx_err;
    return s->tx_status;
}

static void tx_failed(struct xpl_pg_store *s, enum xpl_pg_rc rc) {
    s->tx_err = (struct xpl_error){0};
    s->tx_status = xpl_pg_fail(s, rc, s->w ? s->w->why : "", &s->tx_err);
    s->tx_rc = rc;
    after_failure(s, rc);
}

static void count_committed(struct xpl_pg_store *s) {
    atomic_fetch_add(&s->puts, s->tx_puts);
    atomic_fetch_add(&s->used_bytes, s->tx_bytes);
    if (!s->tx_catalogue) return;
    s->catalogue_at = s->tx_catalogue_at;
    s->fence = s->tx_fence;
    atomic_store(&s->catalogue_known, true);
}

static xpl_status_t close_tx(struct xpl_pg_store *s, bool commit, struct xpl_error *err) {
    if (!commit) {
        if (s->tx_status == XPL_OK) after_failure(s, XPL_PG_OK);
        s->tx_status = XPL_CANCELLED;
    } else if (s->tx_status == XPL_OK) {
        const enum xpl_pg_rc rc = xpl_pg_exec(s->w, "COMMIT");
        if (rc != XPL_PG_OK) tx_failed(s, rc);
    }
    if (s->tx_status == XPL_OK)
        count_committed(s);
    else
        atomic_fetch_add(&s->dropped, s->tx_puts);
    const xpl_status_t st = commit ? tx_report(s, err) : XPL_OK;
    tx_of = NULL;
    pthread_mutex_unlock(&s->write_mu);
    return st;
}

xpl_status_t xpl_pg_enter(struct xpl_pg_store *s, bool *ret_own, struct xpl_error *err) {
    *ret_own = tx_of != s;
    xpl_status_t st = XPL_OK;
    if (*ret_own)
        st = open_tx(s, err);
    else if (s->tx_status != XPL_OK)
        st = tx_report(s, err);
    if (st != XPL_OK) atomic_fetch_add(&s->dropped, 1);
    return st;
}

xpl_status_t xpl_pg_leave(struct xpl_pg_store *s, bool own, enum xpl_pg_rc rc,
                          struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    if (rc == XPL_PG_OK) {
        s->tx_puts++;
    } else {
        atomic_fetch_add(&s->dropped, 1);
        if (rc == XPL_PG_TOOBIG) // only this one is not kept; it has written nothing
            st = xpl_pg_fail(s, rc, "", err);
        else
            tx_failed(s, rc);
    }
    if (!own) return st != XPL_OK ? st : tx_report(s, err);
    const xpl_status_t closed = close_tx(s, true, err);
    return st != XPL_OK ? st : closed;
}

xpl_status_t xpl_pg_begin(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    if (tx_of == s)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: a transaction is open already");
    return open_tx(s, err);
}

xpl_status_t xpl_pg_commit(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    if (tx_of != s) XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: no transaction is open");
    return close_tx(s, true, err);
}

void xpl_pg_rollback(struct xpl_store *base) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    if (tx_of == s) (void)close_tx(s, false, NULL);
}
