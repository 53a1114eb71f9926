// SPDX-License-Identifier: Apache-2.0
#include "base/text/utf8.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/check.h"

// The bytes of a code point, by arithmetic only. Returns how many.
static size_t encode(uint32_t c, char out[4]) {
    const size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[len] | c);
    return len;
}

static bool is_scalar(uint32_t c) {
    return c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
}

// Every code point, and what would follow the last one; every proper prefix is ill-formed.
static void test_code_points(void) {
    char text[4];
    size_t skip;
    for (uint32_t c = 0; c < 0x1fffff; c++) {
        const size_t n = encode(c, text);
        CHECK_EQ(xpl_utf8_scan((xpl_str_t){text, n}, &skip), is_scalar(c) ? n : 0);
        if (!is_scalar(c)) continue;
        CHECK_EQ(skip, n);
        for (size_t cut = 1; cut < n; cut++) {
            CHECK_EQ(xpl_utf8_scan((xpl_str_t){text, cut}, &skip), 0);
            CHECK_EQ(skip, cut); // what could have become a character is one ill-formed part
        }
    }
}

// All pairs of bytes, and all third bytes after those that begin a character of three: accepted
// ones encode to themselves.
static void test_bytes(void) {
    char text[3], again[4];
    for (uint32_t v = 0; v < 1 << 24; v += (v >> 16) < 0xe0 ? 0x100 : 1) {
        text[0] = (char)(v >> 16), text[1] = (char)(v >> 8), text[2] = (char)v;
        const size_t n = xpl_utf8_next((xpl_str_t){text, 3});
        const uint8_t first = (uint8_t)(v >> 16);
        uint32_t c = first;
        if (n == 2) c = (first & 0x1fu) << 6 | (v >> 8 & 0x3f);
        if (n == 3) c = (first & 0xfu) << 12 | (v >> 8 & 0x3f) << 6 | (v & 0x3f);
        CHECK(n <= 3);
        if (n) CHECK_BYTES(again, encode(c, again), text, n);
    }
}

static void test_texts(void) {
    static const char *const bad[] = {
        "\x80",     "\xc3",         "\xc0\xaf",         "\xe2\x82",
        "\xff",     "\xe0\x80\xaf", "\xed\xa0\x80",     "a\xc3",
        "\xc3\xc3", "\xf5\x80",     "\xf4\x90\x80\x80", "\xf0\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (xpl_utf8_valid(xpl_str_from(bad[i]))) FAIL_TEST(bad[i]);
    CHECK(xpl_utf8_valid(xpl_str_from("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf")));
    CHECK(xpl_utf8_valid((xpl_str_t){"a\0b", 3}));
    CHECK(xpl_utf8_valid((xpl_str_t){NULL, 0}));
    CHECK_EQ(xpl_utf8_valid_length(xpl_str_from("a\xc3\xa4\xff\xc3\xa4")), 3);
    CHECK_EQ(xpl_utf8_valid_length(xpl_str_from("a\xc3\xa4")), 3);
    CHECK_EQ(xpl_utf8_valid_length((xpl_str_t){NULL, 0}), 0);
    CHECK_EQ(xpl_utf8_next((xpl_str_t){NULL, 0}), 0);
}

// Cut at each byte, a text ends where a character does, and misses less than one.
static void test_cut(void) {
    const xpl_str_t text = XPL_STR("a\xc3\xa4z\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf");
    for (size_t max = 0; max <= text.len + 1; max++) {
        const xpl_str_t got = xpl_utf8_cut(text, max);
        CHECK(got.ptr == text.ptr && got.len <= max && xpl_utf8_valid(got));
        CHECK(got.len == text.len ||
              got.len + xpl_utf8_next(xpl_str_sub(text, got.len, SIZE_MAX)) > max);
        CHECK_EQ(xpl_utf8_whole(xpl_str_sub(text, 0, max)).len, got.len);
    }
    CHECK_EQ(xpl_utf8_whole(XPL_STR("ab\x80\x80\x80\x80")).len, 6); // bytes that begin none stay
    CHECK_EQ(xpl_utf8_whole(XPL_STR("\x80")).len, 1);
    CHECK_EQ(xpl_utf8_whole((xpl_str_t){NULL, 0}).len, 0);
    CHECK(xpl_utf8_inside('\x80') && xpl_utf8_inside('\xbf'));
    CHECK(!xpl_utf8_inside('a') && !xpl_utf8_inside('\xc3'));
}

static void expect_clean(xpl_str_t s, size_t max, const char *expected) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(100);
    xpl_utf8_clean(&b, s, max);
    CHECK(!b.failed);
    CHECK_BYTES(b.p, b.n, expected, strlen(expected));
}

static void test_clean(void) {
    expect_clean(XPL_STR("a\xc3\xa4z"), 100, "a\xc3\xa4z");
    expect_clean((xpl_str_t){"a\0b\xff", 4}, 100,
                 "a\xef\xbf\xbd"
                 "b\xef\xbf\xbd");
    expect_clean(XPL_STR("\xe2\x82"), 100, "\xef\xbf\xbd\xef\xbf\xbd"); // one for each byte
    expect_clean(XPL_STR("a\xc3\xa4z"), 2, "a");                        // no half of a character
    expect_clean(XPL_STR("a\xffz"), 3, "a");
    expect_clean(XPL_STR(""), 0, "");
}

// Every code point: itself, or '?' for the controls, listed as Unicode's categories Cc, Zl and Zp
// and its property Bidi_Control.
static void test_shown(void) {
    static const uint32_t more[] = {0x61c,  0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b,
                                    0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069};
    char text[5];
    size_t used, n_hidden = 0;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        if (!is_scalar(c)) continue;
        const xpl_str_t s = {text, encode(c, text)};
        const xpl_str_t shown = xpl_utf8_shown(s, &used);
        bool hidden = c < 0x20 || (c >= 0x7f && c < 0xa0);
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            hidden |= c == more[i];
        CHECK_EQ(xpl_utf8_code_point(s, s.len), c);
        CHECK_EQ(used, s.len);
        CHECK_STR(shown, hidden ? XPL_STR("?") : s);
        CHECK_EQ(xpl_utf8_is_shown(s), !hidden);
        n_hidden += hidden;
    }
    CHECK_EQ(n_hidden, 32 + 33 + 14);
    CHECK_STR(xpl_utf8_shown(XPL_STR("\xe2\x82z"), &used), "?"); // the ill-formed part is one
    CHECK_EQ(used, 2);
    CHECK(xpl_utf8_is_shown(XPL_STR("a?\xc3\xa9")) && xpl_utf8_is_shown(XPL_STR("")));
    CHECK(!xpl_utf8_is_shown(XPL_STR("a\xff")) && !xpl_utf8_is_shown(XPL_STR("\na")));
}

int main(void) {
    test_code_points();
    test_bytes();
    test_texts();
    test_cut();
    test_clean();
    test_shown();
    return 0;
}
