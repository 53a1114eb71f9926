// SPDX-License-Identifier: Apache-2.0
// Summaries of runs, which commands about several of them begin with.
#ifndef XPL_CLI_RUNS_RUNS_H_
#define XPL_CLI_RUNS_RUNS_H_

#include "analysis/compare/compare.h"
#include "cli/args.h"

// The summary of a run, a path or a session, in `arena`.  NULL after saying why there is none.
struct xpl_run_summary *xpl_runs_summarize(const struct xpl_args *a, const char *run,
                                           struct xpl_arena *arena);

#endif
