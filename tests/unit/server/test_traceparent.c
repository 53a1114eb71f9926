// SPDX-License-Identifier: Apache-2.0
// server/traceparent: headers that the standard calls valid, and those to ignore.
#include "server/traceparent.h"

#include "tests/check.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void test_good(void) {
    static const char *const good[] = {
        "00-" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "-ff",
        "cc-" TRACE "-" PARENT "-00",
        "01-" TRACE "-" PARENT "-00-what the future has",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct xpl_traceparent t;
        if (!xpl_traceparent_parse(xpl_str_from(good[i]), &t)) FAIL_TEST(good[i]);
        CHECK_STR(t.trace_id, TRACE);
        CHECK_STR(t.parent_id, PARENT);
    }
}

static void test_bad(void) {
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-0",
        "00-" TRACE "-" PARENT "-011",
        "00-" TRACE "-" PARENT "-01-more",
        "01-" TRACE "-" PARENT "-01more",
        "ff-" TRACE "-" PARENT "-01",
        "FE-" TRACE "-" PARENT "-01",
        "0g-" TRACE "-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-" TRACE "-" PARENT "-0x",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        " 00-" TRACE "-" PARENT "-01",
    };
    struct xpl_traceparent t = {"unchanged", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (xpl_traceparent_parse(xpl_str_from(bad[i]), &t)) FAIL_TEST(bad[i]);
    CHECK_STR(t.trace_id, "unchanged");
    // Every shorter text, and every text with one other byte in a place that counts.
    const char whole[] = "00-" TRACE "-" PARENT "-01";
    for (size_t n = 0; n < sizeof whole - 1; n++)
        CHECK(!xpl_traceparent_parse((xpl_str_t){whole, n}, &t));
    for (size_t i = 0; i < sizeof whole - 1; i++) {
        char text[sizeof whole];
        memcpy(text, whole, sizeof whole);
        text[i] = '!';
        CHECK(!xpl_traceparent_parse(xpl_str_from(text), &t));
    }
}

static void test_clean(void) {
    char text[XPL_TRACEPARENT_TEXT] = "before";
    xpl_traceparent_clean(XPL_STR("cc-" TRACE "-" PARENT "-01-what <the> future brings"), text);
    CHECK_STR(text, "00-" TRACE "-" PARENT "-00");
    xpl_traceparent_clean(XPL_STR("00-" TRACE "-" PARENT), text);
    CHECK_STR(text, "");
    xpl_traceparent_clean((xpl_str_t){0}, text);
    CHECK_STR(text, "");
}

int main(void) {
    test_good();
    test_bad();
    test_clean();
    return 0;
}
