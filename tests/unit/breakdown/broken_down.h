// SPDX-License-Identifier: Apache-2.0
// Where the time goes of a profile with a few lines.
#ifndef XPL_TESTS_UNIT_BREAKDOWN_BROKEN_DOWN_H_
#define XPL_TESTS_UNIT_BREAKDOWN_BROKEN_DOWN_H_

#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "base/buf.h"
#include "tests/check.h"
#include "tests/unit/breakdown/slow_profiles.h"

#define LIMIT ((size_t)1 << 26)

static inline struct xpl_buf encoded(const struct xpl_time_breakdown *b) {
    struct xpl_error err = {0};
    struct xpl_buf out;
    xpl_buf_init(&out, LIMIT);
    CHECK_OK(xpl_time_breakdown_encode(b, &out, &err), &err);
    return out;
}

// With the steps of a conversion that leaves incomplete ones out the breakdown is the same.
static inline void check_known(const struct xpl_xspace *xs, const struct xpl_time_breakdown *b) {
    const struct xpl_convert_options o = {.cpu_as_device = true};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_time_breakdown *same = NULL;
    struct xpl_opstats *stats = NULL;
    struct xpl_arena arena;
    xpl_arena_init(&arena, LIMIT);
    CHECK_OK(xpl_opstats_convert(xs, &o, &exec, &arena, LIMIT, &stats, &err), &err);
    CHECK(stats->step_db.has_all_steps);
    CHECK_OK(xpl_time_breakdown_make(xs,
                                     &(struct xpl_time_breakdown_options){true, &stats->step_db},
                                     &exec, &arena, LIMIT, &same, &err),
             &err);
    struct xpl_buf x = encoded(b), y = encoded(same);
    CHECK_BYTES(x.p, x.n, y.p, y.n);
    xpl_buf_fini(&x);
    xpl_buf_fini(&y);
    // Steps that are known are not searched for again; decoded ones are.
    stats->step_db.n_all_steps = 0;
    CHECK_OK(xpl_time_breakdown_make(xs,
                                     &(struct xpl_time_breakdown_options){true, &stats->step_db},
                                     &exec, &arena, LIMIT, &same, &err),
             &err);
    CHECK_EQ(same->steps.n, 0);
    stats->step_db.has_all_steps = false;
    CHECK_OK(xpl_time_breakdown_make(xs,
                                     &(struct xpl_time_breakdown_options){true, &stats->step_db},
                                     &exec, &arena, LIMIT, &same, &err),
             &err);
    CHECK_EQ(same->steps.n, b->steps.n);
    xpl_arena_fini(&arena);
}

static inline const struct xpl_time_breakdown *broken_down(const struct xpl_buf *space,
                                                           struct xpl_arena *arena) {
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_error err = {0};
    struct xpl_xspace *xs;
    struct xpl_time_breakdown *b = NULL;
    xpl_arena_init(arena, LIMIT);
    CHECK_OK(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, &err), &err);
    CHECK_OK(xpl_time_breakdown_make(xs, &(struct xpl_time_breakdown_options){true, NULL}, &exec,
                                     arena, LIMIT, &b, &err),
             &err);
    for (size_t i = 0; i < b->rows.n; i++) {
        uint64_t sum = 0;
        for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
            sum += b->rows.v[i].ps[c];
        CHECK_EQ(sum, b->rows.v[i].wall_ps);
    }
    check_known(xs, b);
    return b;
}

// Microseconds of a cause, over all rows of a device.
static inline uint64_t us_of(const struct xpl_time_breakdown *b, uint32_t device,
                             enum xpl_time_cause cause) {
    uint64_t ps = 0;
    for (size_t i = 0; i < b->rows.n; i++)
        if (b->rows.v[i].device == device) ps += b->rows.v[i].ps[cause];
    CHECK_EQ(ps % (uint64_t)kUs, 0);
    return ps / (uint64_t)kUs;
}

static inline void done(struct xpl_buf *space, struct xpl_arena *arena) {
    xpl_arena_fini(arena);
    xpl_buf_fini(space);
}

// The name with most of a cause's idle time.
static inline const char *first_evidence(const struct xpl_time_breakdown *b,
                                         enum xpl_time_cause cause) {
    for (size_t i = 0; i < b->evidence.n; i++)
        if (b->evidence.v[i].cause == cause) return b->evidence.v[i].name.ptr;
    return "";
}

#endif
