// SPDX-License-Identifier: Apache-2.0
// Every allocation of the history, ours and SQLite's, fails once: the calls end cleanly, and the
// next run finds the database sound.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
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
        (void)ok(xpl_history_sessions(h, id, &a, &sessions, &n, NULL));
        (void)ok(xpl_history_delete_schedule(h, id, NULL));
    }
    (void)ok(xpl_history_schedules(h, &a, &schedules, &n, NULL));
    xpl_history_close(h);
    xpl_arena_fini(&a);
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
    for (int64_t i = 0; i < theirs; i++) {
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
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0;
}
