// SPDX-License-Identifier: Apache-2.0
// Opening, closing and checking the store, and the table of its functions.
#include "storage/store/sqlite/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/buf.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/impl.h"

enum { DEFAULT_READERS = 4 };

// --- Opening and closing ---

static char *join(const char *dir, const char *file) {
    const size_t n = strlen(dir) + strlen(file) + 2;
    char *p = xpl_sys_alloc(n);
    if (p) (void)snprintf(p, n, "%s/%s", dir, file);
    return p;
}

static void store_free(struct xpl_sqlite_store *s) {
    xpl_tx_fini(&s->tx);
    xpl_notices_fini(&s->notices);
    pthread_mutex_destroy(&s->mu);
    pthread_rwlock_destroy(&s->opening);
    pthread_cond_destroy(&s->cond);
    xpl_sys_free(s->path);
    xpl_sys_free(s->lock_path);
    xpl_sys_free((void *)(uintptr_t)s->o.dir);
    xpl_sys_free(s);
}

static void store_close(struct xpl_store *base) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    if (s->w && !atomic_load(&s->broken)) {
        bool own;
        // Errors are counted, and cost only what was learnt of recent use.
        if (xpl_tx_enter(&s->tx, &own, NULL) == XPL_OK)
            (void)xpl_tx_leave(&s->tx, own, xpl_sqlite_flush_touches(s), NULL);
    }
    xpl_sqlite_detach(s, s->checked && !atomic_load(&s->broken));
    store_free(s);
}

static enum xpl_store_role store_role(struct xpl_store *base) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    return (enum xpl_store_role)atomic_load(&s->role);
}

static bool store_was_unclean(struct xpl_store *base) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    return atomic_load(&s->unclean);
}

static void store_get_stats(struct xpl_store *base, struct xpl_store_stats *ret) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    *ret = (struct xpl_store_stats){.role = (enum xpl_store_role)atomic_load(&s->role),
                                    .hits = atomic_load(&s->hits),
                                    .misses = atomic_load(&s->misses),
                                    .read_errors = atomic_load(&s->read_errors),
                                    .puts = atomic_load(&s->tx.puts),
                                    .dropped = atomic_load(&s->tx.dropped),
                                    .evicted = atomic_load(&s->evicted),
                                    .rebuilds = atomic_load(&s->rebuilds),
                                    .used_bytes = atomic_load(&s->used_bytes),
                                    .limit_bytes = s->o.limit_bytes,
                                    .catalogue_known = atomic_load(&s->tx.catalogue_known)};
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

// A lack of memory, too, makes a page one that "cannot be got": a finding counts when it is found
// again.
static int integrity_twice(struct xpl_db *db, struct watch *watch) {
    const int rc = integrity(db, watch);
    return rc == SQLITE_CORRUPT ? integrity(db, watch) : rc;
}

static xpl_status_t store_check(struct xpl_store *base, bool (*stop)(void *ctx), void *ctx,
                                struct xpl_error *err) {
    struct xpl_sqlite_store *const s = xpl_sqlite_of(base);
    if (atomic_load(&s->role) == XPL_STORE_OFF)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "%s: not in use", s->path);
    struct watch watch = {.stop = stop, .ctx = ctx};
    struct xpl_db *db = NULL;
    char why[128];
    int rc = xpl_sqlite_open_to_read(s, &db, why, sizeof why);
    if (rc == SQLITE_OK) rc = integrity_twice(db, &watch);
    if (db && xpl_sqlite_is_damage(rc)) xpl_sqlite_read_failed(s, db, rc);
    xpl_db_close(db);
    if (watch.stopped) XPL_RETURN_ERROR(err, XPL_CANCELLED, "%s: check was stopped", s->path);
    if (rc == SQLITE_CORRUPT && watch.found[0])
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "%s: %s",
                         xpl_path_shown(s->path, &(struct xpl_path_text){0}), watch.found);
    errno = 0;
    if (rc != SQLITE_OK) return xpl_sqlite_fail(s, rc, err);
    pthread_mutex_lock(&s->tx.mu);
    s->checked = true;
    pthread_mutex_unlock(&s->tx.mu);
    atomic_store(&s->unclean, false);
    return XPL_OK;
}

// --- The table, and opening ---

static const struct xpl_store_ops ops = {
    .get = xpl_sqlite_get,
    .has = xpl_sqlite_has,
    .get_secret = xpl_sqlite_get_secret,
    .secret_generation = xpl_sqlite_secret_generation,
    .find_file = xpl_sqlite_find_file,
    .has_size = xpl_sqlite_has_size,
    .list_files = xpl_sqlite_list_files,
    .begin = xpl_tx_begin,
    .commit = xpl_tx_commit,
    .rollback = xpl_tx_rollback,
    .put = xpl_sqlite_put,
    .put_file = xpl_sqlite_put_file,
    .put_rows = xpl_sqlite_put_rows,
    .has_rows = xpl_sqlite_has_rows,
    .put_catalogue = xpl_sqlite_put_catalogue,
    .maintain = xpl_sqlite_maintain,
    .next_notice = xpl_sqlite_next_notice,
    .close = store_close,
    .role = store_role,
    .was_unclean = store_was_unclean,
    .get_stats = store_get_stats,
    .check = store_check,
};

xpl_status_t xpl_sqlite_open(const struct xpl_store_options *o, struct xpl_store **ret,
                             struct xpl_error *err) {
    if (!o->dir || !o->dir[0])
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "store: no directory given");
    struct xpl_sqlite_store *s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "opening the store");
    memset(s, 0, sizeof *s);
    xpl_tx_init(&s->tx, &ops, &xpl_sqlite_tx);
    s->o = *o;
    s->o.dir = NULL;
    s->lock_fd = -1;
    s->checked = true;
    if (getrandom(s->secret, sizeof s->secret, 0) != sizeof s->secret) {
        xpl_sys_free(s);
        XPL_RETURN_ERROR(err, XPL_INTERNAL, "store: the system gives no random numbers");
    }
    if (!s->o.readers) s->o.readers = DEFAULT_READERS;
    xpl_notices_init(&s->notices);
    pthread_mutex_init(&s->mu, NULL);
    pthread_rwlockattr_t writers_first; // readers that open all the time do not keep it from moving
    pthread_rwlockattr_init(&writers_first);
    (void)pthread_rwlockattr_setkind_np(&writers_first,
                                        PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&s->opening, &writers_first);
    pthread_rwlockattr_destroy(&writers_first);
    pthread_cond_init(&s->cond, NULL);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    s->path = join(o->dir, "cache.db");
    s->lock_path = join(o->dir, "cache.db.lock");
    char *dir = xpl_sys_alloc(strlen(o->dir) + 1);
    if (dir) memcpy(dir, o->dir, strlen(o->dir) + 1);
    s->o.dir = dir;
    if (s->path && s->lock_path && dir)
        st = xpl_sqlite_attach(s, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "store: out of memory");
    if (st != XPL_OK) {
        xpl_sqlite_detach(s, false);
        store_free(s);
        return st;
    }
    *ret = &s->tx.base;
    return XPL_OK;
}
