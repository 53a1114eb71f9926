// SPDX-License-Identifier: Apache-2.0
// base/text/parse: whole numbers at the edges of their ranges; a refusal leaves the output
// unchanged.
#include "base/text/parse.h"

#include "tests/check.h"

static const int64_t UNTOUCHED = 4242;

static int64_t parsed(const char *text, int64_t min, int64_t max) {
    int64_t n = UNTOUCHED;
    if (!xpl_parse_int(xpl_str_from(text), min, max, &n)) CHECK_EQ(n, UNTOUCHED);
    return n;
}
static int64_t any(const char *text) {
    return parsed(text, INT64_MIN, INT64_MAX);
}

static void test_good(void) {
    CHECK_EQ(any("0"), 0);
    CHECK_EQ(any("-0"), 0);
    CHECK_EQ(any("+0"), 0);
    CHECK_EQ(any("7"), 7);
    CHECK_EQ(any("+7"), 7);
    CHECK_EQ(any("-7"), -7);
    CHECK_EQ(any("0000000000000000000000000000007"), 7);
    CHECK_EQ(any(" \t\n\v\f\r12 \t\n\v\f\r"), 12);
    CHECK_EQ(any("9223372036854775807"), INT64_MAX);
    CHECK_EQ(any("-9223372036854775807"), -INT64_MAX);
    CHECK_EQ(any("-9223372036854775808"), INT64_MIN);
    int64_t n = 0;
    CHECK(xpl_parse_int((xpl_str_t){"123456", 3}, 0, 1000, &n)); // the view ends it
    CHECK_EQ(n, 123);
}

static void test_bad(void) {
    static const char *const texts[] = {
        "",
        " ",
        "+",
        "-",
        "+-1",
        "--1",
        "- 1",
        "+ 1",
        "1 2",
        "1-",
        "1.0",
        "1e3",
        "0x10",
        "a",
        "1a",
        ("\xc2\xa0"
         "1"),
        "9:",
        "/9",
        "1_000",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "-18446744073709551615",
        "18446744073709551617", // 1 modulo 2^64
        "18446744073709551620", // 4, when the last digit gets its place
        "99999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t n = UNTOUCHED;
        if (!xpl_parse_int(xpl_str_from(texts[i]), INT64_MIN, INT64_MAX, &n) && n == UNTOUCHED)
            continue;
        fprintf(stderr, "\"%s\" gave %" PRId64 "\n", texts[i], n);
        FAIL_TEST("a text that is no number was taken");
    }
    int64_t n = UNTOUCHED;
    CHECK(!xpl_parse_int((xpl_str_t){"1\0", 2}, 0, 9, &n));
    CHECK(!xpl_parse_int((xpl_str_t){NULL, 0}, 0, 9, &n));
    CHECK_EQ(n, UNTOUCHED);
}

static void test_range(void) {
    CHECK_EQ(parsed("5", 5, 5), 5);
    CHECK_EQ(parsed("4", 5, 5), UNTOUCHED);
    CHECK_EQ(parsed("6", 5, 5), UNTOUCHED);
    CHECK_EQ(parsed("-3", -3, 3), -3);
    CHECK_EQ(parsed("-4", -3, 3), UNTOUCHED);
    CHECK_EQ(parsed("4", -3, 3), UNTOUCHED);
    CHECK_EQ(parsed("-5", -9, -2), -5);
    CHECK_EQ(parsed("-1", -9, -2), UNTOUCHED);
    CHECK_EQ(parsed("-0", 0, 3), UNTOUCHED); // no minus where nothing is negative, as for unsigned
}

static void test_widths(void) {
    int32_t i = 77;
    CHECK(xpl_parse_i32(XPL_STR("2147483647"), &i));
    CHECK_EQ(i, INT32_MAX);
    CHECK(xpl_parse_i32(XPL_STR("-2147483648"), &i));
    CHECK_EQ(i, INT32_MIN);
    CHECK(!xpl_parse_i32(XPL_STR("2147483648"), &i));
    CHECK(!xpl_parse_i32(XPL_STR("-2147483649"), &i));
    CHECK(!xpl_parse_i32(XPL_STR("x"), &i));
    CHECK_EQ(i, INT32_MIN);
    uint32_t u = 77;
    CHECK(xpl_parse_u32(XPL_STR("4294967295"), &u));
    CHECK_EQ(u, UINT32_MAX);
    CHECK(xpl_parse_u32(XPL_STR(" 0"), &u));
    CHECK_EQ(u, 0);
    u = 77;
    CHECK(!xpl_parse_u32(XPL_STR("4294967296"), &u));
    CHECK(!xpl_parse_u32(XPL_STR("-1"), &u));
    CHECK(!xpl_parse_u32(XPL_STR("-0"), &u));
    CHECK_EQ(u, 77);
}

static void test_strip(void) {
    CHECK_STR(xpl_str_strip(XPL_STR("")), "");
    CHECK_STR(xpl_str_strip((xpl_str_t){NULL, 0}), "");
    CHECK_STR(xpl_str_strip(XPL_STR(" \t\r\n\v\f ")), "");
    CHECK_STR(xpl_str_strip(XPL_STR("  a b\t")), "a b");
    CHECK_STR(xpl_str_strip(XPL_STR("a")), "a");
    CHECK_STR(xpl_str_strip(XPL_STR("\x08 a \x0e")), "\x08 a \x0e"); // next to the blanks
    CHECK_STR(xpl_str_strip(XPL_STR("\xa0")), "\xa0");
}

int main(void) {
    test_good();
    test_bad();
    test_range();
    test_widths();
    test_strip();
    return 0;
}
