// SPDX-License-Identifier: Apache-2.0
// A small profile that has every derived line in it: a GPU with steps, launches and command
// buffers, a thread pool with regions, counters.
#ifndef XPL_TESTS_TRACE_FIXTURE_H_
#define XPL_TESTS_TRACE_FIXTURE_H_

#include "tests/xspace_maker.h"

static inline void fixture_kernels(struct mk_plane *p, struct xpl_buf *line) {
    for (int64_t i = 0; i < 12; i++) {
        // The last two are out of order.
        struct xpl_buf ev = mk_event(p, "kernel", (i < 10 ? i : i - 6) * 1000 + 100, 900);
        mk_stat_str(p, &ev, "kernel_details", "regs:1");
        mk_stat_int(p, &ev, "correlation_id", i);
        if (i % 3) {
            mk_stat_ref(p, &ev, "hlo_module", "m");
            mk_stat_ref(p, &ev, "hlo_op", i % 2 ? "a::b" : "a::c");
            mk_stat_int(p, &ev, "program_id", 5);
        } else {
            mk_stat_ref(p, &ev, "tf_op", "x/y/z:Add");
        }
        mk_event_end(line, &ev);
    }
}

static inline void fixture_host(struct mk_plane *p) {
    struct xpl_buf line = mk_line(1, "thread");
    for (int64_t i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(p, "train", i * 4000, 3900);
        mk_stat_int(p, &ev, "_r", 1);
        mk_stat_int(p, &ev, "step_num", i);
        mk_event_end(&line, &ev);
        for (int64_t k = 0; k < 4; k++) {
            ev = mk_event(p, "hipLaunch", i * 4000 + k * 900 + 10, 500 + k);
            mk_stat_int(p, &ev, "correlation_id", i * 4 + k);
            mk_stat_int(p, &ev, "device_id", 0);
            mk_event_end(&line, &ev);
        }
    }
    mk_line_end(p, &line);
    line = mk_line(2, "pool");
    for (int64_t i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(p, "ThreadpoolListener::StartRegion", i * 1000 + 7, 0);
        mk_stat_int(p, &ev, "_c", i);
        mk_event_end(&line, &ev);
        mk_plain(p, &line, "work", i * 1000 + 50, 300);
        mk_plain(p, &line, "overlap", i * 1000 + 200, 400);
        mk_plain(p, &line, "ThreadpoolListener::StopRegion", i * 1000 + 500, 0);
    }
    mk_line_end(p, &line);
    line = mk_line(3, "_counters_");
    for (int64_t i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(p, "load", i * 1000, 0);
        mk_stat_int(p, &ev, "value", i * i);
        mk_event_end(&line, &ev);
    }
    mk_line_end(p, &line);
}

static inline struct xpl_buf trace_fixture(void) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf space = mk_open(), line;
    line = mk_line(16, "Stream #16(Compute)");
    fixture_kernels(&p, &line);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    mk_plane_begin(&p, 2, "/host:CPU");
    fixture_host(&p);
    mk_plane_end(&p, &space);
    return space;
}

// A TensorCore with scopes, source lines and copies to the host's memory.
static inline struct xpl_buf tpu_fixture(void) {
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    struct xpl_buf space = mk_open(), line;
    line = mk_line(2, "XLA Modules");
    for (int64_t i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(&p, "jit_f(1)", i * 5000, 5000);
        mk_stat_int(&p, &ev, "run_id", i);
        mk_stat_int(&p, &ev, "queue_id", 0);
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    line = mk_line(3, "XLA Ops");
    for (int64_t i = 0; i < 14; i++) {
        struct xpl_buf ev = mk_event(&p, "op", (i ^ 1) * 1000, 900);
        mk_stat_ref(&p, &ev, "tf_op", i % 2 ? "jit(f)/jit(main)/add:" : "jit(f)/mul:");
        mk_stat_ref(&p, &ev, "source", i % 4 ? "f.py:1" : "f.py:2");
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

#endif
