// SPDX-License-Identifier: Apache-2.0
// What the tool launches answers of profiles, one a host.
#ifndef XPL_TESTS_UNIT_TOOLS_LAUNCHES_RENDER_H_
#define XPL_TESTS_UNIT_TOOLS_LAUNCHES_RENDER_H_

#include <stdio.h>

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "tests/unit/breakdown/slow_profiles.h"

enum { LAUNCHES_MAX_HOSTS = 4 };
#define LAUNCHES_LIMIT ((size_t)1 << 26)

// A GPU of two kernels, 10 us after their launches began; each launch takes 2 us:
//   a: launched at 0 and 1, runs 10 to 14 and 14 to 18; b: launched at 2, runs 18 to 19.
// `slower` microseconds are added to the second a, which then delays b.
static inline struct xpl_buf launches_profile(int64_t slower) {
    struct slow_gpu s;
    slow_gpu_begin(&s);
    slow_kernel(&s, &s.compute, "a", 0, 10, 4);
    slow_kernel(&s, &s.compute, "a", 1, 14, 4 + slower);
    slow_kernel(&s, &s.compute, "b", 2, 18 + slower, 1);
    return slow_gpu_end(&s);
}

// The answer goes to `out`, which is initialized in any case; hosts are called h0, h1, ...
static inline xpl_status_t launches_of(const struct xpl_buf *spaces, size_t n, const char *points,
                                       struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool *const tool = xpl_tool_find(XPL_STR("launches"));
    const struct xpl_option given = {XPL_STR("points"), xpl_str_from(points)};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_tool_host hosts[LAUNCHES_MAX_HOSTS] = {0};
    char names[LAUNCHES_MAX_HOSTS][8];
    const void *const products[1] = {NULL};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 16);
    void *options;
    xpl_buf_init(out, LAUNCHES_LIMIT);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        hosts[i] = (struct xpl_tool_host){.name = xpl_str_from(names[i]),
                                          .products = products,
                                          .profile = {spaces[i].p, spaces[i].n},
                                          .path = names[i]};
    }
    xpl_status_t st = xpl_tool_options_parse(tool, &given, 1, true, &arena, &options, err);
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = n, .options = options, .exec = &exec, .limit = LAUNCHES_LIMIT};
    if (st == XPL_OK) st = tool->render(&in, out, err);
    return st;
}

#endif
