// SPDX-License-Identifier: Apache-2.0
// Op metrics and duty cycle of TPU planes.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_TPU_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_TPU_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/device/planes.h"
#include "base/status.h"

// Fills device_op_metrics_db with idle and busy times.  `details` has one entry for each plane.
xpl_status_t xpl_device_tpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            const struct xpl_plane_details *details, size_t n,
                            struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;

#endif
