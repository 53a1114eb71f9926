// SPDX-License-Identifier: Apache-2.0
// The HLO programs of a profile: plane "/host:metadata" holds one HloProto for each compiled
// program, and device events name instructions in them by (program id, instruction name).
// Rules: XProf's utils/{hlo_proto_map,hlo_module_map,hlo_module_utils}.cc and the parts of XLA that
// they call (HloInstruction::ToCategory, HloModule::get_stack_frame).
//
// Building the map finds the programs and skips their contents.  The first request for a program
// reads it, and stores only a position per instruction: details are decoded for the instructions
// that events refer to.  Strings alias the input (see xspace.h): copy those that must last.
#ifndef XPL_ANALYSIS_HLO_HLO_MAP_H_
#define XPL_ANALYSIS_HLO_HLO_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/hlo/cost/cost.h"
#include "analysis/hlo/instruction.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_hlo_map;

// Finds the programs of a space.  Free with xpl_hlo_map_free.  Later reads allocate from the map's
// private memory, at most `limit` bytes.  An HloProto that cannot be read is left out, as in XProf.
xpl_status_t xpl_hlo_map_new(const struct xpl_xspace *xs, size_t limit, struct xpl_hlo_map **ret,
                             struct xpl_error *err) XPL_NODISCARD;
// NULL is fine.
void xpl_hlo_map_free(struct xpl_hlo_map *m);

struct xpl_hlo_program {
    uint64_t program_id;
    xpl_str_t name;    // of the module, aliases the input
    xpl_bytes_t proto; // its HloProto, likewise
};
// All programs, by program id, each id once.
const struct xpl_hlo_program *xpl_hlo_map_programs(const struct xpl_hlo_map *m, size_t *ret_n);

// The id of the first program of that name; false: there is none.
bool xpl_hlo_map_program_of(const struct xpl_hlo_map *m, xpl_str_t name, uint64_t *ret);

// Looks an instruction up by name.  *ret_found is false when the program is unknown, when XLA would
// refuse its proto (no program shape, duplicate or missing names, ...), or when it has no such
// instruction.  Any thread; programs are read under a lock.  RESOURCE_EXHAUSTED at the map's limit.
xpl_status_t xpl_hlo_map_find(struct xpl_hlo_map *m, uint64_t program_id, xpl_str_t name,
                              struct xpl_hlo_instruction *ret, bool *ret_found,
                              struct xpl_error *err) XPL_NODISCARD;

// The fusion of a program whose kernel has that name (kernel_names.h); otherwise as above.
xpl_status_t xpl_hlo_map_find_kernel(struct xpl_hlo_map *m, uint64_t program_id, xpl_str_t kernel,
                                     struct xpl_hlo_instruction *ret, bool *ret_found,
                                     struct xpl_error *err) XPL_NODISCARD;

// ---- costs ----

enum xpl_hlo_costs_kind {
    XPL_HLO_COSTS_NONE,
    XPL_HLO_COSTS_KNOWN, // of every instruction that has one
    XPL_HLO_COSTS_CPU,   // likewise, of a CPU (xpl_hlo_costs_of_cpu)
    XPL_HLO_COSTS_XPROF, // none of a program on which XLA's analysis fails (xpl_hlo_costs_lost)
};
// Declares, before any lookup, which costs will be needed: they need more of a program than lookups
// do.
void xpl_hlo_map_need_costs(struct xpl_hlo_map *m, enum xpl_hlo_costs_kind kind);
// The cost of an instruction that was found; see cost.h.  Any thread; computed once, under a lock.
// Without the call above, costs are unknown.
xpl_status_t xpl_hlo_map_cost(struct xpl_hlo_map *m, const struct xpl_hlo_instruction *in,
                              struct xpl_exec *exec, struct xpl_hlo_cost *ret,
                              struct xpl_error *err) XPL_NODISCARD;

// ---- whole programs ----

// True when an instruction of any readable program belongs to the computation of gradients
// (XProf: convert/model_tracker.cc): a TensorFlow scope "gradients..." or "gradient_tape", or a JAX
// scope "transpose(...".  Scans programs in parallel without keeping anything.
xpl_status_t xpl_hlo_map_is_training(struct xpl_hlo_map *m, struct xpl_exec *exec, bool *ret,
                                     struct xpl_error *err) XPL_NODISCARD;
// The rule itself, for one op.
bool xpl_hlo_is_gradient_op(xpl_str_t op_name, xpl_str_t op_type);

#endif
