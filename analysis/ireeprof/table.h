// SPDX-License-Identifier: Apache-2.0
// Rows found by a key: an array in the order of first appearance, with a hash index over it.
//
// Rows begin with their key, `key_size` bytes without padding, a multiple of 8.  Memory comes from
// the heap and grows by half, so that a table never holds more than one and a half times its rows.
// The hash is seeded: a bundle cannot be written to collide.
#ifndef XPL_ANALYSIS_IREEPROF_TABLE_H_
#define XPL_ANALYSIS_IREEPROF_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xpl_iree_table {
    size_t row_size, key_size;
    uint8_t *rows;
    size_t n, cap;
    uint64_t *slots; // a hash, and the index of its row + 1; 0: free
    size_t n_slots;  // 0 or a power of two
    size_t last;     // the row that was put last: most events are like the one before
};

void xpl_iree_table_fini(struct xpl_iree_table *t);
// The row of a key, inserted zeroed when it is new.  Valid until the next insertion.  NULL on OOM
// (or with 2^32 - 1 rows).
void *xpl_iree_table_put(struct xpl_iree_table *t, const void *key, bool *ret_new);
// NULL when there is none.
void *xpl_iree_table_get(const struct xpl_iree_table *t, const void *key);
// Row i < n.
static inline void *xpl_iree_table_at(const struct xpl_iree_table *t, size_t i) {
    return t->rows + i * t->row_size;
}

#endif
