// SPDX-License-Identifier: Apache-2.0
// Statements that are built to be slow: each looks at the clock so often that it ends in time. What
// counts is the processor's time between two looks, which other programs do not change.
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sql/guard/scratch.h"
#include "sql/heap.h"
#include "tests/check.h"
#include "tests/unit/sql/sql_profile.h"

// 10% of the 30 s of daemons are 3,000 ms.
enum { LIMIT_MS = 5, LONG_MS = 600000, MOST_MS = 250, CALLS = 40, MOST_LEVELS = 40 };

static char g_store[] = "/tmp/xplaned-sql-XXXXXX";
static unsigned g_statements;

// ---- the clock ----

static struct {
    struct xpl_exec exec;
    int64_t last_ns, longest_ns;
    unsigned checks, most; // cancelled after so many
} g_watch;

static int64_t processor_ns(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void note_gap(void) {
    const int64_t now = processor_ns();
    if (now - g_watch.last_ns > g_watch.longest_ns) g_watch.longest_ns = now - g_watch.last_ns;
    g_watch.last_ns = now;
}

static bool check_clock(struct xpl_exec *e) {
    (void)e;
    note_gap();
    return ++g_watch.checks > g_watch.most;
}

// ---- statements ----

static xpl_status_t ask(const char *statement, uint64_t limit_ms, unsigned checks,
                        struct xpl_error *err) {
    struct xpl_sql_request q = request_of(statement);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(32 << 20);
    g_watch.exec = xpl_exec_serial();
    g_watch.exec.cancelled = check_clock;
    g_watch.checks = 0;
    g_watch.most = checks;
    g_watch.longest_ns = 0;
    g_watch.last_ns = processor_ns();
    q.store = g_store;
    q.exec = &g_watch.exec;
    q.limits.time_ms = limit_ms;
    const xpl_status_t st = xpl_sql_run(&q, &out, err);
    note_gap();
    return st;
}

static void check_gap(const char *statement) {
    const int64_t ms = g_watch.longest_ns / 1000000;
    g_statements++;
    if (getenv("XPL_SHOW")) fprintf(stderr, "%lld ms: %.100s\n", (long long)ms, statement);
    if (ms < MOST_MS) return;
    fprintf(stderr, "%lld ms without a look at the clock: %.300s\n", (long long)ms, statement);
    CHECK(ms < MOST_MS);
}

static xpl_status_t try(const char *statement, uint64_t limit_ms) {
    struct xpl_error err = {0};
    const xpl_status_t st = ask(statement, limit_ms, UINT32_MAX, &err);
    if (st != XPL_DEADLINE_EXCEEDED && st != XPL_PERMISSION_DENIED && st != XPL_INVALID_ARGUMENT &&
        st != XPL_RESOURCE_EXHAUSTED)
        CHECK_OK(st, &err);
    check_gap(statement);
    return st;
}

// ---- functions ----

// One row of long texts: equal characters, almost the same, 5,000 characters, a pattern, JSON,
// digits, formats.
static void make_store(void) {
    static const char *const sql =
        "CREATE TABLE names(a, b, s, p, j, o, d, n, f, t);"
        "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 5000)"
        "INSERT INTO names SELECT replace(hex(zeroblob(32000)), '0', 'a'),"
        " replace(hex(zeroblob(16000)), '0', 'a') || 'b', group_concat(char(i + 300), '') || 'a',"
        " '%' || replace(hex(zeroblob(40)), '0', 'a%') || 'b',"
        " '[' || replace(hex(zeroblob(15000)), '0', '1,') || '1]', json_group_object(i, i),"
        " replace(hex(zeroblob(900)), '00', '[') || replace(hex(zeroblob(900)), '00', ']'),"
        " replace(hex(zeroblob(32000)), '0', '1'), replace(hex(zeroblob(3000)), '00', '%!.25000f'),"
        " replace(hex(zeroblob(15000)), '00', '%W') FROM s;"
        "CREATE TABLE steps(i);"
        "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 3000)"
        "INSERT INTO steps SELECT i FROM s";
    sqlite3 *db = NULL;
    const int fd = mkstemp(g_store);
    CHECK(fd >= 0);
    (void)close(fd);
    CHECK_EQ(sqlite3_open(g_store, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

static xpl_status_t call(const char *name, const char *arguments, char type) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(1 << 20);
    xpl_buf_printf(&text, "SELECT 1");
    for (int i = 0; i < CALLS; i++)
        xpl_buf_printf(&text, type == 's' ? ", length(\"%s\"(%s))" : ", \"%s\"(%s)", name,
                       arguments);
    if (type == 'w') xpl_buf_printf(&text, " OVER (ORDER BY i ROWS 9 PRECEDING)");
    xpl_buf_printf(&text, type == 's' ? " FROM names%c" : " FROM names, steps%c", 0);
    return try((const char *)text.p, LIMIT_MS);
}

// The function with each choice of long texts.  Whether it may be called at all.
static bool call_with_all(const char *name, int n, char type) {
    static const char *const lists[][7] = {
        {""},
        {"a", "s", "j", "d", "n"},
        {"a, s", "a, b", "p, a", "j, '$[29999]'", "o, o", "f, n", "t, '2020-01-01'"},
        {"a, b, s", "a, 'a', 'bb'", "p, a, '!'", "j, '$[0]', a", "n, n, n"}};
    bool is_allowed = true;
    for (int k = n < 0 ? 1 : n; k <= (n < 0 ? 3 : n) && is_allowed; k++)
        for (size_t i = 0; k <= 3 && i < 7 && lists[k][i] && is_allowed; i++)
            is_allowed = call(name, lists[k][i], type) != XPL_PERMISSION_DENIED;
    if (n < 0 && is_allowed)
        (void)call(name, "f, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n",
                   type);
    return is_allowed;
}

// All of SQLite's, whether a statement may call them or not, and ours.
static void functions(void) {
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    unsigned allowed = 0, refused = 0;
    CHECK_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
    CHECK_EQ(sqlite3_prepare_v2(db,
                                "SELECT DISTINCT name, narg, type FROM pragma_function_list"
                                " UNION VALUES ('median', 1, 'w'), ('level_starts', 1, 'w'),"
                                " ('regexp', 2, 's')",
                                -1, &st, NULL),
             SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *const name = (const char *)sqlite3_column_text(st, 0);
        const char type = *(const char *)sqlite3_column_text(st, 2);
        if (call_with_all(name, sqlite3_column_int(st, 1), type))
            allowed++;
        else
            refused++;
        // An aggregate without a window, too.
        if (type == 'w') (void)call_with_all(name, sqlite3_column_int(st, 1), 'a');
    }
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    CHECK(allowed > 100);
    CHECK(refused > 10);
}

// ---- slow statements without functions ----

#define SERIES "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s) "

static void shapes(void) {
    static const char *const all[] = {
        SERIES "SELECT count(*) FROM s",
        SERIES "SELECT i FROM s ORDER BY i % 977",
        SERIES "SELECT i FROM s ORDER BY i % 977 LIMIT 10",
        SERIES "SELECT DISTINCT i FROM s",
        SERIES "SELECT i % 1000003, count(*) FROM s GROUP BY 1",
        SERIES
        "SELECT sum(i) OVER (ORDER BY i % 7 ROWS BETWEEN 9 PRECEDING AND 9 FOLLOWING) FROM s",
        SERIES "SELECT i FROM s WHERE i = -1 UNION SELECT -i FROM s",
        SERIES "SELECT group_concat(j) FROM s, (SELECT i AS j FROM steps)",
        SERIES "SELECT i FROM s WHERE i IN (SELECT -j FROM (SELECT i AS j FROM steps, names))",
        "WITH RECURSIVE s(t) AS (SELECT 'a' UNION SELECT substr(t || t, 1, 65536) FROM s) SELECT"
        " count(*) FROM s, s, s, s, s, s",
        "SELECT count(*) FROM steps, steps, steps",
        "SELECT count(*) FROM events, events, events",
        "SELECT count(*) FROM steps x WHERE (SELECT count(*) FROM steps y WHERE y.i > x.i) > 9999",
        "SELECT sum(n) FROM (SELECT (SELECT count(*) FROM steps y, steps z WHERE y.i < x.i) AS n"
        " FROM steps x)",
        "SELECT count(*) OVER (ORDER BY i RANGE BETWEEN 1000 PRECEDING AND 1000 FOLLOWING"
        " EXCLUDE CURRENT ROW) FROM steps",
        "SELECT max(x.i) OVER (ORDER BY y.i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
        " FOLLOWING EXCLUDE TIES) FROM steps x, steps y",
        "SELECT group_concat(a) OVER (ORDER BY i ROWS 0 PRECEDING) FROM names, steps",
        "SELECT level_starts(i % 91) OVER (ORDER BY i ROWS 2000 PRECEDING) FROM steps",
        "SELECT median(-i) OVER (ORDER BY i ROWS 2000 PRECEDING) FROM steps",
        "SELECT count(*) FROM names, json_each(j) x, json_each(j) y",
        "SELECT sum(length(x.fullkey) + length(x.value)) FROM names, json_tree(d) x, steps",
        "SELECT count(*) FROM names, steps, json_each(o, '$.\"1\"')",
        "SELECT count(*) FROM names, steps WHERE a REGEXP '(a|aa)+$' AND i < 0",
        "SELECT a REGEXP '(a?){30}(a*)*(aa*)*b', a REGEXP '(a*)*c', a REGEXP '(a|b|ab)*bc' FROM"
        " names, steps",
        "SELECT i FROM steps, names ORDER BY a LIKE p, a LIKE p || '1', a LIKE p || i, a GLOB "
        "'*a*b'",
        "SELECT count(*) FROM steps x JOIN names ON a LIKE '%' || x.i || '%'",
        "SELECT randomblob(65536) FROM steps, steps",
        "SELECT a FROM names, steps",
        "SELECT a || i FROM names, steps ORDER BY 1",
        "SELECT DISTINCT a || x.i || y.i FROM names, steps x, steps y",
        "SELECT a, count(*) FROM names, steps GROUP BY a || i"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        (void)try(all[i], LIMIT_MS);
        struct xpl_error err = {0};
        const xpl_status_t st = ask(all[i], LONG_MS, 20, &err);
        CHECK(g_watch.checks <= 21);
        if (g_watch.checks == 21) CHECK_STATUS(st, XPL_CANCELLED, &err);
        check_gap(all[i]);
    }
}

// A statement of `first`, n times `part` with # for the number and @ for the next, and `last`.
static xpl_status_t repeat_for(uint64_t limit_ms, const char *first, const char *part, int n,
                               const char *last) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text = xpl_buf_of(1 << 20);
    xpl_buf_str(&text, xpl_str_from(first));
    for (int i = 0; i < n; i++)
        for (const char *p = part; *p; p++) {
            if (*p == '#')
                xpl_buf_printf(&text, "%d", i);
            else if (*p == '@')
                xpl_buf_printf(&text, "%d", i + 1);
            else
                xpl_buf_putc(&text, *p);
        }
    xpl_buf_str(&text, xpl_str_from(last));
    xpl_buf_putc(&text, 0);
    return try((const char *)text.p, limit_ms);
}

static void repeat(const char *first, const char *part, int n, const char *last) {
    (void)repeat_for(LIMIT_MS, first, part, n, last);
}

// Statements that are large before they run: SQLite does not check the clock while it prepares one.
static void texts(void) {
    repeat("WITH t0 AS (SELECT 1 AS x LIMIT 1)", ", t@ AS (SELECT l.x FROM t# l, t# r LIMIT 1)",
           MOST_LEVELS, " SELECT * FROM t40");
    repeat("WITH t0 AS (SELECT i AS x FROM steps)",
           ", t@ AS (SELECT x FROM t# UNION ALL SELECT x FROM t#)", MOST_LEVELS,
           " SELECT * FROM t40");
    // An alias of an expression is a copy of it, to which no limit of calls applies.
    repeat("SELECT trim(a, s) AS x FROM names WHERE 1", " AND x <> '#'", 90, "");
    repeat("SELECT 1", ", x || '#' || x || x || x || x || x", 190,
           " FROM (SELECT trim(a, s) AS x FROM names)");
    repeat("SELECT 1", ", instr(x, '#') + instr(x, x)", 140,
           " FROM (SELECT replace(a, b, s) AS x FROM names)");
    CHECK_EQ(repeat_for(LONG_MS, "SELECT 1",
                        ", n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n+n", 199,
                        " FROM names"),
             XPL_PERMISSION_DENIED);
    CHECK_EQ(repeat_for(LONG_MS, "SELECT n IN (1", ", n+#", 9000, ") AS x FROM names"),
             XPL_PERMISSION_DENIED);
    CHECK_EQ(repeat_for(LONG_MS, "SELECT a IN (b", ", b", 30000, ") AS x FROM names"),
             XPL_PERMISSION_DENIED);
    CHECK_EQ(repeat_for(LONG_MS, "SELECT 7 IN (1", ", #", 14000, ") AS x FROM names"),
             XPL_OK); // short values
    repeat("SELECT CASE n", " WHEN n THEN #", 6000, " END AS x FROM names");
    repeat("SELECT CASE", " WHEN NOT n THEN #", 5000, " END AS x FROM names");
    repeat("SELECT count(*) FROM steps t0", " JOIN steps t@ ON t@.i = t#.i", 62, "");
    repeat("SELECT count(*) FROM steps t0", " LEFT JOIN ops t@ USING (i)", 62, "");
    repeat("SELECT count(*) FROM events t0", " JOIN events t@ USING (name)", 62, "");
    repeat("SELECT 1 FROM steps WHERE 0", " OR i = # AND i IN (#, @, 7)", 90, "");
    repeat("SELECT 1 FROM names ORDER BY 1", ", a LIKE '%#%@%a%b'", 190, "");
    repeat("SELECT 1 FROM names GROUP BY 1", ", a LIKE '%#%@%a%b'", 150, "");
    repeat("SELECT 1", ", #", 199, " FROM steps ORDER BY 1, 2, 3");
    repeat("SELECT ", "(", 30000, "1");
    repeat("SELECT 1", " UNION SELECT #", 49, " ORDER BY 1");
    repeat("SELECT ", "(SELECT ", 90, "1");
    repeat("SELECT ", "-", 90000, "1");
    repeat("SELECT 'x", "''", 49000, "'");
    repeat("SELECT missing", "_word#x", 9000, "");
    repeat("SELECT missing FROM names WHERE 1", " OR a#", 9000, "");
    repeat("SELECT 1 FROM names WHERE a", " COLLATE nocase", 6000, " = b");
    repeat("SELECT max(i) OVER w0 FROM steps WINDOW w0 AS (ORDER BY i)",
           ", w@ AS (w# ROWS # PRECEDING)", 2000, "");
    repeat("SELECT 1", ", max(i) OVER (ORDER BY i % (# + 1))", 150, " FROM steps");
}

// All rows are sorted at once only where SQLite has no files to sort in.
static void sorts(void) {
    const char *const sort =
        "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 700000)"
        " SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY abs(random() % 9), random()) AS "
        "r"
        " FROM s) WHERE r % 2";
    struct xpl_error err = {0};
    CHECK_OK(ask(sort, LONG_MS, UINT32_MAX, &err), &err);
    check_gap(sort);
}

// Opening a profile, which may be decompressed or imported, ends with the statement.
static void slow_profiles(void) {
    struct xpl_error err = {0};
    g_profile.is_endless = true;
    CHECK_STATUS(ask("SELECT count(*) FROM events", LIMIT_MS, UINT32_MAX, &err),
                 XPL_DEADLINE_EXCEEDED, &err);
    CHECK_STATUS(ask("SELECT count(*) FROM events", LONG_MS, 1000, &err), XPL_CANCELLED, &err);
    g_profile.is_endless = false;
    CHECK_OK(ask("SELECT count(*) FROM events", LONG_MS, UINT32_MAX, &err), &err);
}

// A write of five chunks finds room for three: closing the file frees these.
static void scratch_files(void) {
    static const char text[5 << 16];
    sqlite3_vfs *const vfs = sqlite3_vfs_find(xpl_sql_scratch_name());
    CHECK(vfs != NULL);
    sqlite3_file *const file = calloc(1, (size_t)vfs->szOsFile);
    CHECK(file != NULL);
    struct xpl_exec exec = xpl_exec_serial();
    const sqlite3_int64 before = sqlite3_memory_used();
    CHECK_EQ(vfs->xOpen(vfs, NULL, file, SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_READWRITE, NULL),
             SQLITE_OK);
    xpl_sql_heap_begin(250 << 10, &exec);
    CHECK_EQ(file->pMethods->xWrite(file, text, sizeof text, 0), SQLITE_IOERR_NOMEM);
    CHECK(sqlite3_memory_used() > before + (3 << 16));
    CHECK_EQ(file->pMethods->xClose(file), SQLITE_OK);
    CHECK(xpl_sql_heap_end());
    CHECK_EQ(sqlite3_memory_used(), before);
    free(file);
}

int main(void) {
    CHECK(xpl_sql_heap_install());
    scratch_files();
    make_profile(1000);
    make_store();
    functions();
    shapes();
    texts();
    sorts();
    slow_profiles();
    fprintf(stderr, "%u statements\n", g_statements);
    CHECK(g_statements >= 200);
    CHECK_EQ(unlink(g_store), 0);
    xpl_buf_fini(&g_profile.bytes);
    return 0;
}
