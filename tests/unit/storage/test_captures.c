// SPDX-License-Identifier: Apache-2.0
// The promises of storage/store/captures.h, with a server of PostgreSQL: leases on captures,
// targets and schedules, fences, losses and moves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "storage/store/captures.h"
#include "storage/store/jobs.h"
#include "tests/check.h"
#include "tests/unit/storage/pg_database.h"

enum { LONG_MS = 60000, SHORT_MS = 1 };

static struct xpl_error err;
static struct xpl_arena arena;

static struct xpl_store *open_pg(void) {
    struct xpl_store *s = NULL;
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url(database)};
    CHECK_OK(xpl_store_open(&o, &s, &err), &err);
    for (int i = 0; xpl_store_role(s) != XPL_STORE_WRITER; i++) {
        CHECK(i < 1200);
        pg_pause_ms(50);
    }
    CHECK(xpl_store_captures(s));
    return s;
}

static const struct xpl_captures_ops *ops(const struct xpl_store *s) {
    return xpl_store_captures(s);
}

static uint64_t begin(struct xpl_store *s, uint64_t schedule, uint64_t lease_ms) {
    const struct xpl_history_host host = {.target = XPL_STR("a:1"), .state = 1};
    const struct xpl_history_capture c = {.state = XPL_HISTORY_RUNNING,
                                          .begin_ms = 1000,
                                          .schedule_id = schedule,
                                          .hosts = &host,
                                          .n_hosts = 1};
    uint64_t id = 0;
    CHECK_OK(ops(s)->begin(s, &c, NULL, lease_ms, &id, &err), &err);
    return id;
}

static xpl_status_t finish(struct xpl_store *s, uint64_t id, uint64_t schedule, bool records) {
    const struct xpl_history_session made = {.name = XPL_STR("made"), .ino = 5};
    const struct xpl_history_capture c = {.id = id,
                                          .state = 2,
                                          .session = made.name,
                                          .begin_ms = 1000,
                                          .schedule_id = schedule,
                                          .made = schedule ? &made : NULL};
    err = (struct xpl_error){0};
    return ops(s)->put(s, &c, records, &err);
}

static uint64_t add_schedule(struct xpl_store *s) {
    const struct xpl_history_schedule one = {.request = {(const uint8_t *)"r", 1}, .next_ms = 50};
    uint64_t id = 0;
    CHECK_OK(ops(s)->add_schedule(s, &one, 0, &id, &err), &err);
    return id;
}

static struct xpl_history_schedule *claim(struct xpl_store *s, size_t max, uint64_t lease_ms,
                                          size_t expected) {
    struct xpl_history_schedule *ret = NULL;
    size_t n = 77;
    CHECK_OK(ops(s)->claim(s, max, lease_ms, &arena, &ret, &n, &err), &err);
    CHECK_EQ(n, expected);
    return ret;
}

static struct xpl_schedule_state *inspect(struct xpl_store *s, size_t expected, bool lost) {
    struct xpl_schedule_state *ret = NULL;
    size_t n = 77;
    bool any = !lost;
    CHECK_OK(ops(s)->inspect(s, &arena, &ret, &n, &any, &err), &err);
    CHECK_EQ(n, expected);
    CHECK_EQ(any, lost);
    return ret;
}

static void renew(struct xpl_store *s, size_t captures, size_t schedules) {
    struct xpl_kept_leases kept;
    CHECK_OK(ops(s)->renew(s, LONG_MS, &arena, &kept, &err), &err);
    CHECK_EQ(kept.n_captures, captures);
    CHECK_EQ(kept.n_schedules, schedules);
}

// Of two daemons one has a schedule, until its lease expires; then its fence is refused.
static void test_claims(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const uint64_t one = add_schedule(a), two = add_schedule(a);
    CHECK(inspect(b, 2, false)[0].is_free);
    struct xpl_history_schedule s = *claim(a, 1, LONG_MS, 1);
    CHECK(s.id == one && s.fence == 1 && s.next_ms == 50 && s.request.len == 1);
    CHECK_EQ(claim(b, 9, LONG_MS, 1)->id, two);
    (void)claim(b, 9, LONG_MS, 0);
    const struct xpl_schedule_state *l = inspect(a, 2, false);
    CHECK(l[0].is_ours && !l[0].is_free && !l[1].is_ours && l[1].claim.fence == 1);
    renew(a, 0, 1);
    // A turn of it begins for its owner only.
    const struct xpl_history_capture turn = {.state = XPL_HISTORY_RUNNING, .schedule_id = one};
    const struct xpl_schedule_claim fence = {one, 1};
    uint64_t id = 0, refused = 77;
    CHECK_OK(ops(a)->begin(a, &turn, &fence, LONG_MS, &id, &err), &err);
    CHECK_EQ(ops(b)->begin(b, &turn, &fence, LONG_MS, &refused, NULL), XPL_ABORTED);
    CHECK_EQ(refused, 77);
    // Its lease has expired, and no daemon has taken it: it continues.
    pg_sql(database, "UPDATE schedules SET expires_at=clock_timestamp()-interval '1 s' WHERE id=1");
    CHECK_EQ(ops(a)->begin(a, &turn, &fence, LONG_MS, &refused, NULL), XPL_ABORTED);
    renew(a, 1, 1);
    pg_sql(database, "UPDATE schedules SET expires_at=clock_timestamp()-interval '1 s' WHERE id=1");
    CHECK_EQ(claim(b, 9, LONG_MS, 1)->fence, 2);
    renew(a, 0, 0);
    CHECK_EQ(ops(a)->begin(a, &turn, &fence, LONG_MS, &refused, NULL), XPL_ABORTED);
    s.next_ms = 99;
    CHECK_EQ(ops(a)->set_schedule(a, &s, NULL), XPL_ABORTED);
    // What its turn came to is refused at once, and its session is not the schedule's.
    CHECK_EQ(finish(a, id, one, false), XPL_ABORTED);
    struct xpl_history_session *sessions;
    size_t n = 77;
    CHECK_OK(ops(a)->sessions(a, one, &arena, &sessions, &n, &err), &err);
    CHECK_EQ(n, 0);
    // Handed back, it is free at once; released by another daemon, it is not.
    const struct xpl_schedule_claim stale = {one, 1}, mine = {one, 2};
    CHECK_OK(ops(b)->give_back(b, &stale, 1, &err), &err);
    (void)claim(a, 9, LONG_MS, 0);
    CHECK_OK(ops(b)->give_back(b, &mine, 1, &err), &err);
    CHECK_EQ(claim(a, 9, LONG_MS, 1)->fence, 3);
    xpl_store_close(a);
    xpl_store_close(b);
}

// The turn that was over before its schedule changed hands is known to the next owner.
static void test_done_turn(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    const uint64_t id = add_schedule(a);
    CHECK_EQ(claim(a, 1, LONG_MS, 1)->done_ms, 0);
    CHECK_OK(finish(a, begin(a, id, LONG_MS), id, false), &err);
    (void)begin(a, id, LONG_MS); // this one is not over
    pg_sql(database, "UPDATE schedules SET expires_at=clock_timestamp()");
    CHECK_EQ(claim(b, 1, LONG_MS, 1)->done_ms, 1000);
    xpl_store_close(a);
    xpl_store_close(b);
}

// A capture whose daemon is gone is interrupted once, by another daemon.
static void test_reaping(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    struct xpl_capture_lost *lost;
    struct xpl_history_capture *list;
    size_t n = 77;
    const uint64_t gone = begin(a, 0, SHORT_MS), alive = begin(a, 0, LONG_MS);
    CHECK_OK(ops(a)->note_session(a, gone, XPL_STR("run"), 12, &err), &err);
    pg_pause_ms(20);
    (void)inspect(a, 0, false); // its own it renews
    (void)inspect(b, 0, true);
    CHECK_OK(ops(a)->reap(a, &arena, &lost, &n, &err), &err);
    CHECK_EQ(n, 0);
    CHECK_OK(ops(b)->reap(b, &arena, &lost, &n, &err), &err);
    CHECK_EQ(n, 1);
    CHECK(lost->id == gone && xpl_str_eq(lost->session, XPL_STR("run")) && lost->ino == 12);
    CHECK_EQ(lost->begin_ms, 1000);
    CHECK_OK(ops(b)->reap(b, &arena, &lost, &n, &err), &err);
    CHECK_EQ(n, 0);
    CHECK_EQ(finish(a, gone, 0, false), XPL_ABORTED);
    CHECK_OK(finish(a, alive, 0, false), &err);
    CHECK_EQ(finish(a, alive, 0, false), XPL_ABORTED); // it has ended
    CHECK_OK(ops(a)->withdraw(a, alive, &err), &err);  // too late
    CHECK_OK(ops(a)->withdraw(a, begin(a, 0, LONG_MS), &err), &err);
    CHECK_OK(ops(b)->list(b, 0, 9, &arena, &list, &n, &err), &err);
    CHECK_EQ(n, 2);
    CHECK(list[1].state == XPL_HISTORY_INTERRUPTED && list[1].hosts[0].code == XPL_ABORTED);
    CHECK(list[1].hosts[0].state == XPL_HISTORY_HOST_FAILED && list[0].state == 2);
    xpl_store_close(a);
    xpl_store_close(b);
}

static void take_targets(struct xpl_store *s, const struct xpl_target_taker *who, const char *one,
                         const char *two, struct xpl_target_holder ret[2]) {
    const xpl_str_t targets[] = {xpl_str_from(one), xpl_str_from(two ? two : "")};
    CHECK_OK(ops(s)->claim_targets(s, who, targets, two ? 2 : 1, &arena, ret, &err), &err);
}

// A target is one capture's; a schedule releases its recording to a capture, not to schedules.
static void test_targets(void) {
    struct xpl_store *const a = open_pg(), *const b = open_pg();
    struct xpl_target_holder h[2];
    const uint64_t schedule = add_schedule(a);
    (void)claim(a, 1, LONG_MS, 1);
    const struct xpl_job_daemon me = {XPL_STR("node:1"), XPL_STR("all"), XPL_STR("1"), 0, 0};
    CHECK_OK(xpl_store_jobs(a)->report(a, &me, LONG_MS, &err), &err);
    const struct xpl_target_taker turn = {begin(a, schedule, LONG_MS), schedule, true, LONG_MS},
                                  other = {begin(b, 0, LONG_MS), 0, false, LONG_MS},
                                  planned = {begin(b, 77, LONG_MS), 77, false, LONG_MS};
    take_targets(a, &turn, "x:1", "y:1", h);
    CHECK(!h[0].capture_id && !h[0].schedule_id && !h[1].capture_id);
    take_targets(b, &planned, "y:1", "z:1", h);
    CHECK(h[0].capture_id == turn.capture_id && h[0].schedule_id == schedule && h[0].records);
    CHECK(xpl_str_eq(h[0].daemon, me.name) && !h[1].capture_id);
    CHECK(!inspect(a, 1, false)->is_wanted);
    CHECK_EQ(inspect(a, 1, false)->daemon.len, me.name.len);
    // It has ended, and its servers record: it releases them.
    CHECK_OK(finish(a, turn.capture_id, schedule, true), &err);
    take_targets(b, &other, "y:1", NULL, h);
    CHECK(!h[0].capture_id && h[0].schedule_id == schedule && h[0].records);
    CHECK(inspect(a, 1, false)->is_wanted);
    CHECK_OK(ops(a)->release_targets(a, schedule, &err), &err);
    take_targets(b, &other, "y:1", "x:1", h);
    CHECK(!h[0].schedule_id && !h[1].schedule_id);
    CHECK(!inspect(a, 1, false)->is_wanted);
    CHECK_OK(finish(b, other.capture_id, 0, false), &err); // they are free
    const struct xpl_target_taker next = {begin(a, schedule, LONG_MS), schedule, true, LONG_MS};
    take_targets(a, &next, "x:1", "y:1", h);
    CHECK(!h[0].capture_id && !h[1].capture_id);
    // Leases that are not renewed run out; z:1 is renewed with its capture.
    pg_sql(database, "UPDATE capture_targets SET expires_at=clock_timestamp()");
    renew(b, 1, 0);
    const struct xpl_target_taker last = {begin(a, 0, LONG_MS), 0, false, LONG_MS};
    take_targets(a, &last, "y:1", "z:1", h);
    CHECK(!h[0].capture_id && h[1].capture_id == planned.capture_id && !h[1].records);
    xpl_store_close(a);
    xpl_store_close(b);
}

// The captures of a daemon from before it shared a database, and those made without it since, are
// moved, and only once.
static void test_moving(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_history *h = NULL;
    char dir[] = "/tmp/xplaned-test-XXXXXX", cmd[64];
    struct xpl_history_capture *list;
    struct xpl_history_session *sessions;
    size_t n = 77;
    uint64_t id = 0;
    CHECK(mkdtemp(dir));
    CHECK_OK(xpl_history_open(dir, &h, &err), &err);
    const struct xpl_history_schedule own = {.request = {(const uint8_t *)"q", 1}, .created_ms = 4};
    const struct xpl_history_session made = {.name = XPL_STR("made"), .ino = 5};
    CHECK_OK(xpl_history_add_schedule(h, &own, &id, &err), &err);
    CHECK_OK(xpl_history_add_session(h, id, &made, &err), &err);
    const struct xpl_history_capture old = {.id = 1, .state = 2, .schedule_id = id, .end_ms = 3},
                                     away = {.id = XPL_HISTORY_OWN + 3, .state = 3, .end_ms = 9},
                                     runs = {.id = XPL_HISTORY_OWN + 4,
                                             .state = XPL_HISTORY_RUNNING};
    CHECK_OK(xpl_history_put(h, &old, &err), &err);
    CHECK_OK(xpl_history_put(h, &away, &err), &err);
    CHECK_OK(xpl_history_put(h, &runs, &err), &err);
    xpl_history_share(h, s);
    CHECK_OK(xpl_history_list(h, 0, 9, &arena, &list, &n, &err), &err);
    CHECK(n == 2 && list[0].id == runs.id && list[1].id == away.id);
    // As if the daemon was killed before it forgot them.
    CHECK_OK(ops(s)->adopt(s, &away, &err), &err);
    CHECK_OK(ops(s)->adopt_schedule(s, &own, &made, 1, &err), &err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(xpl_history_move(h, &err), &err);
        CHECK_OK(xpl_history_list(h, 0, 9, &arena, &list, &n, &err), &err);
        CHECK_EQ(n, 3);
        CHECK(list[0].id == runs.id && list[1].id < XPL_HISTORY_OWN && list[1].end_ms == 3);
        CHECK(list[2].end_ms == 9);
        CHECK_OK(xpl_history_list(h, list[1].id, 9, &arena, &list, &n, &err), &err);
        CHECK(n == 1 && list->end_ms == 9);
        CHECK_EQ(inspect(s, 1, false)->is_free, true);
        CHECK_OK(xpl_history_sessions(h, 1, &arena, &sessions, &n, &err), &err);
        CHECK(n == 1 && sessions->ino == 5);
    }
    xpl_history_close(h);
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    CHECK_EQ(system(cmd), 0);
    xpl_store_close(s);
}

// The oldest captures go now and then, with their hosts; one that still runs stays as it is.
static void test_pruning(void) {
    struct xpl_store *const s = open_pg();
    const uint64_t runs = begin(s, 0, LONG_MS), over = begin(s, 0, LONG_MS);
    CHECK_EQ(finish(s, over, 0, false), XPL_OK);
    pg_sql(database, "INSERT INTO capture_hosts SELECT 2,7,target,host,state,code,reason,bytes,"
                     "attempts FROM capture_hosts WHERE capture_id=1;"
                     "ALTER TABLE captures ALTER id RESTART WITH 10048");
    CHECK_EQ(begin(s, 0, LONG_MS), 10048);
    expect_sql("SELECT string_agg(id::text,' ' ORDER BY id)='1 10048' FROM captures");
    expect_sql("SELECT string_agg(capture_id::text,' ' ORDER BY capture_id)='1 10048'"
               " FROM capture_hosts");
    CHECK_EQ(finish(s, runs, 0, false), XPL_OK);
    pg_sql(database, "ALTER TABLE captures ALTER id RESTART WITH 10112");
    CHECK_EQ(begin(s, 0, LONG_MS), 10112);
    expect_sql("SELECT min(id)=10048 FROM captures");
    xpl_store_close(s);
}

// Without the database calls fail, and say so; the list has this daemon's own.
static void test_away(void) {
    struct xpl_store *const s = open_pg();
    struct xpl_history *h = NULL;
    char dir[] = "/tmp/xplaned-test-XXXXXX", cmd[64];
    struct xpl_history_capture *list;
    struct xpl_history_schedule *schedules;
    size_t n = 77;
    CHECK(mkdtemp(dir));
    CHECK_OK(xpl_history_open(dir, &h, &err), &err);
    xpl_history_share(h, s);
    const struct xpl_history_capture own = {.id = XPL_HISTORY_OWN + 1, .state = 2};
    CHECK_OK(xpl_history_put(h, &own, &err), &err);
    pg_stop(SIGQUIT);
    err = (struct xpl_error){0};
    const xpl_status_t st = xpl_history_schedules(h, &arena, &schedules, &n, &err);
    CHECK(st == XPL_UNAVAILABLE || st == XPL_FAILED_PRECONDITION);
    CHECK(err.msg[0] && n == 77);
    CHECK_OK(xpl_history_list(h, 0, 9, &arena, &list, &n, &err), &err);
    CHECK(n == 1 && list->id == own.id);
    CHECK(xpl_history_move(h, NULL) != XPL_OK);
    pg_start();
    xpl_history_close(h);
    (void)snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    CHECK_EQ(system(cmd), 0);
    xpl_store_close(s);
}

int main(void) {
    static void (*const all[])(void) = {test_claims, test_done_turn, test_reaping, test_targets,
                                        test_moving, test_pruning,   test_away};
    const char *const why = pg_begin();
    if (why) {
        fprintf(stderr, "SKIPPED: %s\n", why);
        return 77;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        make_database();
        xpl_arena_init(&arena, 1 << 20);
        all[i]();
        xpl_arena_fini(&arena);
    }
    return 0;
}
