// SPDX-License-Identifier: Apache-2.0
// What a conversion takes from device planes, and from the space as a whole.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_PART_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_PART_H_

#include "analysis/opstats/conversion.h"
#include "base/status.h"

// Fills perf_env, run_environment, diagnostics, device_op_metrics_db, duty cycle,
// core_id_to_details, kernel_reports, program_id_to_name_map, disaggregated serving.
xpl_status_t xpl_convert_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                struct xpl_error *err) XPL_NODISCARD;

// Bytes of PyTorch's ops are counted from shapes.  Those that the memory cannot move in the op's
// time came from caches, or were not moved at all, as of expanded tensors: how many were is
// unknown.  `fastest`: of devices whose peak is unknown.
void xpl_device_forget_cached_bytes(struct xpl_opstats *s, double fastest_giga_bytes_per_second);

#endif
