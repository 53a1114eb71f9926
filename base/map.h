// SPDX-License-Identifier: Apache-2.0
// Hash map from a pair of 64-bit keys to a 64-bit value, inside an arena.  The hash is seeded, so
// that a hostile profile cannot cause collisions.  The map cannot be iterated: values are indexes
// into the caller's array, which has the order of insertion.
#ifndef XPL_BASE_MAP_H_
#define XPL_BASE_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xpl_arena;
struct xpl_map_slot;

// Zero-initialised is a valid empty map.
struct xpl_map {
    struct xpl_map_slot *slots;
    size_t cap, n; // cap is 0 or a power of two
};

// Pointer to the value for (k1, k2), or NULL.  Valid until the next xpl_map_put.
uint64_t *xpl_map_get(const struct xpl_map *m, uint64_t k1, uint64_t k2);
// Pointer to the value for (k1, k2), inserted as 0 when absent; *ret_new says which.  NULL on OOM
// or at the arena's limit.
uint64_t *xpl_map_put(struct xpl_arena *a, struct xpl_map *m, uint64_t k1, uint64_t k2,
                      bool *ret_new) __attribute__((warn_unused_result));

// Process-wide random seed, drawn once; threads may call it.
uint64_t xpl_hash_seed(void);

#endif
