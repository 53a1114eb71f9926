// How the store comes to its database, and how it gives it up: the lock, roles, damage.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/impl.h"

enum { BROKEN_KEPT = 2 };

int64_t xpl_store_now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void xpl_store_notice(struct xpl_store *s, const char *fmt, ...) {
    char text[STORE_NOTICE_SIZE];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&s->mu);
    const unsigned last = (s->notice_first + s->n_notices + STORE_NOTICES - 1) % STORE_NOTICES;
    if (strcmp(s->notices[last], text) != 0) { // fetched ones stay there to be compared with
        const unsigned at = (last + 1) % STORE_NOTICES;
        memcpy(s->notices[at], text, sizeof text);
        if (s->n_notices == STORE_NOTICES)
            s->notice_first = (s->notice_first + 1) % STORE_NOTICES;
        else
            s->n_notices++;
    }
    pthread_mutex_unlock(&s->mu);
}

bool xpl_store_next_notice(struct xpl_store *s, char *buf, size_t size) {
    pthread_mutex_lock(&s->mu);
    const bool any = s->n_notices > 0;
    if (any) {
        (void)snprintf(buf, size, "%s", s->notices[s->notice_first]);
        s->notice_first = (s->notice_first + 1) % STORE_NOTICES;
        s->n_notices--;
    }
    pthread_mutex_unlock(&s->mu);
    return any;
}

bool xpl_store_is_damage(int rc) {
    const int kind = rc & 0xff;
    return kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_CONSTRAINT;
}

xpl_status_t xpl_store_fail(struct xpl_store *s, int rc, struct xpl_error *err) {
    // What the last system call said; SQLite keeps it only for some failures.  Writing calls begin
    // with 0.
    const int os = errno;
    const int kind = rc & 0xff;
    xpl_status_t code = XPL_INTERNAL;
    if (kind == SQLITE_NOMEM || kind == SQLITE_FULL || kind == SQLITE_TOOBIG ||
        (kind == SQLITE_IOERR && (os == ENOSPC || os == EDQUOT || os == EFBIG)))
        code = XPL_RESOURCE_EXHAUSTED;
    else if (kind == SQLITE_IOERR || kind == SQLITE_BUSY || kind == SQLITE_LOCKED ||
             kind == SQLITE_READONLY || kind == SQLITE_CANTOPEN || kind == SQLITE_PROTOCOL)
        code = XPL_UNAVAILABLE;
    else if (xpl_store_is_damage(rc))
        code = XPL_DATA_LOSS;
    XPL_RETURN_ERROR(err, code, XPL_PATH_FMT ": %s", XPL_PATH_ARGS(s->path), sqlite3_errstr(rc));
}

// --- Readers ---

void xpl_store_drop_readers(struct xpl_store *s) {
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
void xpl_store_read_failed(struct xpl_store *s, struct xpl_db *db, int rc) {
    atomic_fetch_add(&s->read_errors, 1);
    if (!xpl_store_is_damage(rc) || xpl_db_moved(db)) return;
    if (atomic_load(&s->role) == XPL_STORE_WRITER)
        atomic_store(&s->broken, true);
    else
        xpl_store_notice(s, "%s is broken (%s), and not ours to repair", s->path,
                         sqlite3_errstr(rc));
}

static int open_reader(struct xpl_store *s, struct xpl_db **ret, enum xpl_db_kind *ret_kind) {
    char why[128];
    struct xpl_db *db = NULL;
    int rc = xpl_db_open(s->path, atomic_load(&s->immutable) ? XPL_DB_READ_IMMUTABLE : XPL_DB_READ,
                         &db, why, sizeof why);
    if (rc == SQLITE_OK) rc = xpl_db_kind(db, ret_kind);
    // The file may be another one than before, with another secret.
    if (rc == SQLITE_OK && *ret_kind == XPL_DB_OURS) {
        const int got = xpl_store_load_secret(s, db);
        if (got == SQLITE_NOMEM)
            rc = got;
        else if (got != SQLITE_OK)
            xpl_store_read_failed(s, db, got);
    }
    if (rc == SQLITE_OK)
        *ret = db;
    else
        xpl_db_close(db);
    return rc;
}

void xpl_store_reader_done(struct xpl_store *s, struct xpl_db *db, int rc) {
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

void xpl_store_read_done(struct xpl_store *s, struct xpl_db *db, int rc) {
    const bool usual =
        rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE || rc == SQLITE_TOOBIG;
    if (!usual && rc != SQLITE_NOMEM) xpl_store_read_failed(s, db, rc);
    xpl_store_reader_done(s, db, usual ? SQLITE_OK : rc);
}

// An idle connection, or leave to open one (*ret_open, counted already); neither when OFF.
static struct xpl_db *claim_reader(struct xpl_store *s, bool *ret_open, uint64_t *ret_epoch) {
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

struct xpl_db *xpl_store_reader(struct xpl_store *s) {
    for (;;) {
        bool open = false;
        uint64_t epoch = 0;
        struct xpl_db *db = claim_reader(s, &open, &epoch);
        if (!db && !open) return NULL;
        if (db && !xpl_db_moved(db)) return db;
        if (db) { // the file was replaced (by its writer) or deleted
            xpl_store_reader_done(s, db, SQLITE_ABORT);
            if (atomic_load(&s->role) != XPL_STORE_WRITER) continue;
            atomic_store(&s->lost, true);
            return NULL;
        }
        enum xpl_db_kind kind = XPL_DB_OURS;
        const int rc = open_reader(s, &db, &kind);
        if (rc == SQLITE_OK && kind == XPL_DB_OURS) {
            db->epoch = epoch;
            return db;
        }
        if (rc == SQLITE_OK) xpl_db_close(db);
        if (rc != SQLITE_OK) atomic_fetch_add(&s->read_errors, 1);
        pthread_mutex_lock(&s->mu);
        if (xpl_store_is_damage(rc) && epoch == s->epoch) atomic_store(&s->broken, true);
        s->n_open--;
        pthread_cond_signal(&s->cond);
        pthread_mutex_unlock(&s->mu);
        return NULL;
    }
}

// --- The lock file: who writes, and how the last writer ended ---

enum lock { LOCK_MINE, LOCK_OTHERS, LOCK_CANNOT };

static enum lock take_lock(struct xpl_store *s) {
    const int fd = open(s->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return LOCK_CANNOT;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int e = errno;
        (void)close(fd);
        errno = e;
        return e == EWOULDBLOCK ? LOCK_OTHERS : LOCK_CANNOT;
    }
    s->lock_fd = fd;
    return LOCK_MINE;
}

static void mark_lock(struct xpl_store *s, bool open) {
    char text[64];
    const int n = open ? snprintf(text, sizeof text, "open %ld\n", (long)getpid())
                       : snprintf(text, sizeof text, "clean\n");
    // Best effort: on a full disk the stop just counts as unclean.
    if (ftruncate(s->lock_fd, 0) == 0 && pwrite(s->lock_fd, text, (size_t)n, 0) == n)
        (void)fdatasync(s->lock_fd);
}

// An empty mark is a full disk's, so unclean too.
static bool lock_says_unclean(struct xpl_store *s, bool had_database) {
    char text[8] = {0};
    return had_database && (pread(s->lock_fd, text, 5, 0) < 5 || memcmp(text, "clean", 5) != 0);
}

static void drop_lock(struct xpl_store *s) {
    if (s->lock_fd >= 0) (void)close(s->lock_fd);
    s->lock_fd = -1;
}

// --- Moving a broken database aside ---

static int name_desc(const void *a, const void *b) {
    return strcmp(*(char *const *)b, *(char *const *)a);
}

static int is_broken_db(const struct dirent *e) {
    static const char prefix[] = "cache.db.broken-";
    const size_t n = strlen(e->d_name);
    return strncmp(e->d_name, prefix, sizeof prefix - 1) == 0 &&
           strspn(e->d_name + sizeof prefix - 1, "0123456789") == n - (sizeof prefix - 1);
}

// A disk that breaks databases again and again must not fill up with them.
static void remove_old_broken(struct xpl_store *s) {
    char *names[64], path[4096];
    size_t n = 0;
    DIR *dir = opendir(s->o.dir);
    if (!dir) return;
    for (const struct dirent *e; n < 64 && (e = readdir(dir));)
        if (is_broken_db(e) && (names[n] = xpl_sys_alloc(strlen(e->d_name) + 1))) {
            memcpy(names[n], e->d_name, strlen(e->d_name) + 1);
            n++;
        }
    (void)closedir(dir);
    qsort(names, n, sizeof *names, name_desc);
    for (size_t i = 0; i < n; i++) {
        for (int wal = 0; i >= BROKEN_KEPT && wal < 2; wal++)
            if (snprintf(path, sizeof path, "%s/%s%s", s->o.dir, names[i], wal ? "-wal" : "") <
                (int)sizeof path)
                (void)unlink(path);
        xpl_sys_free(names[i]);
    }
}

static bool move_aside(struct xpl_store *s, const char *why) {
    char from[4096], to[4096];
    struct stat st;
    int64_t stamp = xpl_store_now_ms() / 1000;
    for (;; stamp++) { // a name that is free
        if (snprintf(to, sizeof to - 8, "%s.broken-%lld", s->path, (long long)stamp) >=
            (int)sizeof to - 8)
            return false;
        if (lstat(to, &st) != 0) break;
    }
    if (rename(s->path, to) != 0 && errno != ENOENT) {
        char buf[96];
        xpl_store_notice(s, "%s is broken (%s) and cannot be moved aside: %s", s->path, why,
                         strerror_r(errno, buf, sizeof buf));
        return false;
    }
    xpl_store_notice(s, "%s was broken (%s); it is now %s, and a new one is begun", s->path, why,
                     to);
    (void)snprintf(from, sizeof from, "%s-wal", s->path);
    strcat(to, "-wal");
    (void)rename(from, to);
    (void)snprintf(from, sizeof from, "%s-shm", s->path);
    (void)unlink(from);
    atomic_fetch_add(&s->rebuilds, 1);
    remove_old_broken(s);
    return true;
}

// --- Attaching ---

static xpl_status_t refuse(struct xpl_store *s, enum xpl_db_kind kind, struct xpl_error *err) {
    if (kind == XPL_DB_NEWER)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         XPL_PATH_FMT
                         ": written by a newer xplaned; use that one, or another state "
                         "directory, or delete the file (it is only a cache)",
                         XPL_PATH_ARGS(s->path));
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                     XPL_PATH_FMT ": a database of another program; use another state directory",
                     XPL_PATH_ARGS(s->path));
}

// Damage is repaired once, by beginning anew.
static int open_writer(struct xpl_store *s, struct xpl_db **ret, enum xpl_db_kind *ret_kind,
                       char *why, size_t size) {
    for (int tries = 0;; tries++) {
        struct xpl_db *db = NULL;
        int rc = xpl_db_open(s->path, XPL_DB_WRITE, &db, why, size);
        if (rc == SQLITE_OK) rc = xpl_db_kind(db, ret_kind);
        if (rc == SQLITE_OK && (*ret_kind == XPL_DB_NEWER || *ret_kind == XPL_DB_FOREIGN)) {
            xpl_db_close(db);
            return SQLITE_OK;
        }
        if (rc == SQLITE_OK) rc = xpl_db_make_ours(db, *ret_kind);
        if (rc == SQLITE_OK) rc = xpl_db_migrate(db, *ret_kind);
        if (rc == SQLITE_OK) rc = xpl_db_prepare_all(db);
        if (rc == SQLITE_OK) rc = xpl_store_make_secret(s, db);
        if (rc == SQLITE_OK) {
            *ret = db;
            return SQLITE_OK;
        }
        if (db) (void)snprintf(why, size, "%s", sqlite3_errmsg(db->h));
        xpl_db_close(db);
        const bool damage = xpl_store_is_damage(rc) || (rc & 0xff) == SQLITE_ERROR;
        if (!damage || tries > 0 || !move_aside(s, why)) return rc;
    }
}

static bool cannot_write(int rc) {
    const int kind = rc & 0xff;
    return kind == SQLITE_READONLY || kind == SQLITE_CANTOPEN || kind == SQLITE_PERM;
}

// *ret_read: the file cannot be written, but perhaps read.
static xpl_status_t attach_writer(struct xpl_store *s, bool *ret_read, struct xpl_error *err) {
    struct stat st;
    const bool first = s->tried_ms == 0, had = stat(s->path, &st) == 0 && st.st_size > 0;
    enum xpl_db_kind kind = XPL_DB_OURS;
    struct xpl_db *db = NULL;
    char why[128] = "";
    const int rc = open_writer(s, &db, &kind, why, sizeof why);
    if (rc == SQLITE_OK && !db) return refuse(s, kind, err);
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "opening the store");
    if (rc != SQLITE_OK) {
        *ret_read = cannot_write(rc);
        if (!*ret_read)
            xpl_store_notice(s, "%s cannot be used (%s): nothing is kept for now", s->path, why);
        return XPL_OK;
    }
    if (first) {
        atomic_store(&s->unclean, lock_says_unclean(s, had));
        s->checked = !atomic_load(&s->unclean);
    }
    mark_lock(s, true);
    s->w = db;
    atomic_store(&s->role, XPL_STORE_WRITER);
    uint64_t used = 0;
    if (xpl_store_used(s, &used) == SQLITE_OK) atomic_store(&s->used_bytes, used);
    return XPL_OK;
}

// A database that nobody can be writing, as its directory cannot be written, has no use for locks
// (which could not be taken); one with a log that waits to be taken over must not be read so.
static bool try_immutable(struct xpl_store *s) {
    char wal[4096];
    struct stat st;
    if (snprintf(wal, sizeof wal, "%s-wal", s->path) >= (int)sizeof wal) return false;
    if (access(s->o.dir, W_OK) == 0 || (stat(wal, &st) == 0 && st.st_size > 0)) return false;
    atomic_store(&s->immutable, true);
    return true;
}

// `others`: another daemon has the lock, and may be about to make the database.
static xpl_status_t attach_reader(struct xpl_store *s, bool others, const char *why,
                                  struct xpl_error *err) {
    enum xpl_db_kind kind = XPL_DB_OURS;
    struct xpl_db *db = NULL;
    atomic_store(&s->immutable, false);
    int rc = open_reader(s, &db, &kind);
    if (cannot_write(rc) && try_immutable(s)) rc = open_reader(s, &db, &kind);
    if (rc == SQLITE_OK) xpl_db_close(db);
    if (rc == SQLITE_NOMEM) XPL_RETURN_OOM(err, "opening the store");
    if (rc == SQLITE_OK && (kind == XPL_DB_NEWER || kind == XPL_DB_FOREIGN))
        return refuse(s, kind, err);
    if (others || (rc == SQLITE_OK && kind == XPL_DB_OURS)) {
        xpl_store_notice(s, "%s is only read: %s", s->path, why);
        atomic_store(&s->role, XPL_STORE_READER);
    } else {
        xpl_store_notice(s, "%s cannot be used: %s; nothing is kept", s->path, why);
    }
    return XPL_OK;
}

// mkdir -p; failing is found out by what comes after.
static void make_dirs(const char *dir) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path) return;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
    (void)mkdir(path, 0700);
}

xpl_status_t xpl_store_attach(struct xpl_store *s, struct xpl_error *err) {
    char why[160] = "as it was asked for", buf[96];
    bool others = false;
    atomic_store(&s->role, XPL_STORE_OFF);
    atomic_store(&s->broken, false);
    atomic_store(&s->lost, false);
    xpl_store_drop_readers(s);
    if (!s->o.read_only) {
        make_dirs(s->o.dir);
        const enum lock lock = s->lock_fd >= 0 ? LOCK_MINE : take_lock(s);
        others = lock == LOCK_OTHERS;
        if (lock == LOCK_MINE) {
            bool read = false;
            const xpl_status_t st = attach_writer(s, &read, err);
            s->tried_ms = xpl_store_now_ms();
            if (s->w) return XPL_OK;
            drop_lock(s);
            if (st != XPL_OK || !read) return st;
            (void)snprintf(why, sizeof why, "it cannot be written");
        } else if (others) {
            (void)snprintf(why, sizeof why, "another daemon writes it");
        } else {
            (void)snprintf(why, sizeof why, "it cannot be written (%s: %s)", "cache.db.lock",
                           strerror_r(errno, buf, sizeof buf));
        }
    }
    s->tried_ms = xpl_store_now_ms();
    return attach_reader(s, others, why, err);
}

void xpl_store_detach(struct xpl_store *s, bool clean) {
    atomic_store(&s->role, XPL_STORE_OFF);
    xpl_store_drop_readers(s);
    xpl_db_close(s->w); // last, so that it can take over the log
    if (s->w && clean && s->lock_fd >= 0) mark_lock(s, false);
    s->w = NULL;
    s->catalogue_known = false;
    drop_lock(s);
}

void xpl_store_rebuild(struct xpl_store *s, const char *why) {
    atomic_store(&s->role, XPL_STORE_OFF);
    xpl_store_drop_readers(s);
    xpl_db_close(s->w);
    s->w = NULL;
    s->catalogue_known = false;
    if (why && !move_aside(s, why)) {
        atomic_store(&s->broken, false);
        drop_lock(s);
        return;
    }
    if (why) s->checked = true;
    struct xpl_error err = {0};
    if (xpl_store_attach(s, &err) != XPL_OK)
        xpl_store_notice(s, "%s cannot be used: %s", s->path, err.msg);
}
