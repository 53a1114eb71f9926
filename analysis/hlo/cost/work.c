// SPDX-License-Identifier: Apache-2.0
// What work and memory the analysis may take, and numbers for the parts of shapes.
#include "analysis/hlo/cost/impl.h"

bool xpl_cost_spend(struct xpl_hlo_costs *c, uint64_t steps) {
    if (xpl_cost_stopped(c)) return false;
    c->work = steps < c->work ? c->work - steps : 0;
    return c->work > 0;
}

void *xpl_cost_alloc(struct xpl_hlo_costs *c, size_t n, size_t size) {
    void *const p = xpl_arena_array(c->a, n, size);
    c->no_memory |= !p;
    return p;
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
