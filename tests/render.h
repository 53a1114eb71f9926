// SPDX-License-Identifier: Apache-2.0
// A tool's answer from OpStats that a test has, as if they were its one host's product.
#ifndef XPL_TESTS_RENDER_H_
#define XPL_TESTS_RENDER_H_

#include <stdlib.h>

#include "analysis/opstats/opstats.h"
#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/exec.h"

static inline bool tool_shows_op_stats(const struct xpl_tool *t) {
    return t->needs[0] == &xpl_product_op_stats;
}

static inline const struct xpl_tool *named_tool(const char *name) {
    const struct xpl_tool *const t = xpl_tool_find(xpl_str_from(name));
    if (!t) abort();
    return t;
}

// Appends to `out`.  `options` as "key", "value", ..., NULL.  As with xprof_exact, so that a single
// host's OpStats are shown as they are, but with the cpu_as_device of the options.
static inline xpl_status_t render_op_stats(const struct xpl_tool *tool, const struct xpl_opstats *s,
                                           const char *const *options, size_t limit,
                                           struct xpl_buf *out, struct xpl_error *err) {
    enum { MOST = 8 };
    struct xpl_option list[MOST];
    size_t n = 0;
    for (; options && *options && n < MOST; options += 2)
        list[n++] = (struct xpl_option){xpl_str_from(options[0]), xpl_str_from(options[1])};
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *parsed;
    xpl_status_t st = xpl_tool_options_parse(tool, list, n, true, &arena, &parsed, err);
    union {
        const struct xpl_opstats *in;
        struct xpl_opstats *stats; // only read
    } u = {.in = s};
    const struct xpl_op_stats_value value = {.stats = u.stats};
    const void *const products[XPL_TOOL_MAX_NEEDS] = {&value};
    const struct xpl_tool_host host = {.name = XPL_STR("host"), .products = products};
    struct xpl_exec exec = xpl_exec_serial();
    if (st == XPL_OK) {
        ((struct xpl_common_options *)parsed)->xprof_exact = true;
        const struct xpl_tool_input in = {
            .hosts = &host, .n_hosts = 1, .options = parsed, .exec = &exec, .limit = limit};
        st = tool->render(&in, out, err);
    }
    xpl_arena_fini(&arena);
    return st;
}

#endif
