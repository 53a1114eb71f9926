// SPDX-License-Identifier: Apache-2.0
// Functions that are ours in place of SQLite's: the same answers to the same arguments.
#include <sqlite3.h>

#include "base/json.h"
#include "sql/heap.h"
#include "tests/check.h"
#include "tests/unit/sql/sql_profile.h"

enum { STATEMENTS = 400, COLUMNS = 20 };

static uint32_t g_state = 1;

static unsigned pick(unsigned n) {
    g_state = g_state * 1664525 + 1013904223;
    return (g_state >> 8) % n;
}

// Short texts of few characters, so that much is found in much; bytes that are not UTF-8.
static void put_value(struct xpl_buf *b) {
    static const char *const parts[] = {"a",  "b",  "A",        "%", "_",
                                        "*",  "?",  "[",        "]", "^",
                                        "-",  "!",  "\xc3\xa9", " ", "\xe2\x82\xac",
                                        "''", "aa", "ab"};
    static const char *const bytes[] = {"61", "62", "80", "a9", "c3", "c3a9", "00", "ff"};
    switch (pick(12)) {
        case 0: xpl_buf_printf(b, "NULL"); return;
        case 1: xpl_buf_printf(b, "%u", pick(12)); return;
        case 2: xpl_buf_printf(b, "1.5"); return;
        case 3:
            xpl_buf_printf(b, "x'");
            for (unsigned n = pick(5); n; n--)
                xpl_buf_printf(b, "%s", bytes[pick(8)]);
            xpl_buf_putc(b, '\'');
            return;
        case 4:
            xpl_buf_printf(b, "CAST(x'61");
            for (unsigned n = pick(4); n; n--)
                xpl_buf_printf(b, "%s", bytes[pick(8)]);
            xpl_buf_printf(b, "' AS TEXT)");
            return;
        default: break;
    }
    xpl_buf_putc(b, '\'');
    for (unsigned n = pick(7); n; n--)
        xpl_buf_printf(b, "%s", parts[pick(sizeof parts / sizeof *parts)]);
    xpl_buf_putc(b, '\'');
}

static void put_call(struct xpl_buf *b) {
    static const struct {
        const char *name;
        unsigned n;
    } all[] = {{"trim", 1},  {"trim", 2}, {"ltrim", 1}, {"ltrim", 2},   {"rtrim", 1}, {"rtrim", 2},
               {"instr", 2}, {"like", 2}, {"glob", 2},  {"replace", 3}, {"like", 3},  {"glob", 2}};
    const unsigned k = pick(sizeof all / sizeof *all);
    xpl_buf_printf(b, "quote(%s(", all[k].name);
    for (unsigned i = 0; i < all[k].n; i++) {
        if (i) xpl_buf_putc(b, ',');
        if (i == 2 && k == 10) // of LIKE: others are an error
            xpl_buf_printf(b, "'%c'", "!a^"[pick(3)]);
        else
            put_value(b);
    }
    xpl_buf_printf(b, "))");
}

static void same_answers(sqlite3 *db) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf text, out, expected;
    struct xpl_error err = {0};
    sqlite3_stmt *st = NULL;
    xpl_buf_init(&text, 1 << 20);
    xpl_buf_init(&out, 1 << 20);
    xpl_buf_init(&expected, 1 << 20);
    xpl_buf_printf(&text, "SELECT ");
    for (unsigned i = 0; i < COLUMNS; i++) {
        if (i) xpl_buf_printf(&text, " || char(10) || ");
        put_call(&text);
    }
    xpl_buf_printf(&text, " AS x%c", 0);
    CHECK_EQ(sqlite3_prepare_v2(db, (const char *)text.p, -1, &st, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_step(st), SQLITE_ROW);
    const char *const answer = (const char *)sqlite3_column_text(st, 0);
    CHECK(answer != NULL);
    xpl_buf_printf(&expected, "{\"columns\":[\"x\"],\"rows\":[[");
    xpl_json_str(&expected, xpl_str_from(answer), false);
    xpl_buf_printf(&expected, "]],\"cut\":false}");
    const struct xpl_sql_request q = request_of((const char *)text.p);
    CHECK_OK(xpl_sql_run(&q, &out, &err), &err);
    if (out.n != expected.n || memcmp(out.p, expected.p, out.n) != 0)
        fprintf(stderr, "%s\n", (const char *)text.p);
    CHECK_BYTES(out.p, out.n, expected.p, expected.n);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
}

int main(void) {
    sqlite3 *db = NULL;
    CHECK(xpl_sql_heap_install());
    make_profile(1);
    CHECK_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (unsigned i = 0; i < STATEMENTS; i++)
        same_answers(db);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
    xpl_buf_fini(&g_profile.bytes);
    return 0;
}
