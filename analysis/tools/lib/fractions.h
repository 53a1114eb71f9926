// SPDX-License-Identifier: Apache-2.0
// Parts of steps (analysis/products/event_fractions.h) of all hosts of a session.
#ifndef XPL_ANALYSIS_TOOLS_LIB_FRACTIONS_H_
#define XPL_ANALYSIS_TOOLS_LIB_FRACTIONS_H_

#include "analysis/products/values.h"
#include "base/arena.h"
#include "base/status.h"

// Those of one plane of one host, or those of one host.
struct xpl_fractions {
    xpl_str_t name;
    size_t host; // number
    const float *v;
    size_t n;
};
// What has one name stands together, as XProf puts it together, too: planes of several hosts that
// are called alike, hosts whose profiles have one hostname.
struct xpl_session_fractions {
    struct xpl_fractions *planes, *hosts; // by name and number of the host
    size_t n_planes, n_hosts;
};

// `hosts` has a value, or NULL for a host without one, for each of `names`, which stand for the
// hostnames that profiles lack.  *ret refers to both.  False: out of memory.
bool xpl_fractions_collect(const struct xpl_event_fractions *const *hosts, const xpl_str_t *names,
                           size_t n, struct xpl_arena *arena, struct xpl_session_fractions *ret)
    XPL_NODISCARD;

// Where those of the name of v[at] end.
static inline size_t xpl_fractions_end(const struct xpl_fractions *v, size_t n, size_t at) {
    size_t end = at + 1;
    while (end < n && xpl_str_eq(v[end].name, v[at].name))
        end++;
    return end;
}

#endif
