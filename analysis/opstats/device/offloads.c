// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/offloads.h"

struct xpl_op_metrics_db *xpl_offloads_find(const struct offloads *o, uint64_t core_id,
                                            uint64_t start_id) {
    const uint64_t *const at = xpl_map_get(&o->index, core_id, start_id);
    return at ? o->v.v[*at].db : NULL;
}

bool xpl_offloads_put(struct offloads *o, struct xpl_arena *a, struct offload v) {
    bool is_new;
    uint64_t *const at = xpl_map_put(a, &o->index, v.core_id, v.start_id, &is_new);
    if (!at) return false;
    if (is_new) {
        if (!xpl_vec_push(a, &o->v)) return false;
        *at = o->v.n - 1;
    }
    o->v.v[*at] = v;
    return true;
}
