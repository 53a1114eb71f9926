// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <string.h>

#include "base/arena.h"

void *xpl_vec_room_(struct xpl_arena *a, void *v, size_t n, size_t *cap, size_t more, size_t elem) {
    size_t needed;
    if (__builtin_add_overflow(n, more, &needed)) return NULL;
    if (needed <= *cap && v) return v;
    size_t grown = *cap < 8 ? 8 : *cap * 2;
    if (grown < needed) grown = needed;
    void *p = xpl_arena_array(a, grown, elem);
    if (!p) return NULL;
    if (n) memcpy(p, v, n * elem);
    *cap = grown;
    return p;
}
