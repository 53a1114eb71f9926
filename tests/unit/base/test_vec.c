// SPDX-License-Identifier: Apache-2.0
// base/vec: pushes keep the elements, pushes into reserved room cannot fail, failures change
// nothing.
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tests/check.h"

struct item {
    uint64_t a;
    uint8_t b;
};

static void test_push(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(8 << 20);
    XPL_VEC(struct item) v = {0};
    size_t left = 0;
    for (size_t i = 0; i < 10000; i++) {
        const size_t cap = v.cap;
        struct item *const it = xpl_vec_push(&a, &v);
        if (v.cap != cap) left += cap;
        CHECK(it);
        CHECK(it == &v.v[i]);
        *it = (struct item){.a = i * 3, .b = (uint8_t)i};
        CHECK_EQ(v.n, i + 1);
        CHECK(v.cap >= v.n);
    }
    for (size_t i = 0; i < v.n; i++) {
        CHECK_EQ(v.v[i].a, i * 3);
        CHECK_EQ(v.v[i].b, i & 0xff);
    }
    CHECK(left <= v.cap); // old arrays are at most as much again
}

static void test_reserve(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    XPL_VEC(int) v = {0};
    CHECK(xpl_vec_reserve(&a, &v, 1000));
    CHECK_EQ(v.n, 0);
    CHECK(v.cap >= 1000);
    const int *const before = v.v;
    const size_t limit = a.limit;
    a.limit = 0; // nothing more can be had
    for (int i = 0; i < 1000; i++) {
        int *const p = xpl_vec_push(&a, &v);
        CHECK(p);
        *p = i;
    }
    CHECK(v.v == before);
    CHECK(xpl_vec_reserve(&a, &v, 0)); // nothing to do
    a.limit = limit;
    CHECK(xpl_vec_reserve(&a, &v, 1)); // from full: one more at least
    CHECK(v.cap > 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(v.v[i], i);
    const size_t cap = v.cap;
    CHECK(xpl_vec_reserve(&a, &v, cap - v.n)); // exactly the existing room
    CHECK_EQ(v.cap, cap);
    CHECK(xpl_vec_reserve(&a, &v, cap - v.n + 1));
    CHECK(v.cap > cap);
}

static void test_failure(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 10);
    XPL_VEC(uint64_t) v = {0};
    CHECK(!xpl_vec_reserve(&a, &v, SIZE_MAX));
    CHECK(!xpl_vec_reserve(&a, &v, SIZE_MAX / 8 + 1)); // the bytes wrap around to 0
    CHECK(!v.v);
    CHECK_EQ(v.cap, 0);
    for (uint64_t *p; (p = xpl_vec_push(&a, &v));)
        *p = v.n - 1;
    CHECK(v.n > 100);
    CHECK_EQ(v.n, v.cap);
    const uint64_t *const before = v.v;
    const size_t n = v.n, cap = v.cap;
    CHECK(!xpl_vec_push(&a, &v));
    CHECK(!xpl_vec_reserve(&a, &v, SIZE_MAX)); // n + more wraps around
    CHECK(v.v == before);
    CHECK_EQ(v.n, n);
    CHECK_EQ(v.cap, cap);
    for (size_t i = 0; i < v.n; i++)
        CHECK_EQ(v.v[i], i);
}

// ---- sorting ----

// An element of any size: its key, then its first position.
static int by_key(const void *pa, const void *pb) {
    uint16_t a, b; // of any alignment
    memcpy(&a, pa, sizeof a);
    memcpy(&b, pb, sizeof b);
    return (a > b) - (a < b);
}
static int by_key_down(const void *pa, const void *pb, void *ctx) {
    ++*(uint64_t *)ctx;
    return by_key(pb, pa);
}

static void fill(uint8_t *v, size_t n, size_t size, uint16_t keys) {
    uint64_t state = n * 31 + size;
    for (size_t i = 0; i < n; i++) {
        const uint32_t place = (uint32_t)i;
        state = state * 6364136223846793005 + 1442695040888963407;
        const uint16_t key = (uint16_t)((state >> 40) % keys);
        memset(v + i * size, (int)(key & 0xff), size);
        memcpy(v + i * size, &key, sizeof key);
        memcpy(v + i * size + sizeof key, &place, sizeof place);
    }
}

// Sorted and stable, and no element lost a byte.
static void expect_sorted(const uint8_t *v, size_t n, size_t size, bool down) {
    uint16_t last = 0, key;
    uint32_t last_place = 0, place;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *const at = v + i * size;
        memcpy(&key, at, sizeof key);
        memcpy(&place, at + sizeof key, sizeof place);
        for (size_t k = sizeof key + sizeof place; k < size; k++)
            CHECK_EQ(at[k], key & 0xff);
        if (i) CHECK(down ? key <= last : key >= last);
        if (i && key == last) CHECK(place > last_place);
        last = key, last_place = place;
    }
}

static void test_sort(void) {
    static const size_t sizes[] = {6, 8, 24, 40, 1001};
    static const size_t counts[] = {0, 1, 2, 3, 12, 13, 100, 5000, 70000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (uint16_t keys = 1; keys < 30000; keys = (uint16_t)(keys * 7)) {
                const size_t n = sizes[s] > 100 && counts[c] > 5000 ? 9000 : counts[c];
                uint64_t asked = 0;
                uint8_t *const v = malloc(n * sizes[s] + 1);
                CHECK(v);
                fill(v, n, sizes[s], keys);
                xpl_sort(v, n, sizes[s], by_key);
                expect_sorted(v, n, sizes[s], false);
                fill(v, n, sizes[s], keys);
                xpl_sort_r(v, n, sizes[s], by_key_down, &asked);
                expect_sorted(v, n, sizes[s], true);
                CHECK(asked <= 40 * (uint64_t)n); // whatever the order
                free(v);
            }
    xpl_sort(NULL, 0, 8, by_key);
}

// A sort needs little memory besides, or none.
static void test_memory_of_sort(void) {
#if XPL_FAULTS
    enum { N = 100000, SIZE = 40 };
    uint8_t *const v = malloc((size_t)N * SIZE);
    CHECK(v);
    for (int fails = 0; fails < 2; fails++) {
        fill(v, N, SIZE, 9000);
        xpl_fault_reset();
        xpl_fault_fail_on(fails ? 0 : UINT64_MAX);
        xpl_sort(v, N, SIZE, by_key);
        CHECK_EQ(xpl_fault_count(), 1);
        xpl_fault_reset();
        xpl_fault_fail_on(UINT64_MAX);
        expect_sorted(v, N, SIZE, false);
    }
    free(v);
#endif
}

int main(void) {
    test_sort();
    test_memory_of_sort();
    test_push();
    test_reserve();
    test_failure();
    return 0;
}
