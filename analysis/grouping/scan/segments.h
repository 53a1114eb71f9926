// SPDX-License-Identifier: Apache-2.0
// Append-only lists in growing segments: no copy, no slack to speak of.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_SEGMENTS_H_
#define XPL_ANALYSIS_GROUPING_SCAN_SEGMENTS_H_

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct seg {
    struct seg *next;
    uint32_t n, cap;
};
struct seg_list {
    struct seg *first, *last;
    size_t n;
    uint32_t elem;
};

// Adds one element, uninitialised; NULL when out of memory.
void *xpl_grp_seg_push(struct xpl_arena *a, struct seg_list *l);
// Copies all elements to `to`.
void xpl_grp_seg_copy(const struct seg_list *l, void *to);
static inline void *seg_at(struct seg *s) {
    return s + 1;
}

#endif
