// SPDX-License-Identifier: Apache-2.0
// What a transaction needs of PostgreSQL: settings, and what a failure leaves behind.
#include <stdio.h>
#include <string.h>

#include "storage/store/postgresql/impl.h"

enum { IDLE_MS = 60000 }; // of a daemon without jobs

// Settings are those of the transaction: a pooler gives the next one another connection.  What a
// crash of the server loses can be made again.
// A daemon that is silent loses its transaction, and the locks of its jobs, after a lease.
static enum xpl_pg_rc begin(struct xpl_pg_store *s) {
    char sql[240];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; SET LOCAL synchronous_commit=off; SET LOCAL lock_timeout='4s';"
                   "SET LOCAL statement_timeout='8s';"
                   "SET LOCAL idle_in_transaction_session_timeout=%llu",
                   (unsigned long long)(s->lease_ms ? s->lease_ms : IDLE_MS));
    return xpl_pg_exec(s->w, sql);
}

// A connection in doubt is not used again.
static void after_failure(struct xpl_pg_store *s, enum xpl_pg_rc rc) {
    if (!s->w) return;
    char why[XPL_PG_WHY];
    memcpy(why, s->w->why, sizeof why);
    const bool over = rc == XPL_PG_AWAY || rc == XPL_PG_READONLY || rc == XPL_PG_SCHEMA;
    if (over || xpl_pg_exec(s->w, "ROLLBACK") != XPL_PG_OK) xpl_pg_writer_lost(s, why);
}

static enum xpl_pg_rc start(struct xpl_pg_store *s) {
    const int64_t week = xpl_pg_this_week(s);
    enum xpl_pg_rc rc = XPL_PG_OK;
    if (s->week != week) rc = xpl_pg_make_week(s->w, week);
    if (rc == XPL_PG_OK) s->week = week;
    return rc == XPL_PG_OK ? begin(s) : rc;
}

static xpl_status_t open_tx(struct xpl_tx *t, struct xpl_error *err) {
    struct xpl_pg_store *const s = xpl_pg_of(&t->base);
    xpl_pg_take_writer(s);
    if (!s->w)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not written by this process now",
                         s->name);
    const enum xpl_pg_rc rc = start(s);
    if (rc != XPL_PG_OK) {
        const xpl_status_t st = xpl_pg_fail(s, rc, s->w->why, err);
        after_failure(s, rc);
        return st;
    }
    s->tx_bytes = 0;
    s->tx_first_id = INT64_MAX;
    return XPL_OK;
}

static int commit(struct xpl_tx *t) {
    return (int)xpl_pg_exec(xpl_pg_of(&t->base)->w, "COMMIT");
}

static void roll_back(struct xpl_tx *t, int rc) {
    after_failure(xpl_pg_of(&t->base), (enum xpl_pg_rc)rc);
}

static void ended(struct xpl_tx *t, bool committed) {
    struct xpl_pg_store *const s = xpl_pg_of(&t->base);
    if (!committed) return;
    atomic_fetch_add(&s->used_bytes, s->tx_bytes);
    if (t->has_catalogue) s->fence = s->tx_fence;
}

static xpl_status_t fail(struct xpl_tx *t, int rc, struct xpl_error *err) {
    const struct xpl_pg_store *const s = xpl_pg_of(&t->base);
    return xpl_pg_fail(s, (enum xpl_pg_rc)rc, s->w ? s->w->why : "", err);
}

const struct xpl_tx_ops xpl_pg_tx = {.open = open_tx,
                                     .commit = commit,
                                     .roll_back = roll_back,
                                     .ended = ended,
                                     .fail = fail,
                                     .too_big = XPL_PG_TOOBIG};
