// SPDX-License-Identifier: Apache-2.0
#include "storage/store/sqlite/history_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"
#include "storage/make_dirs.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/dbfile.h"

// ---- the schema, by version; docs/schema.md describes it for people ----

static const char step_1[] =
    "CREATE TABLE captures("
    " id INTEGER PRIMARY KEY, state INTEGER NOT NULL, session TEXT NOT NULL,"
    " code INTEGER NOT NULL, message TEXT NOT NULL,"
    " begin_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, duration_ms INTEGER NOT NULL,"
    " schedule_id INTEGER NOT NULL);"
    "CREATE TABLE capture_hosts("
    " capture_id INTEGER NOT NULL REFERENCES captures(id), seq INTEGER NOT NULL,"
    " target TEXT NOT NULL, host TEXT NOT NULL, state INTEGER NOT NULL, code INTEGER NOT NULL,"
    " reason TEXT NOT NULL, bytes INTEGER NOT NULL, attempts INTEGER NOT NULL,"
    " PRIMARY KEY(capture_id, seq)) WITHOUT ROWID;"
    // Only of captures that run: what they made, to be cleaned up by the next daemon.
    "CREATE TABLE capture_directories("
    " capture_id INTEGER PRIMARY KEY REFERENCES captures(id), path TEXT NOT NULL,"
    " dev INTEGER NOT NULL, ino INTEGER NOT NULL);"
    // AUTOINCREMENT: the number of a schedule that was deleted never means another one.
    "CREATE TABLE schedules("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, request BLOB NOT NULL, created_ms INTEGER NOT NULL,"
    " next_ms INTEGER NOT NULL, last_capture_id INTEGER NOT NULL);"
    "CREATE TABLE schedule_sessions("
    " schedule_id INTEGER NOT NULL REFERENCES schedules(id), name TEXT NOT NULL,"
    " dev INTEGER NOT NULL, ino INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " made_ms INTEGER NOT NULL, hosts INTEGER NOT NULL,"
    " PRIMARY KEY(schedule_id, name)) WITHOUT ROWID;";
static const char *const step_1_parts[] = {step_1, NULL};
// What people call sessions.  A session has a row for each of its labels.
static const char step_2[] = "CREATE TABLE labels("
                             " session TEXT NOT NULL, label TEXT NOT NULL, set_ms INTEGER NOT NULL,"
                             " PRIMARY KEY(session, label)) WITHOUT ROWID;";
static const char *const step_2_parts[] = {step_2, NULL};
static const char *const *const steps[] = {step_1_parts, step_2_parts};

static const struct xpl_db_schema schema = {
    .application_id = 0x58504c73, // "XPLs"
    .steps = steps,
    .version = sizeof steps / sizeof *steps,
    .own_table = "capture_hosts",
    .setup_write = "PRAGMA synchronous=FULL; PRAGMA cache_size=-512;",
    .setup_empty = "PRAGMA journal_mode=WAL;",
};

// ---- small things ----

__attribute__((format(printf, 2, 3))) static void note(struct xpl_history *h, const char *fmt,
                                                       ...) {
    if (h->n_notices == NOTICES) return;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(h->notices[atomic_fetch_add(&h->n_notices, 1)], NOTICE_SIZE, fmt, ap);
    va_end(ap);
}

bool xpl_history_next_notice(struct xpl_history *h, char *buf, size_t size) {
    if (!atomic_load(&h->n_notices)) return false;
    pthread_mutex_lock(&h->mu);
    const bool any = h->n_notices > 0;
    if (any) {
        (void)snprintf(buf, size, "%s", h->notices[0]);
        memmove(h->notices[0], h->notices[1],
                (size_t)(atomic_fetch_sub(&h->n_notices, 1) - 1) * NOTICE_SIZE);
    }
    pthread_mutex_unlock(&h->mu);
    return any;
}

bool xpl_history_is_on(struct xpl_history *h) {
    return atomic_load(&h->on);
}

bool xpl_history_was_replaced(struct xpl_history *h) {
    return atomic_load(&h->replaced);
}

static void set_conn(struct xpl_history *h, struct xpl_db *conn) {
    h->conn = conn;
    atomic_store(&h->on, conn != NULL);
}

int xpl_hist_exec(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

sqlite3_stmt *xpl_hist_prepare(sqlite3 *db, const char *sql, int *rc) {
    sqlite3_stmt *st = NULL;
    if (*rc == SQLITE_OK) *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    return st;
}

void xpl_hist_run(sqlite3_stmt *st, int *rc) {
    if (*rc == SQLITE_OK) {
        const int got = sqlite3_step(st);
        *rc = got == SQLITE_DONE || got == SQLITE_ROW ? SQLITE_OK : got;
    }
    sqlite3_finalize(st);
}

void xpl_hist_bind_int(sqlite3_stmt *st, int at, int64_t v, int *rc) {
    if (*rc == SQLITE_OK) *rc = sqlite3_bind_int64(st, at, v);
}
void xpl_hist_bind_text(sqlite3_stmt *st, int at, xpl_str_t s, int *rc) {
    if (*rc == SQLITE_OK)
        *rc = sqlite3_bind_text64(st, at, s.ptr ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8);
}
void xpl_hist_bind_u64(sqlite3_stmt *st, int at, uint64_t v, int *rc) {
    xpl_hist_bind_int(st, at, (int64_t)v, rc);
}

int64_t xpl_hist_read_int(sqlite3 *db, const char *sql, int *rc) {
    sqlite3_stmt *st = xpl_hist_prepare(db, sql, rc);
    int64_t v = 0;
    if (*rc == SQLITE_OK) {
        const int got = sqlite3_step(st);
        if (got == SQLITE_ROW) v = sqlite3_column_int64(st, 0);
        if (got != SQLITE_ROW && got != SQLITE_DONE) *rc = got;
    }
    sqlite3_finalize(st);
    return v;
}

// ---- open ----

static int check(sqlite3 *db) {
    int rc = SQLITE_OK;
    sqlite3_stmt *st = xpl_hist_prepare(db, "PRAGMA quick_check(1)", &rc);
    if (rc == SQLITE_OK) {
        const int got = sqlite3_step(st);
        const unsigned char *const text = got == SQLITE_ROW ? sqlite3_column_text(st, 0) : NULL;
        rc = got != SQLITE_ROW                           ? got
             : !text || strcmp((const char *)text, "ok") ? SQLITE_CORRUPT
                                                         : rc;
    }
    sqlite3_finalize(st);
    return rc;
}

// What was running when the last daemon ended does so no more.
static int interrupt(sqlite3 *db) {
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE capture_hosts SET state=%d, code=%d, reason='the daemon ended before "
                   "the capture did: capture again' WHERE capture_id IN "
                   "(SELECT id FROM captures WHERE state=%d);"
                   "UPDATE captures SET state=%d WHERE state=%d",
                   (int)XPL_HISTORY_HOST_FAILED, (int)XPL_ABORTED, (int)XPL_HISTORY_RUNNING,
                   (int)XPL_HISTORY_INTERRUPTED, (int)XPL_HISTORY_RUNNING);
    return xpl_hist_exec(db, sql);
}

// FAILED_PRECONDITION when the file is not ours to use; *ret_rc says the rest: SQLITE_CORRUPT also
// for a header that does not fit, which an older xplaned cannot tell from damage.
static xpl_status_t set_up(struct xpl_history *h, struct xpl_db *db, int *ret_rc,
                           struct xpl_error *err) {
    enum xpl_db_kind kind = XPL_DB_OURS;
    int rc = xpl_db_kind(db, &kind);
    if (rc == SQLITE_OK && kind == XPL_DB_FOREIGN)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%s: a database of another program; set another --state-dir",
                         xpl_path_shown(h->path, &(struct xpl_path_text){0}));
    if (rc == SQLITE_OK && (kind == XPL_DB_NEWER || kind == XPL_DB_DAMAGED)) rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK) rc = xpl_db_make_ours(db, kind);
    if (rc == SQLITE_OK) rc = xpl_db_migrate(db, kind);
    if (rc == SQLITE_OK) rc = xpl_db_try_write(db);
    // New tables are in the log alone until a checkpoint: whoever loses that, or copies the main
    // file, would have an empty file, and a new history would begin without a word.
    if (rc == SQLITE_OK && kind != XPL_DB_OURS)
        (void)sqlite3_wal_checkpoint_v2(db->h, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    // Small enough to be read as a whole: damage shows now, not in the middle of a capture.
    if (rc == SQLITE_OK) rc = check(db->h);
    if (rc == SQLITE_OK) rc = interrupt(db->h);
    *ret_rc = rc;
    return XPL_OK;
}

// Whether the header asks for a way of writing that SQLite does not know: it then only reads. It
// also only reads when state.db-wal cannot be opened, which is not damage.
static bool has_odd_format(const char *path) {
    enum { WRITE_VERSION = 18, KNOWN = 2 };
    unsigned char version = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool read = fd >= 0 && pread(fd, &version, 1, WRITE_VERSION) == 1;
    if (fd >= 0) (void)close(fd);
    return read && version > KNOWN;
}

// A format or tables that are not what they should be are damage, too.
static int status_of_sqlite(const struct xpl_history *h, int rc) {
    const bool odd =
        (rc & 0xff) == SQLITE_ERROR || ((rc & 0xff) == SQLITE_READONLY && has_odd_format(h->path));
    return odd ? SQLITE_CORRUPT : rc;
}

// Opens the database, or sets *ret_rc.
static xpl_status_t attach(struct xpl_history *h, int *ret_rc, struct xpl_error *err) {
    struct xpl_db *db = NULL;
    char why[128];
    *ret_rc = xpl_db_open(h->path, XPL_DB_WRITE, &schema, &db, why, sizeof why);
    xpl_status_t st = XPL_OK;
    if (*ret_rc == SQLITE_OK) st = set_up(h, db, ret_rc, err);
    *ret_rc = status_of_sqlite(h, *ret_rc);
    if (st == XPL_OK && *ret_rc == SQLITE_OK)
        set_conn(h, db);
    else
        xpl_db_close(db);
    return st;
}

// Renames the database, so that a new one can be begun.  All broken ones stay: what is in them
// cannot be made again.
static bool move_aside(struct xpl_history *h) {
    char name[PATH_MAX];
    if (!xpl_dbfile_move_aside(h->path, 0, name, sizeof name)) return false;
    const char *const slash = strrchr(name, '/');
    note(h,
         "state.db was broken (or a newer xplaned made it) and is now %s: history and schedules "
         "begin anew",
         slash ? slash + 1 : name);
    atomic_store(&h->replaced, true);
    return true;
}

static void note_off(struct xpl_history *h, int rc) {
    note(h, "%s: %s: capture history and schedules are off until it can be used",
         xpl_path_shown(h->path, &(struct xpl_path_text){0}), sqlite3_errstr(rc));
}

// `again`: it was said before why there is none.
static xpl_status_t attach_or_replace(struct xpl_history *h, bool again, struct xpl_error *err) {
    int rc = SQLITE_OK;
    XPL_TRY(attach(h, &rc, err));
    if (xpl_db_is_damage(rc) && move_aside(h)) XPL_TRY(attach(h, &rc, err));
    if (rc != SQLITE_OK && !again) note_off(h, rc);
    return XPL_OK;
}

static bool lock_database(struct xpl_history *h, bool again) {
    if (h->lock_fd >= 0) return true;
    const enum xpl_dbfile_lock lock = xpl_dbfile_lock(h->lock_path, &h->lock_fd);
    if (lock == XPL_DBFILE_MINE) return true;
    char why[96];
    if (!again)
        note(h, "%s: %s: capture history and schedules are off here until then",
             xpl_path_shown(h->path, &(struct xpl_path_text){0}),
             lock == XPL_DBFILE_OTHERS ? "another daemon has it; it is taken when that ends"
                                       : strerror_r(errno, why, sizeof why));
    return false;
}

static xpl_status_t take_database(struct xpl_history *h, bool again, struct xpl_error *err) {
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strlen(h->path) - strlen("/state.db")), h->path);
    if (!xpl_make_dirs(dir, 0755) && !again)
        note(h, "%s: %s: capture history and schedules are off until it can be created",
             xpl_path_shown(dir, &(struct xpl_path_text){0}), strerror(errno));
    else if (lock_database(h, again))
        return attach_or_replace(h, again, err);
    return XPL_OK;
}

bool xpl_history_try_again(struct xpl_history *h) {
    if (atomic_load(&h->on)) return false;
    struct xpl_error err = {0};
    pthread_mutex_lock(&h->mu);
    if (!h->conn && take_database(h, true, &err) != XPL_OK && h->lock_fd >= 0) {
        (void)close(h->lock_fd); // another program's: it is not ours to keep
        h->lock_fd = -1;
    }
    const bool on = h->conn != NULL;
    if (on) note(h, "state.db is this daemon's now: history and schedules go on");
    pthread_mutex_unlock(&h->mu);
    return on;
}

xpl_status_t xpl_history_open(const char *dir, struct xpl_history **ret, struct xpl_error *err) {
    struct xpl_history *h = xpl_sys_alloc(sizeof *h);
    if (!h) XPL_RETURN_OOM(err, "history");
    memset(h, 0, sizeof *h);
    h->lock_fd = -1;
    pthread_mutex_init(&h->mu, NULL);
    const int n = snprintf(h->path, sizeof h->path, "%s/state.db", dir);
    const int k = snprintf(h->lock_path, sizeof h->lock_path, "%s/state.db.lock", dir);
    xpl_status_t st = XPL_OK;
    if (n < 0 || k < 0 || (size_t)k >= sizeof h->lock_path)
        st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                           "the path of state.db is too long");
    else
        st = take_database(h, false, err);
    if (st == XPL_OK)
        *ret = h;
    else
        xpl_history_close(h);
    return st;
}

void xpl_history_close(struct xpl_history *h) {
    if (!h) return;
    xpl_db_close(h->conn);
    if (h->lock_fd >= 0) (void)close(h->lock_fd);
    pthread_mutex_destroy(&h->mu);
    xpl_sys_free(h);
}

// ---- every call: lock, work, unlock ----

bool xpl_hist_enter(struct xpl_history *h, int *rc) {
    pthread_mutex_lock(&h->mu);
    *rc = SQLITE_OK;
    if (h->conn) return true;
    pthread_mutex_unlock(&h->mu);
    return false;
}

xpl_status_t xpl_hist_fail_off(struct xpl_error *err) {
    XPL_RETURN_ERROR(
        err, XPL_FAILED_PRECONDITION,
        "this daemon keeps no history and no schedules: its state directory cannot be written, "
        "or another daemon has it");
}

xpl_status_t xpl_hist_leave(struct xpl_history *h, int rc, struct xpl_error *err) {
    const int os = errno;
    if (rc != SQLITE_OK && h->conn && !sqlite3_get_autocommit(h->conn->h))
        (void)xpl_hist_exec(h->conn->h, "ROLLBACK");
    if (xpl_db_is_damage(rc)) {
        int again = rc;
        xpl_db_close(h->conn);
        set_conn(h, NULL);
        if (move_aside(h)) (void)attach(h, &again, NULL);
        if (!h->conn) note_off(h, again);
    }
    pthread_mutex_unlock(&h->mu);
    if (rc == SQLITE_OK) return XPL_OK;
    xpl_status_t code = xpl_db_status(rc, os);
    if (code == XPL_INTERNAL) code = XPL_UNAVAILABLE;
    XPL_RETURN_ERROR(err, code, "state.db: %s", sqlite3_errstr(rc));
}

bool xpl_hist_column(sqlite3_stmt *st, int at, struct xpl_arena *arena, xpl_str_t *ret) {
    const unsigned char *const p = sqlite3_column_text(st, at);
    const int n = sqlite3_column_bytes(st, at);
    return xpl_arena_str(arena, (xpl_str_t){p ? (const char *)p : "", n > 0 ? (size_t)n : 0}, ret);
}

bool xpl_hist_next(sqlite3_stmt *st, int *rc) {
    if (*rc != SQLITE_OK) return false;
    const int got = sqlite3_step(st);
    if (got != SQLITE_ROW && got != SQLITE_DONE) *rc = got;
    return got == SQLITE_ROW;
}
