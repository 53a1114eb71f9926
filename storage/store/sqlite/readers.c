// SPDX-License-Identifier: Apache-2.0
// The pool of read-only connections.
#include <stdatomic.h>

#include "storage/store/sqlite/impl.h"

void xpl_sqlite_drop_readers(struct xpl_sqlite_store *s) {
    pthread_mutex_lock(&s->mu);
    s->epoch++; // those in use are closed when they come back
    struct xpl_db *db = s->idle;
    s->idle = NULL;
    for (struct xpl_db *d = db; d; d = d->next)
        s->n_open--;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->mu);
    while (db) {
        struct xpl_db *next = db->next;
        xpl_db_close(db);
        db = next;
    }
}

// What is wrong with a file that was moved aside meanwhile says nothing about the new one.
void xpl_sqlite_read_failed(struct xpl_sqlite_store *s, struct xpl_db *db, int rc) {
    atomic_fetch_add(&s->read_errors, 1);
    if (!xpl_sqlite_is_damage(rc) || xpl_db_moved(db)) return;
    if (atomic_load(&s->role) == XPL_STORE_WRITER)
        atomic_store(&s->broken, true);
    else
        xpl_sqlite_notice(s, "%s is broken (%s), and not ours to repair", s->path,
                          sqlite3_errstr(rc));
}

int xpl_sqlite_open_to_read(struct xpl_sqlite_store *s, struct xpl_db **ret, char *why,
                            size_t size) {
    const enum xpl_db_mode mode = atomic_load(&s->immutable) ? XPL_DB_READ_IMMUTABLE : XPL_DB_READ;
    pthread_rwlock_rdlock(&s->opening);
    const int rc = xpl_db_open(s->path, mode, &xpl_cache_schema, ret, why, size);
    pthread_rwlock_unlock(&s->opening);
    return rc;
}

int xpl_sqlite_open_reader(struct xpl_sqlite_store *s, struct xpl_db **ret,
                           enum xpl_db_kind *ret_kind) {
    char why[128];
    struct xpl_db *db = NULL;
    int rc = xpl_sqlite_open_to_read(s, &db, why, sizeof why);
    if (rc == SQLITE_OK) rc = xpl_db_kind(db, ret_kind);
    // The file may be another one than before, with another secret.
    if (rc == SQLITE_OK && *ret_kind == XPL_DB_OURS) {
        const int got = xpl_sqlite_load_secret(s, db);
        if (got == SQLITE_NOMEM)
            rc = got;
        else if (got != SQLITE_OK)
            xpl_sqlite_read_failed(s, db, got);
    }
    if (rc == SQLITE_OK)
        *ret = db;
    else
        xpl_db_close(db);
    return rc;
}

static void sqlite_reader_done(struct xpl_sqlite_store *s, struct xpl_db *db, int rc) {
    pthread_mutex_lock(&s->mu);
    const bool keep = rc == SQLITE_OK && db->epoch == s->epoch;
    if (keep) {
        db->next = s->idle;
        s->idle = db;
    } else {
        s->n_open--;
    }
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mu);
    if (!keep) xpl_db_close(db);
}

void xpl_sqlite_read_done(struct xpl_sqlite_store *s, struct xpl_db *db, int rc) {
    const bool usual =
        rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_TOOBIG;
    if (!usual && rc != SQLITE_NOMEM) xpl_sqlite_read_failed(s, db, rc);
    sqlite_reader_done(s, db, usual ? SQLITE_OK : rc);
}

// An idle connection, or leave to open one (*ret_open, counted already); neither when OFF.
static struct xpl_db *claim_reader(struct xpl_sqlite_store *s, bool *ret_open,
                                   uint64_t *ret_epoch) {
    struct xpl_db *db = NULL;
    pthread_mutex_lock(&s->mu);
    while (atomic_load(&s->role) != XPL_STORE_OFF) {
        *ret_epoch = s->epoch;
        db = s->idle;
        if (db) s->idle = db->next;
        *ret_open = !db && s->n_open < s->o.readers;
        if (*ret_open) s->n_open++;
        if (db || *ret_open) break;
        pthread_cond_wait(&s->cond, &s->mu);
    }
    pthread_mutex_unlock(&s->mu);
    return db;
}

struct xpl_db *xpl_sqlite_reader(struct xpl_sqlite_store *s) {
    for (;;) {
        bool open = false;
        uint64_t epoch = 0;
        struct xpl_db *db = claim_reader(s, &open, &epoch);
        if (!db && !open) return NULL;
        if (db && !xpl_db_moved(db)) return db;
        if (db) { // the file was replaced (by its writer) or deleted
            sqlite_reader_done(s, db, SQLITE_ABORT);
            if (atomic_load(&s->role) != XPL_STORE_WRITER) continue;
            atomic_store(&s->lost, true);
            return NULL;
        }
        enum xpl_db_kind kind = XPL_DB_OURS;
        const int rc = xpl_sqlite_open_reader(s, &db, &kind);
        if (rc == SQLITE_OK && kind == XPL_DB_OURS) {
            db->epoch = epoch;
            return db;
        }
        if (rc == SQLITE_OK) xpl_db_close(db);
        if (rc != SQLITE_OK) atomic_fetch_add(&s->read_errors, 1);
        pthread_mutex_lock(&s->mu);
        if (xpl_sqlite_is_damage(rc) && epoch == s->epoch) atomic_store(&s->broken, true);
        s->n_open--;
        pthread_cond_signal(&s->cond);
        pthread_mutex_unlock(&s->mu);
        return NULL;
    }
}
