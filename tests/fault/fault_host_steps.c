// SPDX-License-Identifier: Apache-2.0
// Converting profiles of each kind of hardware and combining hosts, with every allocation failing
// once: a clean error, nothing leaked, and with memory back the same answer as before.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/combine/combine.h"
#include "analysis/opstats/convert.h"
#include "base/arena.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/opstats/host_profiles.h"

// Gives the one OpStats that there is.
static xpl_status_t get(void *arg, size_t i, const struct xpl_opstats **ret,
                        struct xpl_error *err) {
    (void)i, (void)err;
    *ret = arg;
    return XPL_OK;
}

static void release(void *arg, size_t i) {
    (void)arg, (void)i;
}

// Combines the OpStats with itself, in turn.
static xpl_status_t combine_in_turn(struct xpl_opstats *s, struct xpl_exec *exec,
                                    struct xpl_arena *arena, struct xpl_opstats **ret,
                                    struct xpl_error *err) {
    void *const at = xpl_arena_alloc(arena, xpl_host_outline_size(s));
    if (!at) XPL_RETURN_OOM(err, "outline");
    const struct xpl_host_outline *const outline = xpl_host_outline_put(s, at);
    const struct xpl_host_opstats hosts[] = {
        {.host = XPL_STR("a"), .outline = outline},
        {.host = XPL_STR("b"), .problem = XPL_STR("cut off")},
        {.host = XPL_STR("c"), .outline = outline},
    };
    const struct xpl_combine_source source = {get, release, s, exec};
    const struct xpl_combine_input in = {.hosts = hosts, .n = 3, .source = &source};
    return xpl_opstats_combine(&in, arena, ret, err);
}

// What one run makes: converts the space, combines the result with itself, encodes that.
static xpl_status_t convert(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                            struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_convert_options opt = {.cpu_as_device = true};
    struct xpl_xspace *xs = NULL;
    struct xpl_opstats *s = NULL, *both = NULL;
    XPL_TRY(xpl_xspace_open((xpl_bytes_t){space->p, space->n}, arena, &exec, &xs, err));
    XPL_TRY(xpl_opstats_convert(xs, &opt, &exec, arena, 1 << 26, &s, err));
    const struct xpl_host_opstats hosts[] = {
        {.host = XPL_STR("a"), .stats = s},
        {.host = XPL_STR("b"), .problem = XPL_STR("cut off")},
        {.host = XPL_STR("c"), .stats = s},
    };
    const struct xpl_combine_input in = {.hosts = hosts, .n = 3};
    XPL_TRY(xpl_opstats_combine(&in, arena, &both, err));
    XPL_TRY(xpl_opstats_encode(both, out, err));
    XPL_TRY(combine_in_turn(s, &exec, arena, &both, err));
    return xpl_opstats_encode(both, out, err);
}

static void fail_each(struct xpl_buf space) {
    fault_each(&(struct fault_scenario){convert, &space, .least = 1});
    xpl_buf_fini(&space);
}

int main(void) {
    fail_each(mk_input_profile(3));
    fail_each(mk_cpu_profile(40, 3));
    fail_each(mk_gpu_profile(9));
    fail_each(mk_tpu_profile(9, 2));
    struct xpl_buf space = mk_tpu_profile(9, 2);
    mk_sparse_core(&space, 50, 8, 40, true);
    mk_sparse_core(&space, 51, 0, 40, false);
    fail_each(space);
    return 0;
}
