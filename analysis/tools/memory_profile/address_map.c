// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/memory_profile/address_map.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"

void xpl_address_map_init(struct xpl_address_map *m, size_t max_bytes) {
    *m = (struct xpl_address_map){.max_bytes = max_bytes, .seed = xpl_hash_seed()};
}

void xpl_address_map_fini(struct xpl_address_map *m) {
    xpl_sys_free(m->slots);
    *m = (struct xpl_address_map){0};
}

// Where the search for an address begins.  Seeded: addresses come from the profile.
static size_t slot_of(const struct xpl_address_map *m, uint64_t address) {
    const uint64_t h = (address ^ m->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)((h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 32) & (m->cap - 1);
}

// The address's slot, or the free one where it belongs.  cap must not be 0.
static size_t find(const struct xpl_address_map *m, uint64_t address) {
    size_t i = slot_of(m, address);
    while (m->slots[i].used && m->slots[i].address != address)
        i = (i + 1) & (m->cap - 1);
    return i;
}

static bool grow(struct xpl_address_map *m) {
    const size_t cap = m->cap ? m->cap * 2 : 64;
    if (cap > m->max_bytes / sizeof *m->slots) return false;
    struct xpl_address_map grown = *m;
    grown.slots = xpl_sys_alloc(cap * sizeof *m->slots);
    if (!grown.slots) return false;
    memset(grown.slots, 0, cap * sizeof *m->slots);
    grown.cap = cap;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].used) grown.slots[find(&grown, m->slots[i].address)] = m->slots[i];
    xpl_sys_free(m->slots);
    *m = grown;
    return true;
}

uint32_t *xpl_address_map_get(const struct xpl_address_map *m, uint64_t address) {
    if (m->n == 0) return NULL;
    const size_t i = find(m, address);
    return m->slots[i].used ? &m->slots[i].value : NULL;
}

bool xpl_address_map_put(struct xpl_address_map *m, uint64_t address, uint32_t value) {
    if (m->n >= m->cap / 2 && !grow(m)) return false;
    struct xpl_address_slot *const s = &m->slots[find(m, address)];
    m->n += !s->used;
    *s = (struct xpl_address_slot){address, value, true};
    return true;
}

bool xpl_address_map_remove(struct xpl_address_map *m, uint64_t address) {
    if (m->n == 0) return false;
    size_t hole = find(m, address);
    if (!m->slots[hole].used) return false;
    // Entries behind the hole that were pushed past it move up, so that no search stops early.
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].used; i = (i + 1) & (m->cap - 1)) {
        const size_t from_home = (i - slot_of(m, m->slots[i].address)) & (m->cap - 1);
        if (from_home < ((i - hole) & (m->cap - 1))) continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole].used = false;
    m->n--;
    return true;
}
