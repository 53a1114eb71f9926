// SPDX-License-Identifier: Apache-2.0
// Limits on the work and memory of the analysis, and numbers for the parts of shapes.
#include "analysis/hlo/cost/impl.h"

enum { CANCEL_SHIFT = 16 }; // looked for every 2^16 steps

bool xpl_cost_spend(struct xpl_hlo_costs *c, uint64_t steps) {
    if (xpl_cost_stopped(c)) return false;
    const uint64_t before = c->work;
    c->work = steps < before ? before - steps : 0;
    // All steps begin at a multiple: a small module ends before the first look.
    if ((before - 1) >> CANCEL_SHIFT != (c->work - (c->work > 0)) >> CANCEL_SHIFT && c->exec)
        c->cancelled = xpl_exec_cancelled(c->exec);
    return c->work > 0 && !c->cancelled;
}

void *xpl_cost_alloc(struct xpl_hlo_costs *c, size_t n, size_t size) {
    void *const p = xpl_arena_array(c->a, n, size);
    c->no_memory |= !p;
    return p;
}

void xpl_cost_push(struct xpl_hlo_costs *c, cost_entry_vec *v, uint64_t key, float value) {
    struct cost_entry *const e = xpl_cost_stopped(c) ? NULL : xpl_vec_push(c->a, v);
    if (e)
        *e = (struct cost_entry){.key = key, .v = value};
    else
        c->no_memory |= !xpl_cost_stopped(c);
}

uint32_t xpl_cost_path(struct xpl_hlo_costs *c, uint32_t parent, uint32_t i, bool make) {
    if (!make) {
        const uint64_t *const at = xpl_map_get(&c->paths, parent, i);
        return at ? (uint32_t)*at : UINT32_MAX;
    }
    bool is_new;
    uint64_t *const at = xpl_map_put(c->a, &c->paths, parent, i, &is_new);
    if (at && is_new) *at = c->paths.n;
    c->no_memory |= !at;
    return at ? (uint32_t)*at : UINT32_MAX;
}
