// SPDX-License-Identifier: Apache-2.0
// state.db: captures, schedules and their sessions, over restarts, damage and a second daemon.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/crc32.h"
#include "storage/store/history.h"
#include "tests/check.h"

static char dir[] = "/tmp/xplaned-test-XXXXXX";

static struct xpl_history *open_history(void) {
    struct xpl_history *h = NULL;
    struct xpl_error err = {0};
    if (xpl_history_open(dir, &h, &err) != XPL_OK) FAIL_TEST(err.msg);
    return h;
}

static void put(struct xpl_history *h, uint64_t id, int state) {
    const struct xpl_history_host hosts[] = {
        {.target = XPL_STR("a:1"), .host = XPL_STR("a"), .state = 7, .bytes = UINT64_MAX},
        {.target = XPL_STR("b:1"), .reason = XPL_STR("refused"), .state = 9, .code = 14}};
    const struct xpl_history_capture c = {.id = id,
                                          .state = state,
                                          .session = XPL_STR("s"),
                                          .begin_ms = 5,
                                          .duration_ms = 7,
                                          .hosts = hosts,
                                          .n_hosts = 2};
    CHECK_EQ(xpl_history_put(h, &c, NULL), XPL_OK);
}

static void test_captures(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_history_capture *list;
    size_t n;
    struct xpl_history *h = open_history();
    CHECK_EQ(xpl_history_last_id(h), 0);
    put(h, 1, XPL_HISTORY_RUNNING);
    put(h, 1, 3); // in place of the first
    put(h, 2, XPL_HISTORY_RUNNING);
    xpl_history_close(h);
    h = open_history();
    CHECK_EQ(xpl_history_last_id(h), 2);
    CHECK_EQ(xpl_history_list(h, 0, 10, &a, &list, &n, NULL), XPL_OK);
    CHECK_EQ(n, 2);
    CHECK(list[0].id == 2 && list[0].state == XPL_HISTORY_INTERRUPTED);
    CHECK(list[1].state == 3 && list[1].n_hosts == 2 && list[1].duration_ms == 7);
    CHECK(xpl_str_eq(list[1].hosts[1].reason, XPL_STR("refused")));
    CHECK(list[1].hosts[0].bytes == UINT64_MAX && list[1].hosts[1].code == 14);
    CHECK_EQ(xpl_history_list(h, 2, 10, &a, &list, &n, NULL), XPL_OK);
    CHECK(n == 1 && list[0].id == 1);
    // The oldest go.
    put(h, XPL_HISTORY_CAPTURES + 1, 2);
    CHECK_EQ(xpl_history_list(h, 0, 10, &a, &list, &n, NULL), XPL_OK);
    CHECK(n == 2 && list[1].id == 2);
    // One that still runs does not, nor do its hosts.
    put(h, XPL_HISTORY_CAPTURES + 1, XPL_HISTORY_RUNNING);
    put(h, 2 * XPL_HISTORY_CAPTURES + 1, 2);
    CHECK_EQ(xpl_history_list(h, 0, 10, &a, &list, &n, NULL), XPL_OK);
    CHECK(n == 2 && list[1].id == XPL_HISTORY_CAPTURES + 1 && list[1].n_hosts == 2);
    put(h, XPL_HISTORY_CAPTURES + 1, 2);
    put(h, 2 * XPL_HISTORY_CAPTURES + 2, 2);
    CHECK_EQ(xpl_history_list(h, 0, 10, &a, &list, &n, NULL), XPL_OK);
    CHECK(n == 2 && list[1].id == 2 * XPL_HISTORY_CAPTURES + 1);
    xpl_history_close(h);
}

// Without its log, as in a copy of only state.db, a new database has its tables.
static void test_main_file(void) {
    char cmd[3 * sizeof dir + 64], copy[sizeof dir + 16];
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    (void)snprintf(copy, sizeof copy, "%s/copy.db", dir);
    (void)snprintf(cmd, sizeof cmd, "rm -f %s/state.db*", dir);
    CHECK_EQ(system(cmd), 0);
    struct xpl_history *const h = open_history();
    (void)snprintf(cmd, sizeof cmd, "cp %s/state.db %s", dir, copy);
    CHECK_EQ(system(cmd), 0);
    CHECK_EQ(sqlite3_open(copy, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db, "SELECT count(*) FROM captures", -1, &count, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_step(count), SQLITE_ROW);
    (void)sqlite3_finalize(count);
    (void)sqlite3_close(db);
    xpl_history_close(h);
    (void)snprintf(cmd, sizeof cmd, "rm -f %s/state.db* %s*", dir, copy);
    CHECK_EQ(system(cmd), 0);
}

static void test_schedules(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_history_schedule *list;
    struct xpl_history_session *sessions;
    size_t n;
    uint64_t id = 0;
    struct xpl_history *h = open_history();
    struct xpl_history_schedule s = {
        .request = {(const uint8_t *)"a\0b", 3}, .created_ms = 1, .next_ms = 2};
    CHECK_EQ(xpl_history_add_schedule(h, &s, &id, NULL), XPL_OK);
    s.id = id;
    s.next_ms = 9;
    s.last_capture_id = 4;
    CHECK_EQ(xpl_history_set_schedule(h, &s, NULL), XPL_OK);
    const struct xpl_history_session one = {.name = XPL_STR("x"), .ino = 7, .made_ms = 3},
                                     two = {.name = XPL_STR("y"), .ino = 8, .made_ms = 2};
    CHECK_EQ(xpl_history_add_session(h, id, &one, NULL), XPL_OK);
    CHECK_EQ(xpl_history_add_session(h, id, &two, NULL), XPL_OK);
    xpl_history_close(h);
    h = open_history();
    CHECK_EQ(xpl_history_schedules(h, &a, &list, &n, NULL), XPL_OK);
    CHECK(n == 1 && list[0].id == id && list[0].next_ms == 9 && list[0].last_capture_id == 4);
    CHECK(list[0].request.len == 3 && memcmp(list[0].request.ptr, "a\0b", 3) == 0);
    CHECK_EQ(xpl_history_sessions(h, id, &a, &sessions, &n, NULL), XPL_OK);
    CHECK(n == 2 && sessions[0].ino == 8 && xpl_str_eq(sessions[1].name, XPL_STR("x")));
    CHECK_EQ(xpl_history_forget_session(h, id, XPL_STR("y"), NULL), XPL_OK);
    CHECK_EQ(xpl_history_sessions(h, id, &a, &sessions, &n, NULL), XPL_OK);
    CHECK_EQ(n, 1);
    // The capture's end brings its session, in place of the earlier row of it.
    struct xpl_history_capture turn = {.id = 9, .state = 1, .schedule_id = id};
    CHECK_EQ(xpl_history_put(h, &turn, NULL), XPL_OK);
    const struct xpl_history_session made = {.name = XPL_STR("x"), .ino = 9, .made_ms = 4};
    turn.state = 2;
    turn.made = &made;
    CHECK_EQ(xpl_history_put(h, &turn, NULL), XPL_OK);
    CHECK_EQ(xpl_history_sessions(h, id, &a, &sessions, &n, NULL), XPL_OK);
    CHECK(n == 1 && sessions[0].ino == 9 && sessions[0].made_ms == 4);
    CHECK_EQ(xpl_history_delete_schedule(h, id, NULL), XPL_OK);
    CHECK_EQ(xpl_history_put(h, &turn, NULL), XPL_OK); // of a schedule that is gone
    CHECK_EQ(xpl_history_sessions(h, id, &a, &sessions, &n, NULL), XPL_OK);
    CHECK_EQ(n, 0);
    uint64_t later = 0;
    CHECK_EQ(xpl_history_add_schedule(h, &s, &later, NULL), XPL_OK);
    CHECK(later > id); // a number never means another one
    // A second daemon has none.
    struct xpl_history *other = open_history();
    char text[512];
    CHECK(!xpl_history_is_on(other) && xpl_history_next_notice(other, text, sizeof text));
    CHECK(strstr(text, "another daemon"));
    CHECK_EQ(xpl_history_add_schedule(other, &s, &later, NULL), XPL_FAILED_PRECONDITION);
    CHECK_EQ(xpl_history_schedules(other, &a, &list, &n, NULL), XPL_OK);
    CHECK_EQ(n, 0);
    xpl_history_close(other);
    xpl_history_close(h);
}

static void write_db(const char *text, long offset) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/state.db", dir);
    FILE *f = fopen(path, offset ? "r+b" : "wb");
    CHECK(f && fseek(f, offset, SEEK_SET) == 0);
    CHECK_EQ(fwrite(text, 1, strlen(text), f), strlen(text));
    CHECK_EQ(fclose(f), 0);
}

static void test_damage(void) {
    char text[512];
    write_db("no database, and long enough not to be taken for an empty one: .......", 0);
    struct xpl_history *h = open_history();
    CHECK(xpl_history_is_on(h) && xpl_history_next_notice(h, text, sizeof text));
    CHECK(strstr(text, "state.db.broken-") && !xpl_history_next_notice(h, text, sizeof text));
    put(h, 1, 2);
    xpl_history_close(h);
    h = open_history();
    CHECK_EQ(xpl_history_last_id(h), 1);
    xpl_history_close(h);
    // Headers that do not fit: a newer xplaned's, or damage.
    static const struct {
        const char *bytes;
        long at;
    } headers[] = {{"\1\1\1\1", 60}, {"\xff\1\1\1", 60}, {"Xyzz", 68}, {"\3", 18}, {"\7", 47}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_db(headers[i].bytes, headers[i].at);
        h = open_history();
        CHECK(xpl_history_is_on(h) && xpl_history_was_replaced(h));
        CHECK(xpl_history_next_notice(h, text, sizeof text) && strstr(text, "state.db.broken-"));
        CHECK_EQ(xpl_history_last_id(h), 0);
        put(h, 1, 2);
        xpl_history_close(h);
    }
    // Another program's is kept.
    char cmd[300];
    (void)snprintf(cmd, sizeof cmd, "rm %s/state.db*", dir);
    CHECK_EQ(system(cmd), 0);
    sqlite3 *db = NULL;
    (void)snprintf(cmd, sizeof cmd, "%s/state.db", dir);
    CHECK_EQ(sqlite3_open(cmd, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "CREATE TABLE mine(x)", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    struct xpl_error err = {0};
    CHECK_EQ(xpl_history_open(dir, &h, &err), XPL_FAILED_PRECONDITION);
    CHECK(strstr(err.msg, "another program"));
    CHECK_EQ(unlink(cmd), 0);
}

// One that another daemon has is taken when that one ends; one that could not be made, when it can.
// Damage that shows while it is in use, and no place for a new one: the log says that it is off.
static void test_damage_in_use(void) {
    static char garbage[16384];
    char text[512], cmd[300], path[128];
    sqlite3 *other = NULL;
    struct xpl_history *h = open_history();
    put(h, 1, 2);
    (void)snprintf(path, sizeof path, "%s/state.db", dir);
    CHECK_EQ(sqlite3_open(path, &other), SQLITE_OK); // what h has in memory is old after this
    CHECK_EQ(sqlite3_exec(other, "UPDATE captures SET state=3; PRAGMA wal_checkpoint(TRUNCATE)",
                          NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_close(other), SQLITE_OK);
    memset(garbage, 'x', sizeof garbage - 1);
    write_db(garbage, 4096);
    (void)snprintf(cmd, sizeof cmd, "mv %s %s.away", dir, dir);
    CHECK_EQ(system(cmd), 0);
    while (xpl_history_next_notice(h, text, sizeof text)) {
    }
    CHECK_EQ(xpl_history_last_id(h), 0);
    CHECK(!xpl_history_is_on(h));
    text[0] = 0;
    while (xpl_history_next_notice(h, text, sizeof text)) { // the last one counts
    }
    CHECK(strstr(text, "capture history and schedules are off"));
    (void)snprintf(cmd, sizeof cmd, "mv %s.away %s && rm %s/state.db*", dir, dir, dir);
    CHECK_EQ(system(cmd), 0);
    CHECK(xpl_history_try_again(h));
    put(h, 1, 2);
    xpl_history_close(h);
}

static void test_taking(void) {
    char text[512];
    struct xpl_history *first = open_history(), *second = open_history();
    put(first, 1, 1);
    CHECK(xpl_history_is_on(first) && !xpl_history_is_on(second));
    CHECK(xpl_history_next_notice(second, text, sizeof text) && strstr(text, "another daemon"));
    CHECK(!xpl_history_try_again(second) && !xpl_history_next_notice(second, text, sizeof text));
    xpl_history_close(first);
    CHECK(xpl_history_try_again(second) && xpl_history_is_on(second));
    CHECK(xpl_history_next_notice(second, text, sizeof text) && strstr(text, "go on"));
    CHECK(!xpl_history_try_again(second)); // it has it
    CHECK_EQ(xpl_history_last_id(second), 1);
    put(second, 2, 1);
    xpl_history_close(second);
}

// Labels: all or none, kept over restarts, in order; a database of the first version gets the
// table.
static void test_labels(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_history_label *list;
    size_t n;
    char cmd[sizeof dir + 200];
    (void)snprintf(cmd, sizeof cmd, "rm -f %s/state.db*", dir);
    CHECK_EQ(system(cmd), 0);
    struct xpl_history *h = open_history();
    const struct xpl_history_label add[] = {{XPL_STR("s2"), XPL_STR("b"), 5},
                                            {XPL_STR("s1"), XPL_STR("z"), 6},
                                            {XPL_STR("s2"), XPL_STR("a"), 7}};
    CHECK_EQ(xpl_history_set_labels(h, add, 3, NULL, 0, NULL), XPL_OK);
    const struct xpl_history_label again = {XPL_STR("s2"), XPL_STR("b"), 99};
    CHECK_EQ(xpl_history_set_labels(h, &again, 1, &add[1], 1, NULL), XPL_OK);
    xpl_history_close(h);
    h = open_history();
    CHECK_EQ(xpl_history_labels(h, &a, &list, &n, NULL), XPL_OK);
    CHECK_EQ(n, 2);
    CHECK(xpl_str_eq(list[0].label, XPL_STR("a")) && xpl_str_eq(list[0].session, XPL_STR("s2")));
    CHECK(xpl_str_eq(list[1].label, XPL_STR("b")) && list[1].set_ms == 5); // it was there
    put(h, 1, 3);
    xpl_history_close(h);
    sqlite3 *db = NULL;
    (void)snprintf(cmd, sizeof cmd, "%s/state.db", dir);
    CHECK_EQ(sqlite3_open(cmd, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "DROP TABLE labels; PRAGMA user_version=1", NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    h = open_history();
    CHECK(!xpl_history_was_replaced(h));
    CHECK_EQ(xpl_history_last_id(h), 1);
    CHECK_EQ(xpl_history_labels(h, &a, &list, &n, NULL), XPL_OK);
    CHECK_EQ(n, 0);
    CHECK_EQ(xpl_history_set_labels(h, add, 3, NULL, 0, NULL), XPL_OK);
    xpl_history_close(h);
}

// A backup as docs/operation.md says, while a daemon writes, and a daemon that has been given it.
static void test_backup(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_history_label *list;
    struct xpl_error err = {0};
    char cmd[600], path[300], other[300];
    size_t n;
    sqlite3 *db = NULL;
    struct xpl_history *h = open_history(), *restored = NULL;
    const struct xpl_history_label label = {XPL_STR("s"), XPL_STR("kept"), 5};
    CHECK_EQ(xpl_history_set_labels(h, &label, 1, NULL, 0, NULL), XPL_OK);
    put(h, 42, 3);
    (void)snprintf(other, sizeof other, "%s/restored", dir);
    (void)snprintf(path, sizeof path, "%s/state.db", dir);
    (void)snprintf(cmd, sizeof cmd, "mkdir %s", other);
    CHECK_EQ(system(cmd), 0);
    CHECK_EQ(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    (void)snprintf(cmd, sizeof cmd, "VACUUM INTO '%s/state.db'", other);
    CHECK_EQ(sqlite3_exec(db, cmd, NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    put(h, 43, 3); // after the backup
    CHECK_OK(xpl_history_open(other, &restored, &err), &err);
    CHECK(xpl_history_is_on(restored) && !xpl_history_was_replaced(restored));
    CHECK_EQ(xpl_history_last_id(restored), 42);
    CHECK_EQ(xpl_history_labels(restored, &a, &list, &n, NULL), XPL_OK);
    CHECK(n >= 1);
    bool has = false;
    for (size_t i = 0; i < n; i++)
        has = has || xpl_str_eq(list[i].label, XPL_STR("kept"));
    CHECK(has);
    put(restored, 43, 3);
    xpl_history_close(restored);
    xpl_history_close(h);
}

static void test_crc32(void) {
    const xpl_bytes_t b = {(const uint8_t *)"123456789", 9};
    CHECK_EQ(xpl_crc32(0, b), 0xcbf43926);
    CHECK_EQ(xpl_crc32(xpl_crc32(0, (xpl_bytes_t){b.ptr, 4}), (xpl_bytes_t){b.ptr + 4, 5}),
             0xcbf43926);
}

int main(void) {
    CHECK(mkdtemp(dir));
    test_main_file();
    test_captures();
    test_schedules();
    test_damage();
    test_damage_in_use();
    test_taking();
    test_labels();
    test_backup();
    test_crc32();
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0;
}
