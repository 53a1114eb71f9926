// SPDX-License-Identifier: Apache-2.0
// A time breakdown and its encoding, with every allocation failing once.
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "tests/check.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/breakdown/slow_profiles.h"

#define LIMIT ((size_t)1 << 26)

// Makes, encodes and decodes; the encoding of the result goes to `out`.
static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    const struct xpl_product *const p = &xpl_product_time_breakdown;
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_product_input in = {.profile = {space->p, space->n},
                                         .variant = XPL_TIME_BREAKDOWN_CPU_AS_DEVICE,
                                         .exec = &exec,
                                         .limit = LIMIT};
    (void)arena;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf first = xpl_buf_of(LIMIT);
    void *value = NULL, *copy = NULL;
    xpl_status_t st = p->make(&in, &value, err);
    if (st == XPL_OK) st = p->encode(value, &first, err);
    if (st == XPL_OK) st = p->decode((xpl_bytes_t){first.p, first.n}, LIMIT, &copy, err);
    if (st == XPL_OK) st = p->encode(copy, out, err);
    p->free(copy);
    p->free(value);
    return st;
}

static void fail_each(struct xpl_buf space) {
    fault_each(&(struct fault_scenario){run, &space, 10, .some_only_speed = true});
    xpl_buf_fini(&space);
}

int main(void) {
    struct slow_gpu s;
    fail_each(slow_profile("load_batch", "all-reduce.1", 3000));
    slow_gpu_begin(&s);
    for (int i = 0; i < 40; i++)
        slow_kernel(&s, &s.compute, "gemm", 30 * i, 30 * i + 10, 10);
    fail_each(slow_gpu_end(&s));
    return 0;
}
