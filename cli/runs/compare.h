// SPDX-License-Identifier: Apache-2.0
// The comparison of two groups of runs, for commands that judge it.
#ifndef XPL_CLI_RUNS_COMPARE_H_
#define XPL_CLI_RUNS_COMPARE_H_

#include <jansson.h>

#include "cli/args.h"

// Compares "A1,A2" with "B1,B2", runs as the command line has them, by the daemon or here.  Says on
// stderr why there is no answer; returns the exit status, of which xpl_is_answered says whether
// *ret, the caller's to release, is set.
int xpl_runs_make_comparison(const struct xpl_args *args, const char *a, const char *b,
                             json_t **ret);

#endif
