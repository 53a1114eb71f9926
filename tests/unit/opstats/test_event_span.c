// SPDX-License-Identifier: Apache-2.0
// Spans of steps: overlaps removed as upstream does, whatever order and overlap events come in.
#include "analysis/opstats/steps/event_span.h"
#include "analysis/opstats/steps/span_sums.h"

#include "base/arena.h"
#include "tests/check.h"

static uint32_t state = 1;
static uint32_t roll(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

// ---- the rule, word for word: all boundaries sorted, a counter per kind ----

struct edge {
    uint64_t at;
    int type;
    bool begin;
};

static int edge_order(const void *pa, const void *pb) {
    const struct edge *a = pa, *b = pb;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    if (a->begin != b->begin) return a->begin ? 1 : -1;
    return b->type - a->type;
}

struct event {
    int type; // / 10
    struct xpl_timespan span;
};

static void literal(const struct event *ev, size_t n, struct xpl_timespan within,
                    struct xpl_span_sums *ret) {
    struct edge e[256];
    int64_t count[XPL_SPAN_TYPES] = {0};
    int current = 0;
    for (size_t i = 0; i < n; i++) {
        e[2 * i] = (struct edge){ev[i].span.begin_ps, ev[i].type, true};
        e[2 * i + 1] = (struct edge){xpl_timespan_end(ev[i].span), ev[i].type, false};
    }
    *ret = (struct xpl_span_sums){0};
    if (n == 0) return;
    qsort(e, 2 * n, sizeof *e, edge_order);
    for (size_t i = 0; i + 1 < 2 * n; i++) {
        const int t = e[i].type;
        if (e[i].begin) {
            count[t]++;
            if (t > current) current = t;
        } else if (--count[t] == 0 && t == current) {
            current = 0;
            for (int k = t - 1; k > 0 && !current; k--)
                if (count[k] > 0) current = k;
        }
        ret->present |= 1u << current;
        ret->ps[current] += xpl_timespan_overlap(within, e[i].at, e[i + 1].at);
        ret->total[current] += e[i + 1].at - e[i].at;
    }
}

static void check_random(void) {
    static const int kinds[] = {1, 1, 1, 7, 8, 11, 14};
    for (int round = 0; round < 20000; round++) {
        struct event ev[40];
        const size_t n = roll(40);
        const uint32_t range = 1 + roll(60);
        // Whole nanoseconds, picoseconds, and spans too long for the compact form.
        const uint64_t scale = (const uint64_t[]){1, 1000, 7, UINT64_C(10000000000)}[roll(4)];
        struct xpl_arena arena = xpl_arena_of(1 << 20);
        struct xpl_steps all;
        xpl_steps_init(&all, &arena);
        // Events spread over three lines, which are joined afterwards.
        for (unsigned line = 0; line < 3; line++) {
            struct xpl_steps mine;
            xpl_steps_init(&mine, &arena);
            for (size_t i = line; i < n; i += 3) {
                const uint64_t odd = roll(20) == 0;
                ev[i] = (struct event){
                    kinds[roll(7)],
                    {roll(range) * scale + odd, roll(3) ? roll(range / 2 + 1) * scale : 0}};
                struct xpl_step *st = xpl_steps_put(&mine, 7);
                CHECK(st && xpl_step_add_span(st, (enum xpl_span_type)(ev[i].type * 10), ev[i].span,
                                              &arena));
            }
            CHECK(xpl_steps_union(&mine, &all));
        }
        const struct xpl_timespan within = {roll(range) * scale, roll(range) * scale};
        struct xpl_span_sums expected, got = {0};
        literal(ev, n, within, &expected);
        const struct xpl_step *st = xpl_steps_find(&all, 7);
        if (st) CHECK(xpl_step_sum_spans(st, within, &arena, &got));
        for (int t = 0; t < XPL_SPAN_TYPES; t++) {
            CHECK_EQ(got.ps[t], expected.ps[t]);
            CHECK_EQ(got.total[t], expected.total[t]);
        }
        // Whether unknown time owned an empty slice is not kept.
        CHECK_EQ(got.present | 1, expected.present | 1);
        xpl_arena_fini(&arena);
    }
}

static struct xpl_timespan span(uint64_t begin, uint64_t duration) {
    return (struct xpl_timespan){begin, duration};
}

static void check_step_time(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_step st = {.id = 1};
    CHECK_EQ(xpl_step_time(&st).duration_ps, 0);
    xpl_step_add_host_marker(&st, span(10, 5));
    xpl_step_add_host_marker(&st, span(30, 5)); // as long: the first stays
    CHECK_EQ(xpl_step_time(&st).begin_ps, 10);
    CHECK(xpl_step_add_device_marker(&st, 3, span(12, 100), &arena));
    CHECK_EQ(xpl_step_time(&st).begin_ps, 12);
    xpl_step_add_host_marker(&st, span(11, 101)); // includes the device's
    CHECK_EQ(xpl_step_time(&st).begin_ps, 11);
    CHECK_EQ(xpl_step_time_on_core(&st, 3).duration_ps, 100);
    CHECK_EQ(xpl_step_time_on_core(&st, 4).duration_ps, 0);
}

static void fill(struct xpl_steps *s, int64_t from, int64_t to, struct xpl_arena *arena,
                 const char *name) {
    xpl_steps_init(s, arena);
    for (int64_t id = from; id < to; id++) {
        struct xpl_step *st = xpl_steps_put(s, id);
        CHECK(st);
        st->name = xpl_str_from(name);
        const struct xpl_all_reduce_info info = {.id = (uint64_t)id};
        CHECK(xpl_step_add_collective(st, 1, &info, arena));
        CHECK(xpl_step_add_transfer(st, XPL_SPAN_DEVICE_TO_HOST, span(0, 2000000), 5, arena));
        CHECK(xpl_step_add_transfer(st, XPL_SPAN_HOST_COMPUTE, span(0, 1), 5, arena));
        CHECK(xpl_step_put_ops(st, (uint32_t)from, arena));
    }
}

static void check_joining(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_steps a, b, none;
    fill(&a, 0, 5, &arena, "a");
    fill(&b, 3, 8, &arena, "b");
    CHECK(xpl_steps_intersect(&b, &a));
    CHECK_EQ(a.v.n, 2);
    CHECK(!xpl_steps_find(&a, 2) && xpl_steps_find(&a, 3) && xpl_steps_find(&a, 4));
    const struct xpl_step *st = xpl_steps_find(&a, 3);
    CHECK_STR(st->name, "a");
    CHECK_EQ(st->collectives->v.n, 1); // the core was known: b's are not taken
    CHECK_EQ(st->transfers[1].occurrence, 2);
    CHECK_EQ(st->transfers[1].bytes_transferred, 10);
    CHECK(st->transfers[1].time_us > 3.99 && st->transfers[1].time_us < 4.01);
    CHECK(st->ops && st->ops->next && !st->ops->next->next);
    // Nothing in common leaves nothing; and the next one starts afresh.
    fill(&b, 20, 22, &arena, "b");
    CHECK(xpl_steps_intersect(&b, &a));
    CHECK_EQ(a.v.n, 0);
    fill(&b, 30, 33, &arena, "b");
    CHECK(xpl_steps_intersect(&b, &a));
    CHECK_EQ(a.v.n, 3);
    xpl_steps_init(&none, &arena);
    CHECK(xpl_steps_union(&none, &a));
    CHECK_EQ(a.v.n, 3);
}

static void check_memory(void) {
    // A million nested host events cost no more than their outermost one.
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 16);
    struct xpl_steps s;
    xpl_steps_init(&s, &arena);
    struct xpl_step *st = xpl_steps_put(&s, 0);
    for (uint64_t i = 0; i < 1000000; i++)
        CHECK(xpl_step_add_span(st, XPL_SPAN_HOST_COMPUTE, span(i, i ? i % 7 : 2000000), &arena));
    struct xpl_span_sums sums;
    CHECK(xpl_step_sum_spans(st, span(0, 2000000), &arena, &sums));
    CHECK_EQ(sums.ps[1], 2000000);
}

int main(void) {
    check_random();
    check_step_time();
    check_joining();
    check_memory();
    return 0;
}
