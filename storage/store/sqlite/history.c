// SPDX-License-Identifier: Apache-2.0
#include "storage/store/history.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"
#include "storage/sessions/path.h"
#include "storage/store/sqlite/db.h"
#include "storage/store/sqlite/dbfile.h"

enum { NOTICES = 4, NOTICE_SIZE = 400 };

struct xpl_history {
    pthread_mutex_t mu;
    struct xpl_db *conn; // NULL: off
    int lock_fd;
    char path[PATH_MAX], lock_path[PATH_MAX];
    char notices[NOTICES][NOTICE_SIZE];
    unsigned n_notices;
};

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
static const char *const *const steps[] = {step_1_parts};

static const struct xpl_db_schema schema = {
    .application_id = 0x58504c73, // "XPLs"
    .steps = steps,
    .version = sizeof steps / sizeof *steps,
    .setup_write = "PRAGMA synchronous=FULL; PRAGMA cache_size=-512;",
    .setup_empty = "PRAGMA journal_mode=WAL;",
};

// ---- small things ----

__attribute__((format(printf, 2, 3))) static void note(struct xpl_history *h, const char *fmt,
                                                       ...) {
    if (h->n_notices == NOTICES) return;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(h->notices[h->n_notices++], NOTICE_SIZE, fmt, ap);
    va_end(ap);
}

bool xpl_history_next_notice(struct xpl_history *h, char *buf, size_t size) {
    pthread_mutex_lock(&h->mu);
    const bool any = h->n_notices > 0;
    if (any) {
        (void)snprintf(buf, size, "%s", h->notices[0]);
        memmove(h->notices[0], h->notices[1], (size_t)--h->n_notices * NOTICE_SIZE);
    }
    pthread_mutex_unlock(&h->mu);
    return any;
}

bool xpl_history_is_on(struct xpl_history *h) {
    pthread_mutex_lock(&h->mu);
    const bool on = h->conn != NULL;
    pthread_mutex_unlock(&h->mu);
    return on;
}

static int exec(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

// The statement, or NULL with *rc set; does nothing when *rc is a failure already.
static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, int *rc) {
    sqlite3_stmt *st = NULL;
    if (*rc == SQLITE_OK) *rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    return st;
}

// Steps a statement that returns nothing, and frees it.
static void run(sqlite3_stmt *st, int *rc) {
    if (*rc == SQLITE_OK) {
        const int got = sqlite3_step(st);
        *rc = got == SQLITE_DONE || got == SQLITE_ROW ? SQLITE_OK : got;
    }
    sqlite3_finalize(st);
}

static void bind_int(sqlite3_stmt *st, int at, int64_t v, int *rc) {
    if (*rc == SQLITE_OK) *rc = sqlite3_bind_int64(st, at, v);
}
static void bind_text(sqlite3_stmt *st, int at, xpl_str_t s, int *rc) {
    if (*rc == SQLITE_OK)
        *rc = sqlite3_bind_text64(st, at, s.ptr ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8);
}
// Ids, sizes and inodes: kept as they are, also above 2^63-1.
static void bind_u64(sqlite3_stmt *st, int at, uint64_t v, int *rc) {
    bind_int(st, at, (int64_t)v, rc);
}

static int64_t read_int(sqlite3 *db, const char *sql, int *rc) {
    sqlite3_stmt *st = prepare(db, sql, rc);
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
    sqlite3_stmt *st = prepare(db, "PRAGMA quick_check(1)", &rc);
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
    return exec(db, sql);
}

// FAILED_PRECONDITION when the file is not ours to use; *ret_rc says the rest.
static xpl_status_t set_up(struct xpl_history *h, struct xpl_db *db, int *ret_rc,
                           struct xpl_error *err) {
    enum xpl_db_kind kind = XPL_DB_OURS;
    int rc = xpl_db_kind(db, &kind);
    if (rc == SQLITE_OK && kind == XPL_DB_FOREIGN)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%s: a database of another program; set another --state-dir",
                         xpl_path_shown(h->path, &(struct xpl_path_text){0}));
    if (rc == SQLITE_OK && kind == XPL_DB_NEWER)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "%s: made by a newer xplaned (this one knows version %lld)",
                         xpl_path_shown(h->path, &(struct xpl_path_text){0}),
                         (long long)schema.version);
    if (rc == SQLITE_OK) rc = xpl_db_make_ours(db, kind);
    if (rc == SQLITE_OK) rc = xpl_db_migrate(db, kind);
    // Small enough to be read as a whole: damage shows now, not in the middle of a capture.
    if (rc == SQLITE_OK) rc = check(db->h);
    if (rc == SQLITE_OK) rc = interrupt(db->h);
    *ret_rc = rc;
    return XPL_OK;
}

// Opens the database, or sets *ret_rc.
static xpl_status_t attach(struct xpl_history *h, int *ret_rc, struct xpl_error *err) {
    struct xpl_db *db = NULL;
    char why[128];
    *ret_rc = xpl_db_open(h->path, XPL_DB_WRITE, &schema, &db, why, sizeof why);
    if (*ret_rc != SQLITE_OK) return XPL_OK;
    const xpl_status_t st = set_up(h, db, ret_rc, err);
    if (st == XPL_OK && *ret_rc == SQLITE_OK)
        h->conn = db;
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
    note(h, "state.db was broken and is now %s: history and schedules begin anew",
         slash ? slash + 1 : name);
    return true;
}

static xpl_status_t attach_or_replace(struct xpl_history *h, struct xpl_error *err) {
    int rc = SQLITE_OK;
    XPL_TRY(attach(h, &rc, err));
    if (xpl_db_is_damage(rc) && move_aside(h)) XPL_TRY(attach(h, &rc, err));
    if (rc != SQLITE_OK)
        note(h, "%s: %s: there is no history of captures, and no schedules run",
             xpl_path_shown(h->path, &(struct xpl_path_text){0}), sqlite3_errstr(rc));
    return XPL_OK;
}

static bool lock_database(struct xpl_history *h) {
    const enum xpl_dbfile_lock lock = xpl_dbfile_lock(h->lock_path, &h->lock_fd);
    if (lock == XPL_DBFILE_MINE) return true;
    char why[96];
    note(h, "%s: %s: there is no history of captures here, and no schedules run",
         xpl_path_shown(h->path, &(struct xpl_path_text){0}),
         lock == XPL_DBFILE_OTHERS ? "another daemon has it" : strerror_r(errno, why, sizeof why));
    return false;
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
    else if (!xpl_dbfile_make_dirs(dir, 0755))
        note(h, "%s: %s: there is no history of captures, and no schedules run",
             xpl_path_shown(dir, &(struct xpl_path_text){0}), strerror(errno));
    else if (lock_database(h))
        st = attach_or_replace(h, err);
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

// False, with the lock released, when there is no database.
static bool enter(struct xpl_history *h, int *rc) {
    pthread_mutex_lock(&h->mu);
    *rc = SQLITE_OK;
    if (h->conn) return true;
    pthread_mutex_unlock(&h->mu);
    return false;
}

static xpl_status_t fail_off(struct xpl_error *err) {
    XPL_RETURN_ERROR(
        err, XPL_FAILED_PRECONDITION,
        "this daemon keeps no history and no schedules: its state directory cannot be written, "
        "or another daemon has it");
}

// Says what `rc` means and unlocks.  A database that turned out to be broken is replaced.
static xpl_status_t leave(struct xpl_history *h, int rc, struct xpl_error *err) {
    const int os = errno;
    if (rc != SQLITE_OK && h->conn && !sqlite3_get_autocommit(h->conn->h))
        (void)exec(h->conn->h, "ROLLBACK");
    if (xpl_db_is_damage(rc)) {
        xpl_db_close(h->conn);
        h->conn = NULL;
        int again = SQLITE_OK;
        if (move_aside(h) && attach(h, &again, NULL) != XPL_OK) again = SQLITE_ERROR;
    }
    pthread_mutex_unlock(&h->mu);
    if (rc == SQLITE_OK) return XPL_OK;
    xpl_status_t code = xpl_db_status(rc, os);
    if (code == XPL_INTERNAL) code = XPL_UNAVAILABLE;
    XPL_RETURN_ERROR(err, code, "state.db: %s", sqlite3_errstr(rc));
}

// A text column, copied; false on OOM.
static bool column(sqlite3_stmt *st, int at, struct xpl_arena *arena, xpl_str_t *ret) {
    const unsigned char *const p = sqlite3_column_text(st, at);
    const int n = sqlite3_column_bytes(st, at);
    return xpl_arena_str(arena, (xpl_str_t){p ? (const char *)p : "", n > 0 ? (size_t)n : 0}, ret);
}

// Steps to the next row; false at the end and on failure.
static bool next(sqlite3_stmt *st, int *rc) {
    if (*rc != SQLITE_OK) return false;
    const int got = sqlite3_step(st);
    if (got != SQLITE_ROW && got != SQLITE_DONE) *rc = got;
    return got == SQLITE_ROW;
}

// ---- captures ----

uint64_t xpl_history_last_id(struct xpl_history *h) {
    int rc;
    if (!enter(h, &rc)) return 0;
    const int64_t id = read_int(h->conn->h, "SELECT max(id) FROM captures", &rc);
    const xpl_status_t st = leave(h, rc, NULL);
    return st == XPL_OK && id > 0 ? (uint64_t)id : 0;
}

static void put_capture(sqlite3 *db, const struct xpl_history_capture *c, int *rc) {
    sqlite3_stmt *st =
        prepare(db, "INSERT OR REPLACE INTO captures VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)", rc);
    bind_u64(st, 1, c->id, rc);
    bind_int(st, 2, c->state, rc);
    bind_text(st, 3, c->session, rc);
    bind_int(st, 4, c->code, rc);
    bind_text(st, 5, c->message, rc);
    bind_int(st, 6, c->begin_ms, rc);
    bind_int(st, 7, c->end_ms, rc);
    bind_u64(st, 8, c->duration_ms, rc);
    bind_u64(st, 9, c->schedule_id, rc);
    run(st, rc);
}

static void put_host(sqlite3 *db, uint64_t id, size_t seq, const struct xpl_history_host *m,
                     int *rc) {
    sqlite3_stmt *st =
        prepare(db, "INSERT INTO capture_hosts VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)", rc);
    bind_u64(st, 1, id, rc);
    bind_u64(st, 2, seq, rc);
    bind_text(st, 3, m->target, rc);
    bind_text(st, 4, m->host, rc);
    bind_int(st, 5, m->state, rc);
    bind_int(st, 6, m->code, rc);
    bind_text(st, 7, m->reason, rc);
    bind_u64(st, 8, m->bytes, rc);
    bind_u64(st, 9, m->attempts, rc);
    run(st, rc);
}

static void delete_where(sqlite3 *db, const char *sql, uint64_t id, int *rc) {
    sqlite3_stmt *st = prepare(db, sql, rc);
    bind_u64(st, 1, id, rc);
    run(st, rc);
}

xpl_status_t xpl_history_put(struct xpl_history *h, const struct xpl_history_capture *c,
                             struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    rc = exec(h->conn->h, "BEGIN IMMEDIATE");
    put_capture(h->conn->h, c, &rc);
    delete_where(h->conn->h, "DELETE FROM capture_hosts WHERE capture_id=?1", c->id, &rc);
    for (size_t i = 0; rc == SQLITE_OK && i < c->n_hosts; i++)
        put_host(h->conn->h, c->id, i, &c->hosts[i], &rc);
    if (c->state != XPL_HISTORY_RUNNING)
        delete_where(h->conn->h, "DELETE FROM capture_directories WHERE capture_id=?1", c->id, &rc);
    if (c->id > XPL_HISTORY_CAPTURES) {
        const uint64_t old = c->id - XPL_HISTORY_CAPTURES;
        delete_where(h->conn->h, "DELETE FROM capture_hosts WHERE capture_id<=?1", old, &rc);
        delete_where(h->conn->h, "DELETE FROM captures WHERE id<=?1", old, &rc);
    }
    if (rc == SQLITE_OK) rc = exec(h->conn->h, "COMMIT");
    return leave(h, rc, err);
}

xpl_status_t xpl_history_put_directory(struct xpl_history *h, const struct xpl_history_directory *d,
                                       struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    sqlite3_stmt *st =
        prepare(h->conn->h, "INSERT OR REPLACE INTO capture_directories VALUES(?1,?2,?3,?4)", &rc);
    bind_u64(st, 1, d->capture_id, &rc);
    bind_text(st, 2, d->path, &rc);
    bind_u64(st, 3, d->dev, &rc);
    bind_u64(st, 4, d->ino, &rc);
    run(st, &rc);
    return leave(h, rc, err);
}

xpl_status_t xpl_history_directories(struct xpl_history *h, struct xpl_arena *arena,
                                     struct xpl_history_directory **ret, size_t *ret_n,
                                     struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_directory) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st =
        prepare(h->conn->h, "SELECT capture_id, path, dev, ino FROM capture_directories", &rc);
    while (ok && next(st, &rc)) {
        struct xpl_history_directory *d = xpl_vec_push(arena, &list);
        ok = d && column(st, 1, arena, &d->path);
        if (!ok) break;
        d->capture_id = (uint64_t)sqlite3_column_int64(st, 0);
        d->dev = (uint64_t)sqlite3_column_int64(st, 2);
        d->ino = (uint64_t)sqlite3_column_int64(st, 3);
    }
    sqlite3_finalize(st);
    XPL_TRY(leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "directories");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

xpl_status_t xpl_history_forget_directory(struct xpl_history *h, uint64_t capture_id,
                                          struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    delete_where(h->conn->h, "DELETE FROM capture_directories WHERE capture_id=?1", capture_id,
                 &rc);
    return leave(h, rc, err);
}

static bool read_hosts(sqlite3 *db, struct xpl_arena *arena, struct xpl_history_capture *c,
                       int *rc) {
    XPL_VEC(struct xpl_history_host) list = {0};
    bool ok = true;
    sqlite3_stmt *st = prepare(db,
                               "SELECT target, host, state, code, reason, bytes, attempts "
                               "FROM capture_hosts WHERE capture_id=?1 ORDER BY seq",
                               rc);
    bind_u64(st, 1, c->id, rc);
    while (ok && next(st, rc)) {
        struct xpl_history_host *m = xpl_vec_push(arena, &list);
        ok = m && column(st, 0, arena, &m->target) && column(st, 1, arena, &m->host) &&
             column(st, 4, arena, &m->reason);
        if (!ok) break;
        m->state = sqlite3_column_int(st, 2);
        m->code = sqlite3_column_int(st, 3);
        m->bytes = (uint64_t)sqlite3_column_int64(st, 5);
        m->attempts = (uint64_t)sqlite3_column_int64(st, 6);
    }
    sqlite3_finalize(st);
    c->hosts = list.v;
    c->n_hosts = list.n;
    return ok;
}

static bool read_capture(sqlite3_stmt *st, struct xpl_arena *arena, struct xpl_history_capture *c) {
    *c = (struct xpl_history_capture){.id = (uint64_t)sqlite3_column_int64(st, 0),
                                      .state = sqlite3_column_int(st, 1),
                                      .code = sqlite3_column_int(st, 3),
                                      .begin_ms = sqlite3_column_int64(st, 5),
                                      .end_ms = sqlite3_column_int64(st, 6),
                                      .duration_ms = (uint64_t)sqlite3_column_int64(st, 7),
                                      .schedule_id = (uint64_t)sqlite3_column_int64(st, 8)};
    return column(st, 2, arena, &c->session) && column(st, 4, arena, &c->message);
}

xpl_status_t xpl_history_list(struct xpl_history *h, uint64_t before, size_t limit,
                              struct xpl_arena *arena, struct xpl_history_capture **ret,
                              size_t *ret_n, struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_capture) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st =
        prepare(h->conn->h,
                "SELECT id, state, session, code, message, begin_ms, end_ms, duration_ms, "
                "schedule_id FROM captures WHERE id<?1 ORDER BY id DESC LIMIT ?2",
                &rc);
    bind_int(st, 1, before && before < INT64_MAX ? (int64_t)before : INT64_MAX, &rc);
    bind_int(st, 2, limit < 100000 ? (int64_t)limit : 100000, &rc);
    while (ok && next(st, &rc)) {
        struct xpl_history_capture *c = xpl_vec_push(arena, &list);
        ok = c && read_capture(st, arena, c) && read_hosts(h->conn->h, arena, c, &rc);
    }
    sqlite3_finalize(st);
    XPL_TRY(leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "history");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

// ---- schedules ----

xpl_status_t xpl_history_add_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      uint64_t *ret_id, struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    sqlite3_stmt *st = prepare(h->conn->h,
                               "INSERT INTO schedules(request, created_ms, next_ms, "
                               "last_capture_id) VALUES(?1,?2,?3,0)",
                               &rc);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(st, 1, s->request.len ? (const void *)s->request.ptr : "",
                                 s->request.len, SQLITE_STATIC);
    bind_int(st, 2, s->created_ms, &rc);
    bind_int(st, 3, s->next_ms, &rc);
    run(st, &rc);
    const int64_t id = rc == SQLITE_OK ? sqlite3_last_insert_rowid(h->conn->h) : 0;
    XPL_TRY(leave(h, rc, err));
    *ret_id = (uint64_t)id;
    return XPL_OK;
}

xpl_status_t xpl_history_set_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                      struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    sqlite3_stmt *st =
        prepare(h->conn->h, "UPDATE schedules SET next_ms=?2, last_capture_id=?3 WHERE id=?1", &rc);
    bind_u64(st, 1, s->id, &rc);
    bind_int(st, 2, s->next_ms, &rc);
    bind_u64(st, 3, s->last_capture_id, &rc);
    run(st, &rc);
    return leave(h, rc, err);
}

xpl_status_t xpl_history_delete_schedule(struct xpl_history *h, uint64_t id,
                                         struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    rc = exec(h->conn->h, "BEGIN IMMEDIATE");
    delete_where(h->conn->h, "DELETE FROM schedule_sessions WHERE schedule_id=?1", id, &rc);
    delete_where(h->conn->h, "DELETE FROM schedules WHERE id=?1", id, &rc);
    if (rc == SQLITE_OK) rc = exec(h->conn->h, "COMMIT");
    return leave(h, rc, err);
}

static bool read_schedule(sqlite3_stmt *st, struct xpl_arena *arena,
                          struct xpl_history_schedule *s) {
    const void *const p = sqlite3_column_blob(st, 1);
    const int n = sqlite3_column_bytes(st, 1);
    uint8_t *copy = xpl_arena_alloc(arena, n > 0 ? (size_t)n : 0);
    if (!copy) return false;
    if (p && n > 0) memcpy(copy, p, (size_t)n);
    *s = (struct xpl_history_schedule){.id = (uint64_t)sqlite3_column_int64(st, 0),
                                       .request = {copy, p && n > 0 ? (size_t)n : 0},
                                       .created_ms = sqlite3_column_int64(st, 2),
                                       .next_ms = sqlite3_column_int64(st, 3),
                                       .last_capture_id = (uint64_t)sqlite3_column_int64(st, 4)};
    return true;
}

xpl_status_t xpl_history_schedules(struct xpl_history *h, struct xpl_arena *arena,
                                   struct xpl_history_schedule **ret, size_t *ret_n,
                                   struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_schedule) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st = prepare(
        h->conn->h,
        "SELECT id, request, created_ms, next_ms, last_capture_id FROM schedules ORDER BY id", &rc);
    while (ok && next(st, &rc)) {
        struct xpl_history_schedule *s = xpl_vec_push(arena, &list);
        ok = s && read_schedule(st, arena, s);
    }
    sqlite3_finalize(st);
    XPL_TRY(leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "schedules");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

// ---- sessions that schedules made ----

xpl_status_t xpl_history_add_session(struct xpl_history *h, uint64_t schedule_id,
                                     const struct xpl_history_session *s, struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    sqlite3_stmt *st = prepare(
        h->conn->h, "INSERT OR REPLACE INTO schedule_sessions VALUES(?1,?2,?3,?4,?5,?6,?7)", &rc);
    bind_u64(st, 1, schedule_id, &rc);
    bind_text(st, 2, s->name, &rc);
    bind_u64(st, 3, s->dev, &rc);
    bind_u64(st, 4, s->ino, &rc);
    bind_u64(st, 5, s->bytes, &rc);
    bind_int(st, 6, s->made_ms, &rc);
    bind_u64(st, 7, s->n_hosts, &rc);
    run(st, &rc);
    return leave(h, rc, err);
}

static bool read_session(sqlite3_stmt *st, struct xpl_arena *arena, struct xpl_history_session *s) {
    *s = (struct xpl_history_session){.dev = (uint64_t)sqlite3_column_int64(st, 1),
                                      .ino = (uint64_t)sqlite3_column_int64(st, 2),
                                      .bytes = (uint64_t)sqlite3_column_int64(st, 3),
                                      .made_ms = sqlite3_column_int64(st, 4),
                                      .n_hosts = (uint64_t)sqlite3_column_int64(st, 5)};
    return column(st, 0, arena, &s->name);
}

xpl_status_t xpl_history_sessions(struct xpl_history *h, uint64_t schedule_id,
                                  struct xpl_arena *arena, struct xpl_history_session **ret,
                                  size_t *ret_n, struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_session) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st =
        prepare(h->conn->h,
                "SELECT name, dev, ino, bytes, made_ms, hosts FROM schedule_sessions "
                "WHERE schedule_id=?1 ORDER BY made_ms, name",
                &rc);
    bind_u64(st, 1, schedule_id, &rc);
    while (ok && next(st, &rc)) {
        struct xpl_history_session *s = xpl_vec_push(arena, &list);
        ok = s && read_session(st, arena, s);
    }
    sqlite3_finalize(st);
    XPL_TRY(leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "sessions");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

xpl_status_t xpl_history_forget_session(struct xpl_history *h, uint64_t schedule_id, xpl_str_t name,
                                        struct xpl_error *err) {
    int rc;
    if (!enter(h, &rc)) return fail_off(err);
    sqlite3_stmt *st =
        prepare(h->conn->h, "DELETE FROM schedule_sessions WHERE schedule_id=?1 AND name=?2", &rc);
    bind_u64(st, 1, schedule_id, &rc);
    bind_text(st, 2, name, &rc);
    run(st, &rc);
    return leave(h, rc, err);
}
