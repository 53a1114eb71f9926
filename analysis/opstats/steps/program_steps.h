// SPDX-License-Identifier: Apache-2.0
// The steps of a program as people measure them: the time from one step to the next.  docs/steps.md
// has the definition.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_PROGRAM_STEPS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_PROGRAM_STEPS_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/host/runs.h"
#include "analysis/opstats/steps/event_span.h"

// Gives each execution to the step whose annotation launched it, then replaces the annotation of
// each step by the step's time.  A step inside another one's annotation becomes part of it; its
// annotation is then empty.
// False at the limit of `scratch`.
bool xpl_program_steps_set(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                           struct xpl_arena *scratch) XPL_NODISCARD;
// The same for the steps of devices, whose ops are in the step whose annotation launched them:
// replaces the time of each.  False at the limit of their arena.
bool xpl_device_steps_set(const struct xpl_convert *c, struct xpl_steps *steps) XPL_NODISCARD;

#endif
