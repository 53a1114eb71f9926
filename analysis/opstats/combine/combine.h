// SPDX-License-Identifier: Apache-2.0
// OpStats of several hosts into one (reference A6; XProf's op_stats_combiner and
// step_intersection).
#ifndef XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_H_
#define XPL_ANALYSIS_OPSTATS_COMBINE_COMBINE_H_

#include "analysis/opstats/combine/host_opstats.h"
#include "analysis/opstats/opstats.h"
#include "base/status.h"

struct xpl_arena;

// Combines hosts in the order given.  With one host the result is that host's OpStats, not
// renumbered.  xprof_exact: idle hosts take part as in XProf (and may empty the tables); otherwise
// idle, broken and straggling hosts are named in the diagnostics and idle and broken ones left out.
// `*ret` lives in `arena` but may share strings and arrays with the inputs, which must outlive it.
xpl_status_t xpl_opstats_combine(const struct xpl_host_opstats *hosts, size_t n, bool xprof_exact,
                                 struct xpl_arena *arena, struct xpl_opstats **ret,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
