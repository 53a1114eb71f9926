// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/id_table.h"

#include <string.h>

#include "base/map.h"

static uint64_t id_at(const struct xpl_id_list *l, uint32_t pos) {
    uint64_t id;
    memcpy(&id, l->first + (pos - 1) * l->stride, sizeof id);
    return id;
}

struct xpl_id_table *xpl_id_table_new(struct xpl_arena *arena, const struct xpl_id_list *l) {
    uint64_t most = 0;
    for (uint32_t i = 1; i <= l->n; i++)
        if (id_at(l, i) > most) most = id_at(l, i);
    struct xpl_id_table *const t = xpl_arena_zalloc(arena, sizeof *t);
    if (!t) return NULL;
    t->hashed = most >= (uint64_t)l->n * 4 + 64;
    t->size = most + 1;
    if (t->hashed) {
        t->seed = xpl_hash_seed();
        for (t->size = 16; t->size < (uint64_t)l->n * 2; t->size *= 2)
            continue;
    }
    t->slots = xpl_arena_array(arena, t->size, sizeof *t->slots);
    if (!t->slots) return NULL;
    memset(t->slots, 0, t->size * sizeof *t->slots);
    return t;
}

// The slot of `id`, empty (0) when it is new.
static uint32_t *slot_of(const struct xpl_id_table *t, const struct xpl_id_list *l, uint64_t id) {
    if (!t->hashed) return &t->slots[id];
    uint64_t i = xpl_id_hash(t, id);
    while (t->slots[i] && id_at(l, t->slots[i]) != id)
        i = (i + 1) & (t->size - 1);
    return &t->slots[i];
}

void xpl_id_table_fill(struct xpl_id_table *t, struct xpl_id_list *l, bool *strong) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i <= l->n; i++) {
        const uint8_t *const entry = l->first + (i - 1) * l->stride;
        uint32_t *const slot = slot_of(t, l, id_at(l, i));
        if (*slot == 0)
            *slot = ++kept;
        else if (strong && strong[*slot] && !strong[i])
            continue;
        uint8_t *const to = l->first + (*slot - 1) * l->stride;
        if (to != entry) memcpy(to, entry, l->stride);
        if (strong) strong[*slot] = strong[i];
    }
    l->n = kept;
}
