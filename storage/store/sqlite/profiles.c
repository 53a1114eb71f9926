// SPDX-License-Identifier: Apache-2.0
// Profiles, the files they lie in, and the secret that their ids are made with.
#include <string.h>

#include "storage/store/encoding.h"
#include "storage/store/sqlite/impl.h"

// ---- reading ----

static int find_file(struct xpl_db *db, xpl_bytes_t fingerprint, struct xpl_profile_id *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_FILE_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, fingerprint);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const void *p = sqlite3_column_blob(st, 0);
        if (p && sqlite3_column_bytes(st, 0) == sizeof ret->bytes)
            memcpy(ret->bytes, p, sizeof ret->bytes);
        else
            rc = p ? SQLITE_CORRUPT : SQLITE_NOMEM;
    }
    (void)sqlite3_reset(st);
    return rc;
}

bool xpl_sqlite_find_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                          struct xpl_profile_id *ret) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    uint8_t fingerprint[40];
    struct xpl_profile_id id;
    struct xpl_db *db = xpl_sqlite_reader(s);
    if (!db) return false;
    xpl_store_fingerprint_bytes(file, fingerprint);
    const int rc = find_file(db, (xpl_bytes_t){fingerprint, sizeof fingerprint}, &id);
    xpl_sqlite_read_done(s, db, rc);
    if (rc == SQLITE_ROW) *ret = id;
    return rc == SQLITE_ROW;
}

static int find_size(struct xpl_db *db, uint64_t bytes) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_SIZE_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_u64(st, 1, bytes);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    (void)sqlite3_reset(st);
    return rc;
}

bool xpl_sqlite_has_size(struct xpl_store *base, uint64_t bytes) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    struct xpl_db *db = xpl_sqlite_reader(s);
    if (!db) return false;
    const int rc = find_size(db, bytes);
    xpl_sqlite_read_done(s, db, rc);
    return rc == SQLITE_ROW;
}

// A row of FILE_LIST.
static int read_file_row(sqlite3_stmt *st, struct xpl_fingerprint *ret_file,
                         struct xpl_profile_id *ret_profile) {
    const void *const file = sqlite3_column_blob(st, 0), *const id = sqlite3_column_blob(st, 1);
    if (!file || !id) return SQLITE_NOMEM;
    if (sqlite3_column_bytes(st, 0) != 40 ||
        sqlite3_column_bytes(st, 1) != sizeof ret_profile->bytes)
        return SQLITE_CORRUPT;
    *ret_file = xpl_store_fingerprint_from(file);
    memcpy(ret_profile->bytes, id, sizeof ret_profile->bytes);
    return SQLITE_OK;
}

static int list_files(struct xpl_db *db, size_t max, xpl_store_file_fn *each, void *arg) {
    int rc = SQLITE_OK;
    bool more = true;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_FILE_LIST, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_u64(st, 1, max);
    while (more && rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct xpl_fingerprint file;
        struct xpl_profile_id profile;
        rc = read_file_row(st, &file, &profile);
        if (rc == SQLITE_OK) more = each(arg, &file, &profile);
    }
    (void)sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

// On a connection of its own: a long list keeps nobody waiting for one of the pool's.
bool xpl_sqlite_list_files(struct xpl_store *base, size_t max, xpl_store_file_fn *each, void *arg) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    struct xpl_db *db = NULL;
    enum xpl_db_kind kind = XPL_DB_OURS;
    if (atomic_load(&s->role) == XPL_STORE_OFF) return false;
    int rc = xpl_sqlite_open_reader(s, &db, &kind);
    const bool ours = rc == SQLITE_OK && kind == XPL_DB_OURS;
    if (ours) rc = list_files(db, max, each, arg);
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
        if (db)
            xpl_sqlite_read_failed(s, db, rc);
        else
            atomic_fetch_add(&s->read_errors, 1);
    }
    xpl_db_close(db);
    return ours && rc == SQLITE_OK;
}

static int has_rows(struct xpl_db *db, const struct xpl_profile_id *profile,
                    enum xpl_rows_kind kind, uint32_t version) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(
        db, kind == XPL_ROWS_OPS ? XPL_SQL_PROFILE_HAS_ROWS : XPL_SQL_PROFILE_HAS_MEMORY, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, (xpl_bytes_t){profile->bytes, sizeof profile->bytes});
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, version);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    (void)sqlite3_reset(st);
    return rc;
}

bool xpl_sqlite_has_rows(struct xpl_store *base, const struct xpl_profile_id *profile,
                         enum xpl_rows_kind kind, uint32_t version) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    struct xpl_db *db = xpl_sqlite_reader(s);
    if (!db) return false;
    const int rc = has_rows(db, profile, kind, version);
    xpl_sqlite_read_done(s, db, rc);
    return rc == SQLITE_ROW;
}

// ---- writing ----

int xpl_sqlite_profile_row(struct xpl_sqlite_store *s, const struct xpl_profile_id *profile,
                           int64_t *ret) {
    const xpl_bytes_t id = {profile->bytes, sizeof profile->bytes};
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, id);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, ret);
    if (rc != SQLITE_OK || *ret >= 0) return rc;
    st = xpl_db_stmt(s->w, XPL_SQL_PROFILE_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, id);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    if (rc == SQLITE_OK) *ret = sqlite3_last_insert_rowid(s->w->h);
    return rc;
}

static int add_file(struct xpl_sqlite_store *s, const struct xpl_fingerprint *file,
                    xpl_bytes_t fingerprint, const struct xpl_profile_id *profile) {
    int64_t row = -1;
    int rc = xpl_sqlite_profile_row(s, profile, &row);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_PROFILE_SIZE, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, row);
    if (rc == SQLITE_OK) rc = xpl_db_bind_u64(st, 2, file->size);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_FILE_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, fingerprint);
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, row);
    return rc == SQLITE_OK ? xpl_db_run(st) : rc;
}

xpl_status_t xpl_sqlite_put_file(struct xpl_store *base, const struct xpl_fingerprint *file,
                                 const struct xpl_profile_id *profile, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool own;
    uint8_t fingerprint[40];
    struct xpl_profile_id was;
    XPL_TRY(xpl_tx_enter(&s->tx, &own, err));
    xpl_store_fingerprint_bytes(file, fingerprint);
    int rc = find_file(s->w, (xpl_bytes_t){fingerprint, sizeof fingerprint}, &was);
    const bool same = rc == SQLITE_ROW && xpl_profile_id_eq(&was, profile);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK && !same)
        rc = add_file(s, file, (xpl_bytes_t){fingerprint, sizeof fingerprint}, profile);
    return xpl_tx_leave(&s->tx, own, rc, err);
}
