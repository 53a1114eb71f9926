// SPDX-License-Identifier: Apache-2.0
// Tools smart_suggestion and event_time_fraction_analyzer: when they give suggestions, and their
// texts. tests/parity/suggestions.py compares the figures with XProf's.

#include "analysis/products/event_fractions.h"
#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "tests/barriers_fixture.h"
#include "tests/unit/tools/ask_tool.h"

enum { HOSTS = 4, LIMIT = 1 << 24 };
static struct xpl_error err;

static xpl_status_t ask_limited(const char *name, const char *key, const char *value,
                                const struct xpl_buf *spaces, size_t n, size_t limit,
                                struct xpl_buf *out) {
    return ask_tool(
        &(struct tool_request){
            .tool = name, .key = key, .value = value, .spaces = spaces, .n = n, .limit = limit},
        out, &err);
}

static struct xpl_buf ask(const char *name, const char *key, const char *value,
                          const struct xpl_buf *spaces, size_t n) {
    struct xpl_buf out;
    CHECK_OK(ask_limited(name, key, value, spaces, n, LIMIT, &out), &err);
    return out;
}

static struct xpl_buf suggest(const struct xpl_buf *spaces, size_t n) {
    return ask("smart_suggestion", "refresh_suggestion", "true", spaces, n);
}

static bool has(const struct xpl_buf *b, const char *part) {
    return xpl_str_has((xpl_str_t){(const char *)b->p, b->n}, xpl_str_from(part));
}

static void says(struct xpl_buf space, const char *text) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = suggest(&space, 1);
    CHECK_STR(((xpl_str_t){(const char *)out.p, out.n}), text);
    xpl_buf_fini(&space);
}

#define SILENT "{\"suggestions\":[]}"
#define LI     "\\u003cli\\u003e\\u003cb\\u003e"
#define LI_END "\\u003c/li\\u003e"
#define B      "\\u003cb\\u003e"
#define B_END  "\\u003c/b\\u003e"
#define SPEAKS(percent)                                                                            \
    "{\"suggestions\":[{\"ruleName\":\"BarrierCoresRule\",\"suggestionText\":\"\\u003cp\\u003e"    \
    "TPU cores wait for each other (" B "barrier-cores" B_END ") for " B percent B_END             \
    " of a step on average.\\u003c/p\\u003e\\u003cul\\u003e" LI "Work:" B_END                      \
    " compare what the cores do before they meet. Those with less of it wait for those with "      \
    "more." LI_END LI "Input:" B_END " a host whose input comes late holds all cores up: see "     \
    "input_pipeline_analyzer for each host." LI_END LI "Collectives:" B_END                        \
    " see in op_profile which of them move the most data, and whether they could move less or "    \
    "less often." LI_END LI "Network:" B_END " of several slices see megascale_stats for "         \
    "transfers that are late." LI_END "\\u003c/ul\\u003e\"}]}"

// The text is ours (docs/differences.md, suggestion_text); from 10% of a step on there is one.
static void test_rule(void) {
    says(barriers_fixture("h", 5, BR_STEP_PS / 5), SPEAKS("20.0%"));
    says(barriers_fixture("h", 5, BR_STEP_PS / 10), SPEAKS("10.0%"));
    says(barriers_fixture("h", 5, BR_STEP_PS / 10 - BR_STEP_PS / 1000), SILENT);
    says(barriers_fixture("h", 0, 0), SILENT);
    says(mk_open(), SILENT);
}

// Of three hosts and more those are named that differ from the others.
static void test_hosts(void) {
    struct xpl_buf spaces[HOSTS] = {
        barriers_fixture("h1", 5, BR_STEP_PS / 5), barriers_fixture("h2", 5, BR_STEP_PS / 5),
        barriers_fixture("<h&3>", 5, BR_STEP_PS / 100), barriers_fixture(NULL, 5, BR_STEP_PS / 5)};
    struct xpl_buf out = suggest(spaces, 4);
    CHECK(has(&out, "for " B "15.3%" B_END));
    CHECK(has(&out, LI "&lt;h&amp;3&gt;" B_END ": " B "1.0%" B_END LI_END));
    CHECK(!has(&out, B "h1" B_END) && !has(&out, "Work:"));
    xpl_buf_fini(&out);
    out = suggest(&spaces[1], 2); // two are too few to tell
    CHECK(has(&out, "for " B "10.5%" B_END) && has(&out, "Work:"));
    xpl_buf_fini(&out);
    for (size_t i = 0; i < HOSTS; i++)
        xpl_buf_fini(&spaces[i]);
}

// By name, whatever the order of the files.
static void test_order_of_hosts(void) {
    struct xpl_buf spaces[6];
    for (size_t i = 0; i < 6; i++)
        spaces[i] = barriers_fixture((const char *const[]){"z", "h1", "b", "h2", "h3", "h4"}[i], 5,
                                     BR_STEP_PS / (i % 2 == 0 && i < 4 ? 100 : 5));
    struct xpl_buf out = suggest(spaces, 6);
    CHECK(has(&out, LI "b" B_END ": " B "1.0%" B_END LI_END LI "z" B_END ": " B "1.0%" B_END));
    xpl_buf_fini(&out);
    for (size_t i = 0; i < 6; i++)
        xpl_buf_fini(&spaces[i]);
}

static void fractions_are(struct xpl_buf space, const char *word, size_t n_planes, size_t n,
                          float value) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_event_fractions f;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view, arena;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, LIMIT);
    xpl_arena_init(&arena, LIMIT);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &view, &exec, &xs, &err), &err);
    CHECK_OK(xpl_event_fractions_make(xs, xpl_str_from(word), &exec, &arena, LIMIT, &f, &err),
             &err);
    CHECK_EQ(f.n_planes, n_planes);
    CHECK_EQ(f.n_host, n_planes ? n : 0);
    for (size_t i = 0; i < f.n_planes; i++) {
        CHECK_EQ(f.planes[i].n, n);
        for (size_t k = 0; k < n; k++)
            CHECK(f.planes[i].v[k] == value && f.host[k] == value);
    }
    xpl_buf_fini(&space);
}

// The first and the last of several steps may be cut off; 0 and 1250 ps are no waits.
static void test_steps(void) {
    fractions_are(barriers_fixture("h", 5, BR_STEP_PS / 4), "barrier-cores", 2, 3, 0.25f);
    fractions_are(barriers_fixture("h", 3, BR_STEP_PS / 4), "barrier-cores", 2, 1, 0.25f);
    fractions_are(barriers_fixture("h", 2, BR_STEP_PS / 4), "barrier-cores", 2, 2, 0.25f);
    fractions_are(barriers_fixture("h", 5, 1250), "barrier-cores", 0, 0, 0);
    fractions_are(barriers_fixture("h", 5, 1250), "barrier", 2, 3, 1250.0f / BR_STEP_PS);
    fractions_are(barriers_fixture("h", 5, 0), "barrier-cores", 0, 0, 0);
    fractions_are(barriers_fixture("h", 5, 77), "nothing", 0, 0, 0);
}

// The message, byte by byte: two names, each once; a host is called as its profile says.
// Events of a GPU count that say how long they took on the device. Those of two planes with one
// name count together.
static void test_planes(void) {
    struct xpl_buf space = barriers_fixture("h", 5, BR_STEP_PS / 4);
    br_core(&space, "/device:GPU:0", 5, BR_STEP_PS / 2);
    fractions_are(space, "barrier-cores", 2, 3, 0.25f);
    space = mk_open();
    for (int i = 0; i < 2; i++)
        br_core(&space, "/device:TPU:0", 5, BR_STEP_PS / 4);
    fractions_are(space, "barrier-cores", 1, 3, 0.5f);
}

// Many planes have the name of one with many steps, which are read once: their number times that of
// the steps would exceed the limit.
static void test_equal_names(void) {
    enum { PLANES = 200, STEPS = 2000 };
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_event_fractions f;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 28);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    struct xpl_xspace *xs;
    for (int i = 0; i < PLANES; i++)
        br_core(&space, "/device:TPU:0", i + 1 < PLANES ? 2 : STEPS, BR_STEP_PS / 4);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space.p, space.n}, &arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_event_fractions_make(xs, XPL_STR("barrier-cores"), &exec, &arena, LIMIT, &f, &err),
             &err);
    CHECK_EQ(f.n_planes, 1);
    CHECK_EQ(f.planes[0].n, STEPS - 2);
}

static void test_message(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = barriers_fixture("hhh", 3, BR_STEP_PS / 4);
    struct xpl_buf out =
        ask("event_time_fraction_analyzer", "event_name", "x,barrier-cores,x", &space, 1);
    // A list has one fraction: 0.25 is 0x3e800000.
    static const char plane[] = "\x0a\x0d/device:TPU:0\x12\x04\0\0\x80\x3e";
    static const char host[] = "\x0a\x03hhh\x12\x04\0\0\x80\x3e";
    const xpl_str_t got = {(const char *)out.p, out.n};
    CHECK(xpl_str_has(got, (xpl_str_t){plane, sizeof plane - 1}));
    CHECK(xpl_str_has(got, (xpl_str_t){host, sizeof host - 1}));
    xpl_buf_fini(&out);
    out = ask("event_time_fraction_analyzer", "event_name", "x", &space, 1);
    static const char only[] = "\x0a\x13\x0a\x01x\x12\x0e\x12\x0c\x0a\x03hhh\x12\x05\x0a\x03hhh";
    CHECK_STR(((xpl_str_t){(const char *)out.p, out.n}), only);
    xpl_buf_fini(&out);
}

static void test_bad(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = barriers_fixture("h", 5, BR_STEP_PS / 5), out;
    char words[200];
    memset(words, ',', sizeof words - 1);
    words[sizeof words - 1] = 0;
    CHECK_STATUS(
        ask_limited("event_time_fraction_analyzer", "event_name", words, &space, 1, LIMIT, &out),
        XPL_INVALID_ARGUMENT, &err);
    xpl_buf_fini(&out);
    CHECK_STATUS(
        ask_limited("smart_suggestion", "refresh_suggestion", "false", &space, 1, 2000, &out),
        XPL_RESOURCE_EXHAUSTED, &err);
    xpl_buf_fini(&out);
    const size_t whole = space.n;
    for (space.n = 0; space.n < whole; space.n++) {
        const xpl_status_t st =
            ask_limited("smart_suggestion", "refresh_suggestion", "false", &space, 1, LIMIT, &out);
        CHECK(st == XPL_OK || st == XPL_DATA_LOSS);
        xpl_buf_fini(&out);
    }
}

int main(void) {
    test_rule();
    test_hosts();
    test_order_of_hosts();
    test_steps();
    test_planes();
    test_equal_names();
    test_message();
    test_bad();
    return 0;
}
