// SPDX-License-Identifier: Apache-2.0
// docs/schema.md is true: it describes every table, view and column, and its queries give the
// expected rows after writes through the store.
#include <math.h>
#include <sqlite3.h>

#include "storage/sessions/catalogue.h"
#include "storage/store/store.h"
#include "tests/unit/storage/store_helpers.h"

static char *doc;
static sqlite3 *db;

static void read_doc(void) {
    FILE *f = fopen(XPL_TEST_DATA "/../../docs/schema.md", "rb");
    CHECK(f);
    CHECK_EQ(fseek(f, 0, SEEK_END), 0);
    const long n = ftell(f);
    rewind(f);
    doc = malloc((size_t)n + 1);
    CHECK(doc);
    CHECK_EQ(fread(doc, 1, (size_t)n, f), (size_t)n);
    doc[n] = 0;
    CHECK_EQ(fclose(f), 0);
}

// --- The input: three sessions, a month apart; the last is slow on one of its two hosts. Before
// it another program was captured, which has the name of theirs ---

enum { SESSIONS = 4, OTHER = 3, HOSTS = 2, STEPS = 3 };
static const uint64_t MS = 1000000000; // in picoseconds
static const int64_t MAY = 1714521600; // 2024-05-01
static const int64_t DAYS[SESSIONS] = {0, 30, 60, 45};

static struct xpl_fingerprint file_of(int session, int host) {
    return (struct xpl_fingerprint){.dev = 1,
                                    .ino = (uint64_t)(session * HOSTS + host + 1),
                                    .size = (uint64_t)(session + 1) << 20,
                                    .mtime_ns = (MAY + DAYS[session] * 86400) * 1000000000};
}

// Of the last session one host's accelerator is nearly full, and host 1 is slow: host 0 waits for
// it, so that their steps are equally long.
static void put_times(struct xpl_store *s, const struct xpl_profile_id *id, int session, int host) {
    const uint64_t gib = UINT64_C(1) << 30;
    const uint64_t slow = session == 2 && host == 1 ? 2 : 1, longer = session == 2 ? 2 : 1;
    const struct xpl_memory_row memory[] = {
        {XPL_STR("GPU_0_bfc"), (session == 2 && host == 1 ? 30 : 4) * gib, 32 * gib},
        {XPL_STR("host"), gib / 2, UINT64_MAX}};
    struct xpl_step_row steps[STEPS];
    for (uint64_t i = 0; i < STEPS; i++)
        steps[i] =
            (struct xpl_step_row){.step_num = 100 + i,
                                  .name = XPL_STR("step -7"),
                                  .duration_ps = session == OTHER ? MS : (10 + i) * longer * MS,
                                  .collective_ps = (10 + i) * (longer - slow) * MS,
                                  .idle_ps = XPL_ROW_NULL,
                                  .input_ps = host ? XPL_ROW_NULL : MS};
    const struct xpl_rows rows = {.kind = XPL_ROWS_TIMES,
                                  .steps = steps,
                                  .n_steps = STEPS,
                                  .memory = memory,
                                  .n_memory = session == 0 ? 2 : session != OTHER};
    CHECK_OK(xpl_store_put_rows(s, id, 1, &rows, NULL), NULL);
}

static void put_host(struct xpl_store *s, int session, int host) {
    const uint64_t slow = session == 2 && host == 1 ? 2 : 1;
    const struct xpl_op_row ops[] = {
        {.on_device = true,
         .module = session == 1 ? XPL_STR("jit_eval") : XPL_STR("jit_step"),
         .name = session == OTHER ? XPL_STR("sine.1") : XPL_STR("fusion.1"),
         .category = XPL_STR("loop fusion"),
         // A compilation names the instruction anew; its source op stays.
         .framework_op = session == OTHER ? XPL_STR("jit(step)/sin") : XPL_STR("jit(step)/add"),
         .occurrences = 10,
         .self_time_ps = (uint64_t)(session + 1) * slow * 3 * MS,
         .flops = UINT64_MAX},
        {.on_device = true,
         .module = session == 1 ? XPL_STR("jit_eval") : XPL_STR("jit_step"),
         .name = session == OTHER ? XPL_STR("add.2") : XPL_STR("dot.2"),
         .category = XPL_STR("convolution"),
         .occurrences = 10,
         .time_ps = 10 * MS,
         .self_time_ps = 9 * MS,
         .flops = session == OTHER ? 0 : 3000000,
         .bytes_accessed = 1 << 20},
        {.name = XPL_STR("fusion.1"), .occurrences = 1, .self_time_ps = MS},
        {.on_device = true,
         .name = XPL_STR("IDLE"),
         .category = XPL_STR("IDLE"),
         .self_time_ps = 100 * MS}};
    const struct xpl_kernel_row kernels[] = {{.name = XPL_STR("gemm"),
                                              .op_name = XPL_STR("dot.2"),
                                              .occurrences = 4,
                                              .total_ns = 8000000,
                                              .max_ns = 2500000,
                                              .occupancy_percent = 50},
                                             {.name = XPL_STR("copy"),
                                              .occurrences = 1,
                                              .total_ns = 1000,
                                              .max_ns = 1000,
                                              .occupancy_percent = NAN}};
    const struct xpl_rows rows = {.ops = ops,
                                  .n_ops = 4,
                                  .kernels = kernels,
                                  .n_kernels = session == 0 ? 2 : 0,
                                  .device_type = XPL_STR("TPU v6 Lite"),
                                  .device_cores = 4};
    const struct xpl_fingerprint file = file_of(session, host);
    const struct xpl_profile_id id = {{(uint8_t)session, (uint8_t)host}};
    CHECK_OK(xpl_store_put_file(s, &file, &id, NULL), NULL);
    CHECK_OK(xpl_store_put_rows(s, &id, 1, &rows, NULL), NULL);
    put_times(s, &id, session, host);
}

static void fill(void) {
    static const char *const names[SESSIONS] = {"a/run1", "a/run2", "b/run1", "c/other"};
    struct xpl_host hosts[SESSIONS][HOSTS];
    struct xpl_session se[SESSIONS];
    struct xpl_store *s = open_store(0);
    for (int i = 0; i < SESSIONS; i++) {
        for (int h = 0; h < HOSTS; h++) {
            hosts[i][h] = (struct xpl_host){.name = h ? XPL_STR("h1") : XPL_STR("h0"),
                                            .path = XPL_STR("x"),
                                            .fingerprint = file_of(i, h)};
            put_host(s, i, h);
        }
        se[i] = (struct xpl_session){.name = xpl_str_from(names[i]),
                                     .path = XPL_STR("x"),
                                     .hosts = hosts[i],
                                     .n_hosts = i == 1 ? 1 : 2,
                                     .changed = 1,
                                     .bytes = 5,
                                     // Copies: written in the reverse order.
                                     .mtime_ns = (MAY - i) * 1000000000,
                                     .captured_ns = hosts[i][0].fingerprint.mtime_ns};
    }
    const struct xpl_snapshot snap = {.generation = 1, .sessions = se, .n_sessions = SESSIONS};
    CHECK_OK(xpl_store_put_catalogue(s, &snap, NULL, NULL), NULL);
    xpl_store_close(s);
    CHECK_EQ(sqlite3_open_v2(in_dir("cache.db"), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
}

// --- The queries ---

// The text between "<!-- query: NAME -->" and the end of its fence.
static char *query_of(const char *name) {
    char mark[64];
    (void)snprintf(mark, sizeof mark, "<!-- query: %s -->\n```sql\n", name);
    const char *p = strstr(doc, mark);
    if (!p) fprintf(stderr, "no query %s\n", name);
    CHECK(p);
    p += strlen(mark);
    const char *end = strstr(p, "```");
    CHECK(end);
    return strndup(p, (size_t)(end - p));
}

static void check_query(const char *name, const char *expected) {
    char got[2048];
    size_t n = 0;
    sqlite3_stmt *st = NULL;
    char *sql = query_of(name);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", name, sqlite3_errmsg(db));
    CHECK(st);
    for (got[0] = 0; sqlite3_step(st) == SQLITE_ROW;)
        for (int c = 0; c < sqlite3_column_count(st); c++) {
            const char *text = (const char *)sqlite3_column_text(st, c);
            n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", text ? text : "NULL",
                                  c + 1 < sqlite3_column_count(st) ? "|" : "\n");
            CHECK(n < sizeof got);
        }
    if (strcmp(got, expected) != 0) fprintf(stderr, "%s gave\n%swanted\n%s", name, got, expected);
    CHECK_STR(got, expected);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    free(sql);
}

static void test_queries(void) {
    check_query("op-over-time", "a/run1|2024-05-01 00:00:00|20|6.0\n"
                                "a/run2|2024-05-31 00:00:00|10|6.0\n"
                                "b/run1|2024-06-30 00:00:00|20|27.0\n");
    check_query("slowest-steps", "b/run1|h0|step -7|102|24.0|1.0\n"
                                 "b/run1|h1|step -7|102|24.0|NULL\n"
                                 "b/run1|h0|step -7|101|22.0|1.0\n"
                                 "b/run1|h1|step -7|101|22.0|NULL\n"
                                 "b/run1|h0|step -7|100|20.0|1.0\n");
    check_query("step-times", "a/run1|3|11.0|11.0\n"
                              "a/run2|3|11.0|11.0\n"
                              "b/run1|3|22.0|22.0\n"
                              "c/other|3|1.0|1.0\n");
    check_query("top-kernels", "gemm|8|16.0|2500.0\n"
                               "copy|2|0.002|1.0\n");
    check_query("regressions", "b/run1|a/run1|jit_step|22.0|100.0\n");
    check_query("sizes", "c/other|2|8.0|2\n"
                         "b/run1|2|6.0|2\n"
                         "a/run1|2|2.0|2\n"
                         "a/run2|1|2.0|1\n");
    check_query("slow-hosts", "b/run1|h1|22.0|22.0|2.0\n"
                              "a/run1|h0|11.0|11.0|1.0\n"
                              "a/run1|h1|11.0|11.0|1.0\n");
    check_query("series", "a/run1|step|6|11.0|12.0\na/run2|step|3|11.0|12.0\n"
                          "b/run1|step|6|22.0|24.0\nc/other|step|6|1.0|1.0\n");
    check_query("categories", "a/run1|convolution|75.0\na/run1|loop fusion|25.0\n"
                              "a/run2|convolution|60.0\na/run2|loop fusion|40.0\n"
                              "b/run1|loop fusion|60.0\nb/run1|convolution|40.0\n"
                              "c/other|loop fusion|57.1\nc/other|convolution|42.9\n");
    check_query("instruction-rates", "a/run1|jit_step|dot.2|0.3|0.098|2.861\n"
                                     "a/run2|jit_eval|dot.2|0.3|0.098|2.861\n"
                                     "b/run1|jit_step|dot.2|0.3|0.098|2.861\n");
    check_query("fullest-memory", "b/run1|h1|GPU_0_bfc|30.0|93.8\n"
                                  "a/run1|h0|GPU_0_bfc|4.0|12.5\n"
                                  "a/run1|h1|GPU_0_bfc|4.0|12.5\n"
                                  "a/run2|h0|GPU_0_bfc|4.0|12.5\n"
                                  "b/run1|h0|GPU_0_bfc|4.0|12.5\n");
    int documented = 0; // none is left out here
    for (const char *p = doc; (p = strstr(p, "<!-- query: ")); p++)
        documented++;
    CHECK_EQ(documented, 11);
}

// --- The tables ---

// The part of the document from "### `NAME`" to the next heading.
static char *section_of(const char *name) {
    char mark[64];
    (void)snprintf(mark, sizeof mark, "\n### `%s`\n", name);
    const char *p = strstr(doc, mark);
    if (!p) fprintf(stderr, "%s is not described\n", name);
    CHECK(p);
    const char *end = strstr(p + 1, "\n##");
    return end ? strndup(p, (size_t)(end - p)) : strdup(p);
}

static int check_columns(const char *table) {
    char *section = section_of(table);
    sqlite3_stmt *st;
    int n = 0;
    CHECK_EQ(sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?)", -1, &st, NULL),
             SQLITE_OK);
    CHECK_EQ(sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC), SQLITE_OK);
    for (; sqlite3_step(st) == SQLITE_ROW; n++) {
        char row[80];
        (void)snprintf(row, sizeof row, "\n| `%s` |", (const char *)sqlite3_column_text(st, 0));
        if (!strstr(section, row)) fprintf(stderr, "%s: no%s\n", table, row);
        CHECK(strstr(section, row));
    }
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    int rows = 0;
    for (const char *p = section; (p = strstr(p, "\n| `")); p++)
        rows++;
    if (rows != n) fprintf(stderr, "%s: %d columns, %d described\n", table, n, rows);
    CHECK_EQ(rows, n);
    free(section);
    return n;
}

static void test_tables(void) {
    sqlite3_stmt *st;
    int tables = 0, described = 0;
    CHECK_EQ(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type IN ('table','view')",
                                -1, &st, NULL),
             SQLITE_OK);
    for (; sqlite3_step(st) == SQLITE_ROW; tables++)
        CHECK(check_columns((const char *)sqlite3_column_text(st, 0)) > 0);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    const char *const other = strstr(doc, "\n## state.db"); // another database's tables follow
    CHECK(other);
    for (const char *p = doc; (p = strstr(p, "\n### `")) && p < other; p++)
        described++;
    CHECK_EQ(described, tables);
}

// An index answers "one op over all sessions", however many rows there are.
static void test_plan(void) {
    sqlite3_stmt *st;
    bool by_name = false;
    CHECK_EQ(sqlite3_prepare_v2(db,
                                "EXPLAIN QUERY PLAN SELECT session, self_time_ps FROM ops "
                                "WHERE name='fusion.1'",
                                -1, &st, NULL),
             SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(st, 3);
        CHECK(strncmp(step, "SCAN", 4) != 0);
        by_name |= strstr(step, "op_rows_by_name") != NULL;
    }
    CHECK(by_name);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
}

static int64_t ask(const char *sql) {
    sqlite3_stmt *st;
    CHECK_EQ(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_step(st), SQLITE_ROW);
    const int64_t n = sqlite3_column_type(st, 0) == SQLITE_NULL ? -1 : sqlite3_column_int64(st, 0);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    return n;
}

static void test_values(void) {
    CHECK_EQ(ask("SELECT flops FROM ops WHERE name='fusion.1' AND on_device LIMIT 1"), -1);
    CHECK_EQ(ask("SELECT flops FROM ops WHERE name='dot.2' LIMIT 1"), 3000000);
    CHECK_EQ(ask("SELECT count(*) FROM ops WHERE name='IDLE'"), 0);
    CHECK_EQ(ask("SELECT count(*) FROM ops_with_idle WHERE name='IDLE'"),
             ask("SELECT count(*)/3 FROM ops"));
    // Of 10 ms; without costs there are no rates; ops on host threads are not instructions.
    CHECK_EQ(ask("SELECT gflops_per_s = 0.3 FROM hlo_instructions WHERE name='dot.2' LIMIT 1"), 1);
    CHECK_EQ(ask("SELECT gib_per_s IS NULL FROM hlo_instructions WHERE name='fusion.1' LIMIT 1"),
             1);
    CHECK_EQ(ask("SELECT count(*) FROM hlo_instructions"),
             ask("SELECT count(*) FROM ops WHERE on_device"));
    CHECK_EQ(ask("SELECT occupancy_percent FROM kernels WHERE name='copy' LIMIT 1"), -1);
    CHECK_EQ(ask("SELECT count(*) FROM memory"), 7);
    CHECK_EQ(ask("SELECT peak_bytes FROM memory WHERE name='host' AND host='h1'"), 1 << 29);
    CHECK_EQ(ask("SELECT capacity_bytes FROM memory WHERE name='host' LIMIT 1"), -1);
    CHECK_EQ(ask("SELECT count(*) FROM names"), 16); // each text once
    CHECK_EQ(ask("SELECT count(*) FROM profiles WHERE device_cores=4"), 8);
}

// Names from a profile are any bytes; the stored ones are text.
static void test_odd_names(void) {
    static char longest[10000];
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    memset(longest, 'n', sizeof longest);
    longest[4095] = '\xc3', longest[4096] = '\xa4'; // a character across the cut
    const struct xpl_op_row ops[] = {{.name = {"a\xff\0b\xc3", 5}},
                                     {.name = {longest, sizeof longest}},
                                     {.name = XPL_STR("")},
                                     {.name = XPL_STR("'; DROP TABLE ops; --")}};
    const struct xpl_rows rows = {.ops = ops, .n_ops = 4, .device_type = {"\xed\xa0\x80", 3}};
    const struct xpl_profile_id id = {{0, 0}};
    struct xpl_store *s = open_store(0);
    CHECK_OK(xpl_store_put_rows(s, &id, 1, &rows, NULL), NULL);
    xpl_store_close(s);
    CHECK_EQ(sqlite3_open_v2(in_dir("cache.db"), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    const char *of = "SELECT count(*) FROM ops WHERE session='a/run1' AND host='h0'";
    CHECK_EQ(ask(of), 4);
    CHECK_EQ(ask("SELECT count(*) FROM names WHERE text='a\xef\xbf\xbd\xef\xbf\xbd"
                 "b\xef\xbf\xbd'"),
             1);
    CHECK_EQ(ask("SELECT max(length(CAST(text AS BLOB))) FROM names"), 4095);
    CHECK_EQ(ask("SELECT count(*) FROM ops WHERE name=''"), 1);
    CHECK_EQ(ask("SELECT device_cores FROM profiles WHERE device_type <> 'TPU v6 Lite'"), -1);
}

int main(void) {
    new_dir();
    read_doc();
    fill();
    test_queries();
    test_tables();
    test_plan();
    test_values();
    test_odd_names();
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    free(doc);
    remove_dir();
    return 0;
}
