// SPDX-License-Identifier: Apache-2.0
// Asks memory_viewer, or another tool of HLO programs, about one HloProto, without a profile around
// it.
#ifndef XPL_TESTS_MEMORY_VIEWER_FIXTURE_H_
#define XPL_TESTS_MEMORY_VIEWER_FIXTURE_H_

#include "analysis/products/values.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"
#include "base/exec.h"

// options: "key", "value", ..., NULL.  `out` is initialised; its caller frees it.
static inline xpl_status_t ask_program_tool(const char *name, xpl_bytes_t proto,
                                            const char *const *options, size_t limit,
                                            struct xpl_buf *out, struct xpl_error *err) {
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(name));
    struct xpl_module_entry entry = {
        .label = XPL_STR("m(1)"), .name = XPL_STR("m"), .program_id = 1, .length = proto.len};
    struct xpl_hlo_modules_value modules = {.v = &entry, .n = 1};
    const void *const products[] = {&modules};
    const struct xpl_tool_host host = {
        .name = XPL_STR("h"), .products = products, .profile = proto};
    struct xpl_option list[8] = {{XPL_STR("program_id"), XPL_STR("1")}};
    struct xpl_exec exec = xpl_exec_serial();
    struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *parsed = NULL;
    size_t n = 1;
    for (; options && options[0]; options += 2)
        list[n++] = (struct xpl_option){xpl_str_from(options[0]), xpl_str_from(options[1])};
    xpl_buf_init(out, limit);
    xpl_status_t st = xpl_tool_options_parse(tool, list, n, true, &arena, &parsed, err);
    const struct xpl_tool_input in = {
        .hosts = &host, .n_hosts = 1, .options = parsed, .exec = &exec, .limit = limit};
    if (st == XPL_OK) st = tool->render(&in, out, err);
    xpl_arena_fini(&arena);
    return st;
}

static inline xpl_status_t ask_memory_viewer(xpl_bytes_t proto, const char *const *options,
                                             size_t limit, struct xpl_buf *out,
                                             struct xpl_error *err) {
    return ask_program_tool("memory_viewer", proto, options, limit, out, err);
}

#endif
