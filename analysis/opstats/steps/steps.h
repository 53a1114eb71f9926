// SPDX-License-Identifier: Apache-2.0
// The steps of a profile.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEPS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEPS_H_

#include "analysis/opstats/conversion.h"
#include "base/status.h"

// Fills step_db, precision stats of device_op_metrics_db, hlo_metrics_db_complete_steps_only.
// Runs last: reads device_op_metrics_db and core_id_to_details.
xpl_status_t xpl_convert_steps(const struct xpl_convert *c, struct xpl_opstats *s,
                               struct xpl_error *err) XPL_NODISCARD;

#endif
