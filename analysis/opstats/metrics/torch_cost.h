// SPDX-License-Identifier: Apache-2.0
// The cost of an op of PyTorch, from the shapes and types of its inputs: matrix multiplications,
// convolutions and attention, and ops that only move memory.  FLOPs are those of
// torch.utils.flop_counter, except for gradients of grouped convolutions, which it counts as those
// of ungrouped ones; sums, differences, products and quotients have one for each number of the
// result, as torch.profiler counts them, and other ops none.  Bytes are those of all inputs and
// results, each read or written once; statistics that norms keep for their gradients do not count.
#ifndef XPL_ANALYSIS_OPSTATS_METRICS_TORCH_COST_H_
#define XPL_ANALYSIS_OPSTATS_METRICS_TORCH_COST_H_

#include <stdbool.h>

#include "analysis/hlo/cost/cost.h"
#include "base/str.h"

// The cost of one run of "aten::mm(bf16[128,256], bf16[256,512])", as the importer of PyTorch's
// traces writes the calls of ops.  False: unknown, and *ret is zero.  `nested`: ops inside of the
// op have their own times, so that ops which only call others cost nothing.
bool xpl_torch_cost(xpl_str_t call, bool nested, struct xpl_hlo_cost *ret);

// The part of a name behind `op`'s path: "aten::mm(...)" of "Net_0/aten::mm(...)".  Empty: the name
// is not that of the op's call.
xpl_str_t xpl_torch_call_of(xpl_str_t name, xpl_str_t provenance);

#endif
