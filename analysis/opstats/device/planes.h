// SPDX-License-Identifier: Apache-2.0
// What the walks over device planes share.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_PLANES_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_PLANES_H_

#include <stdbool.h>

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/opstats.h"
#include "base/status.h"

// The outcome of one piece of parallel work; the first failure in plane order is reported.
struct xpl_piece {
    xpl_status_t status;
    struct xpl_error error;
};

// What a plane says of its core; not present where it says nothing.
struct xpl_plane_details {
    bool present;
    struct xpl_core_details core;
};

// ---- gpu.c ----

// Op metrics of GPU planes, and kernels.

// Fills device_op_metrics_db and kernel_reports from GPU planes.
xpl_status_t xpl_device_gpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            size_t n, struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;

// Fills kernel_reports alone, from TPU planes: events with kernel_details count wherever they
// stand.
xpl_status_t xpl_device_kernels(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                                size_t n, struct xpl_opstats *s, struct xpl_error *err)
    XPL_NODISCARD;

// ---- tpu.c ----

// Op metrics and duty cycle of TPU planes.

// Fills device_op_metrics_db with idle and busy times.  `details` has one entry for each plane.
xpl_status_t xpl_device_tpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            const struct xpl_plane_details *details, size_t n,
                            struct xpl_opstats *s, struct xpl_error *err) XPL_NODISCARD;

#endif
