// SPDX-License-Identifier: Apache-2.0
// XLA's opcodes and types of elements.
#ifndef XPL_ANALYSIS_HLO_OPCODES_H_
#define XPL_ANALYSIS_HLO_OPCODES_H_

#include <stdint.h>

#include "base/str.h"

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

#endif
