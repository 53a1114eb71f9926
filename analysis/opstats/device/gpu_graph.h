// SPDX-License-Identifier: Apache-2.0
// Kernels of CUDA graphs.  XLA runs many ops as one graph, a command buffer, whose launch has a
// name that no instruction has ("command_buffer_1"); its kernels have no other, and XProf leaves
// them out of every table of ops.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_GPU_GRAPH_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_GPU_GRAPH_H_

#include "analysis/opstats/device/gpu_plane.h"

// The op of a graph's event whose op is unknown: the fusion of its program that its kernel is named
// after, else one that stands for all the rest of the graph and has the launch's name.  `*ret_op`
// is the position of the unknown op, and receives that of the one found.
xpl_status_t xpl_gpu_graph_op(struct gpu_plane *g, uint32_t md, xpl_str_t kernel, uint32_t *ret_op);
// Fills in the metadata of one that stands for the rest of a graph.
void xpl_gpu_graph_describe(struct xpl_op_metrics *m);

#endif
