// SPDX-License-Identifier: Apache-2.0
// What storage/store/history.h promises of captures, schedules and their sessions, wherever they
// are kept: in state.db, or in a database that daemons share.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "storage/store/captures.h"
#include "tests/check.h"
#if XPL_POSTGRESQL
#include "tests/unit/storage/pg_database.h"
#endif

static struct xpl_error err;
static struct xpl_arena arena;
static struct xpl_store *store; // NULL: not shared
static char dir[64];

static struct xpl_history *open_history(void) {
    struct xpl_history *h = NULL;
    CHECK_OK(xpl_history_open(dir, &h, &err), &err);
    if (store) xpl_history_share(h, store);
    return h;
}

static uint64_t begin(struct xpl_history *h, struct xpl_history_capture *c) {
    c->state = XPL_HISTORY_RUNNING;
    if (store) {
        CHECK_OK(xpl_store_captures(store)->begin(store, c, NULL, 60000, &c->id, &err), &err);
    } else {
        c->id = xpl_history_last_id(h) + 1;
        CHECK_OK(xpl_history_put(h, c, &err), &err);
    }
    return c->id;
}

static void end(struct xpl_history *h, struct xpl_history_capture *c, int state) {
    c->state = state;
    if (store)
        CHECK_OK(xpl_store_captures(store)->put(store, c, false, &err), &err);
    else
        CHECK_OK(xpl_history_put(h, c, &err), &err);
}

static struct xpl_history_capture *list(struct xpl_history *h, uint64_t before, size_t limit,
                                        size_t expected) {
    struct xpl_history_capture *ret = NULL;
    size_t n = 77;
    CHECK_OK(xpl_history_list(h, before, limit, &arena, &ret, &n, &err), &err);
    CHECK_EQ(n, expected);
    return ret;
}

// What a host says may be anything.
static void test_captures(void) {
    static const char odd[] = "bad \xff and\0more";
    struct xpl_history *const h = open_history();
    const struct xpl_history_host hosts[] = {
        {.target = XPL_STR("a:1"), .host = XPL_STR("a_1"), .state = 7, .bytes = UINT64_MAX},
        {.target = XPL_STR("b:1"), .reason = {odd, sizeof odd - 1}, .state = 9, .code = 14}};
    struct xpl_history_capture one = {.begin_ms = 5, .duration_ms = 7, .hosts = hosts},
                               two = {.begin_ms = 6, .schedule_id = 9};
    CHECK_EQ(begin(h, &one), 1);
    one.n_hosts = 2;
    one.session = XPL_STR("s");
    one.message = XPL_STR("half");
    one.end_ms = 11;
    end(h, &one, 3);
    CHECK_EQ(begin(h, &two), 2);
    const struct xpl_history_capture *l = list(h, 0, 10, 2);
    CHECK(l[0].id == 2 && l[0].state == XPL_HISTORY_RUNNING && l[0].schedule_id == 9);
    CHECK(l[0].n_hosts == 0 && l[0].end_ms == 0);
    CHECK(l[1].id == 1 && l[1].state == 3 && l[1].end_ms == 11 && l[1].duration_ms == 7);
    CHECK(xpl_str_eq(l[1].session, XPL_STR("s")) && xpl_str_eq(l[1].message, XPL_STR("half")));
    CHECK_EQ(l[1].n_hosts, 2);
    CHECK(l[1].hosts[0].bytes == UINT64_MAX && l[1].hosts[0].state == 7);
    CHECK(xpl_str_eq(l[1].hosts[0].host, XPL_STR("a_1")) && l[1].hosts[1].code == 14);
    CHECK(xpl_str_starts(l[1].hosts[1].reason, XPL_STR("bad ")));
    CHECK_EQ(list(h, 2, 10, 1)[0].id, 1);
    CHECK_EQ(list(h, 0, 1, 1)[0].id, 2);
    (void)list(h, 1, 10, 0);
    xpl_history_close(h);
}

static struct xpl_history_schedule *schedules(struct xpl_history *h, size_t expected) {
    struct xpl_history_schedule *ret = NULL;
    size_t n = 77;
    CHECK_OK(xpl_history_schedules(h, &arena, &ret, &n, &err), &err);
    CHECK_EQ(n, expected);
    return ret;
}

static struct xpl_history_session *sessions(struct xpl_history *h, uint64_t id, size_t expected) {
    struct xpl_history_session *ret = NULL;
    size_t n = 77;
    CHECK_OK(xpl_history_sessions(h, id, &arena, &ret, &n, &err), &err);
    CHECK_EQ(n, expected);
    return ret;
}

// The claim of a schedule that daemons share.
static void claim(struct xpl_history_schedule *s) {
    struct xpl_history_schedule *ret;
    size_t n = 0;
    if (!store) return;
    CHECK_OK(xpl_store_captures(store)->claim(store, 1, 60000, &arena, &ret, &n, &err), &err);
    CHECK(n == 1 && ret->id == s->id);
    s->fence = ret->fence;
}

static void test_schedules(void) {
    struct xpl_history *h = open_history();
    struct xpl_history_schedule s = {
        .request = {(const uint8_t *)"a\0b", 3}, .created_ms = 1, .next_ms = 2};
    CHECK_OK(xpl_history_add_schedule(h, &s, &s.id, &err), &err);
    CHECK_EQ(s.id, 1);
    claim(&s);
    s.next_ms = 9;
    s.last_capture_id = 4;
    CHECK_OK(xpl_history_set_schedule(h, &s, &err), &err);
    xpl_history_close(h);
    h = open_history();
    const struct xpl_history_schedule *const l = schedules(h, 1);
    CHECK(l->id == 1 && l->created_ms == 1 && l->next_ms == 9 && l->last_capture_id == 4);
    CHECK(l->request.len == 3 && memcmp(l->request.ptr, "a\0b", 3) == 0);
    CHECK_OK(xpl_history_delete_schedule(h, 1, &err), &err);
    CHECK_OK(xpl_history_delete_schedule(h, 1, &err), &err);
    (void)schedules(h, 0);
    CHECK_OK(xpl_history_add_schedule(h, &s, &s.id, &err), &err);
    CHECK_EQ(s.id, 2); // a number is never used again
    xpl_history_close(h);
}

static void test_sessions(void) {
    struct xpl_history *const h = open_history();
    const struct xpl_history_schedule s = {.request = {(const uint8_t *)"x", 1}};
    uint64_t id = 0;
    CHECK_OK(xpl_history_add_schedule(h, &s, &id, &err), &err);
    const struct xpl_history_session x = {.name = XPL_STR("x"),
                                          .dev = 3,
                                          .ino = UINT64_MAX,
                                          .made_ms = 3,
                                          .n_hosts = 2},
                                     y = {.name = XPL_STR("y"), .ino = 8, .made_ms = 2},
                                     z = {.name = XPL_STR("z"), .ino = 9, .made_ms = 9};
    CHECK_OK(xpl_history_add_session(h, id, &x, &err), &err);
    CHECK_OK(xpl_history_add_session(h, id, &x, &err), &err);
    CHECK_OK(xpl_history_add_session(h, id, &y, &err), &err);
    CHECK_OK(xpl_history_add_session(h, id + 1, &y, &err), &err); // of none
    // A capture's session is there when its end is.
    struct xpl_history_capture c = {.schedule_id = id};
    (void)begin(h, &c);
    c.made = &z;
    (void)sessions(h, id, 2);
    end(h, &c, 2);
    const struct xpl_history_session *const l = sessions(h, id, 3);
    CHECK(xpl_str_eq(l[0].name, y.name) && xpl_str_eq(l[1].name, x.name) && l[2].ino == 9);
    CHECK(l[1].ino == UINT64_MAX && l[1].dev == 3 && l[1].n_hosts == 2 && l[1].made_ms == 3);
    CHECK_OK(xpl_history_forget_session(h, id, x.name, &err), &err);
    CHECK(xpl_str_eq(sessions(h, id, 2)[0].name, y.name));
    (void)sessions(h, id + 1, 0);
    CHECK_OK(xpl_history_delete_schedule(h, id, &err), &err);
    (void)sessions(h, id, 0);
    xpl_history_close(h);
}

// ---- where they are kept ----

static void open_nothing(void) {
    store = NULL;
}

#if XPL_POSTGRESQL
static void open_shared(void) {
    make_database();
    const struct xpl_store_options o = {.size = sizeof o, .dir = "", .url = pg_url(database)};
    CHECK_OK(xpl_store_open(&o, &store, &err), &err);
    for (int i = 0; xpl_store_role(store) != XPL_STORE_WRITER; i++) {
        CHECK(i < 1200);
        pg_pause_ms(50);
    }
}
#endif

static void run_all(void (*open)(void)) {
    static void (*const all[])(void) = {test_captures, test_schedules, test_sessions};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char cmd[96];
        (void)snprintf(dir, sizeof dir, "/tmp/xplaned-test-XXXXXX");
        CHECK(mkdtemp(dir));
        xpl_arena_init(&arena, 1 << 20);
        open();
        all[i]();
        xpl_store_close(store);
        xpl_arena_fini(&arena);
        (void)snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
        CHECK_EQ(system(cmd), 0);
    }
}

int main(void) {
    run_all(open_nothing);
#if XPL_POSTGRESQL
    const char *const why = pg_begin();
    if (why)
        fprintf(stderr, "only state.db: %s\n", why);
    else
        run_all(open_shared);
#endif
    return 0;
}
