// SPDX-License-Identifier: Apache-2.0
// From the products of hosts to a tool's answer: which hosts are asked for which products, which
// are left out, what is rendered, and what is verified at the end.  Where products come from is the
// caller's matter: the daemon has a manager that keeps them (server/engine/gather.h), and
// `xplanectl analyze` makes each from its profile (xpl_resolve).
#ifndef XPL_ANALYSIS_TOOLS_RESOLVE_H_
#define XPL_ANALYSIS_TOOLS_RESOLVE_H_

#include "analysis/tools/tool.h"

// --- Answers ---

// Whether a failure is of one host's file, so that the others can be answered without it: it is
// broken, cannot be opened or fetched, keeps changing, or takes more memory than one request may.
bool xpl_resolve_is_of_file(xpl_status_t why);

// Called for each host that is left out, and for each that is shown in spite of something.
typedef void xpl_host_warn_fn(void *arg, xpl_str_t host, xpl_str_t text);

// What the answer has of a host.
struct xpl_resolved_host {
    xpl_str_t name;
    const void *products[XPL_TOOL_MAX_NEEDS]; // values of the tool's needs; the source's
    xpl_bytes_t profile;                      // of tools that read profiles
    const char *path;                         // its file's, for errors
    void *outlines[XPL_TOOL_MAX_NEEDS];       // of those that are got in turn; the resolver's
    bool empty;                               // the profile has 0 bytes
    xpl_status_t status;                      // not OK: the host is broken, for this reason
    struct xpl_error err;
    bool fatal; // the resolver's: it ends the request
};

// Where a resolver has its products from.
struct xpl_resolve_source {
    // Gets the products of host `i` of the request, in the variants of the tool's needs.  A broken
    // host is no failure: its status is set.  Called by threads of `exec` for several hosts at
    // once, unless they are got one by one.  A product with an outline may be left NULL: it is
    // then got by `turns`, once for its outline and again when render asks for it.
    xpl_status_t (*get)(void *arg, size_t i, const unsigned *variants, struct xpl_exec *exec,
                        struct xpl_resolved_host *ret, struct xpl_error *err);
    // NULL: `get` leaves no product NULL.
    const struct xpl_tool_turns *turns;
    // Likewise, once all hosts have their products: for what needs to know that.  May be NULL.
    xpl_status_t (*unpack)(void *arg, size_t i, struct xpl_resolved_host *host,
                           struct xpl_error *err);
    // NULL: the tool's own render.
    xpl_status_t (*render)(void *arg, const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err);
    // After the last read: fails when what was read is not what it should have been.
    xpl_status_t (*verify)(void *arg, struct xpl_error *err);
    xpl_host_warn_fn *warn;
    void *arg; // of all of them
};

struct xpl_resolving {
    const struct xpl_tool *tool;
    const void *options;             // the tool's
    struct xpl_resolved_host *hosts; // the caller's, by name, with their names; the rest is filled
    size_t n_hosts;
    bool by_name;            // they were asked for by name
    bool one_by_one;         // one host after another
    bool session_has_device; // xpl_resolve_has_device over all hosts of the session
    struct xpl_exec *exec;
    size_t limit; // bytes of each arena and buffer
    struct xpl_resolve_source source;
};

// Appends the answer to `out`.  Broken hosts are left out with a warning: their products are NULL
// for render, and their problem the error's text.  It is an error where that leaves none, and for
// hosts that were asked for by name or are the only one.  A failure of `verify` counts more than
// any other.
xpl_status_t xpl_resolve_from(const struct xpl_resolving *r, struct xpl_buf *out,
                              struct xpl_error *err) XPL_NODISCARD;

// --- Without caches ---

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
    // Called for profiles that are not read again soon: their pages may go; or NULL.
    void (*release)(const void *p, size_t n);
    // Called for each host after the last read; fails when its bytes may have changed meanwhile.
    xpl_status_t (*verify)(void *arg, size_t host, struct xpl_error *err);
    xpl_host_warn_fn *warn;
    void *arg; // of both
};

// From so many hosts on products are kept packed: unpacked they are several times as large, and
// those of hundreds of hosts would fill the memory.
enum { XPL_RESOLVE_MANY = 9 };
// Whether render asks for the tool's products of so many hosts in turn (xpl_tool_takes_turns).
bool xpl_resolve_in_turn(const struct xpl_tool *tool, size_t n_hosts);

// xpl_resolve_from with products that are made for this answer, one host after another; those that
// render asks for in turn are packed until then.  Errors about a host begin with its path.
xpl_status_t xpl_resolve(const struct xpl_resolve *r, struct xpl_buf *out, struct xpl_error *err)
    XPL_NODISCARD;

// Whether a profile has a device.
xpl_status_t xpl_resolve_has_device(xpl_bytes_t profile, bool *ret, struct xpl_error *err)
    XPL_NODISCARD;

#endif
