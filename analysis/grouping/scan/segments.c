// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/segments.h"

#include <string.h>

void *xpl_grp_seg_push(struct xpl_arena *a, struct seg_list *l) {
    struct seg *s = l->last;
    if (!s || s->n == s->cap) {
        uint32_t cap = s ? s->cap * 2 : 16; // many scans find little
        if (cap * l->elem > 1u << 16) cap = (1u << 16) / l->elem;
        struct seg *const next = xpl_arena_alloc(a, sizeof *next + (size_t)cap * l->elem);
        if (!next) return NULL;
        *next = (struct seg){.cap = cap};
        if (s)
            s->next = next;
        else
            l->first = next;
        l->last = s = next;
    }
    l->n++;
    return (uint8_t *)seg_at(s) + (size_t)s->n++ * l->elem;
}

void xpl_grp_seg_copy(const struct seg_list *l, void *to) {
    uint8_t *p = to;
    for (struct seg *s = l->first; s; s = s->next) {
        memcpy(p, seg_at(s), (size_t)s->n * l->elem);
        p += (size_t)s->n * l->elem;
    }
}
