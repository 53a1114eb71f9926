// Profiles, the files they lie in, and the secret that their ids are made with.
#include <stdio.h>
#include <string.h>

#include "storage/store/sqlite/impl.h"

void xpl_store_print_bytes(const struct xpl_fingerprint *p, uint8_t out[40]) {
    const uint64_t v[5] = {p->dev, p->ino, p->size, (uint64_t)p->mtime_ns, (uint64_t)p->ctime_ns};
    for (size_t i = 0; i < 40; i++)
        out[i] = (uint8_t)(v[i / 8] >> (8 * (i % 8)));
}

// ---- reading ----

static int find_file(struct xpl_db *db, xpl_bytes_t print, struct xpl_profile_id *ret) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_FILE_FIND, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, print);
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

bool xpl_store_find_file(struct xpl_store *s, const struct xpl_fingerprint *file,
                         struct xpl_profile_id *ret) {
    uint8_t print[40];
    struct xpl_profile_id id;
    struct xpl_db *db = xpl_store_reader(s);
    if (!db) return false;
    xpl_store_print_bytes(file, print);
    const int rc = find_file(db, (xpl_bytes_t){print, sizeof print}, &id);
    xpl_store_read_done(s, db, rc);
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

bool xpl_store_has_size(struct xpl_store *s, uint64_t bytes) {
    struct xpl_db *db = xpl_store_reader(s);
    if (!db) return false;
    const int rc = find_size(db, bytes);
    xpl_store_read_done(s, db, rc);
    return rc == SQLITE_ROW;
}

static int has_rows(struct xpl_db *db, const struct xpl_profile_id *profile, uint32_t version) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_PROFILE_HAS_ROWS, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, (xpl_bytes_t){profile->bytes, sizeof profile->bytes});
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, version);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    (void)sqlite3_reset(st);
    return rc;
}

bool xpl_store_has_rows(struct xpl_store *s, const struct xpl_profile_id *profile,
                        uint32_t version) {
    struct xpl_db *db = xpl_store_reader(s);
    if (!db) return false;
    const int rc = has_rows(db, profile, version);
    xpl_store_read_done(s, db, rc);
    return rc == SQLITE_ROW;
}

// ---- writing ----

int xpl_store_profile_row(struct xpl_store *s, const struct xpl_profile_id *profile, int64_t *ret) {
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

static int add_file(struct xpl_store *s, const struct xpl_fingerprint *file, xpl_bytes_t print,
                    const struct xpl_profile_id *profile) {
    int64_t row = -1;
    int rc = xpl_store_profile_row(s, profile, &row);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_PROFILE_SIZE, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, row);
    if (rc == SQLITE_OK) rc = xpl_db_bind_u64(st, 2, file->size);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_FILE_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, print);
    if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, row);
    return rc == SQLITE_OK ? xpl_db_run(st) : rc;
}

xpl_status_t xpl_store_put_file(struct xpl_store *s, const struct xpl_fingerprint *file,
                                const struct xpl_profile_id *profile, struct xpl_error *err) {
    bool own;
    uint8_t print[40];
    struct xpl_profile_id was;
    XPL_TRY(xpl_store_enter(s, &own, err));
    xpl_store_print_bytes(file, print);
    int rc = find_file(s->w, (xpl_bytes_t){print, sizeof print}, &was);
    const bool same = rc == SQLITE_ROW && xpl_profile_id_eq(&was, profile);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK && !same)
        rc = add_file(s, file, (xpl_bytes_t){print, sizeof print}, profile);
    return xpl_store_leave(s, own, rc, err);
}

// ---- the secret ----

uint64_t xpl_store_get_secret(struct xpl_store *s, uint8_t ret[XPL_STORE_SECRET]) {
    pthread_mutex_lock(&s->mu);
    memcpy(ret, s->secret, XPL_STORE_SECRET);
    const uint64_t generation = atomic_load(&s->secret_generation);
    pthread_mutex_unlock(&s->mu);
    return generation;
}

uint64_t xpl_store_secret_generation(struct xpl_store *s) {
    return atomic_load(&s->secret_generation);
}

// SQLITE_DONE: the database has none.
static int read_secret(struct xpl_store *s, struct xpl_db *db) {
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
            xpl_store_set_secret(s, p);
    }
    (void)sqlite3_reset(st);
    return rc;
}

int xpl_store_load_secret(struct xpl_store *s, struct xpl_db *db) {
    const int rc = read_secret(s, db);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void xpl_store_set_secret(struct xpl_store *s, const uint8_t secret[XPL_STORE_SECRET]) {
    pthread_mutex_lock(&s->mu);
    if (memcmp(s->secret, secret, XPL_STORE_SECRET) != 0) {
        memcpy(s->secret, secret, XPL_STORE_SECRET);
        atomic_fetch_add(&s->secret_generation, 1);
    }
    pthread_mutex_unlock(&s->mu);
}

int xpl_store_make_secret(struct xpl_store *s, struct xpl_db *db) {
    int rc = read_secret(s, db);
    if (rc != SQLITE_DONE) return rc == SQLITE_ROW ? SQLITE_OK : rc;
    // What this process has used so far stays: ids that are remembered are still right.
    uint8_t secret[XPL_STORE_SECRET];
    (void)xpl_store_get_secret(s, secret);
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_SECRET_ADD, &rc);
    if (!st) return rc;
    rc = xpl_db_bind_blob(st, 1, (xpl_bytes_t){secret, sizeof secret});
    return rc == SQLITE_OK ? xpl_db_run(st) : rc;
}
