// SPDX-License-Identifier: Apache-2.0
// The findings of profiles, one a host, and answers of tools that need the same products.
#ifndef XPL_TESTS_UNIT_BREAKDOWN_FINDINGS_RENDER_H_
#define XPL_TESTS_UNIT_BREAKDOWN_FINDINGS_RENDER_H_

#include <stdio.h>

#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/buf.h"

enum { FINDINGS_MAX_HOSTS = 8 };
#define FINDINGS_LIMIT ((size_t)1 << 26)

// The answer goes to `out`, which is initialized in any case; hosts are called h0, h1, ...
static inline xpl_status_t answer_of(const char *name, const struct xpl_buf *spaces, size_t n,
                                     struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(name));
    struct xpl_exec exec = xpl_exec_serial();
    const void *products[FINDINGS_MAX_HOSTS][2] = {{NULL}};
    struct xpl_tool_host hosts[FINDINGS_MAX_HOSTS] = {0};
    char names[FINDINGS_MAX_HOSTS][8];
    xpl_status_t st = XPL_OK;
    for (size_t i = 0; i < n && st == XPL_OK; i++) {
        const struct xpl_product_input in = {.profile = {spaces[i].p, spaces[i].n},
                                             .variant = 1, // cpu_as_device
                                             .exec = &exec,
                                             .limit = FINDINGS_LIMIT};
        for (size_t k = 0; k < 2 && st == XPL_OK; k++) {
            void *value = NULL;
            st = tool->needs[k]->make(&in, &value, err);
            products[i][k] = value;
        }
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        hosts[i] = (struct xpl_tool_host){.name = xpl_str_from(names[i]), .products = products[i]};
    }
    const struct xpl_common_options options = {.cpu_as_device = true};
    const struct xpl_tool_input in = {
        .hosts = hosts, .n_hosts = n, .options = &options, .exec = &exec, .limit = FINDINGS_LIMIT};
    xpl_buf_init(out, FINDINGS_LIMIT);
    if (st == XPL_OK) st = tool->render(&in, out, err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            tool->needs[k]->free((void *)(uintptr_t)products[i][k]);
    return st;
}

static inline xpl_status_t findings_of(const struct xpl_buf *spaces, size_t n, struct xpl_buf *out,
                                       struct xpl_error *err) {
    return answer_of("findings", spaces, n, out, err);
}

#endif
