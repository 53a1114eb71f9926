// SPDX-License-Identifier: Apache-2.0
// Every allocation of the history, ours and SQLite's, fails once: the calls end cleanly, and the
// next run finds the database sound.
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "server/labels/labels.h"
#include "storage/sessions/catalogue.h"
#include "storage/store/history.h"
#include "tests/check.h"
#include "tests/fault/sqlite_faults.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";
static unsigned failures;

static bool ok(xpl_status_t st) {
    failures += st != XPL_OK;
    // Nothing but memory is missing; without it there may be no database.
    CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED || st == XPL_FAILED_PRECONDITION ||
          st == XPL_UNAVAILABLE);
    return st == XPL_OK;
}

static void scenario(void) {
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

__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...) {
    char command[300];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    CHECK_EQ(system(command), 0);
}

static struct xpl_catalogue *open_catalogue(void) {
    struct xpl_catalogue *c = NULL;
    struct xpl_error err = {0};
    char logdir[64];
    (void)snprintf(logdir, sizeof logdir, "%s/log", dir);
    const struct xpl_catalogue_options o = {
        .size = sizeof o, .logdir = logdir, .match = xpl_format_match};
    CHECK_EQ(xpl_catalogue_new(&o, &c, &err), XPL_OK);
    return c;
}

static size_t count(struct xpl_labels *l) {
    struct xpl_arena arena;
    struct xpl_history_label *all;
    size_t n;
    xpl_arena_init(&arena, 1 << 20);
    if (!xpl_labels_all(l, &arena, &all, &n)) n = SIZE_MAX;
    xpl_arena_fini(&arena);
    return n;
}

static bool set(struct xpl_labels *l, const struct xpl_snapshot *snap, bool add) {
    struct xpl_error err = {0};
    const xpl_str_t label = XPL_STR("nightly");
    const struct xpl_labels_change c = {
        .session = XPL_STR("one"), .add = &label, .remove = &label, .n_add = add, .n_remove = !add};
    const xpl_status_t st = xpl_labels_set(l, snap, &c, &err);
    // Of a list that could not be read there is no label to remove.
    CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED || (!add && st == XPL_NOT_FOUND));
    return st == XPL_OK;
}

// False when anything failed.
static bool label_scenario(struct xpl_history *h, const struct xpl_snapshot *snap) {
    struct xpl_labels *const l = xpl_labels_new(h);
    if (!l) return false;
    struct xpl_arena arena;
    xpl_str_t *labels;
    size_t n = 0;
    bool ok = set(l, snap, true);
    xpl_arena_init(&arena, 1 << 20);
    ok = xpl_labels_of(l, XPL_STR("one"), &arena, &labels, &n) && ok;
    xpl_arena_fini(&arena);
    xpl_labels_sweep(l, snap); // what the other scenario left
    ok = ok && n == 1 && count(l) == 1;
    ok = set(l, snap, false) && ok;
    xpl_labels_free(l);
    return ok;
}

// Every allocation of ours fails once while labels are read and changed.
static void test_labels(void) {
    struct xpl_history *h = NULL;
    struct xpl_error err = {0};
    shell("mkdir -p %s/log/one && touch %s/log/one/h.xplane.pb", dir, dir);
    CHECK_EQ(xpl_history_open(dir, &h, &err), XPL_OK);
    struct xpl_catalogue *const c = open_catalogue();
    struct xpl_snapshot *const snap = xpl_catalogue_get(c);
    CHECK(label_scenario(h, snap));
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK(label_scenario(h, snap));
    const uint64_t n = xpl_fault_count();
    CHECK(n > 5);
    size_t failed = 0;
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        failed += !label_scenario(h, snap);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    CHECK(failed > 0);
    CHECK(label_scenario(h, snap));
    xpl_snapshot_unref(snap);
    xpl_catalogue_free(c);
    xpl_history_close(h);
}

int main(void) {
    CHECK(mkdtemp(dir));
    wrap_sqlite();
    scenario();
    CHECK_EQ(failures, 0);
    xpl_fault_reset();
    seen = 0;
    scenario();
    const uint64_t ours = xpl_fault_count();
    const int64_t theirs = seen;
    for (uint64_t i = 0; i < ours; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        scenario();
        CHECK_EQ(xpl_fault_live(), 0);
    }
    xpl_fault_reset();
    for (int64_t i = 0; i < theirs; i = next_of_sqlite(i)) {
        seen = 0;
        fail_at = i;
        scenario();
        CHECK_EQ(xpl_fault_live(), 0);
    }
    fail_at = -1;
    CHECK(failures > 0);
    failures = 0;
    scenario();
    CHECK_EQ(failures, 0);
    test_labels();
    shell("rm -rf %s", dir);
    return 0;
}
