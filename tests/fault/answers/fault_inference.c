// SPDX-License-Identifier: Apache-2.0
// Requests of a model server, their encoding and two hosts together, with every allocation failing
// once.
#include "analysis/products/product.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/inference/serving_profile.h"

#define LIMIT ((size_t)1 << 26)

// The tool's answer for two hosts, of which one has been in the store.
static xpl_status_t render(const void *value, const void *copy, struct xpl_buf *out,
                           struct xpl_error *err) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("inference_profile"));
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(LIMIT);
    struct xpl_exec exec = xpl_exec_serial();
    void *options;
    const void *const products[2][1] = {{value}, {copy}};
    const struct xpl_tool_host hosts[] = {{.name = XPL_STR("a"), .products = products[0]},
                                          {.name = XPL_STR("b"), .products = products[1]}};
    xpl_status_t st = xpl_tool_options_parse(tool, NULL, 0, true, &arena, &options, err);
    if (st == XPL_OK) {
        const struct xpl_tool_input in = {
            .hosts = hosts, .n_hosts = 2, .options = options, .exec = &exec, .limit = LIMIT};
        st = tool->render(&in, out, err);
    }
    return st;
}

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct xpl_buf *const space = input;
    const struct xpl_product *const p = &xpl_product_inference;
    struct xpl_exec exec = xpl_exec_serial();
    const struct xpl_product_input in = {
        .profile = {space->p, space->n}, .exec = &exec, .limit = LIMIT};
    (void)arena;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf bytes = xpl_buf_of(LIMIT);
    void *value = NULL, *copy = NULL;
    xpl_status_t st = p->make(&in, &value, err);
    if (st == XPL_OK) st = p->encode(value, &bytes, err);
    if (st == XPL_OK) st = p->decode((xpl_bytes_t){bytes.p, bytes.n}, LIMIT, &copy, err);
    if (st == XPL_OK) st = render(value, copy, out, err);
    p->free(copy);
    p->free(value);
    return st;
}

static void fail_each(struct xpl_buf space) {
    fault_each(&(struct fault_scenario){run, &space, 10, .some_only_speed = true});
    xpl_buf_fini(&space);
}

int main(void) {
    fail_each(serving_batches(3, 8, "m:1"));
    fail_each(serving_runs(70, "a"));
    return 0;
}
