// SPDX-License-Identifier: Apache-2.0
// XLA's opcodes.
#ifndef XPL_ANALYSIS_HLO_OPCODES_H_
#define XPL_ANALYSIS_HLO_OPCODES_H_

#include <stdint.h>

#include "base/str.h"

// The kind of an opcode, which decides the category.
enum xpl_hlo_op_kind {
    HLO_OP_PLAIN,       // the category is the opcode
    HLO_OP_ELEMENTWISE, // "non-fusion elementwise"
    HLO_OP_FORMAT,      // "data formatting"
    HLO_OP_BITCAST_CONVERT,
    HLO_OP_CONVOLUTION,
    HLO_OP_FUSION,
};
// All opcodes, sorted bytewise by name: constant, name, number of operands (-1: any), kind.
// Arity and kind follow xla/hlo/ir/hlo_opcode.h and HloInstruction::{IsOpElementwise,ToCategory};
// constants, random numbers and maps are elementwise there too.
// clang-format off
#define XPL_HLO_OPCODES(X) \
    X(ABS, "abs", 1, ELEMENTWISE)                                           \
    X(ACOS, "acos", 1, ELEMENTWISE)                                         \
    X(ACOSH, "acosh", 1, ELEMENTWISE)                                       \
    X(ADD, "add", 2, ELEMENTWISE)                                           \
    X(ADD_DEPENDENCY, "add-dependency", 2, PLAIN)                           \
    X(AFTER_ALL, "after-all", -1, PLAIN)                                    \
    X(ALL_GATHER, "all-gather", -1, PLAIN)                                  \
    X(ALL_GATHER_DONE, "all-gather-done", 1, PLAIN)                         \
    X(ALL_GATHER_START, "all-gather-start", -1, PLAIN)                      \
    X(ALL_REDUCE, "all-reduce", -1, PLAIN)                                  \
    X(ALL_REDUCE_DONE, "all-reduce-done", 1, PLAIN)                         \
    X(ALL_REDUCE_START, "all-reduce-start", -1, PLAIN)                      \
    X(ALL_TO_ALL, "all-to-all", -1, PLAIN)                                  \
    X(AND, "and", 2, ELEMENTWISE)                                           \
    X(ASIN, "asin", 1, ELEMENTWISE)                                         \
    X(ASINH, "asinh", 1, ELEMENTWISE)                                       \
    X(ASYNC_DONE, "async-done", 1, PLAIN)                                   \
    X(ASYNC_START, "async-start", -1, PLAIN)                                \
    X(ASYNC_UPDATE, "async-update", -1, PLAIN)                              \
    X(ATAN, "atan", 1, ELEMENTWISE)                                         \
    X(ATAN2, "atan2", 2, ELEMENTWISE)                                       \
    X(ATANH, "atanh", 1, ELEMENTWISE)                                       \
    X(BATCH_NORM_GRAD, "batch-norm-grad", 5, PLAIN)                         \
    X(BATCH_NORM_INFERENCE, "batch-norm-inference", 5, PLAIN)               \
    X(BATCH_NORM_TRAINING, "batch-norm-training", 3, PLAIN)                 \
    X(BITCAST, "bitcast", 1, PLAIN)                                         \
    X(BITCAST_CONVERT, "bitcast-convert", 1, BITCAST_CONVERT)               \
    X(BROADCAST, "broadcast", 1, PLAIN)                                     \
    X(CALL, "call", -1, PLAIN)                                              \
    X(CBRT, "cbrt", 1, ELEMENTWISE)                                         \
    X(CEIL, "ceil", 1, ELEMENTWISE)                                         \
    X(CHOLESKY, "cholesky", 1, PLAIN)                                       \
    X(CLAMP, "clamp", 3, ELEMENTWISE)                                       \
    X(COLLECTIVE_BROADCAST, "collective-broadcast", -1, PLAIN)              \
    X(COLLECTIVE_PERMUTE, "collective-permute", -1, PLAIN)                  \
    X(COLLECTIVE_PERMUTE_DONE, "collective-permute-done", 1, PLAIN)         \
    X(COLLECTIVE_PERMUTE_START, "collective-permute-start", -1, PLAIN)      \
    X(COLLECTIVE_REDUCE, "collective-reduce", -1, PLAIN)                    \
    X(COMPARE, "compare", 2, ELEMENTWISE)                                   \
    X(COMPLEX, "complex", 2, ELEMENTWISE)                                   \
    X(CONCATENATE, "concatenate", -1, PLAIN)                                \
    X(CONDITIONAL, "conditional", -1, PLAIN)                                \
    X(CONSTANT, "constant", 0, ELEMENTWISE)                                 \
    X(CONVERT, "convert", 1, ELEMENTWISE)                                   \
    X(CONVOLUTION, "convolution", -1, CONVOLUTION)                          \
    X(COPY, "copy", 1, FORMAT)                                              \
    X(COPY_DONE, "copy-done", 1, PLAIN)                                     \
    X(COPY_START, "copy-start", 1, PLAIN)                                   \
    X(COSH, "cosh", 1, ELEMENTWISE)                                         \
    X(COSINE, "cosine", 1, ELEMENTWISE)                                     \
    X(COUNT_LEADING_ZEROS, "count-leading-zeros", 1, ELEMENTWISE)           \
    X(CUSTOM_CALL, "custom-call", -1, PLAIN)                                \
    X(DIVIDE, "divide", 2, ELEMENTWISE)                                     \
    X(DOMAIN, "domain", 1, PLAIN)                                           \
    X(DOT, "dot", 2, PLAIN)                                                 \
    X(DYNAMIC_RESHAPE, "dynamic-reshape", -1, FORMAT)                       \
    X(DYNAMIC_SLICE, "dynamic-slice", -1, PLAIN)                            \
    X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", -1, PLAIN)              \
    X(EQUAL_TO, "equal-to", 2, ELEMENTWISE)                                 \
    X(ERF, "erf", 1, ELEMENTWISE)                                           \
    X(EXPONENTIAL, "exponential", 1, ELEMENTWISE)                           \
    X(EXPONENTIAL_MINUS_ONE, "exponential-minus-one", 1, ELEMENTWISE)       \
    X(FFT, "fft", 1, PLAIN)                                                 \
    X(FLOOR, "floor", 1, ELEMENTWISE)                                       \
    X(FUSION, "fusion", -1, FUSION)                                         \
    X(GATHER, "gather", 2, PLAIN)                                           \
    X(GET_DIMENSION_SIZE, "get-dimension-size", 1, PLAIN)                   \
    X(GET_TUPLE_ELEMENT, "get-tuple-element", 1, PLAIN)                     \
    X(GREATER_THAN, "greater-than", 2, ELEMENTWISE)                         \
    X(GREATER_THAN_OR_EQUAL_TO, "greater-than-or-equal-to", 2, ELEMENTWISE) \
    X(IMAG, "imag", 1, ELEMENTWISE)                                         \
    X(INFEED, "infeed", 1, PLAIN)                                           \
    X(IOTA, "iota", 0, PLAIN)                                               \
    X(IS_FINITE, "is-finite", 1, ELEMENTWISE)                               \
    X(LESS_THAN, "less-than", 2, ELEMENTWISE)                               \
    X(LESS_THAN_OR_EQUAL_TO, "less-than-or-equal-to", 2, ELEMENTWISE)       \
    X(LOG, "log", 1, ELEMENTWISE)                                           \
    X(LOG_PLUS_ONE, "log-plus-one", 1, ELEMENTWISE)                         \
    X(LOGISTIC, "logistic", 1, ELEMENTWISE)                                 \
    X(MAP, "map", -1, ELEMENTWISE)                                          \
    X(MAXIMUM, "maximum", 2, ELEMENTWISE)                                   \
    X(MINIMUM, "minimum", 2, ELEMENTWISE)                                   \
    X(MULHI, "mulhi", 2, ELEMENTWISE)                                       \
    X(MULTIPLY, "multiply", 2, ELEMENTWISE)                                 \
    X(NEGATE, "negate", 1, ELEMENTWISE)                                     \
    X(NOT, "not", 1, ELEMENTWISE)                                           \
    X(NOT_EQUAL_TO, "not-equal-to", 2, ELEMENTWISE)                         \
    X(OPT_BARRIER, "opt-barrier", 1, PLAIN)                                 \
    X(OR, "or", 2, ELEMENTWISE)                                             \
    X(OUTFEED, "outfeed", 2, PLAIN)                                         \
    X(PAD, "pad", 2, PLAIN)                                                 \
    X(PARAMETER, "parameter", 0, PLAIN)                                     \
    X(PARTITION_ID, "partition-id", 0, PLAIN)                               \
    X(POPCNT, "popcnt", 1, ELEMENTWISE)                                     \
    X(POWER, "power", 2, ELEMENTWISE)                                       \
    X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", 6, PLAIN)                     \
    X(RAGGED_DOT, "ragged-dot", 3, PLAIN)                                   \
    X(REAL, "real", 1, ELEMENTWISE)                                         \
    X(RECV, "recv", 1, PLAIN)                                               \
    X(RECV_DONE, "recv-done", 1, PLAIN)                                     \
    X(REDUCE, "reduce", -1, PLAIN)                                          \
    X(REDUCE_PRECISION, "reduce-precision", 1, ELEMENTWISE)                 \
    X(REDUCE_SCATTER, "reduce-scatter", -1, PLAIN)                          \
    X(REDUCE_WINDOW, "reduce-window", -1, PLAIN)                            \
    X(REMAINDER, "remainder", 2, ELEMENTWISE)                               \
    X(REPLICA_ID, "replica-id", 0, PLAIN)                                   \
    X(RESHAPE, "reshape", 1, FORMAT)                                        \
    X(REVERSE, "reverse", 1, PLAIN)                                         \
    X(RNG, "rng", -1, ELEMENTWISE)                                          \
    X(RNG_BIT_GENERATOR, "rng-bit-generator", 1, PLAIN)                     \
    X(RNG_GET_AND_UPDATE_STATE, "rng-get-and-update-state", 0, PLAIN)       \
    X(ROUND_NEAREST_AFZ, "round-nearest-afz", 1, ELEMENTWISE)               \
    X(ROUND_NEAREST_EVEN, "round-nearest-even", 1, ELEMENTWISE)             \
    X(RSQRT, "rsqrt", 1, ELEMENTWISE)                                       \
    X(SCALED_DOT, "scaled-dot", 4, PLAIN)                                   \
    X(SCAN, "scan", -1, PLAIN)                                              \
    X(SCATTER, "scatter", -1, PLAIN)                                        \
    X(SELECT, "select", 3, ELEMENTWISE)                                     \
    X(SELECT_AND_SCATTER, "select-and-scatter", 3, PLAIN)                   \
    X(SEND, "send", 2, PLAIN)                                               \
    X(SEND_DONE, "send-done", 1, PLAIN)                                     \
    X(SET_DIMENSION_SIZE, "set-dimension-size", 2, PLAIN)                   \
    X(SHIFT_LEFT, "shift-left", 2, ELEMENTWISE)                             \
    X(SHIFT_RIGHT_ARITHMETIC, "shift-right-arithmetic", 2, ELEMENTWISE)     \
    X(SHIFT_RIGHT_LOGICAL, "shift-right-logical", 2, ELEMENTWISE)           \
    X(SHUFFLE, "shuffle", 1, PLAIN)                                         \
    X(SIGN, "sign", 1, ELEMENTWISE)                                         \
    X(SINE, "sine", 1, ELEMENTWISE)                                         \
    X(SINH, "sinh", 1, ELEMENTWISE)                                         \
    X(SLICE, "slice", 1, PLAIN)                                             \
    X(SORT, "sort", -1, PLAIN)                                              \
    X(SQRT, "sqrt", 1, ELEMENTWISE)                                         \
    X(STOCHASTIC_CONVERT, "stochastic-convert", 2, ELEMENTWISE)             \
    X(SUBTRACT, "subtract", 2, ELEMENTWISE)                                 \
    X(TAN, "tan", 1, ELEMENTWISE)                                           \
    X(TANH, "tanh", 1, ELEMENTWISE)                                         \
    X(TOPK, "topk", 1, PLAIN)                                               \
    X(TRANSPOSE, "transpose", 1, FORMAT)                                    \
    X(TRIANGULAR_SOLVE, "triangular-solve", 2, PLAIN)                       \
    X(TUPLE, "tuple", -1, PLAIN)                                            \
    X(WHILE, "while", 1, PLAIN)                                             \
    X(XOR, "xor", 2, ELEMENTWISE)
// clang-format on
enum xpl_hlo_op {
#define XPL_HLO_OP_CONSTANT(constant, name, arity, kind) XPL_HLO_##constant,
    XPL_HLO_OPCODES(XPL_HLO_OP_CONSTANT)
#undef XPL_HLO_OP_CONSTANT
        XPL_HLO_N_OPS,
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
// The row of an opcode, and which opcode a row is.
const struct xpl_hlo_opcode *xpl_hlo_opcode(enum xpl_hlo_op op);
enum xpl_hlo_op xpl_hlo_opcode_id(const struct xpl_hlo_opcode *row);
#endif
