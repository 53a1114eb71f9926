// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/derived: the op, module and program of a GPU's kernel, by its
// statistics.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_GPU_H_
#define XPL_ANALYSIS_TRACE_DERIVED_GPU_H_

#include "analysis/trace/derived/impl.h"

// Statistics of one event [GpuEventStats].
struct xpl_gpu_event {
    uint32_t tf_op, path, module; // numbers of texts; path: XPL_GPU_NO_PATH without one
    bool kernel, execution, has_program, has_graph, has_correlation, has_scope;
    uint64_t program, graph;
    int64_t correlation, scope;
};
#define XPL_GPU_NO_PATH UINT32_MAX

// Metadata named "module(program)", or only by the module; 0 when out of memory.
uint32_t xpl_gpu_module_md(struct xpl_dplane *p, const struct xpl_gpu_event *e);
// The levels of the event's path, and the framework op and source of its instruction.
xpl_status_t xpl_gpu_find_xla(struct xpl_dplane *p, const struct xpl_gpu_event *e,
                              struct xpl_dxla *ret);

#endif
