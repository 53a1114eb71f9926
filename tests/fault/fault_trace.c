// SPDX-License-Identifier: Apache-2.0
// Building, opening and asking a trace index with every allocation failing once.
#include "analysis/trace/trace.h"
#include "base/exec.h"
#include "tests/fault/answers/each.h"
#include "tests/xspace_maker.h"

enum { LIMIT = 1 << 26 };

static void device_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(1, "/device:GPU:0");
    struct xpl_buf line = mk_line(16, "Stream #16(Compute)");
    for (int i = 0; i < 3; i++) {
        struct xpl_buf ev = mk_event(&p, "kernel", 1000 + i * 10000, 4000);
        mk_stat_int(&p, &ev, "correlation_id", i);
        mk_stat_str(&p, &ev, "kernel_details", "regs:16");
        mk_stat_str(&p, &ev, "tf_op", "jit(f)/add");
        mk_event_end(&line, &ev);
    }
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

static void host_plane(struct xpl_buf *space) {
    struct mk_plane p = mk_plane(2, "/host:CPU");
    struct xpl_buf line = mk_line(1, "pool");
    for (int i = 0; i < 40; i++) {
        struct xpl_buf ev = mk_event(&p, "ThreadpoolListener::StartRegion", 100 + i * 1000, 0);
        mk_stat_int(&p, &ev, "_ct", 15);
        mk_stat_int(&p, &ev, "_c", i);
        mk_event_end(&line, &ev);
        ev = mk_event(&p, "launch", 300 + i * 1000, 100);
        mk_stat_int(&p, &ev, "correlation_id", i);
        mk_event_end(&line, &ev);
        mk_plain(&p, &line, "ThreadpoolListener::StopRegion", 900 + i * 1000, 0);
    }
    mk_line_end(&p, &line);
    line = mk_line(2, "_counters_");
    struct xpl_buf ev = mk_event(&p, "power", 3000, 0);
    mk_stat_int(&p, &ev, "watts", 40);
    mk_event_end(&line, &ev);
    mk_line_end(&p, &line);
    mk_plane_end(&p, space);
}

// Both answers, one behind the other.
static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    const xpl_bytes_t profile = {space->p, space->n};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_trace_memory m = {0};
    struct xpl_trace_options o;
    xpl_status_t st = xpl_trace_memory_init(&m, profile, NULL, &exec, LIMIT, arena, err);
    for (int round = 0; st == XPL_OK && round < 2; round++) {
        xpl_trace_options_init(&o);
        if (round) o.search_prefix = XPL_STR("l"), o.search_metadata = true;
        const struct xpl_trace_host host = {XPL_STR("h"), m.trace, profile};
        st = xpl_trace_answer(&host, 1, &o, &exec, LIMIT, out, err);
    }
    xpl_trace_memory_fini(&m);
    return st;
}

int main(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf space = mk_open();
    host_plane(&space);
    device_plane(&space);
    fault_each(&(struct fault_scenario){run, &space, .least = 11});
    return 0;
}
