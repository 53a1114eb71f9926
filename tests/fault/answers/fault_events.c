// SPDX-License-Identifier: Apache-2.0
// Timings of events by both rules, and regular expressions, with every allocation failing once.
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/breakdown/slow_profiles.h"

struct request {
    const struct xpl_buf *space;
    const struct xpl_option *options;
    size_t n;
};

static xpl_status_t run(const void *input, struct xpl_buf *out) {
    const struct request *const r = input;
    struct xpl_error err = {0};
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("events"));
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_devices_value devices = {0};
    const void *products[] = {&devices};
    const struct xpl_tool_host host = {.name = XPL_STR("h"),
                                       .products = products,
                                       .profile = {r->space->p, r->space->n},
                                       .path = "h"};
    struct xpl_arena arena;
    void *parsed = NULL;
    xpl_arena_init(&arena, 1 << 20);
    xpl_buf_init(out, 1 << 24);
    xpl_status_t st = xpl_tool_options_parse(tool, r->options, r->n, true, &arena, &parsed, &err);
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .options = parsed, .exec = &exec, .limit = 1 << 26};
    if (st == XPL_OK) st = tool->render(&in, out, &err);
    xpl_arena_fini(&arena);
    return st;
}

static void check(const struct xpl_buf *space, const struct xpl_option *options, size_t n) {
    const struct request r = {space, options, n};
    fault_each(&(struct fault_scenario){run, &r, .least = 9});
}

int main(void) {
    struct xpl_buf space = slow_profile("load_batch", "all-reduce.1", 3000);
    const struct xpl_option own[] = {{XPL_STR("match"), XPL_STR("a")},
                                     {XPL_STR("by_id"), XPL_STR("([0-9]+)")}};
    const struct xpl_option ids[] = {{XPL_STR("by"), XPL_STR("id")},
                                     {XPL_STR("max_events"), XPL_STR("20")}};
    const struct xpl_option theirs[] = {{XPL_STR("rules"), XPL_STR("ejkernel")},
                                        {XPL_STR("prefix"), XPL_STR("")},
                                        {XPL_STR("match"), XPL_STR("a")},
                                        {XPL_STR("by_id"), XPL_STR("([0-9]+)")}};
    xpl_fault_reset();
    check(&space, own, 2);
    check(&space, ids, 2);
    check(&space, theirs, 4);
    xpl_buf_fini(&space);
    return 0;
}
