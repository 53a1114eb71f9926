// SPDX-License-Identifier: Apache-2.0
// Orders of a module that was read in full.  Walks keep their own stacks: a program may be as deep
// as it is long.
#ifndef XPL_ANALYSIS_HLO_MODULE_ORDER_H_
#define XPL_ANALYSIS_HLO_MODULE_ORDER_H_

#include "analysis/hlo/hlo_module.h"
#include "base/arena.h"

// The instructions of a computation, each after its operands and control predecessors, in the order
// of XLA's HloComputation::MakeInstructionPostOrder: *ret_n numbers of instructions, c->n of a
// module that is valid.  NULL at the arena's limit.
uint32_t *xpl_hlo_post_order(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                             struct xpl_arena *a, uint32_t *ret_n);

// The instructions that XLA's HloComputation::Accept visits, in that order: each unused instruction
// after its dependencies, then the root after its dependencies.  `root_alone`:
// HloInstruction::Accept of the root, which skips instructions that the root does not need.
// Results as above.
uint32_t *xpl_hlo_visit_order(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                              bool root_alone, struct xpl_arena *a, uint32_t *ret_n);

// Where the calls of instruction `index`, and of those after it, begin in m->calls, which is in the
// order of instructions.
size_t xpl_hlo_first_call(const struct xpl_hlo_module *m, uint32_t index);

#endif
