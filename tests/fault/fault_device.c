// SPDX-License-Identifier: Apache-2.0
// Converting device planes, with every allocation failing once: a clean error, nothing leaked, and
// with memory back the same answer as before.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "tests/data_file.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/opstats/device_profiles.h"

static xpl_status_t convert(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                            struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {0};
    struct xpl_xspace *xs = NULL;
    struct xpl_opstats *s = NULL;
    XPL_TRY(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, err));
    XPL_TRY(xpl_opstats_convert(xs, &opt, &exec, arena, 1 << 26, &s, err));
    return xpl_opstats_encode(s, out, err);
}

static void fail_each(struct xpl_buf space) {
    fault_each(&(struct fault_scenario){convert, &space, .least = 1, .some_only_speed = true});
    xpl_buf_fini(&space);
}

// Enough ops, kernels and programs that tables grow.
static struct xpl_buf many(void) {
    struct xpl_buf space = mk_open();
    struct mk_plane p = mk_plane(3, "/device:TPU:0");
    char name[32];
    struct xpl_buf line = mk_line(1, "XLA Ops");
    for (int i = 0; i < 300; i++) {
        mk_tpu_md(&p, (struct mk_op){.id = 5000 + i,
                                     .name = "op",
                                     .program = 7,
                                     .symbol = i + 1,
                                     .category = "custom-call",
                                     .tf_op = "a/b:C"});
        mk_op_run(&line, 5000 + i, (i * 7919) % 300 * 10, 9);
    }
    mk_line_end(&p, &line);
    line = mk_line(2, "Stream #1(Kernel)");
    mk_kernel(&p, &line, (struct mk_kernel_event){"k", 0, 5999, "fusion.1", "a/b:C", "regs:3"});
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    p = mk_metadata_plane();
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "jit_%d", i);
        struct xpl_buf m = mk_module(name, 1), c = mk_computation("main", 1, 1);
        mk_hlo_instr(&c, (struct mk_instr){.id = 1, .name = "fusion.1", .opcode = "parameter"});
        mk_computation_end(&m, &c);
        mk_program(&p.body, i + 1, &m);
    }
    mk_plane_end(&p, &space);
    return space;
}

int main(void) {
    fail_each(mk_tpu_device(true));
    fail_each(mk_tpu_device(false));
    fail_each(mk_gpu_device(2));
    fail_each(read_data_file("../golden/cases/gpu_graph_kernels/host.xplane.pb"));
    fail_each(many());
    return 0;
}
