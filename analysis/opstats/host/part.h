// SPDX-License-Identifier: Apache-2.0
// What a conversion takes from host threads.
#ifndef XPL_ANALYSIS_OPSTATS_HOST_PART_H_
#define XPL_ANALYSIS_OPSTATS_HOST_PART_H_

#include "analysis/opstats/conversion.h"
#include "base/status.h"

// Fills host_op_metrics_db, tf_functions, performance counters.
xpl_status_t xpl_convert_host(const struct xpl_convert *c, struct xpl_opstats *s,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
