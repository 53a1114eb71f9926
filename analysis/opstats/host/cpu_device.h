// SPDX-License-Identifier: Apache-2.0
// The host as a device, where a session has no other.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_CPU_DEVICE_H_
#define XPL_ANALYSIS_OPSTATS_HOST_CPU_DEVICE_H_

#include "analysis/opstats/conversion.h"
#include "base/status.h"

// With cpu_as_device: fills device_op_metrics_db from host threads.
xpl_status_t xpl_convert_cpu_device(const struct xpl_convert *c, struct xpl_opstats *s,
                                    struct xpl_error *err) XPL_NODISCARD;

#endif
