// SPDX-License-Identifier: Apache-2.0
// From ids of metadata to positions (1..n) of their array.  The array is nearly always dense in
// ids, otherwise the table is hashed.  Ids are compared with the caller's array, so that the table
// only holds positions.
#ifndef XPL_ANALYSIS_XPLANE_ID_TABLE_H_
#define XPL_ANALYSIS_XPLANE_ID_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "base/arena.h"

struct xpl_id_table {
    uint32_t *slots; // 0: no such id
    uint64_t size;   // dense: ids [0, size); hashed: a power of two, open addressing
    uint64_t seed;   // hashed
    bool hashed;
};

XPL_INLINE uint64_t xpl_id_hash(const struct xpl_id_table *t, uint64_t id) {
    const __uint128_t m = (__uint128_t)(id ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);
    return ((uint64_t)m ^ (uint64_t)(m >> 64)) & (t->size - 1);
}

// A metadata array, of whichever struct: the id is the first member.
struct xpl_id_list {
    uint8_t *first; // element 1
    size_t stride;
    uint32_t n;
};
// Makes an empty table of the size that the list needs, in `arena`; NULL when out of memory.
struct xpl_id_table *xpl_id_table_new(struct xpl_arena *arena, const struct xpl_id_list *l);
// Fills the table and removes duplicates from the list: the last entry of an id takes the place of
// the first, except that one marked in `strong` (by position; may be NULL) gives way to another
// such entry only.  Lowers l->n.
void xpl_id_table_fill(struct xpl_id_table *t, struct xpl_id_list *l, bool *strong);

#endif
