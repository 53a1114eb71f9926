// SPDX-License-Identifier: Apache-2.0
// base/intern: ids by insertion, equal bytes are one string, growth, and the arena's limit.
#include "base/intern.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "tests/check.h"
#include "tests/processor_time.h"

static uint32_t put(struct xpl_intern *in, const char *p, size_t n) {
    xpl_strid_t id = {UINT32_MAX};
    CHECK(xpl_intern_put(in, (xpl_str_t){p, n}, &id));
    return id.v;
}

static xpl_str_t get(const struct xpl_intern *in, uint32_t id) {
    return xpl_intern_get(in, (xpl_strid_t){id});
}

static void test_ids(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_intern *const in = xpl_intern_new(&a, 7);
    CHECK(in);
    CHECK_STR(get(in, 0), "");
    CHECK_STR(get(in, 1), ""); // unknown as yet
    CHECK_STR(get(in, UINT32_MAX), "");
    CHECK_EQ(put(in, "", 0), 0);
    CHECK_EQ(put(in, NULL, 0), 0);
    CHECK_EQ(put(in, "b", 1), 1);
    CHECK_EQ(put(in, "a", 1), 2);
    CHECK_EQ(put(in, "b", 1), 1);
    CHECK_EQ(put(in, "ba", 2), 3);
    CHECK_EQ(put(in, "b\0", 2), 4); // a NUL is a byte
    CHECK_EQ(put(in, "\0", 1), 5);
    CHECK_EQ(put(in, "\0\0", 2), 6);
    CHECK_EQ(put(in, "b\0", 2), 4);
    CHECK_STR(get(in, 1), "b");
    CHECK_STR(get(in, 3), "ba");
    CHECK_BYTES(get(in, 4).ptr, get(in, 4).len, "b\0", 2);
    CHECK_BYTES(get(in, 6).ptr, get(in, 6).len, "\0\0", 2);
    CHECK_STR(get(in, 7), "");
    char text[] = "copied";
    const uint32_t id = put(in, text, 6);
    text[0] = 'x';
    CHECK_STR(get(in, id), "copied");
    xpl_strid_t found = {UINT32_MAX};
    CHECK(!xpl_intern_find(in, (xpl_str_t){text, 6}, &found));
    CHECK_EQ(found.v, UINT32_MAX);
    CHECK_EQ(put(in, text, 6), id + 1);
    CHECK(xpl_intern_find(in, (xpl_str_t){text, 6}, &found));
    CHECK_EQ(found.v, id + 1);
    CHECK(xpl_intern_find(in, (xpl_str_t){NULL, 0}, &found));
    CHECK_EQ(found.v, 0);
}

// Ids do not depend on the seed; views outlive growth.  So many strings that some have equal
// hashes.
static void test_growth(void) {
    enum { N = 200000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(256 << 20);
    struct xpl_intern *const one = xpl_intern_new(&a, 0), *const two = xpl_intern_new(&a, ~0ull);
    CHECK(one && two);
    CHECK_EQ(put(one, "first", 5), 1);
    const char *const first = get(one, 1).ptr;
    CHECK_EQ(put(two, "first", 5), 1);
    char text[32];
    for (uint32_t i = 0; i < N; i++) {
        const int n = snprintf(text, sizeof text, "op.%u", i);
        CHECK_EQ(put(one, text, (size_t)n), i + 2);
        CHECK_EQ(put(two, text, (size_t)n), i + 2);
    }
    CHECK(get(one, 1).ptr == first);
    CHECK_STR(get(one, 1), "first");
    for (uint32_t i = 0; i < N; i++) {
        const int n = snprintf(text, sizeof text, "op.%u", i);
        CHECK_STR(get(one, i + 2), text);
        CHECK_EQ(put(one, text, (size_t)n), i + 2);
    }
    CHECK_STR(get(one, N + 2), "");
}

// At the limit: false, the id untouched, and everything that was there is still found.
static void test_limit(void) {
    struct xpl_arena a = xpl_arena_of(40000);
    struct xpl_intern *const in = xpl_intern_new(&a, 3);
    CHECK(in);
    char text[200];
    memset(text, '-', sizeof text);
    uint32_t n = 0;
    xpl_strid_t id = {0};
    for (;; n++) {
        (void)snprintf(text, 20, "%u", n);
        id.v = 12345;
        if (!xpl_intern_put(in, (xpl_str_t){text, sizeof text}, &id)) break;
        CHECK_EQ(id.v, n + 1);
    }
    CHECK_EQ(id.v, 12345);
    CHECK(n > 32);
    CHECK_STR(get(in, n + 1), "");
    for (uint32_t i = 0; i < n; i++) {
        memset(text, '-', sizeof text);
        (void)snprintf(text, 20, "%u", i);
        CHECK_BYTES(get(in, i + 1).ptr, get(in, i + 1).len, text, sizeof text);
    }
    xpl_arena_fini(&a);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena small = xpl_arena_of(100);
    CHECK(!xpl_intern_new(&small, 0));
}

#if XPL_FAULTS
// Every block that the pool asks for fails once; it goes on as if nothing had been put.
static void test_faults(void) {
    for (uint64_t at = 0;; at++) {
        struct xpl_arena a = xpl_arena_of(64 << 20);
        xpl_fault_reset();
        xpl_fault_fail_on(at);
        struct xpl_intern *in = xpl_intern_new(&a, 1);
        bool failed = !in;
        if (!in) in = xpl_intern_new(&a, 1);
        CHECK(in);
        char text[16];
        for (uint32_t i = 0; i < 3000; i++) {
            const xpl_str_t s = {text, (size_t)snprintf(text, sizeof text, "%u", i)};
            xpl_strid_t id = {99};
            if (!xpl_intern_put(in, s, &id)) {
                failed = true;
                CHECK_EQ(id.v, 99);
                CHECK(xpl_intern_put(in, s, &id));
            }
            CHECK_EQ(id.v, i + 1);
        }
        CHECK_STR(get(in, 3000), "2999");
        xpl_arena_fini(&a);
        xpl_fault_reset();
        if (!failed) break;
        CHECK(at < 100);
    }
}
#endif

// Texts of two words each of which differs so that a product with a known factor cancels it.
static void test_written_to_collide(void) {
    enum { PAIRS = 12, N = 1 << PAIRS };
    static const uint64_t differences[] = {UINT64_C(1) << 63, UINT64_C(1) << 63 | UINT64_C(1)
                                                                                      << 31};
    static uint32_t hashes[N];
    unsigned same = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint64_t text[2 * PAIRS];
        for (unsigned k = 0; k < 2 * PAIRS; k++)
            text[k] =
                (k + 1) * UINT64_C(0x0123456789abcdef) ^ (i >> k / 2 & 1 ? differences[k % 2] : 0);
        hashes[i] = xpl_hash_str(7, (xpl_str_t){(const char *)text, sizeof text});
        for (uint32_t j = 0; j < i; j++)
            same += hashes[j] == hashes[i];
    }
    CHECK(same < 100); // by chance some
}

// A text that stays in its place is read once: 50 GB would take 10 s.
static void test_views(void) {
    enum { LENGTH = 1 << 20, TIMES = 50000 };
    char *const texts = malloc((size_t)2 * LENGTH);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)1 << 24);
    struct xpl_intern *const in = xpl_intern_new(&arena, 1);
    xpl_strid_t first, id;
    CHECK(texts && in);
    memset(texts, 'a', (size_t)2 * LENGTH);
    const double begin = processor_s();
    CHECK(xpl_intern_put(in, (xpl_str_t){texts, LENGTH}, &first));
    for (size_t i = 0; i < TIMES; i++) {
        CHECK(xpl_intern_put_view(in, (xpl_str_t){texts, LENGTH}, &id));
        CHECK_EQ(id.v, first.v);
    }
    CHECK(is_within(begin, 4));
    CHECK(xpl_intern_put_view(in, (xpl_str_t){texts + LENGTH, LENGTH}, &id)); // equal text
    CHECK_EQ(id.v, first.v);
    CHECK(xpl_intern_put_view(in, (xpl_str_t){texts, LENGTH - 1}, &id));
    CHECK(id.v != first.v);
    CHECK(xpl_intern_put_view(in, XPL_STR("short"), &id));
    CHECK_STR(xpl_intern_get(in, id), "short");
    CHECK(xpl_intern_put_view(in, XPL_STR(""), &id));
    CHECK_EQ(id.v, 0);
    free(texts);
}

int main(void) {
    test_written_to_collide();
    test_ids();
    test_growth();
    test_limit();
    test_views();
#if XPL_FAULTS
    test_faults();
#endif
    return 0;
}
