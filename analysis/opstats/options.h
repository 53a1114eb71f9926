// SPDX-License-Identifier: Apache-2.0
// What callers may choose about a conversion.
#ifndef XPL_ANALYSIS_OPSTATS_OPTIONS_H_
#define XPL_ANALYSIS_OPSTATS_OPTIONS_H_

#include <stdbool.h>

struct xpl_convert_options {
    // Count XLA and framework ops on host threads as device ops.  The caller sets it only when no
    // host of the session has a device plane (xpl_xspace_has_device).
    bool cpu_as_device;
    // Keep the first and the last of more than five steps, which are dropped otherwise because they
    // may be incomplete.  XProf's workers keep them (op_stats_processor.cc), all else drops them.
    bool keep_incomplete_steps;
    // Only the steps are asked for: step_db is filled, and what comes along with it.
    bool steps_only;
    // As XProf, also where it knows less than the profile says (docs/differences.md: lost_costs,
    // graph_kernels, profiled_batches).
    bool xprof_exact;
};

#endif
