// SPDX-License-Identifier: Apache-2.0
// Steps that several hosts have in common.
#include "analysis/opstats/combine/step_intersection.h"

#include "base/arena.h"
#include "tests/check.h"

static struct xpl_arena arena;

// n steps of `duration`, one every `period`, the first at `begin`.
static const struct xpl_step_spans *steps(size_t n, uint64_t begin, uint64_t period,
                                          uint64_t duration) {
    struct xpl_step_spans *const h = xpl_arena_alloc(&arena, sizeof *h);
    struct xpl_timespan *const v = xpl_arena_array(&arena, n, sizeof *v);
    CHECK(h && v);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct xpl_timespan){begin + i * period, duration};
    *h = (struct xpl_step_spans){v, n, NULL};
    return h;
}

// The same, with the keys from `first` on.
static const struct xpl_step_spans *keyed(const struct xpl_step_spans *h, uint64_t first) {
    struct xpl_step_spans *const k = xpl_arena_alloc(&arena, sizeof *k);
    uint64_t *const keys = xpl_arena_array(&arena, h->n, sizeof *keys);
    CHECK(k && keys);
    for (size_t i = 0; i < h->n; i++)
        keys[i] = first + i;
    *k = (struct xpl_step_spans){h->v, h->n, keys};
    return k;
}

static struct xpl_step_intersection of(const struct xpl_step_spans *a,
                                       const struct xpl_step_spans *b,
                                       const struct xpl_step_spans *c, uint32_t max) {
    struct xpl_step_spans v[3];
    size_t n = 0;
    if (a) v[n++] = *a;
    if (b) v[n++] = *b;
    if (c) v[n++] = *c;
    struct xpl_step_intersection r;
    CHECK(xpl_step_intersect(v, n, max, &arena, &r));
    return r;
}

int main(void) {
    xpl_arena_init(&arena, 1 << 22);
    struct xpl_step_intersection r = of(NULL, NULL, NULL, 100);
    CHECK_EQ(r.n_steps, 0);
    // The same steps everywhere.
    r = of(steps(5, 0, 10, 9), steps(5, 0, 10, 9), steps(5, 1, 10, 9), 100);
    CHECK_EQ(r.n_steps, 5);
    CHECK_EQ(r.chief, 1); // of equals the one that upstream's hash table yields most often
    CHECK_EQ(r.first[2], 0);
    // The second began two steps later and the third missed the last: three in common.
    r = of(steps(5, 0, 10, 9), steps(5, 20, 10, 9), steps(4, 0, 10, 9), 100);
    CHECK_EQ(r.chief, 2);
    CHECK_EQ(r.n_steps, 2);
    CHECK_EQ(r.first[0], 2);
    CHECK_EQ(r.first[1], 0);
    CHECK_EQ(r.first[2], 2);
    CHECK(!r.empty);
    // Not more than asked for.
    r = of(steps(9, 0, 10, 9), steps(9, 0, 10, 9), NULL, 4);
    CHECK_EQ(r.n_steps, 4);
    CHECK_EQ(r.dropped, 5);
    // A host without steps is the shortest: nothing in common, and that is not a conflict.
    r = of(steps(5, 0, 10, 9), steps(0, 0, 0, 0), NULL, 100);
    CHECK_EQ(r.n_steps, 0);
    CHECK(!r.empty);
    // One meets the chief's first steps only, the other the last.
    r = of(steps(3, 100, 10, 10), steps(8, 38, 10, 10), steps(8, 121, 10, 10), 100);
    CHECK_EQ(r.chief, 0);
    CHECK(r.empty || r.n_steps <= 1);
    r = of(steps(3, 100, 10, 10), steps(8, 30, 10, 10), steps(8, 120, 10, 10), 100);
    CHECK_EQ(r.n_steps, 0);
    // Times that make no sense do not do harm.
    r = of(steps(3, UINT64_MAX - 5, 10, 10), steps(3, 0, UINT64_MAX / 2, UINT64_MAX), NULL, 100);
    CHECK(r.n_steps <= 3);
    // Keys align what clocks set apart, by a step and by an hour; also of steps of one host only.
    for (uint64_t apart = 10; apart < 1000000; apart *= 1000) {
        r = of(keyed(steps(5, 0, 10, 9), 3), keyed(steps(5, apart, 10, 9), 3), NULL, 100);
        CHECK_EQ(r.n_steps, 5);
        CHECK_EQ(r.first[0], 0);
        CHECK_EQ(r.first[1], 0);
        r = of(keyed(steps(5, 0, 10, 9), 3), keyed(steps(6, apart, 10, 9), 1), NULL, 100);
        CHECK_EQ(r.n_steps, 4);
        CHECK_EQ(r.first[1], 2);
    }
    // Keys of one host say nothing, nor do those that no other has.
    r = of(keyed(steps(5, 0, 10, 9), 3), steps(5, 10, 10, 9), NULL, 100);
    CHECK_EQ(r.n_steps, 4);
    r = of(keyed(steps(5, 0, 10, 9), 3), keyed(steps(5, 10, 10, 9), 90), NULL, 100);
    CHECK_EQ(r.n_steps, 4);
    // A single host keeps all.
    r = of(steps(7, 5, 10, 9), NULL, NULL, 100);
    CHECK_EQ(r.n_steps, 7);
    xpl_arena_fini(&arena);
    return 0;
}
