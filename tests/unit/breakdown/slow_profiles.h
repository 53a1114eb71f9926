// SPDX-License-Identifier: Apache-2.0
// Small profiles whose time is known: ten steps of 10 ms each, one right after the other.
#ifndef XPL_TESTS_UNIT_BREAKDOWN_SLOW_PROFILES_H_
#define XPL_TESTS_UNIT_BREAKDOWN_SLOW_PROFILES_H_

#include "tests/xspace_maker.h"

static const int64_t kUs = 1000000; // ps
enum { SLOW_STEPS = 10, SLOW_STEP_US = 10000 };

// A program on a CPU: its thread, one of a pool that runs its ops, and one more.
struct slow_cpu {
    struct xpl_buf space, python, pool, other;
    struct mk_plane p;
};

// `other`: the name of that one.
static inline void slow_begin_with(struct slow_cpu *s, const char *other) {
    s->space = mk_open();
    mk_plane_begin(&s->p, 0, "/host:CPU");
    s->python = mk_line(1, "python");
    s->pool = mk_line(2, "tf_XLAEigen/2");
    s->other = mk_line(3, other);
}

static inline void slow_begin(struct slow_cpu *s) {
    slow_begin_with(s, "loader");
}

// A step of another number than its place.
static inline void slow_numbered_step(struct slow_cpu *s, int number, int step, int64_t us) {
    struct xpl_buf ev = mk_event(&s->p, "train", (int64_t)step * SLOW_STEP_US * kUs, us * kUs);
    mk_stat_int(&s->p, &ev, "_r", 1);
    mk_stat_int(&s->p, &ev, "step_num", number);
    mk_event_end(&s->python, &ev);
}

static inline void slow_step(struct slow_cpu *s, int step, int64_t us) {
    slow_numbered_step(s, 100 + step, step, us);
}

// Times within the step, in microseconds.
static inline int64_t slow_at(int step, int64_t us) {
    return ((int64_t)step * SLOW_STEP_US + us) * kUs;
}

static inline void slow_host(struct slow_cpu *s, const char *name, int step, int64_t us,
                             int64_t n) {
    mk_plain(&s->p, &s->python, name, slow_at(step, us), n * kUs);
}

// `called`: what the program calls it; NULL: not known.
static inline void slow_called_op(struct slow_cpu *s, const char *op, const char *called, int step,
                                  int64_t us, int64_t n) {
    struct xpl_buf ev = mk_event(&s->p, op, slow_at(step, us), n * kUs);
    mk_stat_ref(&s->p, &ev, "hlo_op", op);
    mk_stat_ref(&s->p, &ev, "hlo_module", "jit_step");
    mk_stat_int(&s->p, &ev, "program_id", 6);
    if (called) mk_stat_ref(&s->p, &ev, "tf_op", called);
    mk_event_end(&s->pool, &ev);
}

static inline void slow_op(struct slow_cpu *s, const char *op, int step, int64_t us, int64_t n) {
    slow_called_op(s, op, NULL, step, us, n);
}

static inline struct xpl_buf slow_end(struct slow_cpu *s) {
    mk_line_end(&s->p, &s->python);
    mk_line_end(&s->p, &s->pool);
    mk_line_end(&s->p, &s->other);
    mk_plane_end(&s->p, &s->space);
    return s->space;
}

// Steps of which `us` microseconds go to `host_event` on the program's thread and, when it is not
// NULL, to `op`; the rest is computing, that the host launches within 100 us.
static inline struct xpl_buf slow_profile(const char *host_event, const char *op, int64_t us) {
    struct slow_cpu s;
    slow_begin(&s);
    for (int i = 0; i < SLOW_STEPS; i++) {
        slow_step(&s, i, SLOW_STEP_US);
        if (host_event) slow_host(&s, host_event, i, 0, us);
        if (op) slow_op(&s, op, i, 0, us);
        slow_host(&s, "PjitFunction(step)", i, us, 200);
        slow_op(&s, "while.3", i, us + 100, SLOW_STEP_US - us - 100);
        slow_op(&s, "fusion.1", i, us + 100, SLOW_STEP_US - us - 200);
    }
    return slow_end(&s);
}

// ---- GPUs ----

struct slow_gpu {
    struct xpl_buf space, python, compute, comm;
    struct mk_plane host, gpu;
    int64_t correlation;
};

static inline void slow_gpu_begin(struct slow_gpu *s) {
    *s = (struct slow_gpu){.correlation = 1};
    s->space = mk_open();
    mk_plane_begin(&s->host, 1, "/host:CPU");
    mk_plane_begin(&s->gpu, 3, "/device:GPU:0");
    s->python = mk_line(1, "python");
    s->compute = mk_line(14, "Stream #14(Compute)");
    s->comm = mk_line(15, "Stream #15(Memcpy)");
}

// A kernel that the host launches at `launched`; all in microseconds.
static inline void slow_kernel(struct slow_gpu *s, struct xpl_buf *stream, const char *name,
                               int64_t launched, int64_t at, int64_t us) {
    struct xpl_buf ev = mk_event(&s->host, "cuLaunchKernel", launched * kUs, 2 * kUs);
    mk_stat_int(&s->host, &ev, "correlation_id", s->correlation);
    mk_event_end(&s->python, &ev);
    ev = mk_event(&s->gpu, name, at * kUs, us * kUs);
    mk_stat_int(&s->gpu, &ev, "correlation_id", s->correlation++);
    mk_event_end(stream, &ev);
}

static inline struct xpl_buf slow_gpu_end(struct slow_gpu *s) {
    mk_line_end(&s->gpu, &s->compute);
    mk_line_end(&s->gpu, &s->comm);
    mk_line_end(&s->host, &s->python);
    mk_plane_end(&s->gpu, &s->space);
    mk_plane_end(&s->host, &s->space);
    return s->space;
}

#endif
