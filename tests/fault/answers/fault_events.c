// SPDX-License-Identifier: Apache-2.0
// Timings of events by both rules, and regular expressions, with every allocation failing once.
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "tests/check.h"
#include "tests/fault/answers/each.h"
#include "tests/unit/breakdown/slow_profiles.h"

struct request {
    const struct xpl_buf *spaces; // of two hosts, the second one damaged
    size_t n_hosts;
    const struct xpl_option *options;
    size_t n;
};

static xpl_status_t run(const void *input, struct xpl_arena *arena, struct xpl_buf *out,
                        struct xpl_error *err) {
    const struct request *const r = input;
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("events"));
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_devices_value devices = {0};
    const void *products[] = {&devices};
    struct xpl_tool_host hosts[2] = {0};
    for (size_t i = 0; i < r->n_hosts; i++)
        hosts[i] = (struct xpl_tool_host){.name = XPL_STR("h"),
                                          .products = products,
                                          .profile = {r->spaces[i].p, r->spaces[i].n},
                                          .path = "h"};
    void *parsed = NULL;
    XPL_TRY(xpl_tool_options_parse(tool, r->options, r->n, true, arena, &parsed, err));
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = r->n_hosts, .options = parsed, .exec = &exec, .limit = 1 << 26};
    return tool->render(&in, out, err);
}

static struct xpl_buf damaged_profile(void) {
    struct xpl_buf space = mk_open(), line = mk_line(1, "events");
    struct mk_plane p = mk_plane(1, "/device:TPU:0");
    xpl_buf_put(&line, "\x22\x02\x0a\xff", 4);
    mk_line_end(&p, &line);
    mk_plane_end(&p, &space);
    return space;
}

static void check(const struct xpl_buf *spaces, const struct xpl_option *options, size_t n) {
    for (size_t n_hosts = 1; n_hosts <= 2; n_hosts++) {
        const struct request r = {spaces, n_hosts, options, n};
        fault_each(&(struct fault_scenario){run, &r, .least = 9});
    }
}

int main(void) {
    struct xpl_buf spaces[] = {slow_profile("load_batch", "all-reduce.1", 3000), damaged_profile()};
    const struct xpl_option own[] = {{XPL_STR("match"), XPL_STR("a")},
                                     {XPL_STR("by_id"), XPL_STR("([0-9]+)")}};
    const struct xpl_option ids[] = {{XPL_STR("by"), XPL_STR("id")},
                                     {XPL_STR("max_events"), XPL_STR("20")}};
    const struct xpl_option theirs[] = {{XPL_STR("rules"), XPL_STR("ejkernel")},
                                        {XPL_STR("prefix"), XPL_STR("")},
                                        {XPL_STR("match"), XPL_STR("a")},
                                        {XPL_STR("by_id"), XPL_STR("([0-9]+)")}};
    xpl_fault_reset();
    check(spaces, own, 2);
    check(spaces, ids, 2);
    check(spaces, theirs, 4);
    xpl_buf_fini(&spaces[0]);
    xpl_buf_fini(&spaces[1]);
    return 0;
}
