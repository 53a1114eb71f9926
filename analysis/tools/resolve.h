// SPDX-License-Identifier: Apache-2.0
// From the bytes of hosts to a tool's answer, without caches: what `xplanectl analyze` does.  The
// daemon has its own manager of products (server/engine) and shares the rules about broken hosts.
#ifndef XPL_ANALYSIS_TOOLS_RESOLVE_H_
#define XPL_ANALYSIS_TOOLS_RESOLVE_H_

#include "analysis/tools/tool.h"

// --- Which hosts are left out ---

// What became of a host's products.
struct xpl_host_outcome {
    xpl_status_t status;
    const struct xpl_error *err; // where status is not OK
    bool empty;                  // its profile has 0 bytes
};

// Called for each host that is left out, and for each that is shown in spite of something.
typedef void xpl_host_warn_fn(void *arg, xpl_str_t host, xpl_str_t text);

// Leaves broken hosts out of `hosts`: their products become NULL, their problem the error's text,
// a view of the outcome's.  It is an error where that leaves none, and for hosts that were asked
// for by name or are the only one.  outcomes[i] is that of hosts[i].
xpl_status_t xpl_tool_choose_hosts(const struct xpl_tool *tool,
                                   const struct xpl_host_outcome *outcomes, size_t n, bool by_name,
                                   struct xpl_tool_host *hosts, xpl_host_warn_fn *warn, void *arg,
                                   struct xpl_error *err) XPL_NODISCARD;

// --- Answers ---

struct xpl_resolve_host {
    xpl_str_t name;
    const char *path; // for messages
    xpl_bytes_t profile;
    const struct xpl_error *broken; // why there is no profile, with its path; NULL: there is
};

struct xpl_resolve {
    const struct xpl_tool *tool;
    const void *options;                  // the tool's
    const struct xpl_resolve_host *hosts; // by name
    size_t n_hosts;
    bool by_name;            // they were asked for by name
    bool session_has_device; // xpl_resolve_has_device over all hosts of the session
    struct xpl_exec *exec;
    size_t limit; // bytes of each arena and buffer
    // Called when a host's profile was read; fails when its bytes may have changed meanwhile.
    xpl_status_t (*verify)(void *arg, size_t host, struct xpl_error *err);
    xpl_host_warn_fn *warn;
    void *arg; // of both
};

// Makes the products that the tool needs, one host after another, and appends the answer to `out`.
// Errors about a host begin with its path.
xpl_status_t xpl_resolve(const struct xpl_resolve *r, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

// Whether a profile has a device.
xpl_status_t xpl_resolve_has_device(xpl_bytes_t profile, bool *ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
