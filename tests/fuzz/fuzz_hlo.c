// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an HloModuleProto: every instruction of an accepted program can be described.
#include <stdlib.h>

#include "analysis/hlo/hlo_module.h"
#include "analysis/hlo/instruction.h"
#include "base/arena.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static void describe(struct xpl_hlo_module *m, uint32_t i, struct xpl_arena *a) {
    struct xpl_hlo_instruction in, child;
    struct xpl_hlo_children children;
    struct xpl_hlo_source source;
    xpl_str_t name;
    xpl_hlo_module_get(m, i, &in);
    require(xpl_hlo_module_find(m, in.name) == i);
    require(in.category.len > 0 && in.opcode.len > 0);
    if (!xpl_hlo_tf_op_name(&in, a, &name) || !xpl_hlo_op_full_name(&in, a, &name) ||
        !xpl_hlo_source(&in, a, &source))
        return;
    xpl_hlo_children_begin(&children, &in);
    while (xpl_hlo_children_next(&children, &child))
        require(child.index < i); // so nesting ends
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_hlo_module *m = NULL;
    struct xpl_error err = {0};
    if (xpl_hlo_module_read((xpl_bytes_t){data, size}, &a, &m, &err) == XPL_OK) {
        for (uint32_t i = 0; m->valid && i < m->n_instructions && i < 1000; i++)
            describe(m, i, &a);
        require(m->valid || xpl_hlo_module_find(m, XPL_STR("x")) == UINT32_MAX);
    }
    return 0;
}
