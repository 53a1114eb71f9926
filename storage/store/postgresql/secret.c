// SPDX-License-Identifier: Apache-2.0
// The secret that profile ids are made with: all daemons of a database have the same.
#include <string.h>

#include "storage/store/postgresql/impl.h"

uint64_t xpl_pg_get_secret(struct xpl_store *base, uint8_t ret[XPL_STORE_SECRET]) {
    struct xpl_pg_store *const s = xpl_pg_of(base);
    pthread_mutex_lock(&s->mu);
    memcpy(ret, s->secret, XPL_STORE_SECRET);
    const uint64_t generation = atomic_load(&s->secret_generation);
    pthread_mutex_unlock(&s->mu);
    return generation;
}

uint64_t xpl_pg_secret_generation(struct xpl_store *base) {
    return atomic_load(&xpl_pg_of(base)->secret_generation);
}

static enum xpl_pg_rc read_secret(struct xpl_pg_store *s, struct xpl_pg_conn *c) {
    PGresult *r = NULL;
    enum xpl_pg_rc rc =
        xpl_pg_query(c, "SELECT value FROM settings WHERE name='profile_secret'", NULL, &r);
    if (rc != XPL_PG_OK) return rc;
    if (c->pq->ntuples(r) == 0) {
        rc = XPL_PG_NONE;
    } else if (c->pq->getlength(r, 0, 0) != XPL_STORE_SECRET) {
        rc = XPL_PG_DAMAGE;
    } else {
        const xpl_bytes_t secret = xpl_pg_get_bytes(c, r, 0, 0);
        pthread_mutex_lock(&s->mu);
        if (memcmp(s->secret, secret.ptr, XPL_STORE_SECRET) != 0) {
            memcpy(s->secret, secret.ptr, XPL_STORE_SECRET);
            atomic_fetch_add(&s->secret_generation, 1);
        }
        pthread_mutex_unlock(&s->mu);
    }
    c->pq->clear(r);
    return rc;
}

enum xpl_pg_rc xpl_pg_load_secret(struct xpl_pg_store *s, struct xpl_pg_conn *c, bool read_only) {
    enum xpl_pg_rc rc = read_secret(s, c);
    if (rc != XPL_PG_NONE || read_only) return rc;
    // What this process has used so far stays, unless another daemon is faster.
    uint8_t secret[XPL_STORE_SECRET];
    (void)xpl_pg_get_secret(&s->tx.base, secret);
    rc = xpl_pg_query(c,
                      "INSERT INTO settings(name, value) VALUES('profile_secret', $1)"
                      " ON CONFLICT DO NOTHING",
                      XPL_PG_WITH(xpl_pg_bytes((xpl_bytes_t){secret, sizeof secret})), NULL);
    return rc == XPL_PG_OK ? read_secret(s, c) : rc;
}
