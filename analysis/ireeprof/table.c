// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/table.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

void xpl_iree_table_fini(struct xpl_iree_table *t) {
    xpl_sys_free(t->rows);
    xpl_sys_free(t->slots);
    t->rows = NULL, t->slots = NULL;
    t->n = t->cap = t->n_slots = 0;
}

// The slot of a key: its row's, or the free one where it belongs.
static uint32_t *slot_of(const struct xpl_iree_table *t, const void *key) {
    const size_t mask = t->n_slots - 1;
    size_t i = xpl_hash_str(xpl_hash_seed(), (xpl_str_t){key, t->key_size}) & mask;
    while (t->slots[i] &&
           memcmp(t->rows + (size_t)(t->slots[i] - 1) * t->row_size, key, t->key_size) != 0)
        i = (i + 1) & mask;
    return &t->slots[i];
}

// Room for one more row, and slots of which at least a quarter stay free.
static bool grow(struct xpl_iree_table *t) {
    if (t->n == t->cap) {
        const size_t cap = t->cap < 8 ? 8 : t->cap + t->cap / 2;
        uint8_t *const rows = xpl_sys_realloc(t->rows, cap * t->row_size);
        if (!rows) return false;
        t->rows = rows, t->cap = cap;
    }
    if ((t->n + 1) * 4 <= t->n_slots * 3) return true;
    const size_t n_slots = t->n_slots ? t->n_slots * 2 : 16;
    uint32_t *const slots = xpl_sys_alloc(n_slots * sizeof *slots);
    if (!slots) return false;
    memset(slots, 0, n_slots * sizeof *slots);
    xpl_sys_free(t->slots);
    t->slots = slots, t->n_slots = n_slots;
    for (size_t i = 0; i < t->n; i++)
        *slot_of(t, xpl_iree_table_at(t, i)) = (uint32_t)(i + 1);
    return true;
}

void *xpl_iree_table_get(const struct xpl_iree_table *t, const void *key) {
    const uint32_t at = t->n ? *slot_of(t, key) : 0;
    return at ? xpl_iree_table_at(t, at - 1) : NULL;
}

void *xpl_iree_table_put(struct xpl_iree_table *t, const void *key, bool *ret_new) {
    void *const known = xpl_iree_table_get(t, key);
    *ret_new = !known;
    if (known) return known;
    if (t->n >= UINT32_MAX - 1 || !grow(t)) return NULL;
    uint8_t *const row = t->rows + t->n * t->row_size;
    memset(row, 0, t->row_size);
    memcpy(row, key, t->key_size);
    *slot_of(t, key) = (uint32_t)++t->n;
    return row;
}
