// SPDX-License-Identifier: Apache-2.0
// Sessions and hosts of the catalogue.
#include "storage/sessions/catalogue.h"
#include "base/exec.h"

#include "base/arena.h"
#include "base/vec.h"
#include "storage/sessions/path.h"
#include "storage/store/encoding.h"
#include "storage/store/sqlite/impl.h"

// *ret_id -1: not there.
static int find_session(struct xpl_sqlite_store *s, const struct xpl_session *se, int64_t *ret_id,
                        int64_t *ret_digest) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_SESSION_FIND, &rc);
    if (!st) return rc;
    *ret_id = -1;
    rc = xpl_db_bind_text(st, 1, se->name);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(st, 0);
        *ret_digest = sqlite3_column_int64(st, 1);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_session(struct xpl_sqlite_store *s, const struct xpl_session *se, int64_t digest,
                         bool there, int64_t *id) {
    struct xpl_arena a = xpl_arena_of(1 << 20);
    xpl_str_t path;
    int rc = xpl_name_escape(&a, se->path, &path) ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_stmt *st =
        rc ? NULL : xpl_db_stmt(s->w, there ? XPL_SQL_SESSION_SET : XPL_SQL_SESSION_ADD, &rc);
    if (st) {
        rc = xpl_db_bind_text(st, 1, se->name);
        rc = rc ? rc : xpl_db_bind_text(st, 2, path);
        rc = rc            ? rc
             : se->n_hosts ? sqlite3_bind_int64(st, 3, se->mtime_ns)
                           : sqlite3_bind_null(st, 3);
        rc = rc ? rc : xpl_db_bind_u64(st, 4, se->bytes);
        rc = rc ? rc : sqlite3_bind_int64(st, 5, (int64_t)se->n_hosts);
        rc = rc ? rc : sqlite3_bind_int64(st, 6, digest);
        rc = rc ? rc : sqlite3_bind_int64(st, 7, se->captured_ns);
        rc = rc ? rc : xpl_db_run(st);
        (void)sqlite3_clear_bindings(st);
    }
    xpl_arena_fini(&a);
    if (rc == SQLITE_OK && !there) *id = sqlite3_last_insert_rowid(s->w->h);
    return rc;
}

static int write_hosts(struct xpl_sqlite_store *s, const struct xpl_session *se, int64_t id) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_HOST_DEL, &rc);
    if (st) rc = sqlite3_bind_int64(st, 1, id);
    if (st && rc == SQLITE_OK) rc = xpl_db_run(st);
    for (size_t i = 0; rc == SQLITE_OK && i < se->n_hosts; i++) {
        const struct xpl_host *h = &se->hosts[i];
        uint8_t fingerprint[40];
        xpl_store_fingerprint_bytes(&h->fingerprint, fingerprint);
        st = xpl_db_stmt(s->w, XPL_SQL_HOST_ADD, &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, id);
        rc = rc ? rc : xpl_db_bind_text(st, 2, h->name);
        rc = rc ? rc : xpl_db_bind_blob(st, 3, (xpl_bytes_t){fingerprint, sizeof fingerprint});
        rc = rc ? rc : xpl_db_bind_u64(st, 4, h->fingerprint.size);
        rc = rc ? rc : sqlite3_bind_int64(st, 5, h->fingerprint.mtime_ns);
        rc = rc ? rc : xpl_db_run(st);
        (void)sqlite3_clear_bindings(st);
    }
    return rc;
}

static int put_session(struct xpl_sqlite_store *s, const struct xpl_session *se) {
    int64_t id = -1, was = 0;
    const int64_t digest = xpl_store_session_digest(se);
    int rc = find_session(s, se, &id, &was);
    if (rc != SQLITE_OK || (id >= 0 && was == digest)) return rc;
    rc = write_session(s, se, digest, id >= 0, &id);
    return rc ? rc : write_hosts(s, se, id);
}

// Ids of sessions in the tables that are not in the snapshot.
static int find_removed(struct xpl_sqlite_store *s, const struct xpl_snapshot *snap,
                        struct xpl_arena *a, int64_t **ret, size_t *ret_n) {
    XPL_VEC(int64_t) gone = {0};
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_SESSION_ALL, &rc);
    if (!st) return rc;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 1);
        const int n = sqlite3_column_bytes(st, 1);
        if (text && xpl_snapshot_find(snap, (xpl_str_t){text, (size_t)n})) continue;
        int64_t *slot = text ? xpl_vec_push(a, &gone) : NULL;
        if (!slot) break;
        *slot = sqlite3_column_int64(st, 0);
    }
    (void)sqlite3_reset(st);
    *ret = gone.v;
    *ret_n = gone.n;
    return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_NOMEM : rc;
}

static int delete_removed(struct xpl_sqlite_store *s, const struct xpl_snapshot *snap) {
    struct xpl_arena a = xpl_arena_of((size_t)64 << 20);
    int64_t *gone = NULL;
    size_t n = 0;
    int rc = find_removed(s, snap, &a, &gone, &n);
    for (size_t i = 0; rc == SQLITE_OK && i < 2 * n; i++) {
        sqlite3_stmt *st = xpl_db_stmt(s->w, i % 2 ? XPL_SQL_SESSION_DEL : XPL_SQL_HOST_DEL, &rc);
        if (st) rc = sqlite3_bind_int64(st, 1, gone[i / 2]);
        if (st && rc == SQLITE_OK) rc = xpl_db_run(st);
    }
    xpl_arena_fini(&a);
    return rc;
}

xpl_status_t xpl_sqlite_put_catalogue(struct xpl_store *base, const struct xpl_snapshot *snap,
                                      const struct xpl_cancel *cancel, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool own, cancelled = false;
    XPL_TRY(xpl_tx_enter(&s->tx, &own, err));
    const bool all = !atomic_load(&s->tx.catalogue_known);
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && !cancelled && i < snap->n_sessions; i++)
        if (all || snap->sessions[i].changed > s->tx.catalogue_at) {
            rc = put_session(s, &snap->sessions[i]);
            cancelled = xpl_cancel_is_set(cancel);
        }
    if (rc == SQLITE_OK && !cancelled && (all || snap->removed > s->tx.catalogue_at))
        rc = delete_removed(s, snap);
    if (rc == SQLITE_OK && !cancelled) {
        s->tx.has_catalogue = true;
        s->tx.catalogue_new = snap->generation;
    }
    return xpl_tx_leave(&s->tx, own, rc, err);
}
