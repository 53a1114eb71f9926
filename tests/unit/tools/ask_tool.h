// SPDX-License-Identifier: Apache-2.0
// Asks a tool of profiles as hosts "a" to "f", with options, as the daemon does.
#ifndef XPL_TESTS_UNIT_TOOLS_ASK_TOOL_H_
#define XPL_TESTS_UNIT_TOOLS_ASK_TOOL_H_

#include "analysis/tools/resolve.h"
#include "base/arena.h"
#include "tests/check.h"

struct tool_request {
    const char *tool, *key, *value; // of the option
    const struct xpl_buf *spaces;   // one a host
    size_t n, limit;                // hosts; bytes
    const char *more[2][2];         // options behind it, key and value
    struct xpl_exec *exec;          // NULL: a serial one
    xpl_host_warn_fn *warn;         // may be NULL
};

// `out` is initialized in any case.
static inline xpl_status_t ask_tool(const struct tool_request *q, struct xpl_buf *out,
                                    struct xpl_error *err) {
    enum { HOSTS = 6 };
    static const char *const names[HOSTS] = {"a", "b", "c", "d", "e", "f"};
    const struct xpl_tool *const tool = xpl_tool_find(xpl_str_from(q->tool));
    struct xpl_option o[3] = {{xpl_str_from(q->key), xpl_str_from(q->value)}};
    struct xpl_exec exec = xpl_exec_serial();
    size_t n = 1;
    for (; n < 3 && q->more[n - 1][0] && q->more[n - 1][0][0]; n++)
        o[n] =
            (struct xpl_option){xpl_str_from(q->more[n - 1][0]), xpl_str_from(q->more[n - 1][1])};
    struct xpl_resolve_host hosts[HOSTS];
    CHECK(q->n <= HOSTS);
    for (size_t i = 0; i < q->n; i++)
        hosts[i] = (struct xpl_resolve_host){.name = xpl_str_from(names[i]),
                                             .path = "p",
                                             .profile = {q->spaces[i].p, q->spaces[i].n}};
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    void *parsed;
    *err = (struct xpl_error){0};
    xpl_buf_init(out, q->limit);
    CHECK_OK(xpl_tool_options_parse(tool, o, n, true, &arena, &parsed, err), err);
    const struct xpl_resolve r = {.tool = tool,
                                  .options = parsed,
                                  .hosts = hosts,
                                  .n_hosts = q->n,
                                  .exec = q->exec ? q->exec : &exec,
                                  .limit = q->limit,
                                  .warn = q->warn};
    return xpl_resolve(&r, out, err);
}

#endif
