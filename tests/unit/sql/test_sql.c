// SPDX-License-Identifier: Apache-2.0
// Statements: their limits, the store together with profiles, profiles that stay open.
// tests/cli/test_sql.py compares their answers with SQLite's own tables.
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "analysis/compare/compare.h"
#include "base/arena.h"
#include "base/clock.h"
#include "sql/heap.h"
#include "tests/cancelled.h"
#include "tests/check.h"
#include "tests/unit/sql/sql_profile.h"

static void answers(const struct xpl_sql_request *q, const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 24);
    struct xpl_error err = {0};
    CHECK_OK(xpl_sql_run(q, &out, &err), &err);
    CHECK_STR(((xpl_str_t){(const char *)out.p, out.n}), expected);
}

static void fails(const struct xpl_sql_request *q, xpl_status_t code, const char *words) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 24);
    struct xpl_error err = {0};
    const uint64_t begin = xpl_clock_ns();
    CHECK_STATUS(xpl_sql_run(q, &out, &err), code, &err);
    if (!strstr(err.msg, words)) CHECK_STR(xpl_str_from(err.msg), words);
    CHECK(xpl_clock_between(begin, xpl_clock_ns()) < 60 * (uint64_t)1000000000);
}

static void windows(void) {
    struct xpl_sql_request q =
        request_of("SELECT count(*), min(start_ps), max(start_ps) FROM events "
                   "WHERE start_ps BETWEEN 30000000000 AND 30009000000");
    answers(&q, "{\"columns\":[\"count(*)\",\"min(start_ps)\",\"max(start_ps)\"],"
                "\"rows\":[[20,30000000000,30009000000]],\"cut\":false}");
    q = request_of("SELECT name, count(*) FROM events WHERE line = '7' GROUP BY name");
    answers(&q, "{\"columns\":[\"name\",\"count(*)\"],\"rows\":[[\"a\",20000],[\"b\",20000]],"
                "\"cut\":false}");
    // A number is equal to the text of its digits, and to others.
    q = request_of("SELECT name, count(*) FROM events WHERE line = 7 GROUP BY name");
    answers(&q, "{\"columns\":[\"name\",\"count(*)\"],\"rows\":[[\"a\",20000],[\"b\",20000]],"
                "\"cut\":false}");
    // An event by its id, and ids that are none.
    q = request_of("SELECT count(*) FROM events a JOIN events b USING (event_id) "
                   "WHERE a.start_ps < 50000000");
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[100]],\"cut\":false}");
    q = request_of("SELECT count(*) FROM events WHERE event_id IN (-1, 0, 9223372036854775807)");
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[0]],\"cut\":false}");
}

// Functions with effects beyond values, and slow ones that no statement needs.
static void refused_functions(void) {
    static const char *const all[] = {
        "SELECT load_extension('x')",         "SELECT fts3_tokenizer('simple')",
        "SELECT sqlite_compileoption_get(1)", "SELECT Sqlite_Log(1, 'x')",
        "SELECT sqlite_source_id()",          "SELECT rtreecheck('main', 'x')",
        "SELECT changes(), total_changes()",  "SELECT json_patch('{}', '{}')"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct xpl_sql_request q = request_of(all[i]);
        fails(&q, XPL_PERMISSION_DENIED, "the function ");
    }
}

// SQLite would write a character two billion times before it looks at the clock.
static void formats(void) {
    static const char *const endless[] = {
        "SELECT printf('%.*c', 2000000000, 'a')", "SELECT format('%s %-9.2000000000lc', 1, 'a')",
        "SELECT count(*) FROM events WHERE printf('%%%.2147483647c', name) = ''"};
    static const char *const digits[] = {"SELECT printf('%!.40000f%!.*e', 1, 30000, 2)",
                                         "SELECT printf('%d%%%s%n%!.*g', 1, 2, -70000, 3)"};
    const clock_t begin = clock(); // of the processor: the machine may be busy
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        const struct xpl_sql_request q = request_of(endless[i]);
        fails(&q, XPL_INVALID_ARGUMENT, "precision");
    }
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        const struct xpl_sql_request q = request_of(digits[i]);
        fails(&q, XPL_INVALID_ARGUMENT, "more than 65536 digits");
    }
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 5);
    struct xpl_sql_request q =
        request_of("SELECT printf('%05d|%-4s|%.2f|%c|%%c.|%q', 7, 'ab', 1.25, 'xy', 'it''s') AS a,"
                   " format('%s %s', 1.5, NULL) AS b, printf(NULL) AS c, printf() AS d");
    answers(&q, "{\"columns\":[\"a\",\"b\",\"c\",\"d\"],"
                "\"rows\":[[\"00007|ab  |1.25|x|%c.|it''s\",\"1.5 \",null,null]],\"cut\":false}");
    q = request_of("SELECT count(*) AS n FROM events WHERE printf('%s%d', name, 1) = 'a1'");
    answers(&q, "{\"columns\":[\"n\"],\"rows\":[[40000]],\"cut\":false}");
}

static void limits(void) {
    struct xpl_sql_request q = request_of("SELECT start_ps FROM events");
    q.limits.rows = 2;
    answers(&q, "{\"columns\":[\"start_ps\"],\"rows\":[[0],[1000000]],\"cut\":true}");
    q.limits.rows = 80000;
    q.limits.bytes = 40;
    answers(&q, "{\"columns\":[\"start_ps\"],\"rows\":[[0],[1000000]],\"cut\":true}");
    q = request_of("SELECT count(*) FROM events a, events b, events c");
    q.limits.time_ms = 50;
    fails(&q, XPL_DEADLINE_EXCEEDED, "more than 50 ms");
    q = request_of("SELECT count(*) FROM events WHERE name REGEXP '(a+)+$' AND "
                   "length(hex(randomblob(9000))) < 5");
    q.limits.time_ms = 50;
    fails(&q, XPL_DEADLINE_EXCEEDED, "more than 50 ms");
    // Sorting, and a text that grows, in memory that is bounded.
    q = request_of("SELECT a.name || a.start_ps || b.start_ps FROM events a, events b ORDER BY 1");
    q.limits.memory = 16 << 20;
    fails(&q, XPL_RESOURCE_EXHAUSTED, "more memory than 16 MiB");
    q = request_of("SELECT group_concat(start_ps) FROM events");
    fails(&q, XPL_RESOURCE_EXHAUSTED, "a value has more than 64 KiB");
}

// Calls of one row are not interrupted: there are not too many.
static void many_calls(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(1 << 20);
    xpl_buf_printf(&text, "SELECT 1");
    for (int i = 0; i < 150; i++)
        xpl_buf_printf(&text, ", instr('a', 'b') + instr('c', 'd') + instr('e', 'f')");
    xpl_buf_putc(&text, 0);
    const struct xpl_sql_request q = request_of((const char *)text.p);
    fails(&q, XPL_PERMISSION_DENIED, "more than 300 calls");
}

// Each level names the one before twice: copies double while the statement is prepared, where
// nothing looks at the clock.
static void prepared_bomb(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(1 << 20);
    xpl_buf_printf(&text, "WITH t0 AS (SELECT 1 AS x LIMIT 1)");
    for (int i = 1; i < 40; i++)
        xpl_buf_printf(&text, ", t%d AS (SELECT l.x FROM t%d l, t%d r LIMIT 1)", i, i - 1, i - 1);
    xpl_buf_printf(&text, " SELECT * FROM t39%c", 0);
    struct xpl_sql_request q = request_of((const char *)text.p);
    q.limits.memory = 32 << 20;
    fails(&q, XPL_RESOURCE_EXHAUSTED, "more memory than 32 MiB");
}

static void broken(void) {
    struct xpl_sql_request q = request_of("SELECT count(*) FROM events");
    struct xpl_exec cancelled = xpl_exec_serial();
    cancelled.cancelled = always_cancelled;
    q.exec = &cancelled;
    fails(&q, XPL_CANCELLED, "cancelled");
    q.statement = XPL_STR("SELECT 'a' REGEXP 'a('"); // no search begins any more
    fails(&q, XPL_CANCELLED, "cancelled");
    q = request_of("SELECT count(*) FROM events");
    g_profile.is_broken = true;
    fails(&q, XPL_DATA_LOSS, "broken for the test");
    q = request_of("SELECT 1"); // reads none
    answers(&q, "{\"columns\":[\"1\"],\"rows\":[[1]],\"cut\":false}");
    g_profile.is_broken = false;
    q.statement = (xpl_str_t){"SELECT 1\0", 9};
    fails(&q, XPL_INVALID_ARGUMENT, "character 9: NUL is not allowed");
}

static void kept(void) {
    struct xpl_sql_request q = request_of("SELECT count(*) FROM events WHERE start_ps < 10");
    q.cache = xpl_sql_cache_new(1, SIZE_MAX);
    CHECK(q.cache != NULL);
    g_profile.opened = g_profile.closed = 0;
    for (int i = 0; i < 3; i++)
        answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[2]],\"cut\":false}");
    CHECK_EQ(g_profile.opened, 1);
    g_profile.row.key = XPL_STR("other"); // other bytes: the one before goes
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[2]],\"cut\":false}");
    CHECK_EQ(g_profile.opened, 2);
    CHECK_EQ(g_profile.closed, 1);
    xpl_sql_cache_free(q.cache);
    CHECK_EQ(g_profile.closed, 2);
}

// Names that are cut are equal as SQLite sees them.
static xpl_status_t open_any(void *arg, size_t i, struct xpl_exec *exec, void **ret_file,
                             xpl_bytes_t *ret, struct xpl_error *err) {
    (void)i;
    return open_profile(arg, 0, exec, ret_file, ret, err);
}

// Of more profiles than stay open each is open once, however many tables are read at a time.
static void in_use(void) {
    struct xpl_sql_profile rows[4];
    static const char *const names[] = {"s0", "s1", "s2", "s3"};
    for (size_t i = 0; i < 4; i++) {
        rows[i] = g_profile.row;
        rows[i].session = rows[i].key = xpl_str_from(names[i]);
    }
    struct xpl_buf text;
    xpl_buf_init(&text, 1 << 16);
    xpl_buf_printf(&text, "SELECT count(*) FROM ");
    for (unsigned i = 0; i < 40; i++)
        xpl_buf_printf(&text, "%s(SELECT * FROM planes WHERE session = 's%u') a%u", i ? ", " : "",
                       i % 4, i);
    xpl_buf_printf(&text, "%c", 0);
    struct xpl_sql_request q = request_of((const char *)text.p);
    q.source.profiles = rows;
    q.source.n = 4;
    q.source.open = open_any;
    q.cache = xpl_sql_cache_new(1, SIZE_MAX);
    CHECK(q.cache != NULL);
    g_profile.opened = g_profile.closed = 0;
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
    CHECK_EQ(g_profile.opened, 4);
    CHECK_EQ(g_profile.closed, 3);
    xpl_sql_cache_free(q.cache);
    xpl_buf_fini(&text);
}

// What tables keep has one limit together: 50 of them exceed one of which each needs a tenth.
static void many_tables(void) {
    struct xpl_buf text;
    xpl_buf_init(&text, 1 << 16);
    xpl_buf_printf(&text, "SELECT count(*) FROM ");
    struct xpl_sql_request q = request_of("");
    q.cache = xpl_sql_cache_new(1, SIZE_MAX);
    CHECK(q.cache != NULL);
    q.limit = (size_t)1 << 17;
    for (unsigned i = 0; i < 50; i++) {
        xpl_buf_printf(&text, "%s(SELECT name, count(*) FROM events GROUP BY name LIMIT 1) a%u",
                       i ? ", " : "", i);
        q.statement = (xpl_str_t){(const char *)text.p, text.n};
        if (i == 0) answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
    }
    fails(&q, XPL_RESOURCE_EXHAUSTED, "");
    q.limit = (size_t)1 << 30;
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
    xpl_sql_cache_free(q.cache);
    xpl_buf_fini(&text);
}

// The profiles that statements have open have one limit together: 40 exceed one that 4 keep.
static void many_profiles(void) {
    enum { MANY = 40 };
    struct xpl_sql_profile rows[MANY];
    char names[MANY][8];
    struct xpl_buf text = xpl_buf_of(1 << 16);
    struct xpl_sql_request q = request_of("");
    q.source.profiles = rows;
    q.source.open = open_any;
    q.cache = xpl_sql_cache_new(1, (size_t)1 << 16);
    CHECK(q.cache != NULL);
    xpl_buf_printf(&text, "SELECT count(*) FROM ");
    for (q.source.n = 0; q.source.n < MANY; q.source.n++) {
        const size_t i = q.source.n;
        rows[i] = g_profile.row;
        snprintf(names[i], sizeof names[i], "s%zu", i);
        rows[i].session = rows[i].key = xpl_str_from(names[i]);
        xpl_buf_printf(&text, "%s(SELECT * FROM planes WHERE session = 's%zu') a%zu", i ? ", " : "",
                       i, i);
        q.statement = (xpl_str_t){(const char *)text.p, text.n};
        if (i == 3) {
            q.source.n = 4;
            answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
            q.source.n = 3;
        }
    }
    fails(&q, XPL_RESOURCE_EXHAUSTED, "");
    // What the statement held was given back.
    q.statement = XPL_STR("SELECT count(*) FROM planes WHERE session = 's9'");
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
    xpl_sql_cache_free(q.cache);
    xpl_buf_fini(&text);
}

static void cut(void) {
    char name[61001];
    struct sql_profile before = g_profile;
    struct xpl_buf space = mk_open(), line;
    struct mk_plane p = mk_plane(0, "plane");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    line = mk_line(0, "line");
    struct xpl_buf ev = mk_event(&p, name, 0, 1);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    g_profile.bytes = space;
    const struct xpl_sql_request q =
        request_of("SELECT count(*) FROM events a JOIN events b ON b.name = a.name");
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[1]],\"cut\":false}");
    xpl_buf_fini(&g_profile.bytes);
    g_profile = before;
}

// Instructions of programs, their measurements, and rows that SQLite need not read.
static void instructions(void) {
    struct sql_profile before = g_profile;
    make_profile(1);
    make_program(3);
    struct xpl_sql_request q =
        request_of("SELECT module, program_id, computation, name, opcode, shape, framework_op,"
                   " occurrences, time_ps FROM hlo_instructions");
    answers(&q,
            "{\"columns\":[\"module\",\"program_id\",\"computation\",\"name\",\"opcode\",\"shape\","
            "\"framework_op\",\"occurrences\",\"time_ps\"],\"rows\":["
            "[\"jit_step\",7,\"fused\",\"p0\",\"parameter\",\"f32[]\",null,0,0],"
            "[\"jit_step\",7,\"fused\",\"mul.1\",\"multiply\",\"f32[]\",\"jit(f)/layer/mul:\",0,0],"
            "[\"jit_step\",7,\"fused\",\"add.1\",\"add\",\"f32[]\",\"jit(f)/layer/add:\",0,0],"
            "[\"jit_step\",7,\"main\",\"p\",\"parameter\",\"f32[]\",null,0,0],"
            "[\"jit_step\",7,\"main\",\"fusion.1\",\"fusion\",\"f32[]\",\"jit(f)/layer/add:\",3,"
            "6000000],"
            "[\"jit_step\",7,\"main\",\"dot.2\",\"dot\",\"f32[]\","
            "\"jit(f)/transpose(jvp(layer))/dot_general:\",0,0],"
            "[\"jit_other\",8,null,\"copy.9\",null,null,null,1,2000000]],\"cut\":false}");
    static const struct {
        const char *where;
        int n;
    } cases[] = {{"name = 'fusion.1'", 1},
                 {"name = 'none'", 0},
                 {"opcode = 'parameter'", 2},
                 {"module = 'jit_step'", 6},
                 {"module = 'jit_step' AND name IN ('p', 'p0', 'copy.9')", 2},
                 {"host = 'other'", 0},
                 {"session = 'run' AND opcode IS NULL", 1},
                 {"program_id = 8", 1},
                 {"opcode = ''", 0},
                 {"name > 'm'", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128], expected[128];
        (void)snprintf(text, sizeof text, "SELECT count(*) AS n FROM hlo_instructions WHERE %s",
                       cases[i].where);
        (void)snprintf(expected, sizeof expected,
                       "{\"columns\":[\"n\"],\"rows\":[[%d]],\"cut\":false}", cases[i].n);
        q = request_of(text);
        answers(&q, expected);
    }
    q = request_of("SELECT s.value, i.opcode, count(*) AS n FROM stats s JOIN hlo_instructions i"
                   " ON i.name = s.value WHERE s.name = 'hlo_op' GROUP BY 1");
    answers(&q, "{\"columns\":[\"value\",\"opcode\",\"n\"],\"rows\":[[\"copy.9\",null,1],"
                "[\"fusion.1\",\"fusion\",3]],\"cut\":false}");
    // The memory of rows read is bounded, and so is that of later statements.
    q = request_of("SELECT count(*) FROM hlo_instructions");
    q.limit = 3000;
    fails(&q, XPL_RESOURCE_EXHAUSTED, "");
    q = request_of("DELETE FROM hlo_instructions");
    fails(&q, XPL_PERMISSION_DENIED, "not allowed");
    q = request_of("DROP TABLE hlo_instructions");
    fails(&q, XPL_PERMISSION_DENIED, "not allowed");
    xpl_buf_fini(&g_profile.bytes);
    g_profile = before;
}

// ---- the store ----

static void count_call(void *arg) {
    ++*(int *)arg;
}

// Rows of the store are waited for, and only where they are read.
static void before_store(struct xpl_sql_request q) {
    static const struct {
        const char *statement;
        int calls;
    } all[] = {{"SELECT count(*) FROM events", 0},
               {"SELECT name FROM EVENTS LIMIT 1", 0},
               {"SELECT 1", 0},
               {"SELECT count(*) FROM ops", 1},
               {"SELECT e.name FROM ops JOIN events e USING (name) LIMIT 1", 1},
               {"SELECT x FROM main.op_rows", 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct xpl_buf out = xpl_buf_of(1 << 20);
        struct xpl_error err = {0};
        int calls = 0;
        q.statement = xpl_str_from(all[i].statement);
        q.before_store = count_call;
        q.before_arg = &calls;
        CHECK_OK(xpl_sql_run(&q, &out, &err), &err);
        xpl_buf_fini(&out);
        if (calls != all[i].calls) fprintf(stderr, "%s: %d\n", all[i].statement, calls);
        CHECK_EQ(calls, all[i].calls);
    }
}

static void store(void) {
    char path[] = "/tmp/xplaned-sql-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    sqlite3 *db = NULL;
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(
        sqlite3_exec(db,
                     "CREATE TABLE settings(name, value); INSERT INTO settings VALUES ('s', 1);"
                     "CREATE TABLE of_a_later_schema(value);"
                     "CREATE TABLE op_rows(name, x); INSERT INTO op_rows VALUES ('a', 7);"
                     "CREATE VIEW ops AS SELECT name, x FROM op_rows;"
                     "CREATE VIEW evil AS SELECT value FROM settings;"
                     "CREATE VIEW hlo_instructions AS SELECT name, x FROM op_rows",
                     NULL, NULL, NULL),
        SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    struct xpl_sql_request q =
        request_of("SELECT e.name, x, count(*) FROM ops JOIN events e USING (name) GROUP BY 1");
    q.store = path;
    answers(&q, "{\"columns\":[\"name\",\"x\",\"count(*)\"],\"rows\":[[\"a\",7,40000]],"
                "\"cut\":false}");
    before_store(q);
    static const char *const refused[] = {
        "SELECT * FROM settings", "SELECT count(*) FROM main.settings", "SELECT * FROM evil",
        "SELECT * FROM of_a_later_schema", "SELECT (SELECT count(*) FROM Of_A_Later_Schema)",
        "SELECT (SELECT value FROM Settings)", "DELETE FROM op_rows", "UPDATE op_rows SET x = 8",
        "DROP VIEW ops",
        // SQLite does not ask the authorizer about a column of two.
        "SELECT value FROM (SELECT 1 AS value WHERE 0)"
        " FULL JOIN main.settings USING (value)",
        "SELECT sql FROM (SELECT 1 AS sql WHERE 0)"
        " FULL JOIN main.sqlite_schema USING (sql)",
        "PRAGMA writable_schema = 1", "ALTER TABLE op_rows RENAME TO y",
        "WITH s AS (SELECT * FROM settings) SELECT * FROM s"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        q.statement = xpl_str_from(refused[i]);
        fails(&q, XPL_PERMISSION_DENIED, "not allowed");
    }
    q.statement = XPL_STR("SELECT a.name, (SELECT count(*) FROM hlo_instructions) AS n"
                          " FROM main.hlo_instructions a"); // the store's, and the profile's
    answers(&q, "{\"columns\":[\"name\",\"n\"],\"rows\":[[\"a\",0]],\"cut\":false}");
    q.statement = XPL_STR("SELECT x FROM op_rows");
    answers(&q, "{\"columns\":[\"x\"],\"rows\":[[7]],\"cut\":false}");
    CHECK_EQ(unlink(path), 0);
    fails(&q, XPL_UNAVAILABLE, "the store cannot be read");
}

// Labels of the history's database, and the views that join them; nothing else of it.
static void history(void) {
    char path[] = "/tmp/xplaned-sql-XXXXXX", state[] = "/tmp/xplaned-sql-XXXXXX";
    const int fd = mkstemp(path), fd_state = mkstemp(state);
    CHECK(fd >= 0 && fd_state >= 0);
    (void)close(fd);
    (void)close(fd_state);
    sqlite3 *db = NULL;
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(
        sqlite3_exec(
            db,
            "CREATE TABLE steps(session, session_mtime_ns, session_captured_ns, host, core_id,"
            " step_num, name, duration_ps);"
            "INSERT INTO steps VALUES ('a', 1, 7000000, 'h', 0, 0, 's', 10),"
            " ('a', 1, 7000000, 'i', 0, 0, 's', 30), ('a', 1, 7000000, 'h', 0, 1, 's', 50),"
            " ('a', 1, 7000000, 'i', 0, 1, 's', 40), ('b', 2, 2000000, 'h', 0, 0, 's', 60),"
            " ('c', 3, 5000000, 'h', 0, 0, 's', 90);"
            "CREATE TABLE ops(session, session_mtime_ns, session_captured_ns, name, on_device,"
            " self_time_ps);"
            "INSERT INTO ops VALUES ('a', 1, 7000000, 'o', 1, 3), ('a', 1, 7000000, 'o', 1, 4),"
            " ('a', 1, 7000000, 'o', 0, 5);"
            "CREATE TABLE kernels(session, session_mtime_ns, session_captured_ns, name, total_ns);"
            "INSERT INTO kernels VALUES ('c', 3, 5000000, 'k', 2)",
            NULL, NULL, NULL),
        SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    CHECK_EQ(sqlite3_open(state, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db,
                          "CREATE TABLE labels(session, label, set_ms); INSERT INTO labels VALUES"
                          " ('a', 'n', 5), ('c', 'n', 6), ('gone', 'n', 7);"
                          "CREATE TABLE captures(id, session); CREATE TABLE schedules(request);"
                          "CREATE TABLE schedule_sessions(schedule_id, name, dev, ino);"
                          "INSERT INTO schedule_sessions VALUES (4, 'a', 1, 2), (5, 'c', 1, 3)",
                          NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    struct xpl_sql_request q = request_of("SELECT session, label FROM labels ORDER BY set_ms");
    q.store = path;
    q.state = state;
    answers(&q, "{\"columns\":[\"session\",\"label\"],\"rows\":[[\"a\",\"n\"],[\"c\",\"n\"],"
                "[\"gone\",\"n\"]],\"cut\":false}");
    q.statement = XPL_STR("SELECT metric, unit, value FROM session_metrics WHERE session = 'a'");
    answers(
        &q,
        "{\"columns\":[\"metric\",\"unit\",\"value\"],\"rows\":[[\"core_step_time\",\"ps\",35],"
        "[\"longest_core_step\",\"ps\",50],[\"core_steps\",\"count\",2],[\"op_total:o\",\"ps\",7]],"
        "\"cut\":false}");
    q.statement = XPL_STR("SELECT session, value, previous_value, change_percent FROM label_history"
                          " WHERE label = 'n' AND metric = 'core_step_time'");
    answers(&q, "{\"columns\":[\"session\",\"value\",\"previous_value\",\"change_percent\"],"
                "\"rows\":[[\"c\",90,null,null],[\"a\",35,90,-61.111111111111114]],\"cut\":false}");
    q.statement = XPL_STR("SELECT schedule_id, session, value FROM schedule_history"
                          " WHERE metric = 'core_step_time' ORDER BY 1");
    answers(&q, "{\"columns\":[\"schedule_id\",\"session\",\"value\"],"
                "\"rows\":[[4,\"a\",35],[5,\"c\",90]],\"cut\":false}");
    q.statement = XPL_STR("SELECT count(*) AS n, max(name) AS s FROM schedule_sessions, labels");
    answers(&q, "{\"columns\":[\"n\",\"s\"],\"rows\":[[6,\"c\"]],\"cut\":false}");
    static const char *const refused[] = {"SELECT dev FROM schedule_sessions",
                                          "SELECT * FROM state.schedule_sessions",
                                          "SELECT rowid FROM schedule_sessions",
                                          "SELECT * FROM captures",
                                          "SELECT * FROM state.schedules",
                                          "SELECT count(*) FROM schedules",
                                          "SELECT request FROM (SELECT 1 AS request WHERE 0)"
                                          " FULL JOIN state.schedules USING (request)",
                                          "WITH s AS (SELECT session FROM (SELECT 1 AS session)"
                                          " FULL JOIN state.captures USING (session))"
                                          " SELECT (SELECT max(session) FROM s)",
                                          "SELECT ino FROM (SELECT 1 AS ino WHERE 0)"
                                          " FULL JOIN state.schedule_sessions USING (ino)",
                                          "SELECT 1 FROM schedule_sessions"
                                          " JOIN (SELECT 3 AS ino) USING (ino)",
                                          "DELETE FROM labels",
                                          "DROP VIEW label_history",
                                          "CREATE TEMP TABLE x(y)"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        q.statement = xpl_str_from(refused[i]);
        fails(&q, XPL_PERMISSION_DENIED, "not allowed");
    }
    CHECK_EQ(unlink(state), 0);
    q.statement = XPL_STR("SELECT count(*) FROM label_history");
    answers(&q, "{\"columns\":[\"count(*)\"],\"rows\":[[0]],\"cut\":false}");
    CHECK_EQ(unlink(path), 0);
}

// ---- series ----

// Of the values 1 to n those of a window, as a statement over them.
#define SERIES(n)                                                                                  \
    "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < " #n ") "

static void series(void) {
    static const struct {
        const char *statement, *rows;
    } cases[] = {
        {SERIES(5) "SELECT median(i), level_starts(i) FROM s", "[3,\"[]\"]"},
        {SERIES(4) "SELECT median(i * 1.5) FROM s", "[3.75]"},
        {"SELECT median(NULL), median('x'), level_starts(NULL)", "[null,null,\"[]\"]"},
        {"SELECT median(NULL) FROM events WHERE 0", "[null]"},
        // The window's first value leaves it.
        {SERIES(5) "SELECT median(i) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
                   " FROM s",
         "[1],[1.5],[2],[3],[4]"},
        {SERIES(5) "SELECT median(nullif(i, 3)) OVER (ORDER BY i DESC ROWS 1 PRECEDING) FROM s",
         "[5],[4.5],[4],[2],[1.5]"},
        {SERIES(3) "SELECT median(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND"
                   " 1 PRECEDING) FROM s",
         "[null],[1],[1.5]"},
        {SERIES(20) "SELECT level_starts(i % 2 + 100 * (i > 8) - 50 * (i > 14)) FROM s",
         "[\"[9,15]\"]"},
        // Values that are not numbers are left out, and not counted.
        {SERIES(21) "SELECT level_starts(CASE i WHEN 1 THEN NULL WHEN 9 THEN 'x' ELSE"
                    " i % 2 + 100 * (i > 11) END) FROM s",
         "[\"[10]\"]"},
        {SERIES(12) "SELECT DISTINCT level_starts(i % 2 + 100 * (i > 6)) OVER (ORDER BY i ROWS"
                    " BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM s",
         "[\"[7]\"]"},
        {SERIES(14) "SELECT level_starts(i % 2 + 100 * (i > 8)) OVER (ORDER BY i ROWS 11 PRECEDING)"
                    " FROM s ORDER BY i DESC LIMIT 2",
         "[\"[7]\"],[\"[8]\"]"},
        {SERIES(300) "SELECT median(i * 7919 % 307) FROM s", "[154.5]"},
        {SERIES(300) "SELECT sum(m) FROM (SELECT median(i * 7919 % 307) OVER (ORDER BY i ROWS 40"
                     " PRECEDING) AS m FROM s)",
         "[46785.5]"},
        // Many values come at once, and go.
        {SERIES(300) "SELECT sum(m) FROM (SELECT median(i * 7919 % 307) OVER (ORDER BY i / 150"
                     " GROUPS 1 PRECEDING) AS m FROM s)",
         "[46646]"},
        {SERIES(4096) "SELECT level_starts(i % 2 + 100 * (i > 4000)) FROM s", "[\"[4001]\"]"},
        // The first thousand is forgotten, with the level that they had.
        {SERIES(5096) "SELECT level_starts(i % 2 + 100 * (i > 990) + 50 * (i > 5000)) FROM s",
         "[\"[5001]\"]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_buf out = xpl_buf_of(1 << 20);
        struct xpl_error err = {0};
        const struct xpl_sql_request q = request_of(cases[i].statement);
        CHECK_OK(xpl_sql_run(&q, &out, &err), &err);
        char expected[256];
        (void)snprintf(expected, sizeof expected, "\"rows\":[%s],\"cut\":false}", cases[i].rows);
        const size_t n = strlen(expected);
        CHECK(out.n > n);
        CHECK_STR(((xpl_str_t){(const char *)out.p + out.n - n, n}), expected);
        xpl_buf_fini(&out);
    }
    struct xpl_sql_request q = request_of(SERIES(2000000) "SELECT median(-i) FROM s");
    q.limits.memory = 8 << 20;
    fails(&q, XPL_RESOURCE_EXHAUSTED, "more memory than 8 MiB");
}

static unsigned g_checks; // of the clock

static bool never(struct xpl_exec *e) {
    (void)e;
    g_checks++;
    return false;
}

// How often the clock is read while 50 calls of a function are made for one row.
static unsigned checks_of(const char *function) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text, out;
    struct xpl_error err = {0};
    struct xpl_exec exec = xpl_exec_serial();
    exec.cancelled = never;
    xpl_buf_init(&text, 1 << 20);
    xpl_buf_init(&out, 1 << 20);
    xpl_buf_printf(&text, SERIES(20) "SELECT 1");
    for (int i = 0; i < 50; i++)
        xpl_buf_printf(&text, ", %s(i + %d)", function, i);
    xpl_buf_printf(&text, " FROM s");
    struct xpl_sql_request q = request_of("");
    q.statement = (xpl_str_t){(const char *)text.p, text.n};
    q.exec = &exec;
    g_checks = 0;
    CHECK_OK(xpl_sql_run(&q, &out, &err), &err);
    return g_checks;
}

// Each call of what takes long reads the clock.
static void series_end(void) {
    const unsigned usual = checks_of("sum");
    CHECK(checks_of("level_starts") >= usual + 50);
    CHECK(checks_of("median") >= usual + 50);
}

// ---- metrics of runs ----

static unsigned g_summaries;       // asked for
static const char *g_store = NULL; // of the statement: it is written to meanwhile

// Nobody holds it as it was before: its log ends up empty.
static void write_to_store(void) {
    sqlite3 *db = NULL;
    int frames = -1, done = -1;
    CHECK_EQ(sqlite3_open(g_store, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "INSERT INTO t VALUES (1)", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, &frames, &done),
             SQLITE_OK);
    CHECK_EQ(frames, 0);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

static xpl_status_t summarize(void *arg, size_t i, struct xpl_exec *exec, struct xpl_arena *arena,
                              const struct xpl_run_summary **ret, struct xpl_error *err) {
    const xpl_status_t *const codes = arg;
    struct xpl_run_summary *const s = xpl_arena_zalloc(arena, sizeof *s);
    struct xpl_run_row *const ops = xpl_arena_zalloc(arena, 3 * sizeof *ops);
    uint64_t *const step = xpl_arena_alloc(arena, sizeof *step);
    (void)exec;
    g_summaries++;
    if (g_store) write_to_store();
    if (codes[i] != XPL_OK) XPL_RETURN_ERROR(err, codes[i], "session %zu fails", i);
    CHECK(s && ops && step);
    *step = 100 + i;
    s->units = 4;
    s->steps.v = step;
    s->steps.n = 1;
    for (int k = 0; k < 3; k++) // two of a name, of other shapes
        ops[k] = (struct xpl_run_row){.text = {k < 2 ? XPL_STR("dot") : XPL_STR("tan")},
                                      .ps = (uint64_t)(k + 1) * 10};
    ops[1].text[XPL_RUN_SHAPE] = XPL_STR("f32[8]");
    s->ops = (struct xpl_run_rows){.v = ops, .n = 3};
    *ret = s;
    return XPL_OK;
}

static void metrics(void) {
    const struct xpl_sql_session sessions[] = {
        {XPL_STR("a"), 1, 7}, {XPL_STR("b"), 2, 2}, {XPL_STR("c"), 3, 5}};
    xpl_status_t codes[] = {XPL_OK, XPL_DATA_LOSS, XPL_OK};
    struct xpl_sql_request q = request_of("");
    q.runs = (struct xpl_sql_runs){.v = sessions, .n = 3, .summarize = summarize, .arg = codes};
    q.statement = XPL_STR("SELECT * FROM session_metrics WHERE session = 'a'");
    g_summaries = 0;
    answers(&q, "{\"columns\":[\"session\",\"session_mtime_ns\",\"session_captured_ns\",\"metric\","
                "\"unit\",\"value\",\"better\"],\"rows\":["
                "[\"a\",1,7,\"step_time\",\"ps\",100,\"less\"],"
                "[\"a\",1,7,\"longest_step\",\"ps\",100,\"less\"],"
                "[\"a\",1,7,\"steps\",\"count\",1,\"\"],"
                "[\"a\",1,7,\"compile_time\",\"ps\",0,\"less\"],"
                "[\"a\",1,7,\"op:dot\",\"ps\",7.5,\"less\"],"
                "[\"a\",1,7,\"op:tan\",\"ps\",7.5,\"less\"]],\"cut\":false}");
    CHECK_EQ(g_summaries, 1);
    // A session that cannot be read is left out; a number is not a name.
    q.statement = XPL_STR("SELECT session, value FROM run_metrics WHERE metric = 'op:dot'");
    answers(&q, "{\"columns\":[\"session\",\"value\"],\"rows\":[[\"a\",7.5],[\"c\",7.5]],"
                "\"cut\":false}");
    CHECK_EQ(g_summaries, 4);
    q.statement = XPL_STR("SELECT count(*) AS n FROM run_metrics WHERE metric IN ('none', 5)"
                          " OR session = 6");
    answers(&q, "{\"columns\":[\"n\"],\"rows\":[[0]],\"cut\":false}");
    // Nothing is equal to NULL: no session is read.
    g_summaries = 0;
    q.statement = XPL_STR("SELECT (SELECT count(*) FROM run_metrics WHERE session = x) AS a,"
                          " (SELECT count(*) FROM run_metrics WHERE metric = x) AS b"
                          " FROM (SELECT NULL AS x UNION ALL SELECT x'61')");
    answers(&q, "{\"columns\":[\"a\",\"b\"],\"rows\":[[0,0],[0,0]],\"cut\":false}");
    CHECK_EQ(g_summaries, 0);
    // An error that the session did not cause ends the statement.
    q.statement = XPL_STR("SELECT count(*) AS n FROM run_metrics");
    codes[1] = XPL_RESOURCE_EXHAUSTED;
    fails(&q, XPL_RESOURCE_EXHAUSTED, "session 1 fails");
    codes[1] = XPL_CANCELLED;
    fails(&q, XPL_CANCELLED, "session 1 fails");
    struct xpl_exec cancelled = xpl_exec_serial();
    cancelled.cancelled = always_cancelled;
    q.exec = &cancelled;
    q.statement = XPL_STR("SELECT * FROM run_metrics LIMIT 1");
    fails(&q, XPL_CANCELLED, "cancelled");
}

// Summaries are written to the store while a statement asks for more: it does not hold the store.
static void metrics_beside_writers(void) {
    char path[] = "/tmp/xplaned-sql-XXXXXX";
    const struct xpl_sql_session sessions[] = {{XPL_STR("a"), 1, 7}, {XPL_STR("b"), 2, 2}};
    xpl_status_t codes[] = {XPL_OK, XPL_OK};
    struct xpl_sql_request q = request_of("SELECT value FROM run_metrics WHERE metric = 'steps'");
    sqlite3 *db = NULL;
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "PRAGMA journal_mode = WAL; CREATE TABLE t(x)", NULL, NULL, NULL),
             SQLITE_OK);
    q.runs = (struct xpl_sql_runs){.v = sessions, .n = 2, .summarize = summarize, .arg = codes};
    q.store = g_store = path;
    g_summaries = 0;
    answers(&q, "{\"columns\":[\"value\"],\"rows\":[[1],[1]],\"cut\":false}");
    CHECK_EQ(g_summaries, 2);
    g_store = NULL;
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    CHECK_EQ(unlink(path), 0);
}

int main(void) {
    CHECK(xpl_sql_heap_install());
    CHECK(xpl_sql_heap_install());
    make_profile(40000);
    windows();
    refused_functions();
    formats();
    limits();
    prepared_bomb();
    many_calls();
    broken();
    kept();
    in_use();
    many_tables();
    many_profiles();
    cut();
    instructions();
    store();
    history();
    series();
    series_end();
    metrics();
    metrics_beside_writers();
    xpl_buf_fini(&g_profile.bytes);
    return 0;
}
