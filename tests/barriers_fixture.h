// SPDX-License-Identifier: Apache-2.0
// A profile of a TPU whose cores wait for each other.
#ifndef XPL_TESTS_BARRIERS_FIXTURE_H_
#define XPL_TESTS_BARRIERS_FIXTURE_H_

#include "tests/xspace_maker.h"

enum { BR_STEP_PS = 1000000000 };

static inline void br_stat_uint(struct mk_plane *p, struct xpl_buf *ev, const char *name,
                                int64_t v) {
    struct xpl_buf s = mk_open();
    mk_int(&s, 1, mk_name(p->stats, &p->n_stats, name));
    mk_int(&s, 3, v);
    mk_close(ev, 4, &s);
}

static inline void br_event(struct mk_plane *p, struct xpl_buf *line, const char *name,
                            int64_t begin_ps, int64_t duration_ps) {
    struct xpl_buf ev = mk_event(p, name, begin_ps, duration_ps);
    mk_stat_int(p, &ev, "group_id", begin_ps / BR_STEP_PS);
    br_stat_uint(p, &ev, "device_duration_ps", duration_ps);
    mk_event_end(line, &ev);
}

// A core that waits for `wait_ps` of each of its steps.
static inline void br_core(struct xpl_buf *space, const char *name, int steps, int64_t wait_ps) {
    static const char *const numbers[] = {"0", "1", "2", "3", "4", "5"};
    struct mk_plane p = mk_plane(10, name);
    struct xpl_buf marks = mk_line(1, "Steps"), ops = mk_line(3, "XLA Ops");
    for (int i = 0; i < steps; i++) {
        const int64_t at = (int64_t)i * BR_STEP_PS;
        br_event(&p, &marks, numbers[i < 5 ? i : 5], at, BR_STEP_PS);
        br_event(&p, &ops, "barrier-cores.1", at, wait_ps);
        br_event(&p, &ops, "fusion.1", at + wait_ps, BR_STEP_PS / 2);
    }
    mk_line_end(&p, &marks);
    mk_line_end(&p, &ops);
    mk_plane_end(&p, space);
}

// One of two cores that do; `hostname` may be NULL.
static inline struct xpl_buf barriers_fixture(const char *hostname, int steps, int64_t wait_ps) {
    struct xpl_buf space = mk_open();
    br_core(&space, "/device:TPU:0", steps, wait_ps);
    br_core(&space, "/device:TPU:1", steps, wait_ps);
    if (hostname) mk_text(&space, 4, hostname);
    return space;
}

#endif
