// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"

struct xpl_map_slot {
    uint64_t k1, k2, value;
    uint64_t used;
};

uint64_t xpl_hash_seed(void) {
    static _Atomic uint64_t seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed);
    if (s) return s;
    uint64_t drawn = 0, none = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) drawn = (uintptr_t)&seed;
    drawn |= 1;
    return atomic_compare_exchange_strong(&seed, &none, drawn) ? drawn : none;
}

static uint64_t mix(uint64_t k1, uint64_t k2) {
    // Neither factor may be 0 by choice: the seed would be gone from the product.
    const uint64_t seed = xpl_hash_seed();
    const __uint128_t m =
        (__uint128_t)(k1 ^ seed) * (k2 ^ (seed >> 32 | seed << 32) ^ 0x9e3779b97f4a7c15u);
    const uint64_t h = (uint64_t)m ^ (uint64_t)(m >> 64) ^ k1 ^ (k2 << 1);
    return (h ^ (h >> 32)) * 0xff51afd7ed558ccdu;
}

static struct xpl_map_slot *find_slot(const struct xpl_map *m, uint64_t k1, uint64_t k2) {
    size_t i = (mix(k1, k2) >> 20) & (m->cap - 1);
    while (m->slots[i].used && (m->slots[i].k1 != k1 || m->slots[i].k2 != k2))
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

uint64_t *xpl_map_get(const struct xpl_map *m, uint64_t k1, uint64_t k2) {
    if (!m->n) return NULL;
    struct xpl_map_slot *s = find_slot(m, k1, k2);
    return s->used ? &s->value : NULL;
}

static bool grow(struct xpl_arena *a, struct xpl_map *m) {
    const struct xpl_map old = *m;
    // A small map grows faster: moving its entries costs more than the room.
    struct xpl_map next = {.cap = !old.cap ? 16 : old.cap * (old.cap < 1024 ? 4 : 2), .n = old.n};
    next.slots = xpl_arena_array(a, next.cap, sizeof *next.slots);
    if (!next.slots) return false;
    memset(next.slots, 0, next.cap * sizeof *next.slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].used) *find_slot(&next, old.slots[i].k1, old.slots[i].k2) = old.slots[i];
    *m = next;
    return true;
}

uint64_t *xpl_map_put(struct xpl_arena *a, struct xpl_map *m, uint64_t k1, uint64_t k2,
                      bool *ret_new) {
    struct xpl_map_slot *s = m->cap ? find_slot(m, k1, k2) : NULL;
    const bool is_new = !s || !s->used;
    if (is_new && m->n >= m->cap / 2) {
        if (!grow(a, m)) return NULL;
        s = find_slot(m, k1, k2);
    }
    if (is_new) {
        *s = (struct xpl_map_slot){.k1 = k1, .k2 = k2, .used = 1};
        m->n++;
    }
    if (ret_new) *ret_new = is_new;
    return &s->value;
}
