// SPDX-License-Identifier: Apache-2.0
// base/text/near: the proposals for a mistyped name, and names without one.
#include "base/text/near.h"

#include "tests/check.h"

static const char *const names[] = {
    "sessions",      "hosts",        "tools",         "tool",       "summary",
    "capture",       "captures",     "overview_page", "op_profile", "trace_viewer",
    "trace_viewer@", "kernel_stats", "2026_01_31_07", "ab",         "MyRun"};

static void check_name(const char *given, const char *proposed) {
    struct xpl_near near = xpl_near_begin(xpl_str_from(given));
    char hint[XPL_NEAR_TEXT], expected[XPL_NEAR_TEXT] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        xpl_near_add(&near, xpl_str_from(names[i]));
    if (proposed) (void)snprintf(expected, sizeof expected, "; did you mean \"%s\"?", proposed);
    CHECK_STR(xpl_near_text(&near, hint), expected);
}

static void check_near(void) {
    check_name("sesions", "sessions");   // a letter is missing
    check_name("sessionss", "sessions"); // one too many
    check_name("sessoins", "sessions");  // two swapped
    check_name("summery", "summary");    // a wrong one
    check_name("overveiw_pgae", "overview_page");
    check_name("Kernel-Stats", "kernel_stats");
    check_name("myrun", "MyRun"); // without case
    check_name("2026_01_31_08", "2026_01_31_07");
    check_name("captur", "capture");         // nearer than "captures"
    check_name("overview", "overview_page"); // its beginning
    check_name("trace", "trace_viewer");     // the first of two
    check_name("tool", "tool");
}

// Of names with directories the end is near, too; the whole name is nearer.
static void check_directories(void) {
    static const char *const runs = "cpu/train_a|cpu/train_b|nightly/2026/run01|run02";
    char hint[XPL_NEAR_TEXT];
    CHECK_STR(xpl_near_of("train_b", runs, hint), "; did you mean \"cpu/train_b\"?");
    CHECK_STR(xpl_near_of("tarin_b", runs, hint), "; did you mean \"cpu/train_b\"?");
    CHECK_STR(xpl_near_of("RUN01", runs, hint), "; did you mean \"nightly/2026/run01\"?");
    CHECK_STR(xpl_near_of("run03", runs, hint), "; did you mean \"run02\"?");
    CHECK_STR(xpl_near_of("gpu/train_b", runs, hint), "; did you mean \"cpu/train_b\"?");
    CHECK_STR(xpl_near_of("ab/train_b", runs, hint), "; did you mean \"cpu/train_b\"?");
    CHECK_STR(xpl_near_of("elsewhere/train_b", runs, hint), ""); // a directory that is none
    CHECK_STR(xpl_near_of("rain", runs, hint), "");
    CHECK_STR(xpl_near_of("", "a/|/", hint), "");
}

// Of a name of which a part is compared all is proposed.
static void check_part(void) {
    struct xpl_near near = xpl_near_begin(XPL_STR("jit_stp"));
    char hint[XPL_NEAR_TEXT];
    xpl_near_add(&near, XPL_STR("jit_step(10)"));
    CHECK_STR(xpl_near_text(&near, hint), "");
    xpl_near_add_part(&near, XPL_STR("jit_step(10)"), XPL_STR("jit_step"));
    CHECK_STR(xpl_near_text(&near, hint), "; did you mean \"jit_step(10)\"?");
}

static void check_far(void) {
    check_name("", NULL);
    check_name("ax", NULL); // two letters: anything would be near
    check_name("xyz", NULL);
    check_name("hotel", NULL); // two of five letters are too many
    check_name("delete_all", NULL);
    check_name("session_of_somebody", NULL);
    struct xpl_near near = xpl_near_begin(XPL_STR("x"));
    char hint[XPL_NEAR_TEXT];
    CHECK_STR(xpl_near_text(&near, hint), ""); // no names at all
    near = xpl_near_begin(XPL_STR("catgory"));
    xpl_near_add_list(&near, "");
    xpl_near_add_list(&near, "program||category|");
    CHECK_STR(xpl_near_text(&near, hint), "; did you mean \"category\"?");
    CHECK_STR(xpl_near_of("catgory", "program|category", hint), "; did you mean \"category\"?");
    CHECK_STR(xpl_near_of("", "program|category", hint), "");
}

// Long names: compared where they differ, and never proposed when the hint would not fit.
static void check_long(void) {
    char a[400], b[400], hint[XPL_NEAR_TEXT];
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    b[35] = 'b';
    struct xpl_near near = xpl_near_begin((xpl_str_t){a, 70});
    xpl_near_add(&near, (xpl_str_t){b, 70});
    CHECK_EQ(near.distance, 1);
    CHECK(strlen(xpl_near_text(&near, hint)) == 70 + strlen("; did you mean \"\"?"));
    CHECK(strlen(xpl_near_flag(&near, hint)) == 70 + strlen("; did you mean \"--\"?"));
    near = xpl_near_begin((xpl_str_t){a, sizeof a});
    xpl_near_add(&near, (xpl_str_t){b, sizeof b});
    CHECK_STR(xpl_near_text(&near, hint), "");
    CHECK_STR(xpl_near_flag(&near, hint), "");
    // Both ends differ, and there is too much between them.
    b[0] = b[75] = 'b';
    near = xpl_near_begin((xpl_str_t){a, 76});
    xpl_near_add(&near, (xpl_str_t){b, 76});
    CHECK_STR(xpl_near_text(&near, hint), "");
    // Not NUL-terminated, and whatever bytes.
    near = xpl_near_begin((xpl_str_t){"\xff\xfe\x01g", 3});
    xpl_near_add(&near, (xpl_str_t){"\xff\xfd\x01h", 3});
    CHECK_EQ(near.distance, 1);
}

int main(void) {
    check_near();
    check_directories();
    check_part();
    check_far();
    check_long();
    return 0;
}
