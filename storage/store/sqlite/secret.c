// SPDX-License-Identifier: Apache-2.0
// The secret that profile ids are made with.
#include <string.h>

#include "storage/store/sqlite/impl.h"

uint64_t xpl_sqlite_get_secret(struct xpl_store *base, uint8_t ret[XPL_STORE_SECRET]) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    pthread_mutex_lock(&s->mu);
    memcpy(ret, s->secret, XPL_STORE_SECRET);
    const uint64_t generation = atomic_load(&s->secret_generation);
    pthread_mutex_unlock(&s->mu);
    return generation;
}

uint64_t xpl_sqlite_secret_generation(struct xpl_store *base) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    return atomic_load(&s->secret_generation);
}

static void set_secret(struct xpl_sqlite_store *s, const uint8_t secret[XPL_STORE_SECRET]) {
    pthread_mutex_lock(&s->mu);
    if (memcmp(s->secret, secret, XPL_STORE_SECRET) != 0) {
        memcpy(s->secret, secret, XPL_STORE_SECRET);
        atomic_fetch_add(&s->secret_generation, 1);
    }
    pthread_mutex_unlock(&s->mu);
}

// SQLITE_DONE: the database has none.
static int read_secret(struct xpl_sqlite_store *s, struct xpl_db *db) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_SECRET_FIND, &rc);
    if (!st) return rc;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const void *p = sqlite3_column_blob(st, 0);
        if (!p)
            rc = SQLITE_NOMEM;
        else if (sqlite3_column_bytes(st, 0) != XPL_STORE_SECRET)
            rc = SQLITE_CORRUPT;
        else
            set_secret(s, p);
    }
    (void)sqlite3_reset(st);
    return rc;
}

int xpl_sqlite_load_secret(struct xpl_sqlite_store *s, struct xpl_db *db) {
    const int rc = read_secret(s, db);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int xpl_sqlite_make_secret(struct xpl_sqlite_store *s, struct xpl_db *db) {
    int rc = read_secret(s, db);
    if (rc != SQLITE_DONE) return rc == SQLITE_ROW ? SQLITE_OK : rc;
    // What this process has used so far stays: ids that are remembered are still right.
    uint8_t secret[XPL_STORE_SECRET];
    (void)xpl_sqlite_get_secret(&s->tx.base, secret);
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_SECRET_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, (xpl_bytes_t){secret, sizeof secret});
    return rc == SQLITE_OK ? xpl_db_run(st) : rc;
}
