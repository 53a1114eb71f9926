// SPDX-License-Identifier: Apache-2.0
// GPU kernels by launch parameters and op: message KernelStatsDb.
// Rules: XProf's utils/kernel_stats_utils.cc and convert/xplane_to_kernel_stats_db.cc; which
// kernels use matrix cores and which ops could follows release 2.24.2, which distinguishes vendors.
#ifndef XPL_ANALYSIS_OPSTATS_METRICS_KERNELS_H_
#define XPL_ANALYSIS_OPSTATS_METRICS_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>

#include "analysis/opstats/opstats.h"
#include "base/str.h"

struct xpl_arena;

// At most so many kernels are kept, the longest ones.
enum { XPL_MAX_KERNELS = 1000 };

enum xpl_gpu_vendor { XPL_GPU_OTHER, XPL_GPU_NVIDIA, XPL_GPU_AMD };

// True when a kernel of that name uses tensor cores (NVIDIA) or matrix cores (AMD); never for other
// vendors.
bool xpl_kernel_uses_tensor_core(xpl_str_t kernel_name, enum xpl_gpu_vendor vendor);
// Our own rule, for findings and summaries: the above, and names of kernels for Hopper and
// Blackwell that XProf's list lacks, cuBLAS, cuDNN, Triton's GEMMs, and kernels of ops that could
// use them.
bool xpl_kernel_uses_matrix_unit(const struct xpl_kernel_report *k);
// True when a framework op of that name could use them.
bool xpl_op_tensor_core_eligible(xpl_str_t op_name);
// True for an einsum of two operands, "ab,bc->ac".
bool xpl_einsum_tensor_core_eligible(xpl_str_t equation);

// Reads statistic kernel_details ("regs:32 grid:8,1,1 ...") into a report: launch parameters,
// shared memory, occupancy.  Unknown and malformed words are skipped.
void xpl_kernel_parse_details(xpl_str_t details, struct xpl_kernel_report *ret);

// Orders reports by total time, longest first, then by everything that identifies a kernel, and
// drops what exceeds XPL_MAX_KERNELS (SortAndKeepTopKDurationKernelReportsInDb).
void xpl_kernels_sort_and_cut(struct xpl_kernel_report *reports, size_t *n);
// Merges reports of the same kernel: sums, minimum and maximum; the first one's occupancy stays.
// Works in place on `n` reports, of which `*n` are left, in no particular order.  NULL scratch is
// not allowed; false at its limit.
bool xpl_kernels_merge_equal(struct xpl_kernel_report *reports, size_t *n,
                             struct xpl_arena *scratch) __attribute__((warn_unused_result));

#endif
