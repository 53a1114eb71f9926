// SPDX-License-Identifier: Apache-2.0
// Steps of a stream of a GPU, or of a line of a TPU plane that is no core.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_GPU_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_STEP_EVENTS_GPU_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/status.h"

// Events count that are in a step of `markers`; spans live in ret->arena.
xpl_status_t xpl_stream_steps(const struct xpl_convert *c, const struct xpl_line *line,
                              const struct xpl_steps *markers, struct xpl_steps *ret,
                              struct xpl_error *err) XPL_NODISCARD;

#endif
