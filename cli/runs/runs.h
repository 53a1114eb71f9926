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
// What compare answers for A and B, each a path or a session: the document of `compare --json`, the
// caller's to free.  Returns the exit status, of which xpl_is_answered says whether there is one.
struct json_t;
int xpl_runs_comparison(const struct xpl_args *args, const char *a, const char *b,
                        struct json_t **ret);

#endif
