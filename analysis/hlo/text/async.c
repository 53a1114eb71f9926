// SPDX-License-Identifier: Apache-2.0
// The instructions inside async ops.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/text/impl.h"

// Updates of an async op follow each other; a chain that is longer is cut.
enum { MAX_CHAIN = 4096 };

uint32_t txt_wrapped(const struct xpl_hlo_module *m, uint32_t computation) {
    const struct hlo_computation *const c = &m->computations[computation];
    return c->only == c->root ? c->only : UINT32_MAX;
}

// One link of the chain: the computation that the op calls itself, or its first operand.  Neither:
// false.
static bool follow(const struct xpl_hlo_module *m, uint32_t index, uint32_t *ret_called,
                   uint32_t *ret_operand) {
    const struct hlo_instruction *const at = &m->instructions[index];
    struct xpl_hlo_message in;
    int64_t id;
    xpl_hlo_message_read((xpl_bytes_t){at->p, at->len}, &in);
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&in, HLO_INSTR_CALLED);
    *ret_called = *ret_operand = UINT32_MAX;
    if (xpl_hlo_ints_next(&v, &id)) {
        const uint64_t *const called = xpl_map_get(&m->computation_ids, (uint64_t)id, 0);
        if (called) *ret_called = (uint32_t)*called;
        return called != NULL;
    }
    v = xpl_hlo_ints_begin(&in, HLO_INSTR_OPERANDS);
    if (!xpl_hlo_ints_next(&v, &id)) return false;
    *ret_operand = xpl_hlo_module_by_id(m, &m->computations[at->computation], id);
    return *ret_operand != UINT32_MAX;
}

static uint32_t walk_chain(const struct hlo_text *t, uint32_t index) {
    const struct xpl_hlo_text_cache *const cache = t->cache;
    uint32_t called, operand;
    for (unsigned i = 0; i < MAX_CHAIN; i++) {
        const uint32_t slot = index % TXT_ASYNC_SLOTS;
        if (cache && cache->async && cache->async[slot].m == t->m &&
            cache->async[slot].index == index)
            return cache->async[slot].computation;
        if (!follow(t->m, index, &called, &operand)) return UINT32_MAX;
        if (called != UINT32_MAX) return called;
        index = operand;
    }
    return UINT32_MAX;
}

// Ops of a chain follow each other in a text, so that the one before is known nearly always.
uint32_t txt_async_computation(const struct hlo_text *t, uint32_t index) {
    struct xpl_hlo_text_cache *const cache = t->cache;
    const uint32_t c = walk_chain(t, index), slot = index % TXT_ASYNC_SLOTS;
    if (cache && !cache->async) // without memory for it nothing is kept
        cache->async = xpl_arena_zalloc(cache->arena, TXT_ASYNC_SLOTS * sizeof *cache->async);
    if (cache && cache->async) {
        cache->async[slot].m = t->m;
        cache->async[slot].index = index;
        cache->async[slot].computation = c;
    }
    return c;
}
