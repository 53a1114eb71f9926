// SPDX-License-Identifier: Apache-2.0
// Which hosts of a session take part in their combination, and which of their steps.
//
// XProf takes all of them, and one host without steps leaves no step in common.  Unless that is
// asked for, hosts that are broken or idle are left out, hosts whose steps keep the others' from
// having any in common give everything but steps, and each of them is named in a warning.
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_HOSTS_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_HOSTS_H_

#include "analysis/opstats/combine/host_opstats.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_combine_host {
    const struct xpl_host_opstats *host;
    const struct xpl_host_outline *outline;
    size_t at;           // place among the hosts that were given
    bool has_steps;      // its steps take part
    uint32_t first_step; // index of its first step in common
};

struct xpl_combine_hosts {
    XPL_VEC(struct xpl_combine_host) v; // in the order given
    uint32_t n_steps, steps_dropped;
    bool empty_intersect;
    struct xpl_str_list warnings;
};

// Arrays, texts and outlines that were not given live in `arena`.  DATA_LOSS, with the first
// problem, when every host is broken.
xpl_status_t xpl_combine_choose(const struct xpl_host_opstats *hosts, size_t n, bool xprof_exact,
                                struct xpl_arena *arena, struct xpl_combine_hosts *ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
