// SPDX-License-Identifier: Apache-2.0
// Facts about a space that follow from its metadata.
#ifndef XPL_ANALYSIS_GROUPING_PRECHECK_H_
#define XPL_ANALYSIS_GROUPING_PRECHECK_H_

#include <stdbool.h>

#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/plan/plan.h"

struct precheck {
    bool roots;       // a host event can start a group
    bool lock_step;   // TPU steps get separate numbers
    bool context;     // names can come from the host
    bool from_device; // groups can pass from a device to the host
    bool eager;       // is_eager can be true
    bool kernels;     // a device plane has correlation ids
    bool loops;       // TensorFlow's loop ops forbid grouping [CheckLoopOp]
    bool tpu;         // some plane is named /device:TPU:
    bool iterators;   // tf.data's are linked to executors
    bool tpu_execute; // TpuExecuteOp occurs
};

// Adds the facts from the metadata of one plane.
void xpl_grp_precheck_plane(const struct plan *p, struct precheck *check);
// Whether the space arrived grouped [IsXSpaceGrouped].
bool xpl_grp_is_grouped(const struct xpl_groups *g);

#endif
