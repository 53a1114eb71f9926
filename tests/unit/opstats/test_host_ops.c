// SPDX-License-Identifier: Apache-2.0
// Ops on a host thread: the quick way and the sorting way agree, and both with the rule.
#include "analysis/opstats/host/host_ops.h"

#include "base/arena.h"
#include "tests/check.h"

static const struct xpl_host_op ops[] = {
    {.name = {"a", 1}, .type = {"A", 1}},
    {.name = {"b", 1}, .type = {"B", 1}},
    {.name = {"q", 1}, .type = {"InfeedEnqueue", 13}, .is_infeed = true},
};
static const struct xpl_host_op crossing[] = {
    {.name = {"x", 1}, .type = {"X", 1}, .crosses = true},
    {.name = {"y", 1}, .type = {"Y", 1}, .crosses = true},
    {.name = {"z", 1}, .type = {"Z", 1}, .crosses = true},
};

static uint32_t state = 7;
static uint32_t roll(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static void run(const struct xpl_op_event *ev, size_t n, bool sort, struct xpl_arena *arena,
                struct xpl_op_line *l) {
    *l = (struct xpl_op_line){.arena = arena};
    for (size_t i = 0; i < n && !sort; i++)
        CHECK(xpl_op_line_add(l, ev[i].op, ev[i].span, ev[i].is_eager));
    if (l->out_of_order || sort) CHECK(xpl_op_line_sort(l, ev, n));
    CHECK(xpl_op_line_finish(l));
}

static void check_equal(const struct xpl_op_line *a, const struct xpl_op_line *b) {
    CHECK_EQ(a->total_time_ps, b->total_time_ps);
    CHECK_EQ(a->total_op_time_ps, b->total_op_time_ps);
    CHECK_EQ(a->infeed_duration_ps, b->infeed_duration_ps);
    CHECK_EQ(a->infeed_start_diff_ps, b->infeed_start_diff_ps);
    CHECK_EQ(a->entries.n, b->entries.n);
    for (size_t i = 0; i < a->entries.n; i++) {
        const struct xpl_host_op_entry *x = &a->entries.v[i], *y = &b->entries.v[i];
        CHECK(x->op == y->op);
        CHECK_EQ(x->is_eager, y->is_eager);
        CHECK_EQ(x->occurrences, y->occurrences);
        CHECK_EQ(x->time_ps, y->time_ps);
        CHECK_EQ(x->self_time_ps, y->self_time_ps);
    }
}

static void check_random(void) {
    for (int round = 0; round < 20000; round++) {
        struct xpl_op_event ev[24];
        const size_t n = roll(24);
        uint64_t at = 0;
        const bool sorted = roll(4) != 0;
        for (size_t i = 0; i < n; i++) {
            at = sorted ? at + roll(4) : roll(40);
            ev[i] = (struct xpl_op_event){&ops[roll(3)], {at, roll(12)}, roll(2)};
        }
        struct xpl_arena arena = xpl_arena_of(1 << 20);
        struct xpl_op_line quick, slow;
        run(ev, n, false, &arena, &quick);
        run(ev, n, true, &arena, &slow);
        check_equal(&quick, &slow);
        xpl_arena_fini(&arena);
    }
}

static void check_rule(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_op_line l;
    // b inside a, then two infeeds; idle from 100 to 120.
    const struct xpl_op_event nested[] = {{&ops[0], {0, 100}, false},
                                          {&ops[1], {10, 20}, true},
                                          {&ops[2], {120, 10}, false},
                                          {&ops[2], {150, 30}, false}};
    run(nested, 4, false, &arena, &l);
    CHECK(!l.out_of_order);
    CHECK_EQ(l.total_time_ps, 180);
    CHECK_EQ(l.total_op_time_ps, 140);
    CHECK_EQ(l.entries.n, 3);
    CHECK(l.entries.v[0].op == &ops[1]); // ended first
    CHECK(l.entries.v[0].is_eager);
    CHECK_EQ(l.entries.v[1].time_ps, 100);
    CHECK_EQ(l.entries.v[1].self_time_ps, 80);
    CHECK_EQ(l.infeed_duration_ps, 10); // of the first: the last one's follower is unknown
    CHECK_EQ(l.infeed_start_diff_ps, 30);
    // An inner op that ends with the outer one is lost, as upstream's stack loses it.
    const struct xpl_op_event together[] = {{&ops[0], {0, 100}, false}, {&ops[1], {50, 50}, false}};
    run(together, 2, false, &arena, &l);
    CHECK_EQ(l.entries.n, 1);
    CHECK_EQ(l.entries.v[0].self_time_ps, 100);
    // A negative duration ends before it begins: nothing to count, nothing to crash on.
    const struct xpl_op_event backwards[] = {{&ops[0], {100, (uint64_t)-50}, false}};
    run(backwards, 1, false, &arena, &l);
    CHECK(l.out_of_order);
    CHECK_EQ(l.entries.n, 0);
    run(NULL, 0, false, &arena, &l);
    CHECK_EQ(l.total_time_ps, 0);
}

// Ops of PyTorch that end with their parent or behind it count, each moment once.
static void check_crossing(void) {
    static const struct xpl_op_event events[] = {{&crossing[0], {0, 100}, false},
                                                 {&crossing[1], {10, 60}, false},
                                                 {&crossing[2], {50, 50}, false},
                                                 {&crossing[1], {90, 30}, false}};
    static const uint64_t self[] = {40 + 30, 10, 40}; // of y, x, z
    for (int sort = 0; sort < 2; sort++) {
        struct xpl_arena arena = xpl_arena_of(1 << 20);
        struct xpl_op_line l;
        run(events, 4, sort, &arena, &l);
        CHECK_EQ(l.entries.n, 3);
        for (size_t i = 0; i < 3; i++) {
            CHECK_EQ(l.entries.v[i].self_time_ps, self[i]);
            CHECK_EQ(l.entries.v[i].occurrences, i ? 1 : 2);
        }
        CHECK_EQ(l.total_op_time_ps, 120);
        xpl_arena_fini(&arena);
    }
}

// However deep ops are, and also where each ends behind the one within it, all count.
static void check_deep(void) {
    enum { N = 20000 };
    static struct xpl_op_event nested[N], chain[N];
    for (uint64_t i = 0; i < N; i++) {
        nested[i] = (struct xpl_op_event){&crossing[i % 3], {i, 2 * (N - i)}, false};
        chain[i] = (struct xpl_op_event){&crossing[i % 3], {i, N}, false};
    }
    for (int sort = 0; sort < 4; sort++) {
        struct xpl_arena arena;
        struct xpl_op_line l;
        uint64_t n = 0, self = 0;
        xpl_arena_init(&arena, 64 << 20);
        run(sort < 2 ? nested : chain, N, sort % 2, &arena, &l);
        for (size_t i = 0; i < l.entries.n; i++) {
            n += l.entries.v[i].occurrences;
            self += l.entries.v[i].self_time_ps;
        }
        CHECK_EQ(n, N);
        CHECK_EQ(self, sort < 2 ? 2 * N : 2 * N - 1);
        CHECK_EQ(l.total_op_time_ps, self);
        xpl_arena_fini(&arena);
    }
}

int main(void) {
    check_rule();
    check_crossing();
    check_deep();
    check_random();
    return 0;
}
