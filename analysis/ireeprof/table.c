// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/table.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

void xpl_iree_table_fini(struct xpl_iree_table *t) {
    xpl_sys_free(t->rows);
    xpl_sys_free(t->slots);
    t->rows = NULL, t->slots = NULL;
    t->n = t->cap = t->n_slots = t->last = 0;
}

// Whether the key of row i is this one.  Keys are whole words.
static inline bool is_key(const struct xpl_iree_table *t, size_t i, const void *key) {
    const uint8_t *const row = xpl_iree_table_at(t, i);
    uint64_t different = 0;
    for (size_t k = 0; k < t->key_size; k += 8) {
        uint64_t a, b;
        memcpy(&a, row + k, 8);
        memcpy(&b, (const uint8_t *)key + k, 8);
        different |= a ^ b;
    }
    return different == 0;
}

// Ids are mostly given one after the other: slots of eight that differ in the last bits of the
// key's first word are one line of the cache, so that most are found without waiting for memory. At
// most eight hostile keys can share a group; the seed decides its position.
enum { GROUP_BITS = 3, GROUP = 1 << GROUP_BITS, MOST_KEY = 64 };

static uint32_t hash_of(const struct xpl_iree_table *t, const void *key) {
    uint64_t words[MOST_KEY / 8], first;
    memcpy(&first, key, 8);
    words[0] = first >> GROUP_BITS;
    for (size_t k = 8; k < t->key_size; k += 8)
        memcpy(&words[k / 8], (const uint8_t *)key + k, 8);
    const xpl_str_t group = {(const char *)words, t->key_size};
    return (xpl_hash_str(xpl_hash_seed(), group) & ~(uint32_t)(GROUP - 1)) | first % GROUP;
}

// The slot of a key: its row's, or the free one where it belongs.  Rows of other keys are not
// touched, but where their hashes are equal.
static uint64_t *slot_of(const struct xpl_iree_table *t, const void *key, uint32_t hash) {
    const size_t mask = t->n_slots - 1;
    size_t i = hash & mask;
    while (t->slots[i] &&
           ((uint32_t)(t->slots[i] >> 32) != hash || !is_key(t, (uint32_t)t->slots[i] - 1, key)))
        i = (i + 1) & mask;
    return &t->slots[i];
}

// The number of a key's row from 1; 0: there is none.
static uint32_t find(const struct xpl_iree_table *t, const void *key, uint32_t *ret_hash) {
    if (is_key(t, t->last, key)) return (uint32_t)t->last + 1;
    *ret_hash = hash_of(t, key);
    return (uint32_t)*slot_of(t, key, *ret_hash);
}

// Moves the rows' slots into a table of n; hashes stay with them.
static void fill(uint64_t *slots, size_t n, const struct xpl_iree_table *old) {
    memset(slots, 0, n * sizeof *slots);
    for (size_t k = 0; k < old->n_slots; k++) {
        if (!old->slots[k]) continue;
        size_t i = (old->slots[k] >> 32) & (n - 1);
        while (slots[i])
            i = (i + 1) & (n - 1);
        slots[i] = old->slots[k];
    }
}

// Room for one more row, and slots of which at least a quarter stay free.
static bool grow(struct xpl_iree_table *t) {
    assert(t->key_size % 8 == 0 && t->key_size <= MOST_KEY);
    if (t->n == t->cap) {
        const size_t cap = t->cap < 8 ? 8 : t->cap + t->cap / 2;
        uint8_t *const rows = xpl_sys_realloc(t->rows, cap * t->row_size);
        if (!rows) return false;
        t->rows = rows, t->cap = cap;
    }
    if ((t->n + 1) * 4 <= t->n_slots * 3) return true;
    const size_t n_slots = t->n_slots ? t->n_slots * 2 : 16;
    uint64_t *const slots = xpl_sys_alloc(n_slots * sizeof *slots);
    if (!slots) return false;
    fill(slots, n_slots, t);
    xpl_sys_free(t->slots);
    t->slots = slots, t->n_slots = n_slots;
    return true;
}

void *xpl_iree_table_get(const struct xpl_iree_table *t, const void *key) {
    uint32_t hash;
    const uint32_t at = t->n ? find(t, key, &hash) : 0;
    return at ? xpl_iree_table_at(t, at - 1) : NULL;
}

void *xpl_iree_table_put(struct xpl_iree_table *t, const void *key, bool *ret_new) {
    uint32_t hash = 0;
    const uint32_t at = t->n ? find(t, key, &hash) : 0;
    *ret_new = !at;
    if (at) return xpl_iree_table_at(t, t->last = at - 1);
    if (t->n == 0) hash = hash_of(t, key);
    if (t->n >= UINT32_MAX - 1 || !grow(t)) return NULL;
    uint8_t *const row = t->rows + t->n * t->row_size;
    memset(row, 0, t->row_size);
    memcpy(row, key, t->key_size);
    t->last = t->n;
    *slot_of(t, key, hash) = (uint64_t)hash << 32 | (uint32_t)++t->n;
    return row;
}
