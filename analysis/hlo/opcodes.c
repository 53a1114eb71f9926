// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/opcodes.h"

#include <stdlib.h>

static const struct xpl_hlo_opcode opcodes[] = {
#define ROW(constant, name, arity, kind) {name, sizeof(name) - 1, arity, HLO_OP_##kind},
    XPL_HLO_OPCODES(ROW)
#undef ROW
};

static int compare(const void *key, const void *entry) {
    const xpl_str_t *const name = key;
    const struct xpl_hlo_opcode *const op = entry;
    return xpl_str_cmp(*name, (xpl_str_t){op->name, op->len});
}

const struct xpl_hlo_opcode *xpl_hlo_opcode_find(xpl_str_t name) {
    return bsearch(&name, opcodes, sizeof opcodes / sizeof *opcodes, sizeof *opcodes, compare);
}

const struct xpl_hlo_opcode *xpl_hlo_opcode(enum xpl_hlo_op op) {
    return &opcodes[op];
}

enum xpl_hlo_op xpl_hlo_opcode_id(const struct xpl_hlo_opcode *row) {
    return (enum xpl_hlo_op)(row - opcodes);
}
