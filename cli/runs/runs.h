// SPDX-License-Identifier: Apache-2.0
// Summaries of runs, which commands about several of them begin with.
#ifndef XPL_CLI_RUNS_RUNS_H_
#define XPL_CLI_RUNS_RUNS_H_

#include "analysis/compare/compare.h"
#include "cli/args.h"

// The summary of a run, a path or a session, in `arena`.  Says on stderr why there is none.
// Returns the exit status, of which xpl_is_answered says whether there is one; *ret else is as it
// was.
int xpl_runs_summarize(const struct xpl_args *a, const char *run, struct xpl_arena *arena,
                       const struct xpl_run_summary **ret);

#endif
