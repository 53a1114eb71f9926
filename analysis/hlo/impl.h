// Private to analysis/hlo: field numbers of the HLO messages, opcodes, and a module as read.
#ifndef XPL_ANALYSIS_HLO_IMPL_H_
#define XPL_ANALYSIS_HLO_IMPL_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/wire/wire.h"
#include "base/map.h"

// xla/service/hlo.proto and xla/xla_data.proto
enum {
    HLO_PROTO_MODULE = 1,
    HLO_MODULE_NAME = 1,
    HLO_MODULE_COMPUTATIONS = 3,
    HLO_MODULE_PROGRAM_SHAPE = 4,
    HLO_MODULE_ENTRY_ID = 6,
    HLO_MODULE_STACK_FRAMES = 17,
    HLO_COMPUTATION_NAME = 1,
    HLO_COMPUTATION_INSTRUCTIONS = 2,
    HLO_COMPUTATION_ID = 5,
    HLO_COMPUTATION_ROOT_ID = 6,
    HLO_INSTR_NAME = 1,
    HLO_INSTR_OPCODE = 2,
    HLO_INSTR_SHAPE = 3,
    HLO_INSTR_METADATA = 7,
    HLO_INSTR_FUSION_KIND = 11,
    HLO_INSTR_WINDOW = 15,
    HLO_INSTR_ID = 35,
    HLO_INSTR_OPERANDS = 36,
    HLO_INSTR_CONTROL = 37,
    HLO_INSTR_CALLED = 38,
    HLO_META_OP_TYPE = 1,
    HLO_META_OP_NAME = 2,
    HLO_META_SOURCE_FILE = 3,
    HLO_META_SOURCE_LINE = 4,
    HLO_META_DEDUPLICATED_NAME = 12,
    HLO_META_STACK_FRAME_ID = 15,
    HLO_SHAPE_ELEMENT_TYPE = 2,
    HLO_WINDOW_DIMENSIONS = 1,
    HLO_WINDOW_DIM_DILATION = 5,
    HLO_WINDOW_DIM_BASE_DILATION = 6,
    HLO_FRAMES_FILE_NAMES = 1,
    HLO_FRAMES_FUNCTION_NAMES = 2,
    HLO_FRAMES_LOCATIONS = 3,
    HLO_FRAMES_FRAMES = 4,
};

// What a category needs to know of an opcode.
enum xpl_hlo_op_kind {
    HLO_OP_PLAIN,       // the category is the opcode
    HLO_OP_ELEMENTWISE, // "non-fusion elementwise"
    HLO_OP_FORMAT,      // "data formatting"
    HLO_OP_BITCAST_CONVERT,
    HLO_OP_CONVOLUTION,
    HLO_OP_FUSION,
};
struct xpl_hlo_opcode {
    const char *name;
    uint8_t len;
    int8_t arity; // -1: any number of operands
    uint8_t kind; // enum xpl_hlo_op_kind
};
// NULL when XLA knows no such opcode.  The comparisons of old protos ("less-than", ...) count as
// elementwise, into which XLA upgrades them.
const struct xpl_hlo_opcode *xpl_hlo_opcode_find(xpl_str_t name);
// Bits of one element of a PrimitiveType; 0 for types without.
unsigned xpl_hlo_element_bits(uint64_t primitive_type);

struct hlo_computation {
    int64_t id;
    uint32_t first, n; // instructions
    uint32_t fusion;   // the fusion instruction it belongs to; UINT32_MAX: none
    bool ids_rise;     // instruction ids ascend, as nearly always: they can be searched
};

struct hlo_instruction {
    xpl_str_t name; // sanitized; aliases the input unless it had to change
    const uint8_t *p;
    uint32_t len;
    uint32_t computation;
    int64_t id;
};

struct hlo_location {
    int32_t file, function, line, column;
};
struct hlo_frame {
    int32_t location, parent;
};

struct xpl_hlo_module {
    bool valid; // false: XLA refuses it
    struct hlo_computation *computations;
    struct hlo_instruction *instructions;
    uint32_t n_computations, n_instructions;
    uint32_t *slots, n_slots; // by name: index + 1
    struct xpl_map computation_ids;
    struct xpl_map instruction_ids; // (computation, id), where ids do not rise
    xpl_str_t *files, *functions;
    struct hlo_location *locations;
    struct hlo_frame *frames;
    uint32_t n_files, n_functions, n_locations, n_frames;
};

// Reads a module (bytes of an HloModuleProto).  A module that XLA refuses gives *ret with !valid.
// RESOURCE_EXHAUSTED at the arena's limit.
xpl_status_t xpl_hlo_module_read(xpl_bytes_t bytes, struct xpl_arena *a,
                                 struct xpl_hlo_module **ret, struct xpl_error *err) XPL_NODISCARD;
// UINT32_MAX when there is no such instruction.
uint32_t xpl_hlo_module_find(const struct xpl_hlo_module *m, xpl_str_t name);
// Position of an instruction id in a computation; UINT32_MAX when absent.
uint32_t xpl_hlo_module_by_id(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                              int64_t id);
// Decodes instruction `index`.
void xpl_hlo_module_get(const struct xpl_hlo_module *m, uint32_t index,
                        struct xpl_hlo_instruction *ret);

#endif
