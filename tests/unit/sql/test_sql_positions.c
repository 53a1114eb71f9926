// SPDX-License-Identifier: Apache-2.0
// Statements that are refused: the error of each, and its character.
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "sql/words.h"
#include "tests/check.h"
#include "tests/unit/sql/sql_profile.h"

static char g_store[] = "/tmp/xplaned-test-positions-XXXXXX";

static void make_store(void) {
    sqlite3 *db = NULL;
    const int fd = mkstemp(g_store);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK_EQ(sqlite3_open(g_store, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db,
                          "CREATE TABLE settings(name, value); CREATE VIEW evil AS SELECT value AS"
                          " x FROM settings;"
                          "CREATE TABLE steps(session, session_mtime_ns, session_captured_ns, "
                          "step_num, name, duration_ps);"
                          "CREATE TABLE ops(session, session_mtime_ns, session_captured_ns, name, "
                          "on_device, self_time_ps);"
                          "CREATE TABLE kernels(session, session_mtime_ns, session_captured_ns, "
                          "name, total_ns)",
                          NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

// The error begins so, with "character N: " where it has a position.
static void refused(const char *statement, xpl_status_t code, const char *begin) {
    struct xpl_sql_request q = request_of(statement);
    struct xpl_error err = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 20);
    q.store = g_store;
    CHECK_STATUS(xpl_sql_run(&q, &out, &err), code, &err);
    if (strncmp(err.msg, begin, strlen(begin)) != 0) {
        (void)fprintf(stderr, "%s\n", statement);
        CHECK_STR(xpl_str_from(err.msg), begin);
    }
}

static void test_not_reading(void) {
    static const struct {
        const char *statement, *begin;
    } cases[] = {
        {"INSERT INTO events VALUES(1)", "character 1: a statement reads tables: INSERT is not"},
        {" \n\t/* 'é' */ update events SET name = 1",
         "character 14: a statement reads tables: UPDATE"},
        {"DELETE FROM events", "character 1: a statement reads tables: DELETE"},
        {"REPLACE INTO settings VALUES(1, 2)", "character 1: a statement reads tables: REPLACE"},
        {"CREATE TABLE x(a)", "character 1: a statement reads tables: CREATE"},
        {"CREATE INDEX i ON events(name)", "character 1: a statement reads tables: CREATE"},
        {"ALTER TABLE events ADD COLUMN x", "character 1: a statement reads tables: ALTER"},
        {"DROP TABLE nosuch", "character 1: a statement reads tables: DROP"},
        {"ATTACH ':memory:' AS y", "character 1: a statement reads tables: ATTACH"},
        {"DETACH main", "character 1: a statement reads tables: DETACH"},
        {"PRAGMA query_only=0", "character 1: a statement reads tables: PRAGMA"},
        {"VACUUM", "character 1: a statement reads tables: VACUUM"},
        {"REINDEX", "character 1: a statement reads tables: REINDEX"},
        {"ANALYZE", "character 1: a statement reads tables: ANALYZE"},
        {"BEGIN", "character 1: a statement reads tables: BEGIN"},
        {"END", "character 1: a statement reads tables: END"},
        {"SAVEPOINT a", "character 1: a statement reads tables: SAVEPOINT"},
        {"EXPLAIN DELETE FROM settings", "character 9: a statement reads tables: DELETE"},
        {"EXPLAIN QUERY PLAN DELETE FROM settings",
         "character 20: a statement reads tables: DELETE"},
        // What WITH makes may have the names of keywords.
        {"WITH x(a) AS (SELECT (1)), replace AS (SELECT 1) DELETE FROM settings",
         "character 50: a statement reads tables: DELETE"},
        {"WITH replace AS (SELECT 1) SELECT * FROM replace, settings",
         "character 51: a statement reads tables: reading the table settings"},
        {"SELECT 1 AS settings FROM settings",
         "character 27: a statement reads tables: reading the table settings"},
        {"SELECT * FROM main.\"Settings\"",
         "character 20: a statement reads tables: reading the table settings"},
        {"SELECT x FROM evil", "a statement reads tables: reading the table settings"},
        {"SELECT * FROM sqlite_schema",
         "character 15: a statement reads tables: reading the table sqlite_master"},
        {"SELECT 1 FROM events, dbstat",
         "character 23: a statement reads tables: reading the table dbstat"},
        {"SELECT * FROM pragma_table_info('events')",
         "character 15: a statement reads tables: reading the table pragma_table_info"},
        {"SELECT 1, load_extension('x')",
         "character 11: a statement reads tables: the function load_extension"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].statement, XPL_PERMISSION_DENIED, cases[i].begin);
}

static void test_wrong(void) {
    static const struct {
        const char *statement, *begin;
    } cases[] = {
        {"SELEC 1", "character 1: near \"SELEC\": syntax error"},
        {"SELECT nme FROM events", "character 8: no such column: nme"},
        {"SELECT 1; SELECT 2", "character 10: one statement at a time"},
        {"", "character 1: a statement is missing"},
        {" /* é", "character 6: a statement is missing"},
        {" ;", "character 2: a statement is missing"},
        {"SELECT e.* FROM events", "character 8: no such table: e"},
        // The table, and not the column of that name.
        {"SELECT y.x, y AS y FROM y", "character 25: no such table: y"},
        {"SELECT y FROM events e, main.y WHERE y", "character 30: no such table: main.y"},
        {"SELECT 1 FROM \"é y\"", "character 15: no such table: é y"},
        {"SELECT name, host FROM events ORDER BY name, abs(host), 5",
         "character 57: 3rd ORDER BY term out of range"},
        {"SELECT name FROM events GROUP BY 2", "character 34: 1st GROUP BY term out of range"},
        // Which of them is not known.
        {"SELECT max(1) OVER (ORDER BY name) FROM events ORDER BY 9", "1st ORDER BY term"},
        {"SELECT 1 UNION ALL SELECT 1, 2", "character 10: SELECTs to the left and right of UNION"},
        {"SELECT 1 UNION SELECT 2 UNION SELECT 1, 2", "SELECTs to the left and right of UNION"},
        {"SELECT 'UNION', (SELECT 1, 2)", "character 18: sub-select returns 2 columns"},
        {"VALUES (1), (2, 3)", "character 1: all VALUES must have the same number of terms"},
        {"SELECT * FROM events USING (x)", "character 22: a JOIN clause is required"},
        {"SELECT * FROM events JOIN planes USING (x)", "character 41: cannot join using column x"},
        {"SELECT 1 LIMIT 'x'", "character 10: LIMIT and OFFSET take whole numbers"},
        {"SELECT name MATCH 'x' FROM events", "character 13: unable to use function MATCH"},
        {"SELECT * FROM events INDEXED BY x", "character 33: no such index: x"},
        {"SELECT max(1) OVER w FROM events", "character 20: no such window: w"},
        {"SELECT * FROM events('x')", "character 15: too many arguments on events()"},
        {"WITH x(a, b) AS (SELECT 1) SELECT * FROM x", "character 6: table x has 1 values for 2"},
        {"WITH x AS (SELECT * FROM x) SELECT * FROM x", "character 6: circular reference: x"},
        {"SELECT 1 LIKE 2 ESCAPE 'ab'", "character 17: ESCAPE expression"},
        {"SELECT *", "character 8: no tables specified"},
        {"SELECT json('{')", "malformed JSON"}, // of values nothing is known
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].statement, XPL_INVALID_ARGUMENT, cases[i].begin);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf longest = xpl_buf_of(1 << 20);
    xpl_buf_str(&longest, XPL_STR("SELECT 'é"));
    while (longest.n < 100100)
        xpl_buf_putc(&longest, 'a');
    xpl_buf_str(&longest, XPL_STR("'"));
    xpl_buf_putc(&longest, '\0');
    refused((const char *)longest.p, XPL_RESOURCE_EXHAUSTED,
            "character 100000: the statement has more than 100,000 bytes");
}

static void expect_words(const char *statement, const char *expected) {
    struct xpl_sql_word w = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf got = xpl_buf_of(1 << 12);
    while (xpl_sql_word_next(xpl_str_from(statement), &w))
        xpl_buf_printf(&got, "%u%s%.*s ", w.depth, w.is_quoted ? "=" : ":", XPL_STR_FMT(w.text));
    CHECK_STR(((xpl_str_t){(const char *)got.p, got.n}), expected);
}

static void test_words(void) {
    expect_words("SELECT f(a, (b)) 'it''s (' --x(\n -- /* ( */, \"c\"\"(d\" [e(] `f` é$1",
                 "0:SELECT 0:f 1:( 1:a 1:, 2:( 2:b 2:) 1:) ");
    expect_words("\"c\"\"(d\"[e(]`f` é$1/* ( **/x'61'2", "0=c\"\"(d 0=e( 0=f 0:é$1 0:x 0:2 ");
    // What does not end.
    expect_words(") ) (\"a", "1:) 1:) 1:( 1= ");
    expect_words("a 'b", "0:a ");
    expect_words("a /* b", "0:a ");
    expect_words("\"", "0= ");
}

int main(void) {
    make_profile(3);
    make_store();
    test_not_reading();
    test_wrong();
    test_words();
    CHECK_EQ(unlink(g_store), 0);
    xpl_buf_fini(&g_profile.bytes);
    return 0;
}
