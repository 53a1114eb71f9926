// SPDX-License-Identifier: Apache-2.0
// Private to analysis/tools/input_pipeline: the parts of the analysis, for analyze.c.
#ifndef XPL_ANALYSIS_TOOLS_INPUT_PIPELINE_IMPL_H_
#define XPL_ANALYSIS_TOOLS_INPUT_PIPELINE_IMPL_H_

#include "analysis/tools/input_pipeline/input_pipeline.h"

enum { XPL_INPUT_SPARSE_CORE_START = 1000000 }; // core ids from here on are SparseCores

// Steps, by kind of hardware (generic.c, tpu.c).  False on OOM.
bool xpl_generic_steps(const struct xpl_opstats *s, struct xpl_arena *arena,
                       struct xpl_input_pipeline *ip) XPL_NODISCARD;
bool xpl_input_pipeline_tpu_steps(const struct xpl_opstats *s, struct xpl_arena *arena,
                                  struct xpl_input_pipeline *ip) XPL_NODISCARD;
// Input ops of the host (host.c).  False on OOM.
bool xpl_input_pipeline_host_ops(const struct xpl_op_metrics_db *host, struct xpl_arena *arena,
                                 struct xpl_input_pipeline *ip) XPL_NODISCARD;

// Bottleneck of a TPU's steps (bottleneck.c).  False on OOM.
bool xpl_bottleneck_tpu(const struct xpl_input_pipeline *ip, struct xpl_arena *arena,
                        struct xpl_bottleneck *ret) XPL_NODISCARD;
// HTML: what to do next.
const char *xpl_bottleneck_next_step(const struct xpl_bottleneck *b,
                                     const struct xpl_input_time *time);

#endif
