// SPDX-License-Identifier: Apache-2.0
// The kind of a plane for grouping, and the line by which a TPU plane is grouped.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_PLANES_H_
#define XPL_ANALYSIS_GROUPING_PLAN_PLANES_H_

#include <stdbool.h>

#include "analysis/xplane/xspace.h"

// Planes that count as the host's, and as a device's [IsHostPlane, IsDevicePlane].
bool xpl_grp_is_host_plane(const struct xpl_plane *p);
bool xpl_grp_is_device_plane(const struct xpl_plane *p);
// Grouping line of a TPU plane, or NULL [GetGroupingLineForTPU].  *ret_steps: its step line, NULL
// when it has none; ret_steps may be NULL.
const struct xpl_line *xpl_grp_tpu_line(const struct xpl_plane *p,
                                        const struct xpl_line **ret_steps);
// A line of step markers, of a TensorCore or a SparseCore.
bool xpl_grp_is_step_line(const struct xpl_line *l);

#endif
