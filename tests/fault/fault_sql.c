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
    struct xpl_sql_cache *const c = xpl_sql_cache_new(1);
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

static void check(const char *statement) {
    struct xpl_buf expected, got;
    struct xpl_error err = {0};
    xpl_buf_init(&expected, 1 << 20);
    fail_at = -1;
    CHECK_OK(ask(statement, &expected, &err), &err);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    seen = 0;
    xpl_buf_init(&got, 1 << 20);
    CHECK_OK(ask(statement, &got, &err), &err);
    const uint64_t ours = xpl_fault_count();
    const int64_t theirs = seen;
    xpl_buf_fini(&got);
    for (int64_t i = 0; i < (int64_t)ours + theirs; i++) {
        xpl_fault_reset();
        seen = 0;
        fail_at = i < (int64_t)ours ? -1 : i - (int64_t)ours;
        xpl_fault_fail_on(i < (int64_t)ours ? (uint64_t)i : UINT64_MAX);
        err = (struct xpl_error){0};
        xpl_buf_init(&got, 1 << 20);
        const xpl_status_t st = ask(statement, &got, &err);
        if (st != XPL_OK) CHECK_STATUS(st, XPL_RESOURCE_EXHAUSTED, &err); // some are for speed
        if (st == XPL_OK) CHECK_BYTES(got.p, got.n, expected.p, expected.n);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live);
    }
    fail_at = -1;
    xpl_fault_reset();
    xpl_buf_fini(&expected);
}

int main(void) {
    wrap_sqlite();
    make_profile(20);
    make_database(
        g_store,
        "CREATE TABLE steps(session, session_mtime_ns, session_captured_ns, host, step_num, name,"
        " duration_ps); INSERT INTO steps VALUES ('a', 1, 1, 'h', 0, 's', 10);"
        "CREATE TABLE ops(session, session_mtime_ns, session_captured_ns, name, on_device,"
        " self_time_ps);"
        "CREATE TABLE kernels(session, session_mtime_ns, session_captured_ns, name, total_ns)");
    make_database(g_state, "CREATE TABLE labels(session, label, set_ms);"
                           "CREATE TABLE schedule_sessions(schedule_id, name);"
                           "INSERT INTO labels VALUES ('a', 'n', 5)");
    check("SELECT * FROM label_history");
    check("SELECT * FROM label_changes");
    check("SELECT * FROM session_metrics WHERE session = 'b'");
    check("WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 12) SELECT "
          "median(i) OVER (ORDER BY i ROWS 3 PRECEDING), level_starts(i + 9 * (i > 6)) OVER () "
          "FROM s");
    check("SELECT name, count(*) FROM events WHERE start_ps > 5 AND line = 'one' GROUP BY name");
    check("SELECT name, count(*) FROM events GROUP BY name");
    check("SELECT e.name, s.value FROM events e JOIN stats s USING (event_id) WHERE e.name REGEXP "
          "'a'");
    check("SELECT p.plane, l.line FROM planes p JOIN lines l USING (plane) ORDER BY 2 DESC");
    check("SELECT printf('%s %d', name, 5), format('%q', name) FROM events WHERE start_ps < 5");
    make_program(2);
    check("SELECT i.module, i.shape, e.name FROM hlo_instructions i JOIN events e ON e.name = "
          "i.name");
    check("SELECT * FROM hlo_instructions WHERE name = 'fusion.1' ORDER BY opcode");
    check("SELECT name, peak_bytes FROM memory");
    xpl_buf_fini(&g_profile.bytes);
    CHECK(unlink(g_store) == 0 && unlink(g_state) == 0);
    return 0;
}
