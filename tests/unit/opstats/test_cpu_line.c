// SPDX-License-Identifier: Apache-2.0
// Ops counted as a device's on one thread: nesting, and lines cut into pieces.
#include "analysis/opstats/host/cpu_line.h"

#include "base/arena.h"
#include "tests/check.h"

static uint32_t state = 3;
static uint32_t roll(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

enum { OPS = 4, MAX_EVENTS = 40 };
static const char *const names[OPS] = {"dot", "add", "while", "copy"};

struct event {
    int op;
    struct xpl_timespan span;
};

static void add(struct xpl_cpu_line *l, const struct event *e) {
    const xpl_str_t name = xpl_str_from(names[e->op]);
    const struct xpl_cpu_event ev = {
        .hlo_op = {.kind = XPL_VALUE_REF, .str = name}, .program_id = 1, .has_program_id = true};
    const struct xpl_cpu_key key = {(uint64_t)e->op, UINT64_MAX, 1, (uint32_t)e->op};
    struct xpl_cpu_op *op;
    CHECK(xpl_cpu_line_add_known(l, &key, e->span, &op));
    CHECK(op || xpl_cpu_line_add_xla(l, &ev, roll(2) ? &key : NULL, e->span));
}

struct sums {
    uint64_t occurrences, total, self;
};

static void collect(const struct xpl_cpu_line *l, struct sums *sums) {
    for (size_t i = 0; i < l->ops.n; i++)
        for (int k = 0; k < OPS; k++)
            if (xpl_str_eq(l->ops.v[i].name, xpl_str_from(names[k]))) {
                sums[k].occurrences += l->ops.v[i].occurrences;
                sums[k].total += l->ops.v[i].time_ps;
                sums[k].self += l->ops.v[i].self_time_ps;
            }
}

// The rule: the parent is the innermost event before it that still includes it.
static void brute_force(const struct event *e, size_t n, struct sums *sums) {
    size_t stack[MAX_EVENTS], depth = 0;
    uint64_t inside[MAX_EVENTS] = {0};
    for (size_t i = 0; i < n; i++) {
        while (depth && !xpl_timespan_includes(e[stack[depth - 1]].span, e[i].span))
            depth--;
        if (depth) inside[stack[depth - 1]] += e[i].span.duration_ps;
        stack[depth++] = i;
    }
    for (size_t i = 0; i < n; i++) {
        struct sums *s = &sums[e[i].op];
        s->occurrences++;
        s->total += e[i].span.duration_ps;
        if (inside[i] < e[i].span.duration_ps) s->self += e[i].span.duration_ps - inside[i];
    }
}

// The same line in two or three pieces, as host_scan.c joins them.
static void in_pieces(const struct event *e, size_t n, struct xpl_arena *arena, struct sums *sums) {
    struct xpl_cpu_line *piece[3];
    struct xpl_cpu_memory memory = {0};
    struct xpl_cpu_carry carry = {.arena = arena};
    const size_t a = n ? roll((uint32_t)n + 1) : 0;
    const size_t b = a + (n > a ? roll((uint32_t)(n - a) + 1) : 0);
    const size_t from[] = {0, a, b, n};
    for (int p = 0; p < 3; p++) {
        struct xpl_timespan open[MAX_EVENTS];
        size_t depth = 0;
        piece[p] = xpl_cpu_line_new(&memory, arena);
        CHECK(piece[p]);
        for (size_t i = from[p]; i < from[p + 1]; i++)
            add(piece[p], &e[i]);
        for (size_t i = from[p]; i < from[p + 1] && carry.v.n; i++) {
            while (depth && !xpl_timespan_includes(open[depth - 1], e[i].span))
                depth--;
            if (!depth) xpl_cpu_carry_pass(&carry, e[i].span);
            open[depth++] = e[i].span;
        }
        CHECK(xpl_cpu_carry_merge(&carry, piece[p]));
    }
    xpl_cpu_carry_finish(&carry);
    for (int p = 0; p < 3; p++)
        collect(piece[p], sums);
}

static void check_random(void) {
    for (int round = 0; round < 30000; round++) {
        struct event e[MAX_EVENTS];
        const size_t n = roll(MAX_EVENTS + 1);
        const bool sorted = roll(5) != 0;
        uint64_t at = 0;
        for (size_t i = 0; i < n; i++) {
            at = sorted ? at + roll(4) : roll(30);
            e[i] = (struct event){(int)roll(OPS), {at, roll(20)}};
        }
        struct xpl_arena arena = xpl_arena_of(1 << 22);
        struct sums expected[OPS] = {0}, whole[OPS] = {0}, cut[OPS] = {0};
        struct xpl_cpu_memory memory = {0};
        struct xpl_cpu_line *l = xpl_cpu_line_new(&memory, &arena);
        CHECK(l);
        brute_force(e, n, expected);
        for (size_t i = 0; i < n; i++)
            add(l, &e[i]);
        xpl_cpu_line_finish(l);
        collect(l, whole);
        in_pieces(e, n, &arena, cut);
        CHECK_BYTES(expected, sizeof expected, whole, sizeof expected);
        CHECK_BYTES(expected, sizeof expected, cut, sizeof expected);
        xpl_arena_fini(&arena);
    }
}

static void check_keys(void) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    struct xpl_cpu_line l = {.arena = &arena};
    const struct xpl_timespan span = {100, 10};
    char a[] = "dot", b[] = "dot"; // texts of statistics: equal, but not the same bytes
    struct xpl_cpu_event e = {.hlo_op = {.kind = XPL_VALUE_STR, .str = {a, 3}},
                              .module = {.kind = XPL_VALUE_STR, .str = {"m", 1}},
                              .has_module = true};
    CHECK(xpl_cpu_line_add_xla(&l, &e, NULL, span));
    e.hlo_op.str.ptr = b;
    CHECK(xpl_cpu_line_add_xla(&l, &e, NULL, span));
    CHECK_EQ(l.ops.n, 1);
    e.module.str = XPL_STR("other"); // another module without an id
    CHECK(xpl_cpu_line_add_xla(&l, &e, NULL, span));
    e.has_program_id = true, e.program_id = 4;
    e.tf_op = XPL_STR("x:Y");
    CHECK(xpl_cpu_line_add_xla(&l, &e, NULL, span));
    const struct xpl_host_op op = {.name = XPL_STR("dot"), .type = XPL_STR("Dot")};
    CHECK(xpl_cpu_line_add_framework(&l, &op, true, span));
    CHECK(xpl_cpu_line_add_framework(&l, &op, false, span));
    CHECK_EQ(l.ops.n, 4);
    xpl_cpu_line_finish(&l);
    CHECK_EQ(l.ops.v[0].occurrences, 2);
    CHECK_STR(l.ops.v[2].tf_op, "x:Y");
    CHECK(l.ops.v[3].framework == &op);
    CHECK(l.ops.v[3].is_eager);
    CHECK_EQ(l.begin_ps, 100);
    CHECK_EQ(l.end_ps, 110);
}

// More ops of a framework than a line remembers, which share places with each other: each keeps its
// own runs, and another line with the same memory begins anew.
static void check_many_framework_ops(void) {
    enum { MANY = 5000, RUNS = 3, LINES = 2 };
    static struct xpl_host_op ops[MANY];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 24);
    struct xpl_cpu_memory memory = {0};
    for (int line = 0; line < LINES; line++) {
        struct xpl_cpu_line *const l = xpl_cpu_line_new(&memory, &arena);
        uint64_t at = 0;
        CHECK(l);
        for (unsigned i = 0; i < MANY * RUNS; i++) {
            const unsigned k = i < MANY ? i : (i * 1024 + i / 7) % MANY;
            CHECK(xpl_cpu_line_add_framework(l, &ops[k], line == 0, (struct xpl_timespan){at, k}));
            at += k;
        }
        xpl_cpu_line_finish(l);
        uint64_t runs = 0, seen = 0;
        for (size_t i = 0; i < l->ops.n; i++) {
            const struct xpl_cpu_op *const op = &l->ops.v[i];
            const uint64_t k = (uint64_t)(op->framework - ops);
            CHECK_EQ(op->time_ps, op->occurrences * k);
            CHECK_EQ(op->is_eager, line == 0);
            runs += op->occurrences, seen += k;
        }
        CHECK_EQ(runs, MANY * RUNS);
        CHECK_EQ(l->ops.n, MANY);
        CHECK_EQ(seen, (uint64_t)MANY * (MANY - 1) / 2); // each once
    }
}

int main(void) {
    check_random();
    check_keys();
    check_many_framework_ops();
    return 0;
}
