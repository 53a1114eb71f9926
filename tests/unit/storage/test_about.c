// SPDX-License-Identifier: Apache-2.0
// Notes of captures as they are written, cut at every byte, and of another program; names with
// times.
#include "storage/sessions/about.h"

#include <stdlib.h>
#include <time.h>

#include "tests/check.h"

enum { BUDGET = 1 << 20 }; // bytes, of the lost hosts of all sessions

static struct xpl_arena_budget g_budget;

static const char NOTE[] =
    "{\n  \"version\": 1,\n  \"session\": \"run\",\n  \"options\": {\"call\": \"profile\", "
    "\"advanced\": {\"x\": [1, {\"hosts\": 2}], \"}\": \"]\\\"\"}},\n  \"begin_unix_ns\": 17,\n"
    "  \"hosts\": [\n    {\"target\": \"a:1\", \"state\": \"stored\", \"attempts\": 1, "
    "\"shared_dir\": false},\n    {\"target\": \"b:1\", \"state\": \"failed\", \"attempts\": 3, "
    "\"code\": \"UNAVAILABLE\", \"reason\": \"no \\\"one\\\" there\"},\n"
    "    {\"target\": \"c:1\", \"state\": \"cancelled\", \"n\": -1.5e3}\n  ]\n}\n";

// "TARGET=REASON,..." of the lost ones.
static void check_lost(const char *first, size_t n, const char *second, const char *expected) {
    struct xpl_about *a = NULL;
    char got[1000] = "";
    xpl_about_add(&a, (xpl_str_t){first, n});
    if (second) xpl_about_add(&a, xpl_str_from(second));
    CHECK(xpl_about_finish(&a, &g_budget));
    for (size_t i = 0; a && i < a->asked.n; i++)
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s=%.*s", i ? "," : "",
                       XPL_STR_FMT(a->asked.v[i].target), XPL_STR_FMT(a->asked.v[i].reason));
    CHECK_STR(got, expected);
    CHECK(xpl_about_eq(a, a) && xpl_about_eq(NULL, a) == !*got);
    xpl_about_free(a);
}

static void test_notes(void) {
    check_lost(NOTE, strlen(NOTE), NULL, "b:1=no \"one\" there,c:1=");
    // Another capture of the same session had one of them.
    check_lost(NOTE, strlen(NOTE),
               "{\"hosts\":[{\"target\":\"b:1\",\"state\":\"stored\"},"
               "{\"state\":\"failed\",\"target\":\"c:1\",\"reason\":\"again\"}]}",
               "c:1=");
    for (size_t n = 0; n < strlen(NOTE) - 2; n++)
        check_lost(NOTE, n, NULL, "");
    static const char *const others[] = {"",
                                         "[]",
                                         "{}",
                                         "null",
                                         "{\"hosts\":[]}",
                                         "{\"hosts\":{}}",
                                         "{\"hosts\":[1]}",
                                         "{\"hosts\":[{\"target\":1}]}",
                                         "{\"a\":]}",
                                         "{\"a\":[[[[}",
                                         "\"\\"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        check_lost(others[i], strlen(others[i]), NULL, "");
    check_lost("{\"hosts\":[{\"target\":\"\xff\",\"reason\":\"\xc3\xa4\"}]}", 40, NULL,
               "%FF=\xc3\xa4");
}

// Very many, very long, very deep: cut, not kept.
static void test_large(void) {
    const size_t room = (size_t)1 << 20;
    char *const text = malloc(room);
    CHECK(text);
    size_t n = (size_t)snprintf(text, room, "{\"hosts\":[");
    for (int i = 0; i < 3000; i++)
        n += (size_t)snprintf(text + n, room - n, "%s{\"target\":\"%0200d\"}", i ? "," : "", i);
    n += (size_t)snprintf(text + n, room - n, "]}");
    struct xpl_about *a = NULL;
    xpl_about_add(&a, (xpl_str_t){text, n});
    CHECK(xpl_about_finish(&a, &g_budget));
    CHECK(a);
    CHECK_EQ(a->asked.n, 1024);
    xpl_about_free(a);
    // All sessions together: the last ones list none.
    struct xpl_about *of[8] = {NULL};
    size_t kept = 0;
    for (size_t i = 0; i < 8; i++) {
        xpl_about_add(&of[i], (xpl_str_t){text, n});
        CHECK_EQ(xpl_about_finish(&of[i], &g_budget), of[i] != NULL);
        kept += of[i] != NULL;
    }
    CHECK(kept > 0 && kept < 8 && !of[7]);
    for (size_t i = 0; i < 8; i++)
        xpl_about_free(of[i]);
    CHECK_EQ(g_budget.left, BUDGET);
    memset(text, '[', room);
    memcpy(text, "{\"a\":", 5);
    check_lost(text, room, NULL, "");
    free(text);
}

// Notes of a directory, each of them long: the first ones are read.
static void test_many_notes(void) {
    enum { NOTES = 40, LONG = 1 << 20 };
    char *const text = malloc(LONG);
    struct xpl_about *a = NULL;
    CHECK(text);
    for (int i = 0; i < NOTES; i++) {
        memset(text, ' ', LONG);
        const int n = snprintf(text, LONG, "{\"hosts\":[{\"target\":\"%d\"}]}", i);
        text[n] = ' ';
        xpl_about_add(&a, (xpl_str_t){text, LONG});
    }
    CHECK(xpl_about_finish(&a, &g_budget) && a);
    CHECK_EQ(a->asked.n, 16);
    xpl_about_free(a);
    free(text);
}

static void test_names(void) {
    CHECK_EQ(setenv("TZ", "UTC-1", 1), 0);
    tzset();
    CHECK_EQ(xpl_about_time_of_name(XPL_STR("2026_11_22_10_20_30")), 1795339230000000000);
    CHECK_EQ(xpl_about_time_of_name(XPL_STR("a/b/2026_11_22_10_20_30")), 1795339230000000000);
    static const char *const none[] = {"",
                                       "2026_11_22_10_20",
                                       "x2026_11_22_10_20_30",
                                       "2026_13_22_10_20_30",
                                       "2026_11_22_24_20_30",
                                       "2026-11-22-10-20-30",
                                       "0000_00_00_00_00_00",
                                       "2026_11_22_10_20_30/x",
                                       "2026_11_22_10_20_301"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_EQ(xpl_about_time_of_name(xpl_str_from(none[i])), 0);
    CHECK(xpl_about_is_note(XPL_STR("capture.json")) &&
          xpl_about_is_note(XPL_STR("capture_2.json")));
    CHECK(!xpl_about_is_note(XPL_STR("capture_1.json")) &&
          !xpl_about_is_note(XPL_STR("capture.js")));
}

int main(void) {
    xpl_arena_budget_init(&g_budget, BUDGET);
    test_notes();
    test_large();
    test_many_notes();
    test_names();
    return 0;
}
