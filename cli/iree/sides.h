// SPDX-License-Identifier: Apache-2.0
// Bundles of IREE as sides of a comparison: dispatches by function and geometry in place of ops,
// repeated submissions in place of steps.
#ifndef XPL_CLI_IREE_SIDES_H_
#define XPL_CLI_IREE_SIDES_H_

#include "analysis/compare/compare.h"
#include "cli/args.h"

// Whether a run, a path or a session, is of bundles.
bool xpl_sides_is_bundle(const struct xpl_args *a, const char *run);
// The summary of such a run, in `arena`.  NULL after saying why there is none.
struct xpl_run_summary *xpl_sides_summary(const struct xpl_args *a, const char *run,
                                          struct xpl_arena *arena);

#endif
