// SPDX-License-Identifier: Apache-2.0
// OpStats of several hosts into one (reference A6; XProf's op_stats_combiner and
// step_intersection).
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_H_

#include "analysis/opstats/combine/host_opstats.h"
#include "analysis/opstats/opstats.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_arena;

// Core ids of host i of several begin at i times this.
enum { XPL_CORES_PER_HOST = 1000 };

// Where the OpStats come from of hosts that are given by their outlines alone.
struct xpl_combine_source {
    // Gets those of host i; called by threads of `exec` for several hosts at once.
    xpl_status_t (*get)(void *arg, size_t i, const struct xpl_opstats **ret, struct xpl_error *err);
    // They are not needed any more.  Not called where the result refers to them: only one host
    // takes part.
    void (*release)(void *arg, size_t i);
    void *arg;
    struct xpl_exec *exec;
};

struct xpl_combine_input {
    const struct xpl_host_opstats *hosts;
    size_t n;
    bool xprof_exact;                        // idle hosts take part as in XProf
    bool by_name;                            // there may be more hosts, which were not asked for
    const struct xpl_combine_source *source; // NULL: all have their OpStats
};

// Combines hosts in the order given.  If their job has more processes than there are hosts, a
// warning says so.  With one host the result is that host's OpStats, not renumbered.  Idle, broken
// and straggling hosts are named in the diagnostics and idle and broken ones left out; with
// xprof_exact idle ones take part (and may empty the tables).
// Without a source `*ret` lives in `arena` but may share strings and arrays with the hosts, which
// must outlive it.  With one each host is got when its turn is near and released after it: as many
// are there at once as take 128 MiB or an eighth of the arena's limit together, two at least.
// ABORTED when a host is not what its outline says, CANCELLED when the exec says so.
xpl_status_t xpl_opstats_combine(const struct xpl_combine_input *in, struct xpl_arena *arena,
                                 struct xpl_opstats **ret, struct xpl_error *err) XPL_NODISCARD;

#endif
