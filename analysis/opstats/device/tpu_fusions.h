// SPDX-License-Identifier: Apache-2.0
// The instructions inside fusions, as children of their ops.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_FUSIONS_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_FUSIONS_H_

#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/opstats.h"
#include "base/arena.h"
#include "base/status.h"

// Adds them to the ops of `db`, in `a` [UpdateOpMetricsDbFromHloModuleMap].  RESOURCE_EXHAUSTED at
// a limit.
xpl_status_t xpl_tpu_add_fusion_children(struct xpl_hlo_map *hlo, struct xpl_arena *a,
                                         struct xpl_op_metrics_db *db, struct xpl_error *err)
    XPL_NODISCARD;

#endif
