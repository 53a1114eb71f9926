// SPDX-License-Identifier: Apache-2.0
// What SparseCores did, by the op of a TensorCore that started it.
#ifndef XPL_ANALYSIS_OPSTATS_DEVICE_OFFLOADS_H_
#define XPL_ANALYSIS_OPSTATS_DEVICE_OFFLOADS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

struct offload {
    uint64_t core_id, start_id;
    struct xpl_op_metrics_db *db;
};
struct offloads {
    struct xpl_map index; // (core_id, start_id) to position
    XPL_VEC(struct offload) v;
};

// NULL when that op started nothing.
struct xpl_op_metrics_db *xpl_offloads_find(const struct offloads *o, uint64_t core_id,
                                            uint64_t start_id);
// A later one replaces an earlier one of the same op.  False at the arena's limit.
bool xpl_offloads_put(struct offloads *o, struct xpl_arena *a, struct offload v);

#endif
