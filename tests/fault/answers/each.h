// SPDX-License-Identifier: Apache-2.0
// A scenario whose answer is bytes, with every allocation failing once: it ends with a clean error
// and leaks nothing; with memory back the answer is the same as before.
#ifndef XPL_TESTS_FAULT_ANSWERS_EACH_H_
#define XPL_TESTS_FAULT_ANSWERS_EACH_H_

#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"

enum { FAULT_LIMIT = 1 << 26 }; // bytes of an answer, and of the memory of a run

struct fault_scenario {
    // Writes the answer.  `arena` is freed after the run.
    xpl_status_t (*run)(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err);
    const void *input;
    uint64_t least;       // allocations that it has
    bool some_only_speed; // without some allocations the answer is the same
    bool may_abort;       // ABORTED, where the receiver of the bytes could not take them
};

static inline xpl_status_t fault_run(const struct fault_scenario *s, struct xpl_buf *out) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(FAULT_LIMIT);
    struct xpl_error err = {0};
    xpl_buf_init(out, FAULT_LIMIT);
    const xpl_status_t st = s->run(s->input, &arena, out, &err);
    if (st != XPL_OK && st != XPL_RESOURCE_EXHAUSTED && st != XPL_ABORTED)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    return st;
}

static inline void fault_same_answer(const struct fault_scenario *s,
                                     const struct xpl_buf *expected) {
    struct xpl_buf got;
    CHECK_OK(fault_run(s, &got), NULL);
    CHECK_BYTES(got.p, got.n, expected->p, expected->n);
    xpl_buf_fini(&got);
}

static inline void fault_each(const struct fault_scenario *s) {
    struct xpl_buf expected, got;
    xpl_fault_reset();
    CHECK_OK(fault_run(s, &expected), NULL);
    const int64_t live = xpl_fault_live(); // with `expected` and allocations made once
    xpl_fault_reset();
    fault_same_answer(s, &expected);
    const uint64_t n = xpl_fault_count();
    CHECK(n >= s->least);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = fault_run(s, &got);
        CHECK(st == XPL_RESOURCE_EXHAUSTED || (st == XPL_OK && s->some_only_speed) ||
              (st == XPL_ABORTED && s->may_abort));
        if (st == XPL_OK) CHECK_BYTES(got.p, got.n, expected.p, expected.n);
        xpl_buf_fini(&got);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    fault_same_answer(s, &expected);
    xpl_buf_fini(&expected);
}

#endif
