// SPDX-License-Identifier: Apache-2.0
// The cost of HLO instructions on a GPU, as XProf 2.24.2 counts it: floating-point operations and
// bytes of one run, computed only from shapes and attributes.
// Rules: XLA's HloCostAnalysis and GpuHloCostAnalysis with their default device, and XProf's use of
// them, by their observed output (tests/parity/hlo_text.py compares them).
//
// The first request computes the costs of all instructions that the entry computation reaches, in
// their order; later requests are lookups.  So an answer depends only on the module, not on earlier
// requests or on the thread, even when the work limit ends the computation.  Where XLA would not
// terminate (windows of 10^6 x 10^6, computations that call each other in a grid), this counts in
// closed form, or once.  Costs not found within XPL_HLO_COST_WORK steps are unknown.
#ifndef XPL_ANALYSIS_HLO_COST_COST_H_
#define XPL_ANALYSIS_HLO_COST_COST_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/hlo_module.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/status.h"

// Of one run.  0: nothing, or unknown.
struct xpl_hlo_cost {
    int64_t model_flops;  // operations of the program
    int64_t device_flops; // the same in units of the device's peak: 8-bit operands run twice as
                          // fast, 4-bit ones four times
    int64_t bytes;        // read and written
    int64_t hbm_read_bytes, hbm_written_bytes; // of these, bytes in the main memory
};

// Steps of work within which the costs of one module must be found: additions of properties,
// members of sets, positions of windows, every 8 bytes that are read again.
enum { XPL_HLO_COST_WORK = 1 << 26 };

// The costs of one module.
struct xpl_hlo_costs;

// For a valid module that was read in full and outlives the costs.  They live in `a`, which must
// not be used by another thread at the same time; nothing to free.  NULL at the arena's limit.
struct xpl_hlo_costs *xpl_hlo_costs_new(const struct xpl_hlo_module *m, struct xpl_arena *a);

// Selects the costs of a CPU: every operation on an element counts as one, while on a GPU it counts
// for the cycles that the instruction takes there.  Call it before the first cost is computed.
void xpl_hlo_costs_of_cpu(struct xpl_hlo_costs *c);

// Also counts calls of libraries that XLA's analysis does not know: `__cublas$gemm`.  Call it
// before the first cost is computed.
void xpl_hlo_costs_of_more_calls(struct xpl_hlo_costs *c);

// The cost of instruction `index`.  One that the entry computation does not reach has none.
// RESOURCE_EXHAUSTED at the arena's limit, CANCELLED when `exec` (NULL: never) says so; the costs
// are then good for nothing more.
xpl_status_t xpl_hlo_cost(struct xpl_hlo_costs *c, uint32_t index, struct xpl_exec *exec,
                          struct xpl_hlo_cost *ret, struct xpl_error *err) XPL_NODISCARD;

// Whether XLA's own analysis fails on an instruction that the entry computation reaches: XProf then
// has no cost of any of the module's.  Errors as above.
xpl_status_t xpl_hlo_costs_lost(struct xpl_hlo_costs *c, struct xpl_exec *exec, bool *ret,
                                struct xpl_error *err) XPL_NODISCARD;

#endif
