// SPDX-License-Identifier: Apache-2.0
// The cost of one element, in floating-point operations: XLA measured the cycles that instructions
// take on the device that it assumes (compute capability 8.6) and counts them as operations.
#include "analysis/hlo/cost/impl.h"

enum { DEFAULT_CYCLES = 3, MOST_TYPES = 11 };

struct row {
    enum xpl_hlo_op op;
    struct {
        uint16_t type; // enum xpl_hlo_type; 0: no more
        uint16_t cycles;
    } of[MOST_TYPES];
};

#define T(type) HLO_TYPE_##type
static const struct row table[] = {
    {XPL_HLO_ADD, {{T(F64), 97}, {T(C128), 97}}},
    {XPL_HLO_ATAN2,
     {{T(F16), 482}, {T(F32), 486}, {T(F64), 3747}, {T(C64), 5353}, {T(C128), 39027}}},
    {XPL_HLO_CBRT, {{T(F16), 925}, {T(F32), 867}, {T(F64), 6339}}},
    {XPL_HLO_COSINE, {{T(F16), 691}, {T(F32), 662}, {T(F64), 1717}, {T(C128), 6613}}},
    {XPL_HLO_DIVIDE,
     {{T(S8), 370},
      {T(S16), 367},
      {T(S32), 306},
      {T(S64), 918},
      {T(U8), 306},
      {T(U16), 302},
      {T(U32), 115},
      {T(U64), 838},
      {T(F64), 2016},
      {T(C64), 687},
      {T(C128), 7941}}},
    {XPL_HLO_EXPONENTIAL,
     {{T(F16), 108}, {T(F32), 86}, {T(F64), 1652}, {T(C64), 1360}, {T(C128), 4028}}},
    {XPL_HLO_EXPONENTIAL_MINUS_ONE,
     {{T(F16), 396}, {T(F32), 381}, {T(F64), 1900}, {T(C64), 1400}, {T(C128), 4161}}},
    {XPL_HLO_LOG, {{T(F16), 266}, {T(F32), 244}, {T(F64), 608}, {T(C64), 950}, {T(C128), 7599}}},
    {XPL_HLO_LOG_PLUS_ONE,
     {{T(F16), 284}, {T(F32), 262}, {T(F64), 2073}, {T(C64), 842}, {T(C128), 6962}}},
    {XPL_HLO_LOGISTIC, {{T(F16), 226}, {T(F32), 176}, {T(F64), 2412}}},
    {XPL_HLO_MULTIPLY, {{T(F64), 97}, {T(C128), 270}}},
    {XPL_HLO_POWER,
     {{T(S8), 392},
      {T(S16), 396},
      {T(S64), 601},
      {T(U8), 388},
      {T(U16), 399},
      {T(U64), 604},
      {T(F16), 975},
      {T(F32), 925},
      {T(F64), 5511},
      {T(C64), 3351},
      {T(C128), 18205}}},
    {XPL_HLO_RSQRT, {{T(F16), 97}, {T(F32), 75}, {T(F64), 698}, {T(C64), 2383}, {T(C128), 11318}}},
    {XPL_HLO_SINE, {{T(F32), 662}, {T(F64), 1789}, {T(C128), 5878}}},
    {XPL_HLO_SQRT, {{T(F16), 97}, {T(F32), 75}, {T(F64), 986}, {T(C64), 3193}, {T(C128), 15606}}},
    {XPL_HLO_SUBTRACT, {{T(F64), 97}, {T(C128), 97}}},
    {XPL_HLO_TANH, {{T(F16), 212}, {T(F32), 190}, {T(F64), 1609}, {T(C128), 9939}}},
};
#undef T

int64_t xpl_cost_cycles(const struct xpl_hlo_costs *c, enum xpl_hlo_op op, uint32_t type) {
    if (c->is_cpu) return 1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].op != op) continue;
        for (unsigned k = 0; k < MOST_TYPES && table[i].of[k].type; k++)
            if (table[i].of[k].type == type) return table[i].of[k].cycles;
    }
    return DEFAULT_CYCLES;
}
