// SPDX-License-Identifier: Apache-2.0
// One HLO module as read: positions of its instructions, and tables to find them.
#ifndef XPL_ANALYSIS_HLO_HLO_MODULE_H_
#define XPL_ANALYSIS_HLO_HLO_MODULE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/status.h"
#include "base/str.h"
#include "base/vec.h"

struct hlo_computation {
    int64_t id;
    xpl_str_t name;   // sanitized, as of instructions
    const uint8_t *p; // its message
    size_t len;
    uint32_t first, n; // instructions
    uint32_t root;     // an instruction
    uint32_t only;     // the only instruction beside parameters; UINT32_MAX: none, or several
    uint32_t fusion;   // the fusion instruction it belongs to; UINT32_MAX: none
    bool has_more;     // a thread that is not the main one, or a configuration
    bool ids_rise;     // instruction ids ascend, as in old programs: they can be searched
    uint32_t n_placed; // else: places for ids in xpl_hlo_module.places; 0: they are in a map
    uint32_t places;   // where these begin
};

struct hlo_instruction {
    xpl_str_t name; // sanitized; aliases the input unless it had to change
    const uint8_t *p;
    uint32_t len;
    uint32_t computation;
    int64_t id;
    uint16_t opcode;   // enum xpl_hlo_op
    bool has_metadata; // at least once
    bool has_more;     // fields other than name, opcode, shape, id, operands and the members here
    uint32_t shape_at, shape; // where its shape begins, from `p`, and its length
    uint32_t parameter;       // the number of a parameter
};
static inline xpl_bytes_t xpl_hlo_shape_of(const struct hlo_instruction *i) {
    return (xpl_bytes_t){i->p + i->shape_at, i->shape};
}

// The dependencies of an instruction: numbers of instructions in xpl_hlo_module.operands, the
// operands first, then control predecessors.
struct hlo_edges {
    size_t first;
    uint32_t n_operands, n_control;
};

// An instruction calls a computation.
struct hlo_call {
    uint32_t instruction, computation;
};

struct hlo_location {
    int32_t file, function, line, column, end_line, end_column;
};
struct hlo_frame {
    int32_t location, parent;
};

struct xpl_hlo_module {
    bool valid;        // false: XLA refuses it
    xpl_bytes_t bytes; // of the HloModuleProto
    uint32_t entry;    // a computation
    struct hlo_computation *computations;
    struct hlo_instruction *instructions;
    uint32_t n_computations, n_instructions;
    uint32_t *slots, n_slots; // by name: index + 1
    struct xpl_map computation_ids;
    // Instructions by id, where ids do not rise: by the lower half of the id, which counts within
    // the computation, each having one place more than instructions (number + 1, 0: none), else a
    // map.
    uint32_t *places;
    struct xpl_map instruction_ids; // (computation, id)
    // Of a module that was read in full; else NULL and empty.
    struct hlo_edges *edges; // by instruction
    XPL_VEC(uint32_t) operands;
    XPL_VEC(struct hlo_call) calls; // in the order of instructions
    xpl_str_t *files, *functions;
    struct hlo_location *locations;
    struct hlo_frame *frames;
    uint32_t n_files, n_functions, n_locations, n_frames;
    // Of instructions with long messages, where xpl_hlo_module_decode_long was called.
    struct xpl_hlo_instruction *decoded;
    struct xpl_map decoded_at; // by instruction
};

// Reads a module (bytes of an HloModuleProto).  A module that XLA refuses gives *ret with !valid.
// In full: with operands and calls, for texts and costs of whole modules; the tables of ops need
// only names.  RESOURCE_EXHAUSTED at the arena's limit.
xpl_status_t xpl_hlo_module_read(xpl_bytes_t bytes, struct xpl_arena *a,
                                 struct xpl_hlo_module **ret, struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_hlo_module_read_full(xpl_bytes_t bytes, struct xpl_arena *a,
                                      struct xpl_hlo_module **ret, struct xpl_error *err)
    XPL_NODISCARD;
// How many computations and instructions a module (bytes of an HloModuleProto) has; 0 and 0 when it
// is malformed.
void xpl_hlo_module_count(xpl_bytes_t bytes, uint32_t *ret_computations,
                          uint32_t *ret_instructions);
// UINT32_MAX if the module has no such instruction.
uint32_t xpl_hlo_module_find(const struct xpl_hlo_module *m, xpl_str_t name);
// Position of an instruction id in a computation; UINT32_MAX when absent.
uint32_t xpl_hlo_module_by_id(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                              int64_t id);
// The dependencies of an instruction of a module that was read in full, by xpl_hlo_module.edges.
static inline const uint32_t *xpl_hlo_module_uses(const struct xpl_hlo_module *m, uint32_t index) {
    return m->operands.n ? m->operands.v + m->edges[index].first : NULL;
}

#endif
