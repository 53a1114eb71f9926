// SPDX-License-Identifier: Apache-2.0
// base/vec: pushes keep the elements, pushes into reserved room cannot fail, failures change
// nothing.
#include "base/vec.h"

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

int main(void) {
    test_push();
    test_reserve();
    test_failure();
    return 0;
}
