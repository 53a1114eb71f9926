// SPDX-License-Identifier: Apache-2.0
// Executions of a program as steps, for profiles in which nothing marks steps.  docs/steps.md.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_EXECUTIONS_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_EXECUTIONS_H_

#include "analysis/opstats/conversion.h"
#include "analysis/opstats/host/runs.h"
#include "analysis/opstats/steps/event_span.h"

// The executions of one program on a device, by begin.
struct xpl_executions {
    xpl_str_t program; // "" when there are none
    struct xpl_timespan *v;
    size_t n;
};

// Finds the executions on a plane of a GPU or a TPU of the program that takes most time there, of
// those that run at least twice; only those of `program` unless it is "".  The result lives in
// `arena`.  RESOURCE_EXHAUSTED, DATA_LOSS, CANCELLED.
xpl_status_t xpl_executions_find(const struct xpl_convert *c, const struct xpl_plane *plane,
                                 xpl_str_t program, struct xpl_arena *arena,
                                 struct xpl_executions *ret, struct xpl_error *err) XPL_NODISCARD;
// The execution in which an instant is: each lasts until the next one begins, the last one until
// its end.  False for an instant in none.
bool xpl_execution_at(const struct xpl_executions *e, uint64_t time_ps, size_t *ret);
// Adds a step for each execution of the host's program that takes most time, of those that run at
// least twice, where no step has an annotation.  False at a limit of `scratch` or steps->arena.
bool xpl_steps_add_runs(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                        struct xpl_arena *scratch) XPL_NODISCARD;
// The name of an execution that is a step: "execution of PROGRAM INDEX".  False at the limit.
bool xpl_execution_name(xpl_str_t program, size_t index, struct xpl_arena *arena, xpl_str_t *ret)
    XPL_NODISCARD;

#endif
