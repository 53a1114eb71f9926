// SPDX-License-Identifier: Apache-2.0
// One XSpace into its OpStats: the order of the parts.
// Rules: XProf's xplane_to_op_stats.cc (ConvertXSpaceToOpStats).
#ifndef XPL_ANALYSIS_OPSTATS_CONVERT_H_
#define XPL_ANALYSIS_OPSTATS_CONVERT_H_

#include "analysis/opstats/opstats.h"
#include "analysis/opstats/options.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_arena;

// True when the space has a /device:TPU: or /device:GPU: plane.
bool xpl_xspace_has_device(const struct xpl_xspace *xs);

// Converts an opened space.  `result` receives what outlives the call (`*ret` and all it points
// to); temporaries go to arenas of its own, each limited to `scratch_limit` bytes.  CANCELLED when
// the exec says so.
xpl_status_t xpl_opstats_convert(const struct xpl_xspace *xs, const struct xpl_convert_options *opt,
                                 struct xpl_exec *exec, struct xpl_arena *result,
                                 size_t scratch_limit, struct xpl_opstats **ret,
                                 struct xpl_error *err) XPL_NODISCARD;

#endif
