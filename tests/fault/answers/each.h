// SPDX-License-Identifier: Apache-2.0
// A scenario whose answer is bytes, with every allocation failing once: it ends with a clean error
// and leaks nothing; with memory back the answer is the same as before.
#ifndef XPL_TESTS_FAULT_ANSWERS_EACH_H_
#define XPL_TESTS_FAULT_ANSWERS_EACH_H_

#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"

struct fault_scenario {
    // Initializes `out` in any case.
    xpl_status_t (*run)(const void *input, struct xpl_buf *out);
    const void *input;
    uint64_t least;       // allocations that it has
    bool some_only_speed; // without some allocations the answer is the same
};

static inline void fault_same_answer(const struct fault_scenario *s,
                                     const struct xpl_buf *expected) {
    struct xpl_buf got;
    CHECK_OK(s->run(s->input, &got), NULL);
    CHECK_BYTES(got.p, got.n, expected->p, expected->n);
    xpl_buf_fini(&got);
}

static inline void fault_each(const struct fault_scenario *s) {
    struct xpl_buf expected, got;
    xpl_fault_reset();
    CHECK_OK(s->run(s->input, &expected), NULL);
    const int64_t live = xpl_fault_live(); // with `expected` and allocations made once
    xpl_fault_reset();
    fault_same_answer(s, &expected);
    const uint64_t n = xpl_fault_count();
    CHECK(n >= s->least);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = s->run(s->input, &got);
        CHECK(st == XPL_RESOURCE_EXHAUSTED || (st == XPL_OK && s->some_only_speed));
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
