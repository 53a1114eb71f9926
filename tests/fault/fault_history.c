// SPDX-License-Identifier: Apache-2.0
// Every allocation of the history, ours and SQLite's, fails once: the calls end cleanly, and the
// next run finds the database sound.
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "server/labels/labels.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/history.h"
#include "tests/check.h"
#include "tests/fault/sqlite_faults.h"
#include "tests/unit/server/labels_fixture.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static unsigned failures;

static bool ok(xpl_status_t st) {
    failures += st != XPL_OK;
    // Nothing but memory is missing; without it there may be no database.
    CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED || st == XPL_FAILED_PRECONDITION ||
          st == XPL_UNAVAILABLE);
    return st == XPL_OK;
}

// Ours fail one by one.  What the scenarios hold beyond a run is `live`.
static void fail_ours(void (*run)(void *arg), void *arg) {
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    run(arg);
    const uint64_t n = xpl_fault_count();
    CHECK(n > 0);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        run(arg);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
}

// SQLite's fail one by one.
static void fail_theirs(void (*run)(void *arg), void *arg) {
    const int64_t live = xpl_fault_live();
    int64_t from = 0;
    do {
        sqlite_fail_from(from);
        run(arg);
        CHECK_EQ(xpl_fault_live(), live);
        from = sqlite_failed() + 1;
    } while (from);
}

// Nothing fails, then everything does once, then nothing again.
static void fail_all(void (*run)(void *arg), void *arg) {
    failures = 0;
    run(arg);
    CHECK_EQ(failures, 0);
    fail_ours(run, arg);
    fail_theirs(run, arg);
    CHECK(failures > 0);
    failures = 0;
    run(arg);
    CHECK_EQ(failures, 0);
}

static void scenario(void *arg) {
    (void)arg;
    struct xpl_history *h = NULL;
    struct xpl_arena a;
    char text[512];
    if (!ok(xpl_history_open(dir, &h, NULL))) return;
    while (xpl_history_next_notice(h, text, sizeof text))
        CHECK(!strstr(text, "broken"));
    xpl_arena_init(&a, 1 << 20);
    const struct xpl_history_host host = {.target = XPL_STR("a:1")};
    const struct xpl_history_capture c = {
        .id = 1, .state = 2, .session = XPL_STR("s"), .hosts = &host, .n_hosts = 1};
    const struct xpl_history_schedule s = {.request = {(const uint8_t *)"abc", 3}};
    const struct xpl_history_session one = {.name = XPL_STR("x")};
    struct xpl_history_capture *captures;
    struct xpl_history_schedule *schedules;
    struct xpl_history_session *sessions;
    uint64_t id = 0;
    size_t n;
    (void)xpl_history_last_id(h);
    (void)ok(xpl_history_put(h, &c, NULL));
    (void)ok(xpl_history_list(h, 0, 10, &a, &captures, &n, NULL));
    if (ok(xpl_history_add_schedule(h, &s, &id, NULL))) {
        (void)ok(xpl_history_add_session(h, id, &one, NULL));
        const struct xpl_history_capture turn = {
            .id = 2, .state = 2, .schedule_id = id, .made = &one};
        (void)ok(xpl_history_put(h, &turn, NULL));
        (void)ok(xpl_history_sessions(h, id, &a, &sessions, &n, NULL));
        (void)ok(xpl_history_delete_schedule(h, id, NULL));
    }
    (void)ok(xpl_history_schedules(h, &a, &schedules, &n, NULL));
    const struct xpl_history_label label = {XPL_STR("x"), XPL_STR("nightly"), 1},
                                   other = {XPL_STR("y"), XPL_STR("nightly"), 1};
    struct xpl_history_label *labels;
    (void)ok(xpl_history_set_labels(h, &label, 1, &other, 1, NULL));
    (void)ok(xpl_history_labels(h, &a, &labels, &n, NULL));
    xpl_history_close(h);
    xpl_arena_fini(&a);
}

// ---- labels in the daemon ----

static size_t count(struct xpl_labels *l) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_history_label *all;
    size_t n;
    if (!xpl_labels_all(l, &arena, &all, &n)) n = SIZE_MAX;
    return n;
}

struct daemon_part {
    struct xpl_history *history;
    struct xpl_catalogue *catalogue;
    struct xpl_snapshot *snap;
};

static bool set(struct xpl_labels *l, const struct xpl_snapshot *snap, bool add) {
    struct xpl_error err = {0};
    const xpl_str_t label = XPL_STR("nightly");
    const struct xpl_labels_change c = {
        .session = XPL_STR("one"), .add = &label, .remove = &label, .n_add = add, .n_remove = !add};
    const xpl_status_t st = xpl_labels_set(l, snap, &c, &err);
    // A list that could not be read has no label to remove.
    return ok(!add && st == XPL_NOT_FOUND ? XPL_RESOURCE_EXHAUSTED : st);
}

static void label_scenario(void *arg) {
    const struct daemon_part *const d = arg;
    struct xpl_labels *const l = xpl_labels_new(d->history);
    struct xpl_arena arena;
    xpl_str_t *labels;
    size_t n = 0;
    if (!ok(l ? XPL_OK : XPL_RESOURCE_EXHAUSTED)) return;
    bool right = set(l, d->snap, true);
    xpl_arena_init(&arena, 1 << 20);
    right = xpl_labels_of(l, XPL_STR("one"), &arena, &labels, &n) && right;
    xpl_arena_fini(&arena);
    xpl_labels_sweep(l, d->catalogue); // what the other scenario left
    right = right && n == 1 && count(l) == 1;
    (void)ok(right ? XPL_OK : XPL_RESOURCE_EXHAUSTED);
    (void)set(l, d->snap, false);
    xpl_labels_free(l);
}

static void test_labels(void) {
    struct daemon_part d;
    struct xpl_error err = {0};
    shell("mkdir -p %s/log/one && touch %s/log/one/h.xplane.pb", dir, dir);
    CHECK_EQ(xpl_history_open(dir, &d.history, &err), XPL_OK);
    d.catalogue = open_catalogue(dir, 0);
    d.snap = xpl_catalogue_get(d.catalogue);
    fail_all(label_scenario, &d);
    xpl_snapshot_unref(d.snap);
    xpl_catalogue_free(d.catalogue);
    xpl_history_close(d.history);
}

int main(void) {
    CHECK(mkdtemp(dir));
    wrap_sqlite();
    fail_all(scenario, NULL);
    test_labels();
    shell("rm -rf %s", dir);
    return 0;
}
