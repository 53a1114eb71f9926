// SPDX-License-Identifier: Apache-2.0
#include "analysis/hlo/module/order.h"

size_t xpl_hlo_first_call(const struct xpl_hlo_module *m, uint32_t index) {
    size_t lo = 0, hi = m->calls.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (m->calls.v[mid].instruction < index)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct frame {
    uint32_t instruction, next; // of its control predecessors, then operands
};

// What must stand before the frame's instruction and does not yet; UINT32_MAX: nothing more.  XLA
// takes control predecessors first, the last of them first.
static uint32_t next_before(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                            struct frame *f, const bool *placed) {
    const struct hlo_edges *const e = &m->edges[f->instruction];
    const uint32_t *const v = xpl_hlo_module_uses(m, f->instruction);
    while (f->next < e->n_operands + e->n_control) {
        const uint32_t k = f->next++;
        const uint32_t at =
            k < e->n_control ? v[e->n_operands + e->n_control - 1 - k] : v[k - e->n_control];
        if (!placed[at - c->first]) return at;
    }
    return UINT32_MAX;
}

// Marks what another instruction of the computation uses: the rest are where walks begin.  To be
// waited for is no use.
static void mark_used(const struct xpl_hlo_module *m, const struct hlo_computation *c, bool *used) {
    for (uint32_t i = c->first; i < c->first + c->n; i++) {
        const struct hlo_edges *const e = &m->edges[i];
        const uint32_t *const v = xpl_hlo_module_uses(m, i);
        for (uint32_t k = 0; k < e->n_operands; k++)
            used[v[k] - c->first] = true;
    }
}

// Operands stand before their users in a module that was read, so that stacks end.
uint32_t *xpl_hlo_post_order(const struct xpl_hlo_module *m, const struct hlo_computation *c,
                             struct xpl_arena *a, uint32_t *ret_n) {
    uint32_t *const order = xpl_arena_array(a, c->n, sizeof *order);
    struct frame *const stack = xpl_arena_array(a, c->n, sizeof *stack);
    bool *const placed = xpl_arena_zalloc(a, c->n);
    bool *const used = xpl_arena_zalloc(a, c->n);
    if (!order || !stack || !placed || !used) return NULL;
    mark_used(m, c, used);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (used[i]) continue;
        uint32_t depth = 0;
        stack[depth++] = (struct frame){c->first + i, 0};
        while (depth) {
            struct frame *const f = &stack[depth - 1];
            const uint32_t before = next_before(m, c, f, placed);
            if (before != UINT32_MAX) {
                stack[depth++] = (struct frame){before, 0};
                continue;
            }
            placed[f->instruction - c->first] = true;
            order[n++] = f->instruction;
            depth--;
        }
    }
    *ret_n = n;
    return order;
}
