// SPDX-License-Identifier: Apache-2.0
// Profiles made to take long: where their time goes is found in time in proportion to their bytes.
#include <string.h>

#include "tests/processor_time.h"
#include "tests/unit/breakdown/broken_down.h"

enum { BIG = 1 << 29 };

// Where the time goes of a profile of some megabytes.
static const struct xpl_time_breakdown *break_down(struct xpl_buf *space, struct xpl_arena *arena) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_time_breakdown *b = NULL;
    xpl_arena_init(arena, BIG);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, &err), &err);
    const double begin = processor_s();
    CHECK_OK(xpl_time_breakdown_make(xs, &(struct xpl_time_breakdown_options){true, NULL}, &exec,
                                     arena, BIG, &b, &err),
             &err);
    CHECK(is_within(begin, 4));
    return b;
}

// Calls in each other around as many compilations, each of which is in all calls.
static void test_nested_calls(void) {
    enum { N = 60000, END = 4 * N };
    struct slow_cpu s;
    struct xpl_arena arena;
    slow_begin(&s);
    slow_op(&s, "fusion.1", 0, 0, 1);
    slow_op(&s, "fusion.1", 0, END, 1);
    for (int64_t i = 0; i < N; i++)
        mk_plain(&s.p, &s.python, "PjitFunction(step)", (i + 2) * kUs, (END - 2 * i - 4) * kUs);
    for (int64_t i = 0; i < N; i++)
        mk_plain(&s.p, &s.python, "PjRtCpuClient::Compile", (N + i + 3) * kUs, kUs);
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = break_down(&space, &arena);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPILE),
             2 * N + 1); // from the first call to the last compilation
    CHECK_EQ(b->all_compiles, N);
    done(&space, &arena);
}

// Ops whose name is a long text elsewhere, to which they refer in a form that no writer has.
static void test_shared_names(void) {
    enum { N = 30000, LONG = 1 << 22 };
    static char name[LONG];
    struct slow_cpu s;
    struct xpl_arena arena;
    memset(name, 'x', LONG - 1);
    slow_begin(&s);
    for (int64_t i = 0; i < N; i++) {
        struct xpl_buf ev = mk_event(&s.p, "op", i * kUs, kUs), stat = mk_open();
        mk_int(&stat, 1, mk_name(s.p.stats, &s.p.n_stats, "hlo_op"));
        mk_int(&stat, 7, i ? 2 : mk_name(s.p.stats, &s.p.n_stats, name));
        mk_int(&stat, 15, 1); // an unknown field behind the value
        mk_close(&ev, 4, &stat);
        mk_event_end(&s.pool, &ev);
    }
    struct xpl_buf space = slow_end(&s);
    const struct xpl_time_breakdown *const b = break_down(&space, &arena);
    CHECK_EQ(b->devices.n, 1);
    CHECK_EQ(b->devices.v[0].n_ops, N);
    CHECK_EQ(us_of(b, 0, XPL_TIME_COMPUTE), N);
    done(&space, &arena);
}

int main(void) {
    test_nested_calls();
    test_shared_names();
    return 0;
}
