#include "storage/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/hash.h"
#include "storage/store/sqlite/impl.h"

enum { DEFAULT_READERS = 4, MAX_KEY = 64 << 20 };

// --- Opening and closing ---

static char *join(const char *dir, const char *file) {
    const size_t n = strlen(dir) + strlen(file) + 2;
    char *p = xpl_sys_alloc(n);
    if (p) (void)snprintf(p, n, "%s/%s", dir, file);
    return p;
}

static void store_free(struct xpl_store *s) {
    pthread_mutex_destroy(&s->write_mu);
    pthread_mutex_destroy(&s->mu);
    pthread_cond_destroy(&s->cond);
    xpl_sys_free(s->path);
    xpl_sys_free(s->lock_path);
    xpl_sys_free((void *)(uintptr_t)s->o.dir);
    xpl_sys_free(s);
}

xpl_status_t xpl_store_open(const struct xpl_store_options *o, struct xpl_store **ret,
                            struct xpl_error *err) {
    if (!o->dir || !o->dir[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "store: no directory given");
    struct xpl_store *s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "opening the store");
    memset(s, 0, sizeof *s);
    s->o = *o;
    s->o.dir = NULL;
    s->lock_fd = -1;
    s->checked = true;
    if (getrandom(s->secret, sizeof s->secret, 0) != sizeof s->secret) {
        xpl_sys_free(s);
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "store: the system gives no random numbers");
    }
    if (!s->o.readers) s->o.readers = DEFAULT_READERS;
    pthread_mutex_init(&s->write_mu, NULL);
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->cond, NULL);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    s->path = join(o->dir, "cache.db");
    s->lock_path = join(o->dir, "cache.db.lock");
    char *dir = xpl_sys_alloc(strlen(o->dir) + 1);
    if (dir) memcpy(dir, o->dir, strlen(o->dir) + 1);
    s->o.dir = dir;
    if (s->path && s->lock_path && dir)
        st = xpl_store_attach(s, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "store: out of memory");
    if (st != XPL_OK) {
        xpl_store_detach(s, false);
        store_free(s);
        return st;
    }
    *ret = s;
    return XPL_OK;
}

void xpl_store_close(struct xpl_store *s) {
    if (!s) return;
    if (s->w && !atomic_load(&s->broken)) {
        bool own;
        // Errors are counted, and cost only what was learnt of recent use.
        if (xpl_store_enter(s, &own, NULL) == XPL_OK)
            (void)xpl_store_leave(s, own, xpl_store_flush_touches(s), NULL);
    }
    xpl_store_detach(s, s->checked && !atomic_load(&s->broken));
    store_free(s);
}

enum xpl_store_role xpl_store_role(struct xpl_store *s) {
    return (enum xpl_store_role)atomic_load(&s->role);
}

bool xpl_store_was_unclean(struct xpl_store *s) {
    return atomic_load(&s->unclean);
}

void xpl_store_get_stats(struct xpl_store *s, struct xpl_store_stats *ret) {
    *ret = (struct xpl_store_stats){.role = xpl_store_role(s),
                                    .hits = atomic_load(&s->hits),
                                    .misses = atomic_load(&s->misses),
                                    .read_errors = atomic_load(&s->read_errors),
                                    .puts = atomic_load(&s->puts),
                                    .dropped = atomic_load(&s->dropped),
                                    .evicted = atomic_load(&s->evicted),
                                    .rebuilds = atomic_load(&s->rebuilds),
                                    .used_bytes = atomic_load(&s->used_bytes),
                                    .limit_bytes = s->o.limit_bytes};
}

// --- Keys ---

static void put_le(struct xpl_buf *b, uint64_t v, size_t bytes) {
    uint8_t out[8];
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    xpl_buf_put(b, out, bytes);
}

static void put_str(struct xpl_buf *b, xpl_str_t s) {
    put_le(b, s.len, 4);
    xpl_buf_str(b, s);
}

// The key as bytes: equal keys give equal bytes, different keys different ones.
static bool key_bytes(struct xpl_buf *b, const struct xpl_store_key *key) {
    xpl_buf_init(b, MAX_KEY);
    put_le(b, (uint64_t)key->kind, 1);
    put_le(b, key->version, 4);
    put_str(b, key->name);
    put_str(b, key->options);
    put_le(b, key->n_profiles, 4);
    for (size_t i = 0; i < key->n_profiles; i++)
        xpl_buf_put(b, key->profiles[i].bytes, sizeof key->profiles[i].bytes);
    put_le(b, key->hosts != NULL, 1);
    for (size_t i = 0; key->hosts && i < key->n_profiles; i++)
        put_str(b, key->hosts[i]);
    return !b->failed;
}

static xpl_bytes_t view(const struct xpl_buf *b) {
    return (xpl_bytes_t){b->p, b->n};
}

static int64_t digest_of(xpl_bytes_t key) {
    return (int64_t)xpl_digest64(key, 0);
}

// Over key, data and meta, so that bytes that belong to another key do not pass either.
static int64_t checksum_of(xpl_bytes_t key, xpl_bytes_t data, xpl_bytes_t meta) {
    return (int64_t)xpl_digest64(meta, xpl_digest64(data, xpl_digest64(key, 1)));
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
        if (rc == SQLITE_OK && checksum_of(key, (xpl_bytes_t){v->data, v->len},
                                           (xpl_bytes_t){v->meta, v->meta_len}) != checksum)
            rc = SQLITE_CORRUPT;
    }
    (void)sqlite3_reset(st);
    return rc;
}

static xpl_status_t get_with(struct xpl_store *s, xpl_bytes_t key, size_t max,
                             struct xpl_store_value *v, struct xpl_error *err) {
    struct xpl_db *db = xpl_store_reader(s);
    if (!db) return XPL_NOT_FOUND;
    int64_t id = 0;
    const int rc = fetch(db, key, max, v, &id);
    xpl_store_read_done(s, db, rc);
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

xpl_status_t xpl_store_get(struct xpl_store *s, const struct xpl_store_key *key, size_t max_bytes,
                           struct xpl_store_value *ret, struct xpl_error *err) {
    struct xpl_store_value v = {0};
    xpl_status_t st = XPL_NOT_FOUND;
    if (atomic_load(&s->role) != XPL_STORE_OFF) {
        struct xpl_buf b;
        st = key_bytes(&b, key) ? get_with(s, view(&b), max_bytes, &v, err)
                                : xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                                UINT64_MAX, "store: key too long or no memory");
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

bool xpl_store_has(struct xpl_store *s, const struct xpl_store_key *key) {
    struct xpl_buf b;
    int rc = SQLITE_NOMEM;
    struct xpl_db *db = key_bytes(&b, key) ? xpl_store_reader(s) : NULL;
    if (db) {
        rc = find_key(db, view(&b));
        xpl_store_read_done(s, db, rc);
    }
    xpl_buf_fini(&b);
    return rc == SQLITE_ROW;
}

// --- Writing results ---

static int delete_same(struct xpl_store *s, xpl_bytes_t key) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_RESULT_FIND, &rc);
    if (!st) return rc;
    int64_t id = -1;
    rc = sqlite3_bind_int64(st, 1, digest_of(key));
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, key);
    if (rc == SQLITE_OK) rc = xpl_db_int(st, -1, &id);
    return rc != SQLITE_OK || id < 0 ? rc : xpl_store_delete_result(s, id);
}

xpl_str_t xpl_store_kind_name(enum xpl_store_kind kind) {
    return kind == XPL_STORE_PRODUCT ? XPL_STR("product") : XPL_STR("answer");
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
    rc = rc ? rc : sqlite3_bind_int64(st, 9, checksum_of(bytes, data, meta));
    rc = rc ? rc : sqlite3_bind_int64(st, 10, xpl_store_now_ms());
    return rc ? rc : meta.len ? xpl_db_bind_blob(st, 11, meta) : sqlite3_bind_null(st, 11);
}

static int add_data(struct xpl_store *s, int64_t id, xpl_bytes_t data) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_db_stmt(s->w, XPL_SQL_DATA_ADD, &rc);
    if (!st) return rc;
    rc = sqlite3_bind_int64(st, 1, id);
    if (rc == SQLITE_OK) rc = xpl_db_bind_blob(st, 2, data);
    if (rc == SQLITE_OK) rc = xpl_db_run(st);
    (void)sqlite3_clear_bindings(st);
    return rc;
}

static int add_profiles(struct xpl_store *s, int64_t id, const struct xpl_store_key *key) {
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < key->n_profiles; i++) {
        int64_t profile = 0;
        rc = xpl_store_profile_row(s, &key->profiles[i], &profile);
        sqlite3_stmt *st = rc ? NULL : xpl_db_stmt(s->w, XPL_SQL_RESULT_PROFILE_ADD, &rc);
        if (!st) return rc;
        rc = sqlite3_bind_int64(st, 1, profile);
        if (rc == SQLITE_OK) rc = sqlite3_bind_int64(st, 2, id);
        if (rc == SQLITE_OK) rc = xpl_db_run(st);
    }
    return rc;
}

static int put_result(struct xpl_store *s, const struct xpl_store_key *key, xpl_bytes_t bytes,
                      xpl_bytes_t data, xpl_bytes_t meta) {
    int rc = delete_same(s, bytes);
    if (rc == SQLITE_OK) rc = xpl_store_make_room(s, data.len + meta.len + bytes.len + 512);
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

xpl_status_t xpl_store_put(struct xpl_store *s, const struct xpl_store_key *key, xpl_bytes_t data,
                           xpl_bytes_t meta, struct xpl_error *err) {
    bool own;
    XPL_TRY(xpl_store_enter(s, &own, err));
    int rc = SQLITE_TOOBIG;
    if (data.len <= XPL_STORE_MAX_RESULT && meta.len <= XPL_STORE_MAX_META) {
        struct xpl_buf b;
        rc = key_bytes(&b, key) ? put_result(s, key, view(&b), data, meta) : SQLITE_NOMEM;
        xpl_buf_fini(&b);
    }
    return xpl_store_leave(s, own, rc, err);
}

// --- Checking ---

struct watch {
    bool (*stop)(void *ctx);
    void *ctx;
    bool stopped;
    char found[160]; // what is wrong, in SQLite's words
};

static int on_progress(void *arg) {
    struct watch *w = arg;
    w->stopped = w->stopped || (w->stop && w->stop(w->ctx));
    return w->stopped;
}

static int integrity(struct xpl_db *db, struct watch *watch) {
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->h, "PRAGMA integrity_check(1)", -1, &st, NULL);
    sqlite3_progress_handler(db->h, 2000, on_progress, watch);
    if (rc == SQLITE_OK) rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        rc = !text ? SQLITE_NOMEM : strcmp(text, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
        if (rc == SQLITE_CORRUPT) (void)snprintf(watch->found, sizeof watch->found, "%s", text);
        for (char *p = watch->found; *p; p++)
            if (*p == '\n') *p = ' ';
    }
    sqlite3_finalize(st);
    sqlite3_progress_handler(db->h, 0, NULL, NULL);
    return rc;
}

// A want of memory, too, makes a page one that "cannot be got": a finding counts when it is found
// again.
static int integrity_twice(struct xpl_db *db, struct watch *watch) {
    const int rc = integrity(db, watch);
    return rc == SQLITE_CORRUPT ? integrity(db, watch) : rc;
}

xpl_status_t xpl_store_check(struct xpl_store *s, bool (*stop)(void *ctx), void *ctx,
                             struct xpl_error *err) {
    if (atomic_load(&s->role) == XPL_STORE_OFF)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not in use", s->path);
    struct watch watch = {.stop = stop, .ctx = ctx};
    struct xpl_db *db = NULL;
    char why[128];
    int rc = xpl_db_open(s->path, atomic_load(&s->immutable) ? XPL_DB_READ_IMMUTABLE : XPL_DB_READ,
                         &db, why, sizeof why);
    if (rc == SQLITE_OK) rc = integrity_twice(db, &watch);
    if (db && xpl_store_is_damage(rc)) xpl_store_read_failed(s, db, rc);
    xpl_db_close(db);
    if (watch.stopped) XPL_RETURN_ERROR(err, XPL_CANCELLED, "%s: check was stopped", s->path);
    if (rc == SQLITE_CORRUPT && watch.found[0])
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, XPL_PATH_FMT ": %s", XPL_PATH_ARGS(s->path),
                         watch.found);
    errno = 0;
    if (rc != SQLITE_OK) return xpl_store_fail(s, rc, err);
    pthread_mutex_lock(&s->write_mu);
    s->checked = true;
    pthread_mutex_unlock(&s->write_mu);
    atomic_store(&s->unclean, false);
    return XPL_OK;
}
