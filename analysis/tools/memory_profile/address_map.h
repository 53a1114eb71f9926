// SPDX-License-Identifier: Apache-2.0
// From addresses to positions, with removal: what is allocated at the moment.  Its size follows the
// number of live allocations, not of events.  One thread.
#ifndef XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_ADDRESS_MAP_H_
#define XPL_ANALYSIS_TOOLS_MEMORY_PROFILE_ADDRESS_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xpl_address_slot {
    uint64_t address;
    uint32_t value;
    bool used;
};

struct xpl_address_map {
    struct xpl_address_slot *slots; // cap of them; cap is 0 or a power of two
    size_t cap, n, max_bytes;
    uint64_t seed;
};

// Prepares an empty map that never uses more than `max_bytes`.
void xpl_address_map_init(struct xpl_address_map *m, size_t max_bytes);
// Frees.  Accepts a zero-initialised map.
void xpl_address_map_fini(struct xpl_address_map *m);
// Value at the address, or NULL.  Valid until the next put or remove.
uint32_t *xpl_address_map_get(const struct xpl_address_map *m, uint64_t address);
// Sets the value, replacing one that is there.  False when memory is out.
bool xpl_address_map_put(struct xpl_address_map *m, uint64_t address, uint32_t value)
    __attribute__((warn_unused_result));
// Removes the entry; false when there is none.
bool xpl_address_map_remove(struct xpl_address_map *m, uint64_t address);

#endif
