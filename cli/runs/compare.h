// SPDX-License-Identifier: Apache-2.0
// The comparison of two groups of runs, for commands that judge it.
#ifndef XPL_CLI_RUNS_COMPARE_H_
#define XPL_CLI_RUNS_COMPARE_H_

#include <jansson.h>
#include <stdbool.h>

#include "cli/args.h"

// The runs of a side, sessions or paths.
struct xpl_run_names {
    char *text;        // of malloc, or NULL
    const char **runs; // of malloc; they point into `text` or elsewhere
    size_t n;
};
// "A1,A2" is several runs, unless there is such a path.  Reports mistakes on stderr.
bool xpl_run_names_parse(const char *text, struct xpl_run_names *ret);
void xpl_run_names_fini(struct xpl_run_names *o);

// Compares two sides, by the daemon if all are sessions, or here.  Says on stderr why there is no
// answer; returns the exit status, of which xpl_is_answered says whether *ret, the caller's to
// release, is set.
int xpl_runs_make_comparison(const struct xpl_args *args, const struct xpl_run_names sides[2],
                             json_t **ret);

#endif
