// SPDX-License-Identifier: Apache-2.0
// Steps of a TPU whose input comes from the host without an infeed: part of what seems idle was
// waiting for input.  Rules: XProf's MayFixTpuStepAnalysis and ComputeTpuPerStepDataAcrossCores
// (convert/op_stats_to_input_pipeline_analysis.cc).
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_FIX_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_FIX_H_

#include "analysis/opstats/steps/event_span.h"

// Moves idle time of each core to category "infeed", in the share that the host spent on input in
// the step of the same number.  Does nothing when the devices ran an infeed op.  False at the
// arena's limit.
bool xpl_steps_fix_tpu(const struct xpl_steps *host, const struct xpl_op_metrics_db *device_ops,
                       struct xpl_step_db *db, struct xpl_arena *result) XPL_NODISCARD;

#endif
