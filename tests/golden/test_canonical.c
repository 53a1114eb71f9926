// SPDX-License-Identifier: Apache-2.0
// The comparison that the golden tests rely on: the differences that it forgives, and those that it
// must not.

#include "base/arena.h"
#include "tests/check.h"
#include "tests/golden/canonical.h"

static struct xpl_arena arena;

static bool equal(const char *tool, const char *a, const char *b) {
    char why[600] = "";
    const struct value *const x = value_parse(&arena, xpl_str_from(a));
    const struct value *const y = value_parse(&arena, xpl_str_from(b));
    CHECK(x && y);
    const bool ok = canonical_equal(tool, x, y, why, sizeof why);
    CHECK(ok || why[0]);
    return ok;
}

static void test_parse(void) {
    static const char *const bad[] = {"",         "{",         "[1,]",         "{\"a\":1,\"a\":2}",
                                      "\"\xff\"", "nul",       "1 2",          "\"\n\"",
                                      "NaN",      "\"\\ud8\"", "\"\xc0\x80\"", "[1 2]",
                                      "\"\\x\"",  "{\"a\"}",   "\"abc",        "+1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!value_parse(&arena, xpl_str_from(bad[i])));
    char deep[1000];
    memset(deep, '[', sizeof deep);
    CHECK(!value_parse(&arena, (xpl_str_t){deep, sizeof deep}));
    const struct value *const v = value_parse(&arena, XPL_STR("\"\\u00e9\\ud83d\\ude80\\n\""));
    CHECK(v && xpl_str_eq(v->string, XPL_STR("\xc3\xa9\xf0\x9f\x9a\x80\n")));
}

static void test_plain(void) {
    CHECK(equal("x", "{\"a\":1,\"b\":[true,null]}", "{\"b\":[true,null],\"a\":1.0000000001}"));
    CHECK(!equal("x", "1", "1.00001"));
    CHECK(!equal("x", "1", "\"1\""));
    CHECK(!equal("x", "1", "true"));
    CHECK(!equal("x", "{\"a\":1}", "{}"));
    CHECK(!equal("x", "{}", "{\"a\":1}"));
    CHECK(!equal("x", "[1,2]", "[2,1]"));
    CHECK(!equal("x", "[1]", "[1,1]"));
}

#define TABLE(rows)                                                                                \
    "{\"cols\":[{\"id\":\"rank\"},{\"id\":\"name\"},{\"id\":\"total_self_time\"},"                 \
    "{\"id\":\"cumulative_percent\"},{\"id\":\"bound_by\"}],\"rows\":[" rows                       \
    "],\"p\":{\"k\":\"v\"}}"
#define ROW(rank, name, time, sum, bound)                                                          \
    "{\"c\":[{\"v\":" #rank "},{\"v\":\"" name "\"},{\"v\":" #time "},{\"v\":" #sum                \
    "},{\"v\":\"" bound "\"}]}"

static void test_table(void) {
    static const char ab[] =
        TABLE(ROW(1, "a", 5, 1, "x") "," ROW(2, "b", 5, 2, "x") "," ROW(3, "c", 4, 3, "x"));
    static const char ba[] =
        TABLE(ROW(1, "b", 5, 1.5, "x") "," ROW(2, "a", 5, 2, "x") "," ROW(3, "c", 4, 3, "x"));
    static const char wrong_sum[] =
        TABLE(ROW(1, "b", 5, 1, "x") "," ROW(2, "a", 5, 2.5, "x") "," ROW(3, "c", 4, 3, "x"));
    static const char wrong_rank[] =
        TABLE(ROW(1, "a", 5, 1, "x") "," ROW(3, "b", 5, 2, "x") "," ROW(3, "c", 4, 3, "x"));
    static const char twice[] =
        TABLE(ROW(1, "a", 5, 1, "x") "," ROW(2, "a", 5, 2, "x") "," ROW(3, "c", 4, 3, "x"));
    static const char out_of_order[] =
        TABLE(ROW(1, "a", 5, 1, "x") "," ROW(2, "c", 4, 2, "x") "," ROW(3, "b", 5, 3, "x"));
    static const char bound[] =
        TABLE(ROW(1, "a", 5, 1, "y") "," ROW(2, "b", 5, 2, "x") "," ROW(3, "c", 4, 3, "x"));
    CHECK(equal("framework_op_stats", ab, ab));
    CHECK(equal("framework_op_stats", ab, ba));
    CHECK(!equal("framework_op_stats", ab, wrong_sum));
    CHECK(!equal("framework_op_stats", ab, wrong_rank));
    CHECK(!equal("framework_op_stats", ab, twice));
    CHECK(!equal("framework_op_stats", ab, out_of_order));
    CHECK(!equal("framework_op_stats", ab, bound));
    CHECK(!equal("framework_op_stats", ab, TABLE(ROW(1, "a", 5, 1, "x"))));
}

static void test_trace(void) {
#define TRACE(events) "{\"unit\":\"ns\",\"traceEvents\":[" events ",{}]}"
#define A             "{\"name\":\"a\",\"args\":{\"flow\":1},\"ts\":5}"
#define B             "{\"name\":\"b\",\"args\":{\"flow\":2},\"ts\":6}"
    static const char tool[] = "trace_viewer",
                      late[] = TRACE("{\"name\":\"a\",\"args\":{},\"ts\":7}"),
                      other_flow[] = TRACE("{\"ts\":5,\"name\":\"a\",\"args\":{\"flow\":3}}"),
                      other_unit[] = "{\"unit\":\"ms\",\"traceEvents\":[" A ",{}]}";
    CHECK(equal(tool, TRACE(A "," B), TRACE(B "," A)));
    CHECK(equal(tool, TRACE(A), other_flow));
    CHECK(!equal(tool, TRACE(A "," A), TRACE(A)));
    CHECK(!equal(tool, TRACE(A), late));
    CHECK(!equal(tool, TRACE(A), other_unit));
#undef A
#undef B
}

static void test_op_profile(void) {
    static const char a[] =
        "{\"p\":{\"children\":[{\"name\":\"a\",\"metrics\":{\"rawTime\":5,\"flops\":1}},"
        "{\"name\":\"b\",\"metrics\":{\"rawTime\":5,\"flops\":2}}]}}";
    static const char swapped[] =
        "{\"p\":{\"children\":[{\"name\":\"b\",\"metrics\":{\"rawTime\":5,\"flops\":2}},"
        "{\"name\":\"a\",\"metrics\":{\"rawTime\":5,\"flops\":1}}]}}";
    static const char flops[] =
        "{\"p\":{\"children\":[{\"name\":\"b\",\"metrics\":{\"rawTime\":5,\"flops\":0}},"
        "{\"name\":\"a\",\"metrics\":{\"rawTime\":5,\"flops\":0}}]}}";
    static const char time[] =
        "{\"p\":{\"children\":[{\"name\":\"b\",\"metrics\":{\"rawTime\":6,\"flops\":2}},"
        "{\"name\":\"a\",\"metrics\":{\"rawTime\":5,\"flops\":1}}]}}";
    // A fusion's instructions tie in flops, whatever their times; not so in a group of fusions.
#define FUSION(name, first, second)                                                                \
    "{\"p\":{\"name\":\"" name "\",\"children\":[" first "," second                                \
    "],\"xla\":{\"category\":\"loop fusion\"}}}"
#define OP(name, time) "{\"name\":\"" name "\",\"metrics\":{\"rawTime\":" #time ",\"rawFlops\":0}}"
    CHECK(equal("op_profile", FUSION("f", OP("a", 1), OP("b", 2)),
                FUSION("f", OP("b", 2), OP("a", 1))));
    CHECK(!equal("op_profile", FUSION("f and its duplicate(s)", OP("a", 1), OP("b", 2)),
                 FUSION("f and its duplicate(s)", OP("b", 2), OP("a", 1))));
    CHECK(equal("op_profile", a, swapped));
    CHECK(!equal("op_profile", a, flops));
    CHECK(!equal("op_profile", a, time));
}

#define MEMORY(n, i, snaps)                                                                        \
    "{\"memoryProfilePerAllocator\":{\"cpu\":{\"activeAllocations\":[{\"snapshotIndex\":\"" #i     \
    "\",\"numOccurrences\":\"" #n "\"}],\"memoryProfileSnapshots\":[" snaps "]}},\"numHosts\":1}"
#define SNAP(t, op)                                                                                \
    "{\"timeOffsetPs\":\"" #t "\",\"activityMetadata\":{\"tfOpName\":\"" op "\",\"address\":\"" #t \
    "\"}}"

static void test_memory(void) {
    CHECK(equal("memory_profile", MEMORY(2, 0, SNAP(1, "a")), MEMORY(2, 0, SNAP(2, "a"))));
    CHECK(!equal("memory_profile", MEMORY(1, 0, SNAP(1, "a")), MEMORY(1, 0, SNAP(2, "a"))));
    CHECK(!equal("memory_profile", MEMORY(2, 0, SNAP(1, "a")), MEMORY(2, 0, SNAP(1, "b"))));
    CHECK(!equal("memory_profile", MEMORY(2, 0, SNAP(1, "a")), MEMORY(3, 0, SNAP(1, "a"))));
    CHECK(!equal("memory_profile", MEMORY(2, 0, SNAP(1, "a")), MEMORY(2, -1, SNAP(1, "a"))));
}

int main(void) {
    xpl_arena_init(&arena, (size_t)1 << 26);
    test_parse();
    test_plain();
    test_table();
    test_op_profile();
    test_trace();
    test_memory();
    xpl_arena_fini(&arena);
    return 0;
}
