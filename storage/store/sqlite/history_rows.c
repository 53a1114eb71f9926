// SPDX-License-Identifier: Apache-2.0
// Captures, schedules and the sessions that these made, in state.db.
#include "storage/store/sqlite/history_impl.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

// ---- captures ----

uint64_t xpl_history_last_id(struct xpl_history *h) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return 0;
    const int64_t id = xpl_hist_read_int(h->conn->h, "SELECT max(id) FROM captures", &rc);
    const xpl_status_t st = xpl_hist_leave(h, rc, NULL);
    return st == XPL_OK && id > 0 ? (uint64_t)id : 0;
}

static void put_capture(sqlite3 *db, const struct xpl_history_capture *c, int *rc) {
    sqlite3_stmt *st = xpl_hist_prepare(
        db, "INSERT OR REPLACE INTO captures VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)", rc);
    xpl_hist_bind_u64(st, 1, c->id, rc);
    xpl_hist_bind_int(st, 2, c->state, rc);
    xpl_hist_bind_text(st, 3, c->session, rc);
    xpl_hist_bind_int(st, 4, c->code, rc);
    xpl_hist_bind_text(st, 5, c->message, rc);
    xpl_hist_bind_int(st, 6, c->begin_ms, rc);
    xpl_hist_bind_int(st, 7, c->end_ms, rc);
    xpl_hist_bind_u64(st, 8, c->duration_ms, rc);
    xpl_hist_bind_u64(st, 9, c->schedule_id, rc);
    xpl_hist_run(st, rc);
}

static void put_host(sqlite3 *db, uint64_t id, size_t seq, const struct xpl_history_host *m,
                     int *rc) {
    sqlite3_stmt *st =
        xpl_hist_prepare(db, "INSERT INTO capture_hosts VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)", rc);
    xpl_hist_bind_u64(st, 1, id, rc);
    xpl_hist_bind_u64(st, 2, seq, rc);
    xpl_hist_bind_text(st, 3, m->target, rc);
    xpl_hist_bind_text(st, 4, m->host, rc);
    xpl_hist_bind_int(st, 5, m->state, rc);
    xpl_hist_bind_int(st, 6, m->code, rc);
    xpl_hist_bind_text(st, 7, m->reason, rc);
    xpl_hist_bind_u64(st, 8, m->bytes, rc);
    xpl_hist_bind_u64(st, 9, m->attempts, rc);
    xpl_hist_run(st, rc);
}

// Of a schedule that is there.
static void put_session(sqlite3 *db, uint64_t schedule_id, const struct xpl_history_session *s,
                        int *rc) {
    sqlite3_stmt *st =
        xpl_hist_prepare(db,
                         "INSERT OR REPLACE INTO schedule_sessions SELECT id,?2,?3,?4,?5,?6,?7 "
                         "FROM schedules WHERE id=?1",
                         rc);
    xpl_hist_bind_u64(st, 1, schedule_id, rc);
    xpl_hist_bind_text(st, 2, s->name, rc);
    xpl_hist_bind_u64(st, 3, s->dev, rc);
    xpl_hist_bind_u64(st, 4, s->ino, rc);
    xpl_hist_bind_u64(st, 5, s->bytes, rc);
    xpl_hist_bind_int(st, 6, s->made_ms, rc);
    xpl_hist_bind_u64(st, 7, s->n_hosts, rc);
    xpl_hist_run(st, rc);
}

static void delete_where(sqlite3 *db, const char *sql, uint64_t id, int *rc) {
    sqlite3_stmt *st = xpl_hist_prepare(db, sql, rc);
    xpl_hist_bind_u64(st, 1, id, rc);
    xpl_hist_run(st, rc);
}

// The oldest go, but for those that still run; numbers of a daemon's own say nothing of those
// before it shared captures.
static void prune(sqlite3 *db, uint64_t id, int *rc) {
    static const char *const sql[] = {
        "DELETE FROM capture_hosts WHERE capture_id<=?1 AND capture_id>=?2 AND NOT EXISTS"
        " (SELECT 1 FROM captures WHERE id=capture_id AND state=1)",
        "DELETE FROM captures WHERE id<=?1 AND id>=?2 AND state<>1"};
    const uint64_t first = id >= XPL_HISTORY_OWN ? XPL_HISTORY_OWN : 0;
    for (size_t i = 0; id > first + XPL_HISTORY_CAPTURES && i < sizeof sql / sizeof *sql; i++) {
        sqlite3_stmt *const st = xpl_hist_prepare(db, sql[i], rc);
        xpl_hist_bind_u64(st, 1, id - XPL_HISTORY_CAPTURES, rc);
        xpl_hist_bind_u64(st, 2, first, rc);
        xpl_hist_run(st, rc);
    }
}

xpl_status_t xpl_history_put(struct xpl_history *h, const struct xpl_history_capture *c,
                             struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    rc = xpl_hist_exec(h->conn->h, "BEGIN IMMEDIATE");
    put_capture(h->conn->h, c, &rc);
    delete_where(h->conn->h, "DELETE FROM capture_hosts WHERE capture_id=?1", c->id, &rc);
    for (size_t i = 0; rc == SQLITE_OK && i < c->n_hosts; i++)
        put_host(h->conn->h, c->id, i, &c->hosts[i], &rc);
    if (c->made) put_session(h->conn->h, c->schedule_id, c->made, &rc);
    if (c->state != XPL_HISTORY_RUNNING)
        delete_where(h->conn->h, "DELETE FROM capture_directories WHERE capture_id=?1", c->id, &rc);
    prune(h->conn->h, c->id, &rc);
    if (rc == SQLITE_OK) rc = xpl_hist_exec(h->conn->h, "COMMIT");
    return xpl_hist_leave(h, rc, err);
}

xpl_status_t xpl_history_put_directory(struct xpl_history *h, const struct xpl_history_directory *d,
                                       struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h, "INSERT OR REPLACE INTO capture_directories VALUES(?1,?2,?3,?4)", &rc);
    xpl_hist_bind_u64(st, 1, d->capture_id, &rc);
    xpl_hist_bind_text(st, 2, d->path, &rc);
    xpl_hist_bind_u64(st, 3, d->dev, &rc);
    xpl_hist_bind_u64(st, 4, d->ino, &rc);
    xpl_hist_run(st, &rc);
    return xpl_hist_leave(h, rc, err);
}

xpl_status_t xpl_history_directories(struct xpl_history *h, struct xpl_arena *arena,
                                     struct xpl_history_directory **ret, size_t *ret_n,
                                     struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_directory) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!xpl_hist_enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h,
        "SELECT capture_id, path, dev, ino, coalesce(schedule_id, 0), coalesce(begin_ms, 0) "
        "FROM capture_directories LEFT JOIN captures ON captures.id=capture_id",
        &rc);
    while (ok && xpl_hist_next(st, &rc)) {
        struct xpl_history_directory *d = xpl_vec_push(arena, &list);
        ok = d && xpl_hist_column(st, 1, arena, &d->path);
        if (!ok) break;
        d->capture_id = (uint64_t)sqlite3_column_int64(st, 0);
        d->dev = (uint64_t)sqlite3_column_int64(st, 2);
        d->ino = (uint64_t)sqlite3_column_int64(st, 3);
        d->schedule_id = (uint64_t)sqlite3_column_int64(st, 4);
        d->begin_ms = sqlite3_column_int64(st, 5);
    }
    sqlite3_finalize(st);
    XPL_TRY(xpl_hist_leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "directories");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

xpl_status_t xpl_history_forget_directory(struct xpl_history *h, uint64_t capture_id,
                                          struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    delete_where(h->conn->h, "DELETE FROM capture_directories WHERE capture_id=?1", capture_id,
                 &rc);
    return xpl_hist_leave(h, rc, err);
}

static bool read_hosts(sqlite3 *db, struct xpl_arena *arena, struct xpl_history_capture *c,
                       int *rc) {
    XPL_VEC(struct xpl_history_host) list = {0};
    bool ok = true;
    sqlite3_stmt *st = xpl_hist_prepare(db,
                                        "SELECT target, host, state, code, reason, bytes, attempts "
                                        "FROM capture_hosts WHERE capture_id=?1 ORDER BY seq",
                                        rc);
    xpl_hist_bind_u64(st, 1, c->id, rc);
    while (ok && xpl_hist_next(st, rc)) {
        struct xpl_history_host *m = xpl_vec_push(arena, &list);
        ok = m && xpl_hist_column(st, 0, arena, &m->target) &&
             xpl_hist_column(st, 1, arena, &m->host) && xpl_hist_column(st, 4, arena, &m->reason);
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
    return xpl_hist_column(st, 2, arena, &c->session) && xpl_hist_column(st, 4, arena, &c->message);
}

xpl_status_t xpl_hist_list(struct xpl_history *h, uint64_t before, size_t limit,
                           struct xpl_arena *arena, struct xpl_history_capture **ret, size_t *ret_n,
                           struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_capture) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!xpl_hist_enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st =
        xpl_hist_prepare(h->conn->h,
                         "SELECT id, state, session, code, message, begin_ms, end_ms, duration_ms, "
                         "schedule_id FROM captures WHERE id<?1 ORDER BY id DESC LIMIT ?2",
                         &rc);
    xpl_hist_bind_int(st, 1, before && before < INT64_MAX ? (int64_t)before : INT64_MAX, &rc);
    xpl_hist_bind_int(st, 2, limit < 100000 ? (int64_t)limit : 100000, &rc);
    while (ok && xpl_hist_next(st, &rc)) {
        struct xpl_history_capture *c = xpl_vec_push(arena, &list);
        ok = c && read_capture(st, arena, c) && read_hosts(h->conn->h, arena, c, &rc);
    }
    sqlite3_finalize(st);
    XPL_TRY(xpl_hist_leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "history");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

xpl_status_t xpl_hist_delete_capture(struct xpl_history *h, uint64_t id, struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    rc = xpl_hist_exec(h->conn->h, "BEGIN IMMEDIATE");
    delete_where(h->conn->h, "DELETE FROM capture_hosts WHERE capture_id=?1", id, &rc);
    delete_where(h->conn->h, "DELETE FROM captures WHERE id=?1", id, &rc);
    if (rc == SQLITE_OK) rc = xpl_hist_exec(h->conn->h, "COMMIT");
    return xpl_hist_leave(h, rc, err);
}

// ---- schedules ----

xpl_status_t xpl_hist_add_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                   uint64_t *ret_id, struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    sqlite3_stmt *st = xpl_hist_prepare(h->conn->h,
                                        "INSERT INTO schedules(request, created_ms, next_ms, "
                                        "last_capture_id) VALUES(?1,?2,?3,0)",
                                        &rc);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob64(st, 1, s->request.len ? (const void *)s->request.ptr : "",
                                 s->request.len, SQLITE_STATIC);
    xpl_hist_bind_int(st, 2, s->created_ms, &rc);
    xpl_hist_bind_int(st, 3, s->next_ms, &rc);
    xpl_hist_run(st, &rc);
    const int64_t id = rc == SQLITE_OK ? sqlite3_last_insert_rowid(h->conn->h) : 0;
    XPL_TRY(xpl_hist_leave(h, rc, err));
    *ret_id = (uint64_t)id;
    return XPL_OK;
}

xpl_status_t xpl_hist_set_schedule(struct xpl_history *h, const struct xpl_history_schedule *s,
                                   struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h, "UPDATE schedules SET next_ms=?2, last_capture_id=?3 WHERE id=?1", &rc);
    xpl_hist_bind_u64(st, 1, s->id, &rc);
    xpl_hist_bind_int(st, 2, s->next_ms, &rc);
    xpl_hist_bind_u64(st, 3, s->last_capture_id, &rc);
    xpl_hist_run(st, &rc);
    return xpl_hist_leave(h, rc, err);
}

xpl_status_t xpl_hist_delete_schedule(struct xpl_history *h, uint64_t id, struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    rc = xpl_hist_exec(h->conn->h, "BEGIN IMMEDIATE");
    delete_where(h->conn->h, "DELETE FROM schedule_sessions WHERE schedule_id=?1", id, &rc);
    delete_where(h->conn->h, "DELETE FROM schedules WHERE id=?1", id, &rc);
    if (rc == SQLITE_OK) rc = xpl_hist_exec(h->conn->h, "COMMIT");
    return xpl_hist_leave(h, rc, err);
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

xpl_status_t xpl_hist_schedules(struct xpl_history *h, struct xpl_arena *arena,
                                struct xpl_history_schedule **ret, size_t *ret_n,
                                struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_schedule) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!xpl_hist_enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h,
        "SELECT id, request, created_ms, next_ms, last_capture_id FROM schedules ORDER BY id", &rc);
    while (ok && xpl_hist_next(st, &rc)) {
        struct xpl_history_schedule *s = xpl_vec_push(arena, &list);
        ok = s && read_schedule(st, arena, s);
    }
    sqlite3_finalize(st);
    XPL_TRY(xpl_hist_leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "schedules");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

// ---- sessions that schedules made ----

xpl_status_t xpl_hist_add_session(struct xpl_history *h, uint64_t schedule_id,
                                  const struct xpl_history_session *s, struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    put_session(h->conn->h, schedule_id, s, &rc);
    return xpl_hist_leave(h, rc, err);
}

static bool read_session(sqlite3_stmt *st, struct xpl_arena *arena, struct xpl_history_session *s) {
    *s = (struct xpl_history_session){.dev = (uint64_t)sqlite3_column_int64(st, 1),
                                      .ino = (uint64_t)sqlite3_column_int64(st, 2),
                                      .bytes = (uint64_t)sqlite3_column_int64(st, 3),
                                      .made_ms = sqlite3_column_int64(st, 4),
                                      .n_hosts = (uint64_t)sqlite3_column_int64(st, 5)};
    return xpl_hist_column(st, 0, arena, &s->name);
}

xpl_status_t xpl_hist_sessions(struct xpl_history *h, uint64_t schedule_id, struct xpl_arena *arena,
                               struct xpl_history_session **ret, size_t *ret_n,
                               struct xpl_error *err) {
    int rc;
    XPL_VEC(struct xpl_history_session) list = {0};
    *ret = NULL;
    *ret_n = 0;
    if (!xpl_hist_enter(h, &rc)) return XPL_OK;
    bool ok = true;
    sqlite3_stmt *st =
        xpl_hist_prepare(h->conn->h,
                         "SELECT name, dev, ino, bytes, made_ms, hosts FROM schedule_sessions "
                         "WHERE schedule_id=?1 ORDER BY made_ms, name",
                         &rc);
    xpl_hist_bind_u64(st, 1, schedule_id, &rc);
    while (ok && xpl_hist_next(st, &rc)) {
        struct xpl_history_session *s = xpl_vec_push(arena, &list);
        ok = s && read_session(st, arena, s);
    }
    sqlite3_finalize(st);
    XPL_TRY(xpl_hist_leave(h, rc, err));
    if (!ok) XPL_RETURN_OOM(err, "sessions");
    *ret = list.v;
    *ret_n = list.n;
    return XPL_OK;
}

xpl_status_t xpl_hist_forget_session(struct xpl_history *h, uint64_t schedule_id, xpl_str_t name,
                                     struct xpl_error *err) {
    int rc;
    if (!xpl_hist_enter(h, &rc)) return xpl_hist_fail_off(err);
    sqlite3_stmt *st = xpl_hist_prepare(
        h->conn->h, "DELETE FROM schedule_sessions WHERE schedule_id=?1 AND name=?2", &rc);
    xpl_hist_bind_u64(st, 1, schedule_id, &rc);
    xpl_hist_bind_text(st, 2, name, &rc);
    xpl_hist_run(st, &rc);
    return xpl_hist_leave(h, rc, err);
}
