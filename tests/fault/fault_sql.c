// SPDX-License-Identifier: Apache-2.0
// Statements, with every allocation of ours and of SQLite's failing once.
#include <stdlib.h>
#include <unistd.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/fault/sqlite_faults.h"
#include "tests/unit/sql/sql_profile.h"

static char g_store[] = "/tmp/xplaned-sql-XXXXXX", g_state[] = "/tmp/xplaned-sql-XXXXXX";

static void make_database(char *path, const char *sql) {
    sqlite3 *db = NULL;
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

static xpl_status_t summarize(void *arg, size_t i, struct xpl_exec *exec, struct xpl_arena *arena,
                              const struct xpl_run_summary **ret, struct xpl_error *err) {
    struct xpl_run_summary *const s = xpl_arena_zalloc(arena, sizeof *s);
    (void)arg, (void)exec;
    if (!s) XPL_RETURN_OOM(err, "run summary");
    s->compile_ps = i;
    *ret = s;
    return XPL_OK;
}

static xpl_status_t ask(const char *statement, struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_sql_request q = request_of(statement);
    struct xpl_sql_cache *const c = xpl_sql_cache_new(1, SIZE_MAX);
    if (!c) return XPL_RESOURCE_EXHAUSTED;
    q.cache = c;
    q.store = g_store;
    q.state = g_state;
    const struct xpl_sql_session sessions[] = {{XPL_STR("a"), 1, 1}, {XPL_STR("b"), 2, 2}};
    q.runs = (struct xpl_sql_runs){.v = sessions, .n = 2, .summarize = summarize};
    xpl_status_t st = xpl_sql_run(&q, out, err);
    xpl_sql_cache_free(c);
    return st;
}

static void ask_again(const char *statement, const struct xpl_buf *expected, int64_t live) {
    struct xpl_buf got = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    const xpl_status_t st = ask(statement, &got, &err);
    if (st != XPL_OK) CHECK_STATUS(st, XPL_RESOURCE_EXHAUSTED, &err); // some are for speed
    if (st == XPL_OK) CHECK_BYTES(got.p, got.n, expected->p, expected->n);
    xpl_buf_fini(&got);
    CHECK_EQ(xpl_fault_live(), live);
}

static void check(const char *statement) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf expected = xpl_buf_of(1 << 20);
    struct xpl_error err = {0};
    CHECK_OK(ask(statement, &expected, &err), &err);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    ask_again(statement, &expected, live);
    const uint64_t ours = xpl_fault_count();
    for (uint64_t i = 0; i < ours; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        ask_again(statement, &expected, live);
    }
    xpl_fault_reset();
    int64_t from = 0;
    do {
        sqlite_fail_from(from);
        ask_again(statement, &expected, live);
        from = sqlite_failed() + 1;
    } while (from);
}

static const char *const statements[] = {
    "SELECT * FROM label_history",
    "SELECT * FROM label_changes",
    "SELECT * FROM session_metrics WHERE session = 'b'",
    ("WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 12) SELECT "
     "median(i) OVER (ORDER BY i ROWS 3 PRECEDING), level_starts(i + 9 * (i > 6)) OVER () "
     "FROM s"),
    "SELECT name, count(*) FROM events WHERE start_ps > 5 AND line = 'one' GROUP BY name",
    "SELECT name, count(*) FROM events GROUP BY name",
    ("SELECT e.name, s.value FROM events e JOIN stats s USING (event_id) WHERE e.name REGEXP "
     "'a'"),
    "SELECT p.plane, l.line FROM planes p JOIN lines l USING (plane) ORDER BY 2 DESC",
    "SELECT printf('%s %d', name, 5), format('%q', name) FROM events WHERE start_ps < 5",
};
// Of a profile with a program.
static const char *const program_statements[] = {
    ("SELECT i.module, i.shape, e.name FROM hlo_instructions i JOIN events e ON e.name = "
     "i.name"),
    "SELECT * FROM hlo_instructions WHERE name = 'fusion.1' ORDER BY opcode",
    "SELECT name, peak_bytes FROM memory",
};

// One place that calls, so that what two statements do alike fails once.
static void check_all(const char *const *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        check(v[i]);
}

int main(void) {
    wrap_sqlite();
    make_profile(20);
    make_database(
        g_store,
        "CREATE TABLE steps(session, session_mtime_ns, session_captured_ns, host, core_id,"
        " step_num, name, duration_ps); INSERT INTO steps VALUES ('a', 1, 1, 'h', 0, 0, 's', 10);"
        "CREATE TABLE ops(session, session_mtime_ns, session_captured_ns, name, on_device,"
        " self_time_ps);"
        "CREATE TABLE kernels(session, session_mtime_ns, session_captured_ns, name, total_ns)");
    make_database(g_state, "CREATE TABLE labels(session, label, set_ms);"
                           "CREATE TABLE schedule_sessions(schedule_id, name);"
                           "INSERT INTO labels VALUES ('a', 'n', 5)");
    check_all(statements, sizeof statements / sizeof *statements);
    make_program(2);
    check_all(program_statements, sizeof program_statements / sizeof *program_statements);
    xpl_buf_fini(&g_profile.bytes);
    CHECK(unlink(g_store) == 0 && unlink(g_state) == 0);
    return 0;
}
