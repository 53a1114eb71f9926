// SPDX-License-Identifier: Apache-2.0
// What async ops wrap.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/text/impl.h"

// Updates of an async op follow each other; a chain that is longer is cut.
enum { MAX_CHAIN = 4096 };

uint32_t txt_wrapped(const struct xpl_hlo_module *m, uint32_t computation) {
    const struct hlo_computation *const c = &m->computations[computation];
    return c->only == c->root ? c->only : UINT32_MAX;
}

uint32_t txt_async_computation(const struct hlo_text *t, uint32_t index) {
    const struct xpl_hlo_module *const m = t->m;
    const struct hlo_computation *const c = &m->computations[m->instructions[index].computation];
    for (unsigned i = 0; i < MAX_CHAIN && index != UINT32_MAX; i++) {
        const struct hlo_instruction *const at = &m->instructions[index];
        struct xpl_hlo_message in;
        xpl_hlo_message_read((xpl_bytes_t){at->p, at->len}, &in);
        struct xpl_hlo_ints v = xpl_hlo_ints_begin(&in, HLO_INSTR_CALLED);
        int64_t id;
        if (xpl_hlo_ints_next(&v, &id)) {
            const uint64_t *const called = xpl_map_get(&m->computation_ids, (uint64_t)id, 0);
            return called ? (uint32_t)*called : UINT32_MAX;
        }
        v = xpl_hlo_ints_begin(&in, HLO_INSTR_OPERANDS);
        if (!xpl_hlo_ints_next(&v, &id)) return UINT32_MAX;
        index = xpl_hlo_module_by_id(m, c, id);
    }
    return UINT32_MAX;
}
