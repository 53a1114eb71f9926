// SPDX-License-Identifier: Apache-2.0
// The list of events, and lists in general.
#include "analysis/ireeprof/timeline/impl.h"

void *xpl_iree_list_push(struct xpl_iree_list *l) {
    if (l->n == l->cap) {
        const size_t cap = l->cap < 64 ? 64 : l->cap + l->cap / 2;
        void *const v = cap < UINT32_MAX ? xpl_sys_realloc(l->v, cap * l->size) : NULL;
        if (!v) return NULL;
        l->v = v, l->cap = cap;
    }
    uint8_t *const p = (uint8_t *)l->v + l->n++ * l->size;
    memset(p, 0, l->size);
    return p;
}

struct xpl_iree_event *xpl_iree_timeline_add(struct xpl_iree_timeline *t,
                                             enum xpl_iree_event_kind kind, int64_t ns,
                                             uint32_t track, const uint8_t *at) {
    struct xpl_iree_event *const e = track == UINT32_MAX ? NULL : xpl_iree_list_push(&t->events);
    if (!e) return NULL;
    *e = (struct xpl_iree_event){.ns = ns,
                                 .kind = (uint8_t)kind,
                                 .track = track,
                                 .chunk = (uint32_t)t->chunks.n - 1,
                                 .at = at ? (uint64_t)(at - t->run->bundle->bytes.ptr) : 0,
                                 .session = t->x.model.session};
    return e;
}
