// SPDX-License-Identifier: Apache-2.0
// base/str and base/hash: views at the edges, find against a plain search, hashes by seed and
// length.
#include "base/str.h"

#include "base/hash.h"
#include "tests/check.h"

static const xpl_str_t NONE = {NULL, 0};

static void test_compare(void) {
    CHECK_STR(NONE, "");
    CHECK_STR(XPL_STR("ab"), "ab");
    CHECK(!xpl_str_eq(XPL_STR("ab"), XPL_STR("a")) && !xpl_str_eq(XPL_STR("a"), XPL_STR("ab")));
    CHECK(!xpl_str_eq(XPL_STR("ab"), XPL_STR("aB")));
    CHECK_STR(XPL_STR("a\0b"), XPL_STR("a\0b"));
    CHECK(!xpl_str_eq(XPL_STR("a\0b"), XPL_STR("a\0c")));
    CHECK_EQ(xpl_str_from("abc").len, 3);
    CHECK_EQ(XPL_STR("a\0b").len, 3);

    // In order, each before all that follow.
    static const xpl_str_t sorted[] = {{NULL, 0}, {"\0", 1}, {"A", 1},    {"a", 1},    {"a\0", 2},
                                       {"ab", 2}, {"b", 1},  {"\x7f", 1}, {"\x80", 1}, {"\xff", 1}};
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++) {
        CHECK_EQ(xpl_str_cmp(sorted[i], sorted[i]), 0);
        for (size_t k = 0; k < i; k++) {
            CHECK(xpl_str_cmp(sorted[k], sorted[i]) < 0);
            CHECK(xpl_str_cmp(sorted[i], sorted[k]) > 0);
        }
    }
}

// A difference in any place is seen, at any length.
static void test_short(void) {
    char a[40], b[40];
    for (size_t n = 0; n <= sizeof a; n++) {
        memset(a, 'x', sizeof a);
        memset(b, 'x', sizeof b);
        CHECK(xpl_str_eq_short((xpl_str_t){a, n}, (xpl_str_t){b, n}));
        if (n) CHECK(!xpl_str_eq_short((xpl_str_t){a, n}, (xpl_str_t){b, n - 1}));
        for (size_t i = 0; i < n; i++) {
            b[i] = 'y';
            CHECK(!xpl_str_eq_short((xpl_str_t){a, n}, (xpl_str_t){b, n}));
            b[i] = 'x';
        }
    }
    CHECK(xpl_str_eq_short(NONE, NONE));
}

static void test_ends(void) {
    const xpl_str_t s = XPL_STR("host.xplane.pb");
    CHECK(xpl_str_starts(s, XPL_STR("host")) && xpl_str_starts(s, s) && xpl_str_starts(s, NONE));
    CHECK(!xpl_str_starts(s, XPL_STR("Host")) && !xpl_str_starts(XPL_STR("ho"), XPL_STR("host")));
    CHECK(xpl_str_ends(s, XPL_STR(".pb")) && xpl_str_ends(s, s) && xpl_str_ends(s, NONE));
    CHECK(!xpl_str_ends(s, XPL_STR(".p")) && !xpl_str_ends(XPL_STR("pb"), XPL_STR(".pb")));
    CHECK(xpl_str_starts(NONE, NONE) && xpl_str_ends(NONE, NONE));
    CHECK(!xpl_str_starts(NONE, XPL_STR("a")) && !xpl_str_ends(NONE, XPL_STR("a")));
}

static size_t plain_find(xpl_str_t s, xpl_str_t needle, size_t from) {
    for (size_t i = from; i <= s.len && needle.len <= s.len - i; i++)
        if (needle.len == 0 || memcmp(s.ptr + i, needle.ptr, needle.len) == 0) return i;
    return SIZE_MAX;
}

static void spell(unsigned bits, size_t len, char *ret) {
    for (size_t i = 0; i < len; i++)
        ret[i] = bits >> i & 1 ? 'a' : 'b';
}

static void check_find(xpl_str_t s, xpl_str_t needle) {
    for (size_t from = 0; from < 10; from++)
        CHECK_EQ(xpl_str_find(s, needle, from), plain_find(s, needle, from));
    CHECK_EQ(xpl_str_find(s, needle, SIZE_MAX), SIZE_MAX);
    CHECK_EQ(xpl_str_has(s, needle), plain_find(s, needle, 0) != SIZE_MAX);
}

// All texts of a and b up to 7 letters, all needles up to 3, from every position.
static void test_find(void) {
    for (unsigned s = 0; s < 8 << 7; s++) {
        char text[8], part[8];
        const size_t len = s >> 7;
        spell(s, len, text);
        for (unsigned n = 0; n < 4 << 3; n++) {
            spell(n, n >> 3, part);
            check_find((xpl_str_t){text, len}, (xpl_str_t){part, n >> 3});
        }
    }
    CHECK_EQ(xpl_str_find(XPL_STR("aab"), XPL_STR("ab"), 0), 1);
    CHECK_EQ(xpl_str_find(NONE, NONE, 0), 0);
    CHECK_EQ(xpl_str_find(NONE, XPL_STR("a"), 0), SIZE_MAX);
    CHECK_EQ(xpl_str_find((xpl_str_t){"abc", 2}, XPL_STR("bc"), 0), SIZE_MAX); // beyond the view
}

// Lengths multiplied, 3 * 10^12 comparisons, would take an hour.
static void test_find_long(void) {
    enum { TEXT = 1 << 22, NEEDLE = 1 << 20 };
    char *const text = malloc(TEXT), *const part = malloc(NEEDLE);
    CHECK(text && part);
    memset(text, 'a', TEXT);
    memset(part, 'a', NEEDLE);
    part[0] = 'b';
    CHECK_EQ(xpl_str_find((xpl_str_t){text, TEXT}, (xpl_str_t){part, NEEDLE}, 0), SIZE_MAX);
    part[0] = 'a';
    part[NEEDLE / 2] = 'b';
    CHECK_EQ(xpl_str_find((xpl_str_t){text, TEXT}, (xpl_str_t){part, NEEDLE}, 0), SIZE_MAX);
    text[TEXT / 2] = 'b';
    CHECK_EQ(xpl_str_find((xpl_str_t){text, TEXT}, (xpl_str_t){part, NEEDLE}, 7),
             TEXT / 2 - NEEDLE / 2);
    CHECK_EQ(xpl_str_find((xpl_str_t){text, TEXT}, (xpl_str_t){part, NEEDLE}, TEXT / 2), SIZE_MAX);
    free(text);
    free(part);
}

static void test_sub(void) {
    const xpl_str_t s = XPL_STR("abcdef");
    CHECK_STR(xpl_str_sub(s, 0, 6), "abcdef");
    CHECK_STR(xpl_str_sub(s, 2, 3), "cde");
    CHECK_STR(xpl_str_sub(s, 2, SIZE_MAX), "cdef");
    CHECK_STR(xpl_str_sub(s, 6, 1), "");
    CHECK_STR(xpl_str_sub(s, 7, 1), "");
    CHECK_STR(xpl_str_sub(s, SIZE_MAX, SIZE_MAX), "");
    CHECK_STR(xpl_str_sub(s, 5, 0), "");
    CHECK_STR(xpl_str_sub(NONE, 3, 3), "");
    char printed[16];
    (void)snprintf(printed, sizeof printed, "%.*s", XPL_STR_FMT(xpl_str_sub(s, 1, 2)));
    CHECK_STR(printed, "bc");
}

// Equal bytes give equal hashes at every alignment; one bit more or less, another seed and other
// lengths give others.
static void test_hash(void) {
    char at_offset[80];
    char text[64];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 37 + 11);
    for (size_t len = 0; len <= sizeof text; len++) {
        const xpl_str_t s = {text, len};
        const uint32_t h = xpl_hash_str(1, s);
        for (size_t off = 0; off < 9; off++) {
            memcpy(at_offset + off, text, len);
            CHECK_EQ(xpl_hash_str(1, (xpl_str_t){at_offset + off, len}), h);
        }
        CHECK(xpl_hash_str(2, s) != h);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
            CHECK(xpl_hash_str(1, s) != h);
            text[bit / 8] = (char)(text[bit / 8] ^ (1 << bit % 8));
        }
    }
    static const char zeros[40];
    for (size_t a = 0; a < sizeof zeros; a++)
        for (size_t b = 0; b < a; b++)
            CHECK(xpl_hash_str(5, (xpl_str_t){zeros, a}) != xpl_hash_str(5, (xpl_str_t){zeros, b}));
    // Low bits spread: 4096 names fill most of 4096 buckets (e^-1 of them stay empty by chance).
    static bool hit[4096];
    size_t used = 0;
    for (unsigned i = 0; i < 4096; i++) {
        char name[24];
        const xpl_str_t s = {name, (size_t)snprintf(name, sizeof name, "fusion.%u", i)};
        bool *const b = &hit[xpl_hash_str(99, s) % 4096];
        used += !*b;
        *b = true;
    }
    CHECK(used > 2400);
}

int main(void) {
    test_compare();
    test_short();
    test_ends();
    test_find();
    test_find_long();
    test_sub();
    test_hash();
    return 0;
}
