// SPDX-License-Identifier: Apache-2.0
// Results: their keys, reading and writing them.
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/heap.h"
#include "storage/hash.h"
#include "storage/store/encoding.h"
#include "storage/store/sqlite/impl.h"

// --- Keys ---

static xpl_bytes_t view(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

static int64_t digest_of(xpl_bytes_t key) {
    return (int64_t)xpl_digest64(key, 0);
}

// --- Reading ---

static void value_free(struct xpl_store_value *v) {
    xpl_sys_free(v->data);
    xpl_sys_free(v->meta);
    *v = (struct xpl_store_value){0};
}

// The bytes go from SQLite's pages to the caller's memory at once.
static int read_blob(struct xpl_db *db, int64_t id, int64_t size, size_t max,
                     struct xpl_store_value *v) {
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(db->h, "main", "result_data", "data", id, 0, &blob);
    if (rc == SQLITE_ERROR) rc = SQLITE_CORRUPT; // a result without its bytes
    if (rc == SQLITE_OK && sqlite3_blob_bytes(blob) != size) rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK && (uint64_t)size > max) rc = SQLITE_TOOBIG;
    if (rc == SQLITE_OK) {
        v->len = (size_t)size;
        v->data = xpl_sys_alloc(v->len + !v->len);
        if (!v->data)
            rc = SQLITE_NOMEM;
        else if (v->len)
            rc = sqlite3_blob_read(blob, v->data, (int)v->len, 0);
    }
    const int closed = sqlite3_blob_close(blob);
    return rc != SQLITE_OK ? rc : closed;
}

static int read_meta(sqlite3_stmt *st, int column, struct xpl_store_value *v) {
    const void *p = sqlite3_column_blob(st, column);
    const int n = sqlite3_column_bytes(st, column);
    if (n <= 0) return SQLITE_OK;
    if (!p) return SQLITE_NOMEM;
    v->meta = xpl_sys_alloc((size_t)n);
    if (!v->meta) return SQLITE_NOMEM;
    memcpy(v->meta, p, (size_t)n);
    v->meta_len = (size_t)n;
    return SQLITE_OK;
}

// SQLITE_DONE: no such result.  The statement stays open around the blob, so that both see the
// same state of the database.
static int fetch(struct xpl_db *db, xpl_bytes_t key, size_t max, struct xpl_store_value *v,
                 int64_t *ret_id) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_RESULT_FIND, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, digest_of(key));
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, key);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(st, 0);
        const int64_t checksum = sqlite3_column_int64(st, 2);
        rc = read_blob(db, *ret_id, sqlite3_column_int64(st, 1), max, v);
        if (rc == SQLITE_OK) rc = read_meta(st, 3, v);
        if (rc == SQLITE_OK && xpl_store_checksum(key, (xpl_bytes_t){v->data, v->len},
                                                  (xpl_bytes_t){v->meta, v->meta_len}) != checksum)
            rc = SQLITE_CORRUPT;
    }
    (void)sqlite3_reset(st);
    return rc;
}

static xpl_status_t get_with(struct xpl_sqlite_store *s, xpl_bytes_t key, size_t max,
                             struct xpl_store_value *v, struct xpl_error *err) {
    struct xpl_db *db = xpl_sqlite_reader(s);
    if (!db) return XPL_NOT_FOUND;
    int64_t id = 0;
    const int rc = fetch(db, key, max, v, &id);
    xpl_sqlite_read_done(s, db, rc);
    if (rc == SQLITE_OK) {
        // Which results are in use is noted here and written later; a collision forgets one.
        atomic_store_explicit(&s->touched[(uint64_t)id % STORE_TOUCHES], id, memory_order_relaxed);
        return XPL_OK;
    }
    value_free(v);
    if (rc == SQLITE_DONE) return XPL_NOT_FOUND;
    if (rc == SQLITE_TOOBIG)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "stored result: larger than the limit of %zu bytes", max);
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "stored result");
    return XPL_NOT_FOUND;
}

xpl_status_t xpl_sqlite_get(struct xpl_store *base, const struct xpl_store_key *key,
                            size_t max_bytes, struct xpl_store_value *ret, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    struct xpl_store_value v = {0};
    xpl_status_t st = XPL_NOT_FOUND;
    if (atomic_load(&s->role) != XPL_STORE_OFF) {
        struct xpl_buf b;
        st = xpl_store_key_bytes(key, &b)
                 ? get_with(s, view(&b), max_bytes, &v, err)
                 : xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                                 "store: key too long or no memory");
        xpl_buf_fini(&b);
    }
    atomic_fetch_add(st == XPL_OK ? &s->hits : &s->misses, 1);
    if (st == XPL_OK) *ret = v;
    return st;
}

static int find_key(struct xpl_db *db, xpl_bytes_t key) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(db, XPL_SQL_RESULT_FIND, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, digest_of(key));
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, key);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    (void)sqlite3_reset(st);
    return rc;
}

bool xpl_sqlite_has(struct xpl_store *base, const struct xpl_store_key *key) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    struct xpl_buf b;
    int rc = SQLITE_NOMEM;
    struct xpl_db *db = xpl_store_key_bytes(key, &b) ? xpl_sqlite_reader(s) : NULL;
    if (db) {
        rc = find_key(db, view(&b));
        xpl_sqlite_read_done(s, db, rc);
    }
    xpl_buf_fini(&b);
    return rc == SQLITE_ROW;
}

// --- Writing results ---

static int delete_same(struct xpl_sqlite_store *s, xpl_bytes_t key) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_RESULT_FIND, &rc);
    if (!st) return rc;
    int64_t id = -1;
    rc = sqlite3_bind_int64(st, 1, digest_of(key));
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, key);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, &id);
    return rc != SQLITE_OK || id < 0 ? rc : xpl_sqlite_delete_result(s, id);
}

static int bind_result(sqlite3_stmt *st, const struct xpl_store_key *key, xpl_bytes_t bytes,
                       xpl_bytes_t data, xpl_bytes_t meta) {
    int rc = sqlite3_bind_int64(st, 1, digest_of(bytes));
    rc = rc ? rc : xpl_db_bind_blob(st, 2, bytes);
    rc = rc ? rc : xpl_db_bind_text(st, 3, xpl_store_kind_name(key->kind));
    rc = rc ? rc : xpl_db_bind_text(st, 4, key->name);
    rc = rc ? rc : xpl_db_bind_text(st, 5, key->options);
    rc = rc ? rc : sqlite3_bind_int64(st, 6, key->version);
    rc = rc ? rc : sqlite3_bind_int64(st, 7, (int64_t)key->n_profiles);
    rc = rc ? rc : sqlite3_bind_int64(st, 8, (int64_t)data.len);
    rc = rc ? rc : sqlite3_bind_int64(st, 9, xpl_store_checksum(bytes, data, meta));
    rc = rc ? rc : sqlite3_bind_int64(st, 10, xpl_unix_ms());
    return rc ? rc : meta.len ? xpl_db_bind_blob(st, 11, meta) : sqlite3_bind_null(st, 11);
}

// SQLite makes a row of all its columns first, so that for a moment there is a copy of the data: it
// counts like a block of our own.
static int add_data(struct xpl_sqlite_store *s, int64_t id, xpl_bytes_t data) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_DATA_ADD, &rc);
    if (!st) return rc;
    if (!xpl_heap_take(data.len)) return SQLITE_NOMEM;
    rc = sqlite3_bind_int64(st, 1, id);
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, data);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    xpl_heap_give(data.len);
    return rc;
}

static int add_profiles(struct xpl_sqlite_store *s, int64_t id, const struct xpl_store_key *key) {
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < key->n_profiles; i++) {
        int64_t profile = 0;
        rc = xpl_sqlite_profile_row(s, &key->profiles[i], &profile);
        sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_RESULT_PROFILE_ADD, &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, profile);
        if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, id);
        if (rc == SQLITE_OK) rc = xpl_db_run(st);
    }
    return rc;
}

static int put_result(struct xpl_sqlite_store *s, const struct xpl_store_key *key,
                      xpl_bytes_t bytes, xpl_bytes_t data, xpl_bytes_t meta) {
    int rc = delete_same(s, bytes);
    if (rc == SQLITE_OK) rc = xpl_sqlite_make_room(s, data.len + meta.len + bytes.len + 512);
    sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_RESULT_ADD, &rc);
    if (!st) return rc;
    rc = bind_result(st, key, bytes, data, meta);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    if (rc != SQLITE_OK) return rc;
    const int64_t id = sqlite3_last_insert_rowid(s->w->h);
    rc = add_data(s, id, data);
    return rc ? rc : add_profiles(s, id, key);
}

xpl_status_t xpl_sqlite_put(struct xpl_store *base, const struct xpl_store_key *key,
                            xpl_bytes_t data, xpl_bytes_t meta, struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    bool own;
    XPL_TRY(xpl_tx_enter(&s->tx, &own, err));
    int rc = SQLITE_TOOBIG;
    if (data.len <= XPL_STORE_MAX_RESULT && meta.len <= XPL_STORE_MAX_META) {
        struct xpl_buf b;
        rc = xpl_store_key_bytes(key, &b) ? put_result(s, key, view(&b), data, meta) : SQLITE_NOMEM;
        xpl_buf_fini(&b);
    }
    return xpl_tx_leave(&s->tx, own, rc, err);
}
