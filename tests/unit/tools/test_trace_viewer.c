// SPDX-License-Identifier: Apache-2.0
// trace_viewer's text: numbers, escapes, and which events remain of too many.
#include <string.h>

#include "analysis/tools/tool.h"
#include "analysis/tools/trace_viewer/json.h"
#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "tests/check.h"
#include "tests/xspace_maker.h"

static bool us_is(uint64_t ps, const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(100);
    xpl_trace_json_us(&b, ps);
    return b.n == strlen(expected) && memcmp(b.p, expected, b.n) == 0;
}

static bool str_is(xpl_str_t s, const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1000);
    xpl_trace_json_str(&b, s);
    return b.n == strlen(expected) && memcmp(b.p, expected, b.n) == 0;
}

static void test_text(void) {
    CHECK(us_is(0, "0.0"));
    CHECK(us_is(1, "1e-06"));
    CHECK(us_is(99, "9.9e-05"));
    CHECK(us_is(100, "0.0001"));
    CHECK(us_is(1500000, "1.5"));
    CHECK(us_is(1373002000, "1373.002"));
    CHECK(us_is(999999999999999, "999999999.999999"));
    CHECK(us_is(UINT64_MAX, "18446744073709.55"));
    CHECK(str_is(XPL_STR("a\"\\\n\x01\x7f/<"), "\"a\\\"\\\\\\n\\u0001\\u007f/<\""));
    CHECK(str_is(XPL_STR("\xc3\xa9\xf0\x9f\x9a\x80"), "\"\\u00e9\\ud83d\\ude80\""));
    CHECK(str_is(XPL_STR("\xff\xe2\x82x"), "\"\\ufffd\\ufffdx\""));
    CHECK(str_is((xpl_str_t){NULL, 0}, "\"\""));
}

static struct xpl_buf answer(const struct xpl_buf *space, uint64_t max_events) {
    struct xpl_exec exec = xpl_exec_serial();
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(16 << 20);
    struct xpl_xspace *xs;
    struct xpl_buf out = xpl_buf_of(16 << 20);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, &a, &exec, &xs, NULL), NULL);
    CHECK_OK(xpl_trace_json_render(xs, max_events, &exec, 16 << 20, &out, NULL), NULL);
    xpl_buf_putc(&out, 0);
    CHECK(!out.failed);
    return out;
}

static unsigned count(const struct xpl_buf *b, const char *what) {
    unsigned n = 0;
    for (const char *p = (const char *)b->p; (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

// The earliest events remain, in whatever line they are.
static void test_too_many(void) {
    struct mk_plane p = mk_plane(1, "/host:CPU");
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    for (int64_t l = 0; l < 2; l++) {
        struct xpl_buf line = mk_line(l + 1, "thread");
        for (int64_t i = 0; i < 10; i++)
            mk_plain(&p, &line, i < 5 ? "early" : "late", i * 1000 + l, 10);
        mk_plain(&p, &line, "MemoryAllocation", 1, 0); // is not shown
        mk_line_end(&p, &line);
    }
    mk_plane_end(&p, &space);
    struct xpl_buf all = answer(&space, 20), some = answer(&space, 10), one = answer(&space, 1);
    CHECK_EQ(count(&all, "\"ph\": \"X\""), 20);
    CHECK_EQ(count(&all, "Memory"), 0);
    CHECK_EQ(count(&some, "early"), 10);
    CHECK_EQ(count(&some, "late"), 0);
    CHECK_EQ(count(&one, "\"ph\": \"X\""), 1);
    CHECK_EQ(count(&one, "\"tid\": 1, \"ts\": 0.0}"), 1);
    xpl_buf_fini(&all);
    xpl_buf_fini(&some);
    xpl_buf_fini(&one);
}

// XProf's clients may ask for another format: the answer is JSON.
static void test_format(void) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("trace_viewer"));
    const struct xpl_option pb = {XPL_STR("format"), XPL_STR("pb")};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 16);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf plain, asked;
    void *options;
    xpl_buf_init(&plain, 1000);
    xpl_buf_init(&asked, 1000);
    CHECK_OK(xpl_tool_options_parse(tool, NULL, 0, false, &a, &options, NULL), NULL);
    xpl_tool_options_text(tool, options, &plain);
    CHECK_OK(xpl_tool_options_parse(tool, &pb, 1, false, &a, &options, NULL), NULL);
    xpl_tool_options_text(tool, options, &asked);
    CHECK(plain.n == asked.n && (!plain.n || memcmp(plain.p, asked.p, plain.n) == 0));
    CHECK(strcmp(xpl_tool_content_type(tool, options), "application/json") == 0);
}

// The device's clock is early: one event ends before 0, one begins before 0 and ends after it.
static void test_early(void) {
    struct xpl_buf space = mk_open(), line = mk_line(1, "thread");
    struct mk_plane p = mk_plane(1, "/host:CPU");
    mk_plain(&p, &line, "before", -9000000, 2000000);
    mk_plain(&p, &line, "across", -4000000, 6000000);
    mk_plain(&p, &line, "after", 3000000, 1000000);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    struct xpl_buf all = answer(&space, 20);
    CHECK_EQ(count(&all, "\"dur\": 2.0, \"name\": \"across\", \"ph\": \"X\""), 1);
    CHECK_EQ(count(&all, "\"name\": \"before\", \"ph\": \"i\""), 1);
    CHECK_EQ(count(&all, "\"ts\": 0.0}"), 2);
    CHECK_EQ(count(&all, "\"ts\": 3.0}"), 1);
    xpl_buf_fini(&all);
    xpl_buf_fini(&space);
}

int main(void) {
    test_format();
    test_early();
    test_text();
    test_too_many();
    return 0;
}
