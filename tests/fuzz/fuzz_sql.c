// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a statement over a small profile and a store: it ends within its limits,
// answers with one JSON document or a known error, leaves nothing behind for the next statement,
// and never shows what the store hides.
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sql/heap.h"
#include "sql/scan.h"
#include "tests/unit/sql/sql_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 100, BYTES = 1 << 16, LIMIT_MS = 200, MOST_MS = 20000 };
#define HIDDEN "open sesame 4711"
static const char kAfter[] = "SELECT count(*), sum(duration_ps), (SELECT count(*) FROM "
                             "hlo_instructions) FROM events";

static void require(bool ok) {
    if (!ok) abort();
}

static char g_store[] = "/tmp/xplaned-fuzz-sql-XXXXXX";
static struct xpl_sql_cache *g_cache;
static struct xpl_buf g_after; // the answer of kAfter

static void remove_store(void) {
    (void)unlink(g_store);
    xpl_sql_cache_free(g_cache);
    xpl_buf_fini(&g_profile.bytes);
    xpl_buf_fini(&g_after);
}

static void make_store(void) {
    static const char text[] =
        "CREATE TABLE settings(name, value); INSERT INTO settings VALUES ('s', '" HIDDEN "');"
        "CREATE TABLE ops(session, session_mtime_ns, session_captured_ns, name, on_device, "
        "self_time_ps);"
        "INSERT INTO ops VALUES ('run', 1, 1, 'fusion.1', 1, 5);"
        "CREATE TABLE steps(session, session_mtime_ns, session_captured_ns, host, step_num, name, "
        "duration_ps);"
        "INSERT INTO steps VALUES ('run', 1, 1, 'h', 0, 's', 10);"
        "CREATE TABLE kernels(session, session_mtime_ns, session_captured_ns, name, total_ns);"
        "CREATE VIEW evil AS SELECT value FROM settings";
    sqlite3 *db = NULL;
    const int fd = mkstemp(g_store);
    require(fd >= 0 && close(fd) == 0);
    require(sqlite3_open(g_store, &db) == SQLITE_OK);
    require(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    require(sqlite3_close(db) == SQLITE_OK);
}

static xpl_status_t ask(xpl_str_t statement, uint64_t ms, struct xpl_buf *out,
                        struct xpl_error *err) {
    struct xpl_sql_request q = request_of("");
    q.statement = statement;
    q.store = g_store;
    q.cache = g_cache;
    q.limits =
        (struct xpl_sql_limits){.rows = ROWS, .bytes = BYTES, .memory = 8 << 20, .time_ms = ms};
    xpl_buf_init(out, 64 << 20);
    return xpl_sql_run(&q, out, err);
}

static void begin(void) {
    struct xpl_error err = {0};
    if (g_cache) return;
    require(xpl_sql_heap_install());
    make_profile(1);
    make_program(5);
    make_store();
    require((g_cache = xpl_sql_cache_new(1, SIZE_MAX)) != NULL);
    require(ask(xpl_str_from(kAfter), MOST_MS, &g_after, &err) == XPL_OK);
    require(atexit(remove_store) == 0);
}

static bool has(const void *p, size_t n, const char *word) {
    return n && memmem(p, n, word, strlen(word));
}

static void check_answer(const struct xpl_buf *out, const uint8_t *data, size_t size) {
    require(out->n > 2 && out->p[0] == '{' && out->p[out->n - 1] == '}');
    require(has(out->p, out->n, "\"rows\":[") && has(out->p, out->n, "],\"cut\":"));
    require(has(data, size, "sesame") || !has(out->p, out->n, HIDDEN));
    // Of the last row the limit knows only when it is there.
    require(out->n <= BYTES + (size_t)200 * 7 * XPL_SQL_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct xpl_buf out, after;
    struct xpl_error err = {0};
    begin();
    const uint64_t from = xpl_clock_ns();
    const xpl_status_t st = ask((xpl_str_t){(const char *)data, size}, LIMIT_MS, &out, &err);
    require(xpl_clock_between(from, xpl_clock_ns()) < MOST_MS * UINT64_C(1000000));
    if (st == XPL_OK) {
        check_answer(&out, data, size);
    } else {
        require(st == err.code && err.msg[0] && memchr(err.msg, 0, sizeof err.msg));
        require(st == XPL_INVALID_ARGUMENT || st == XPL_PERMISSION_DENIED ||
                st == XPL_RESOURCE_EXHAUSTED || st == XPL_DEADLINE_EXCEEDED);
    }
    require(ask(xpl_str_from(kAfter), MOST_MS, &after, &err) == XPL_OK);
    require(after.n == g_after.n && memcmp(after.p, g_after.p, after.n) == 0);
    xpl_buf_fini(&out);
    xpl_buf_fini(&after);
    return 0;
}
