// SPDX-License-Identifier: Apache-2.0
// How the store opens its database and releases it: the lock, roles, damage.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "storage/make_dirs.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/dbfile.h"
#include "storage/store/sqlite/impl.h"

// A database that cannot be opened is tried again: at once a few times, as another process may be
// in the middle of something, then whenever something is to be written, after pauses that grow to
// RETRY_MAX_MS.
enum { BROKEN_KEPT = 2, TRIES = 5, RETRY_MIN_MS = 10, RETRY_MAX_MS = 5000, OTHERS_MS = 1000 };

// --- The lock file: who writes, and how the last writer ended ---

static void mark_lock(struct xpl_sqlite_store *s, bool open) {
    char text[64];
    const int n = open ? snprintf(text, sizeof text, "open %ld\n", (long)getpid())
                       : snprintf(text, sizeof text, "clean\n");
    // Best effort: on a full disk the stop just counts as unclean.
    if (ftruncate(s->lock_fd, 0) == 0 && pwrite(s->lock_fd, text, (size_t)n, 0) == n)
        (void)fdatasync(s->lock_fd);
}

// An empty mark is a full disk's, so unclean too.
static bool lock_says_unclean(struct xpl_sqlite_store *s, bool had_database) {
    char text[8] = {0};
    return had_database && (pread(s->lock_fd, text, 5, 0) < 5 || memcmp(text, "clean", 5) != 0);
}

static void drop_lock(struct xpl_sqlite_store *s) {
    if (s->lock_fd >= 0) (void)close(s->lock_fd);
    s->lock_fd = -1;
}

static bool move_aside(struct xpl_sqlite_store *s, const char *why) {
    char to[4096], buf[96];
    pthread_rwlock_wrlock(&s->opening);
    const bool moved = xpl_dbfile_move_aside(s->path, BROKEN_KEPT, to, sizeof to);
    const int why_not_moved = errno;
    pthread_rwlock_unlock(&s->opening);
    if (!moved) {
        xpl_sqlite_notice(s, "%s is broken (%s) and cannot be moved aside: %s", s->path, why,
                          strerror_r(why_not_moved, buf, sizeof buf));
        return false;
    }
    xpl_sqlite_notice(s, "%s was broken (%s); it is now %s, and a new one is begun", s->path, why,
                      to);
    atomic_fetch_add(&s->rebuilds, 1);
    return true;
}

// --- Attaching ---

static xpl_status_t refuse(struct xpl_sqlite_store *s, struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     "%s: a database of another program; use another state directory",
                     xpl_path_shown(s->path, &(struct xpl_path_text){0}));
}

// Why a database that is ours cannot be used as it is, or NULL.
static const char *unusable(enum xpl_db_kind kind) {
    return kind == XPL_DB_NEWER     ? "a newer xplaned made it, or its header is damaged"
           : kind == XPL_DB_DAMAGED ? "its header is damaged"
                                    : NULL;
}

// Everything that makes a database one that can be written.
static int make_ready(struct xpl_sqlite_store *s, struct xpl_db *db, enum xpl_db_kind kind) {
    int rc = xpl_db_make_ours(db, kind);
    if (rc == SQLITE_OK) rc = xpl_db_migrate(db, kind);
    if (rc == SQLITE_OK) rc = xpl_db_try_write(db);
    if (rc == SQLITE_OK) rc = xpl_db_prepare_all(db);
    return rc == SQLITE_OK ? xpl_sqlite_make_secret(s, db) : rc;
}

// Damage is repaired once, by beginning anew.
static int open_writer(struct xpl_sqlite_store *s, struct xpl_db **ret, enum xpl_db_kind *ret_kind,
                       char *why, size_t size) {
    for (int tries = 0;; tries++) {
        struct xpl_db *db = NULL;
        int rc = xpl_db_open(s->path, XPL_DB_WRITE, &xpl_cache_schema, &db, why, size);
        if (rc == SQLITE_OK) rc = xpl_db_kind(db, ret_kind);
        if (rc == SQLITE_OK && *ret_kind == XPL_DB_FOREIGN) {
            xpl_db_close(db);
            return SQLITE_OK;
        }
        const char *const bad = rc == SQLITE_OK ? unusable(*ret_kind) : NULL;
        if (rc == SQLITE_OK && !bad) rc = make_ready(s, db, *ret_kind);
        if (rc == SQLITE_OK && !bad) {
            *ret = db;
            return SQLITE_OK;
        }
        // After a rollback the connection has no message any more.
        const bool silent = db && !bad && sqlite3_errcode(db->h) == SQLITE_OK;
        if (db)
            (void)snprintf(why, size, "%s",
                           bad      ? bad
                           : silent ? sqlite3_errstr(rc)
                                    : sqlite3_errmsg(db->h));
        xpl_db_close(db);
        if (bad) rc = SQLITE_CORRUPT;
        const bool damage = xpl_sqlite_is_damage(rc) || (rc & 0xff) == SQLITE_ERROR;
        if (!damage || tries > 0 || !move_aside(s, why)) return rc;
    }
}

static bool cannot_write(int rc) {
    const int kind = rc & 0xff;
    return kind == SQLITE_READONLY || kind == SQLITE_CANTOPEN || kind == SQLITE_PERM;
}

// Whether the directory, and the database if there is one, let this process write.
static bool may_write(const struct xpl_sqlite_store *s) {
    return access(s->o.dir, W_OK | X_OK) == 0 && (access(s->path, W_OK) == 0 || errno == ENOENT);
}

// Files that come and go under other processes' hands (a log that is being removed, a database that
// was just renamed) make SQLite say that it cannot open or write: only for a moment.  Where the
// system lets us write and SQLite still says no, the header forbids it.
static int open_writer_patiently(struct xpl_sqlite_store *s, struct xpl_db **ret,
                                 enum xpl_db_kind *ret_kind, char *why, size_t size) {
    for (int tries = 1;; tries++) {
        const int rc = open_writer(s, ret, ret_kind, why, size);
        const int kind = rc & 0xff;
        const bool passing = (cannot_write(rc) && may_write(s)) || kind == SQLITE_BUSY ||
                             kind == SQLITE_LOCKED || kind == SQLITE_PROTOCOL;
        const bool forbidden = kind == SQLITE_READONLY && passing && tries == TRIES;
        if (forbidden && move_aside(s, why)) return open_writer(s, ret, ret_kind, why, size);
        if (!passing || tries == TRIES) return rc;
        const struct timespec pause = {.tv_nsec = 1000000L << tries};
        (void)nanosleep(&pause, NULL);
    }
}

// *ret_read: the file cannot be written, but perhaps read.
static xpl_status_t attach_writer(struct xpl_sqlite_store *s, bool *ret_read,
                                  struct xpl_error *err) {
    struct stat st;
    const bool first = !s->had_lock, had = stat(s->path, &st) == 0 && st.st_size > 0;
    enum xpl_db_kind kind = XPL_DB_OURS;
    struct xpl_db *db = NULL;
    char why[128] = "";
    const int rc = open_writer_patiently(s, &db, &kind, why, sizeof why);
    if (rc == SQLITE_OK && !db) return refuse(s, err);
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "opening the store");
    if (rc != SQLITE_OK) {
        *ret_read = cannot_write(rc);
        if (!*ret_read)
            xpl_sqlite_notice(s, "%s cannot be used (%s): nothing is kept for now", s->path, why);
        return XPL_OK;
    }
    s->had_lock = true;
    if (first) {
        atomic_store(&s->unclean, lock_says_unclean(s, had));
        s->checked = !atomic_load(&s->unclean);
    }
    mark_lock(s, true);
    s->w = db;
    atomic_store(&s->role, XPL_STORE_WRITER);
    uint64_t used = 0;
    if (xpl_sqlite_used(s, &used) == SQLITE_OK) atomic_store(&s->used_bytes, used);
    return XPL_OK;
}

// A database that nobody can be writing, as its directory cannot be written, has no use for locks
// (which could not be taken); one with a log that waits to be taken over must not be read so.
static bool try_immutable(struct xpl_sqlite_store *s) {
    char wal[4096];
    struct stat st;
    if (snprintf(wal, sizeof wal, "%s-wal", s->path) >= (int)sizeof wal) return false;
    if (access(s->o.dir, W_OK) == 0 || (stat(wal, &st) == 0 && st.st_size > 0)) return false;
    atomic_store(&s->immutable, true);
    return true;
}

// `others`: another daemon has the lock, and may be about to make the database.
static xpl_status_t attach_reader(struct xpl_sqlite_store *s, bool others, const char *why,
                                  struct xpl_error *err) {
    enum xpl_db_kind kind = XPL_DB_OURS;
    struct xpl_db *db = NULL;
    atomic_store(&s->immutable, false);
    int rc = xpl_sqlite_open_reader(s, &db, &kind);
    if (cannot_write(rc) && try_immutable(s)) rc = xpl_sqlite_open_reader(s, &db, &kind);
    if (rc == SQLITE_OK) xpl_db_close(db);
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "opening the store");
    if (rc == SQLITE_OK && kind == XPL_DB_FOREIGN) return refuse(s, err);
    if (rc == SQLITE_OK && unusable(kind)) {
        xpl_sqlite_notice(s, "%s cannot be used: %s; nothing is kept", s->path, unusable(kind));
    } else if (others || (rc == SQLITE_OK && kind == XPL_DB_OURS)) {
        xpl_sqlite_notice(s, "%s is only read: %s", s->path, why);
        atomic_store(&s->role, XPL_STORE_READER);
    } else {
        xpl_sqlite_notice(s, "%s cannot be used: %s; nothing is kept", s->path, why);
    }
    return XPL_OK;
}

// What the next attempt waits for, after one that gave no writer.
static void plan_retry(struct xpl_sqlite_store *s, bool others) {
    s->retry_ms = others                           ? OTHERS_MS
                  : !s->retry_ms                   ? RETRY_MIN_MS
                  : s->retry_ms * 2 < RETRY_MAX_MS ? s->retry_ms * 2
                                                   : RETRY_MAX_MS;
    s->retry_at_ns = xpl_clock_ns() + s->retry_ms * 1000000u;
}

// The text for a notice about a store that is not written, from the errno of locking.
static void why_not(enum xpl_dbfile_lock lock, char *why, size_t size) {
    char buf[96];
    if (lock == XPL_DBFILE_MINE)
        (void)snprintf(why, size, "it cannot be written");
    else if (lock == XPL_DBFILE_OTHERS)
        (void)snprintf(why, size, "another daemon writes it");
    else
        (void)snprintf(why, size, "it cannot be written (cache.db.lock: %s)",
                       strerror_r(errno, buf, sizeof buf));
}

xpl_status_t xpl_sqlite_attach(struct xpl_sqlite_store *s, struct xpl_error *err) {
    char why[160] = "as it was asked for";
    enum xpl_dbfile_lock lock = XPL_DBFILE_MINE;
    atomic_store(&s->role, XPL_STORE_OFF);
    atomic_store(&s->broken, false);
    atomic_store(&s->lost, false);
    xpl_sqlite_drop_readers(s);
    if (!s->o.read_only) {
        (void)xpl_make_dirs(s->o.dir, 0700); // what fails is found out by what comes after
        if (s->lock_fd < 0) lock = xpl_dbfile_lock(s->lock_path, &s->lock_fd);
        why_not(lock, why, sizeof why);
        if (lock == XPL_DBFILE_MINE) {
            bool read = false;
            const xpl_status_t st = attach_writer(s, &read, err);
            if (s->w) {
                s->retry_ms = 0;
                return XPL_OK;
            }
            drop_lock(s);
            plan_retry(s, false);
            if (st != XPL_OK || !read) return st;
        }
        plan_retry(s, lock == XPL_DBFILE_OTHERS);
    }
    return attach_reader(s, lock == XPL_DBFILE_OTHERS, why, err);
}

// A reader goes on reading while it waits for its turn to write.
xpl_status_t xpl_sqlite_try_again(struct xpl_sqlite_store *s, struct xpl_error *err) {
    xpl_assert_held(&s->tx.mu);
    if (s->w || s->o.read_only || xpl_clock_ns() < s->retry_at_ns) return XPL_OK;
    if (atomic_load(&s->role) == XPL_STORE_READER) {
        const enum xpl_dbfile_lock lock =
            may_write(s) ? xpl_dbfile_lock(s->lock_path, &s->lock_fd) : XPL_DBFILE_CANNOT;
        plan_retry(s, lock == XPL_DBFILE_OTHERS);
        if (lock != XPL_DBFILE_MINE) return XPL_OK;
    }
    return xpl_sqlite_attach(s, err);
}

void xpl_sqlite_detach(struct xpl_sqlite_store *s, bool clean) {
    atomic_store(&s->role, XPL_STORE_OFF);
    xpl_sqlite_drop_readers(s);
    xpl_db_close(s->w); // last, so that it can take over the log
    if (s->w && clean && s->lock_fd >= 0) mark_lock(s, false);
    s->w = NULL;
    atomic_store(&s->tx.catalogue_known, false);
    drop_lock(s);
}

void xpl_sqlite_rebuild(struct xpl_sqlite_store *s, const char *why) {
    xpl_assert_held(&s->tx.mu);
    atomic_store(&s->role, XPL_STORE_OFF);
    xpl_sqlite_drop_readers(s);
    xpl_db_close(s->w);
    s->w = NULL;
    atomic_store(&s->tx.catalogue_known, false);
    if (why && !move_aside(s, why)) {
        atomic_store(&s->broken, false);
        drop_lock(s);
        plan_retry(s, false);
        return;
    }
    if (why) s->checked = true;
    struct xpl_error err = {0};
    if (xpl_sqlite_attach(s, &err) != XPL_OK)
        xpl_sqlite_notice(s, "%s cannot be used: %s", s->path, err.msg);
}
