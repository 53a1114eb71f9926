// SPDX-License-Identifier: Apache-2.0
#include "storage/store/tx.h"
#include "base/clock.h"

#include <errno.h>

// The store in whose transaction this thread is.
static _Thread_local const struct xpl_tx *inside;

static struct xpl_tx *of(struct xpl_store *base) {
    return (struct xpl_tx *)base; // its first member
}

void xpl_tx_init(struct xpl_tx *t, const struct xpl_store_ops *ops, const struct xpl_tx_ops *tx) {
    t->base.ops = ops;
    t->ops = tx;
    pthread_mutex_init(&t->mu, NULL);
}

void xpl_tx_fini(struct xpl_tx *t) {
    pthread_mutex_destroy(&t->mu);
}

// Codes may have to be read together with errno: it begins with 0.
static xpl_status_t open_tx(struct xpl_tx *t, struct xpl_error *err) {
    pthread_mutex_lock(&t->mu);
    errno = 0;
    const xpl_status_t st = t->ops->open(t, err);
    if (st != XPL_OK) {
        pthread_mutex_unlock(&t->mu);
        return st;
    }
    t->status = XPL_OK;
    t->code = 0;
    t->n_puts = 0;
    t->began_ms = xpl_unix_ms();
    t->has_catalogue = false;
    inside = t;
    return XPL_OK;
}

static xpl_status_t report(const struct xpl_tx *t, struct xpl_error *err) {
    if (err && err->code == XPL_OK) *err = t->err;
    return t->status;
}

static void note_failure(struct xpl_tx *t, int code) {
    t->err = (struct xpl_error){0};
    t->status = t->ops->fail(t, code, &t->err);
    t->code = code;
    t->ops->roll_back(t, code);
}

static void count_committed(struct xpl_tx *t) {
    atomic_fetch_add(&t->puts, t->n_puts);
    if (!t->has_catalogue) return;
    t->catalogue_at = t->catalogue_new;
    atomic_store(&t->catalogue_known, true);
}

static xpl_status_t close_tx(struct xpl_tx *t, bool commit, struct xpl_error *err) {
    errno = 0;
    if (!commit) {
        if (t->status == XPL_OK) t->ops->roll_back(t, 0);
        t->status = XPL_CANCELLED;
    } else if (t->status == XPL_OK) {
        const int code = t->ops->commit(t);
        if (code) note_failure(t, code);
    }
    const bool committed = t->status == XPL_OK;
    if (committed)
        count_committed(t);
    else
        atomic_fetch_add(&t->dropped, t->n_puts);
    t->ops->ended(t, committed);
    const xpl_status_t st = commit ? report(t, err) : XPL_OK;
    inside = NULL;
    pthread_mutex_unlock(&t->mu);
    return st;
}

xpl_status_t xpl_tx_enter(struct xpl_tx *t, bool *ret_own, struct xpl_error *err) {
    *ret_own = inside != t;
    errno = 0;
    xpl_status_t st = XPL_OK;
    if (*ret_own)
        st = open_tx(t, err);
    else if (t->status != XPL_OK)
        st = report(t, err);
    if (st != XPL_OK) atomic_fetch_add(&t->dropped, 1);
    return st;
}

xpl_status_t xpl_tx_leave(struct xpl_tx *t, bool own, int code, struct xpl_error *err) {
    xpl_status_t st = XPL_OK;
    if (!code) {
        t->n_puts++;
    } else {
        atomic_fetch_add(&t->dropped, 1);
        if (code == t->ops->too_big) // only this one is not kept
            st = t->ops->fail(t, code, err);
        else
            note_failure(t, code);
    }
    if (!own) return st != XPL_OK ? st : report(t, err);
    const xpl_status_t closed = close_tx(t, true, err);
    return st != XPL_OK ? st : closed;
}

xpl_status_t xpl_tx_begin(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_tx *const t = of(base);
    if (inside == t)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: a transaction is open already");
    return open_tx(t, err);
}

xpl_status_t xpl_tx_commit(struct xpl_store *base, struct xpl_error *err) {
    struct xpl_tx *const t = of(base);
    if (inside != t)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "store: no transaction is open");
    return close_tx(t, true, err);
}

void xpl_tx_rollback(struct xpl_store *base) {
    struct xpl_tx *const t = of(base);
    if (inside == t) (void)close_tx(t, false, NULL);
}
