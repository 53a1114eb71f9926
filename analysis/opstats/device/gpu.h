// SPDX-License-Identifier: Apache-2.0
// Op metrics of GPU planes, and kernels.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_GPU_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_GPU_H_

#include "analysis/opstats/conversion.h"
#include "base/status.h"

// Fills device_op_metrics_db and kernel_reports from GPU planes.
xpl_status_t xpl_device_gpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            size_t n, struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;

// Fills kernel_reports alone, from TPU planes: events with kernel_details count wherever they
// stand.
xpl_status_t xpl_device_kernels(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                                size_t n, struct xpl_opstats *s, struct xpl_error *err)
    XPL_NODISCARD;

#endif
