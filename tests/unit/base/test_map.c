// SPDX-License-Identifier: Apache-2.0
// base/map: against a plain list, keys at the edges, growth, and the arena's limit.
#include "base/map.h"

#include <pthread.h>

#include "base/arena.h"
#include "tests/check.h"

static void test_empty(void) {
    const struct xpl_map m = {0};
    CHECK(!xpl_map_get(&m, 0, 0));
    CHECK(!xpl_map_get(&m, UINT64_MAX, UINT64_MAX));
}

static void test_edges(void) {
    static const uint64_t keys[] = {0, 1, 2, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63};
    enum { N = sizeof keys / sizeof *keys };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    struct xpl_map m = {0};
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < N; k++) {
            bool is_new = false;
            CHECK(!xpl_map_get(&m, keys[i], keys[k]));
            uint64_t *const v = xpl_map_put(&a, &m, keys[i], keys[k], &is_new);
            CHECK(v && is_new);
            CHECK_EQ(*v, 0);
            *v = i * N + k + 1;
            CHECK_EQ(m.n, i * N + k + 1);
        }
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < N; k++) { // (a, b) is not (b, a)
            bool is_new = true;
            uint64_t *const v = xpl_map_get(&m, keys[i], keys[k]);
            CHECK(v);
            CHECK_EQ(*v, i * N + k + 1);
            CHECK(xpl_map_put(&a, &m, keys[i], keys[k], &is_new) == v);
            CHECK(!is_new);
            CHECK_EQ(*v, i * N + k + 1);
            CHECK(xpl_map_put(&a, &m, keys[i], keys[k], NULL) == v);
        }
    }
    CHECK_EQ(m.n, N * N);
}

// Dense keys, keys that are multiples of large powers of two, and strides: all kept while it grows.
static void test_many(uint64_t stride) {
    enum { N = 20000 };
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_map m = {0};
    for (uint64_t i = 0; i < N; i++) {
        uint64_t *const v = xpl_map_put(&a, &m, i * stride, i % 7, NULL);
        CHECK(v);
        *v = i;
        CHECK_EQ(m.cap & (m.cap - 1), 0);
        CHECK(m.n <= m.cap / 2);
    }
    CHECK_EQ(m.n, N);
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t *const v = xpl_map_get(&m, i * stride, i % 7);
        CHECK(v);
        CHECK_EQ(*v, i);
        CHECK(!xpl_map_get(&m, i * stride, i % 7 + 7));
    }
    CHECK(!xpl_map_get(&m, N * stride, N % 7));
}

static void test_limit(void) {
    struct xpl_arena a = xpl_arena_of(20000);
    struct xpl_map m = {0};
    uint64_t n = 0;
    bool is_new = false;
    for (uint64_t *v; (v = xpl_map_put(&a, &m, n, 5, &is_new)) != NULL; n++)
        *v = n;
    CHECK(n >= 8);
    CHECK_EQ(m.n, n);
    is_new = false;
    CHECK(!xpl_map_put(&a, &m, n, 5, &is_new));
    CHECK(!is_new); // outputs are untouched
    CHECK_EQ(m.n, n);
    CHECK(!xpl_map_get(&m, n, 5));
    for (uint64_t i = 0; i < n; i++) {
        CHECK(xpl_map_get(&m, i, 5));
        CHECK_EQ(*xpl_map_get(&m, i, 5), i);
        CHECK(xpl_map_put(&a, &m, i, 5, NULL)); // an existing key needs no room
    }
    xpl_arena_fini(&a);
    struct xpl_arena none = {0};
    struct xpl_map empty = {0};
    CHECK(!xpl_map_put(&none, &empty, 1, 2, NULL));
    CHECK_EQ(empty.n, 0);
    CHECK(!xpl_map_get(&empty, 1, 2));
}

static pthread_barrier_t all_ready;

static void *draw_seed(void *arg) {
    (void)pthread_barrier_wait(&all_ready);
    *(uint64_t *)arg = xpl_hash_seed();
    return NULL;
}

static void test_seed(void) {
    enum { N = 8 };
    pthread_t threads[N];
    uint64_t seeds[N] = {0};
    CHECK_EQ(pthread_barrier_init(&all_ready, NULL, N), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, draw_seed, &seeds[i]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(pthread_barrier_destroy(&all_ready), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(seeds[i], seeds[0]);
    CHECK(seeds[0] != 0);
    CHECK_EQ(xpl_hash_seed(), seeds[0]);
}

int main(void) {
    test_seed(); // first: threads draw it at once
    test_empty();
    test_edges();
    test_many(1);
    test_many((uint64_t)1 << 32);
    test_many((uint64_t)1 << 44);
    test_many(0x9e3779b97f4a7c15u);
    test_limit();
    return 0;
}
