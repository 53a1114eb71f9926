// SPDX-License-Identifier: Apache-2.0
// What the parts of a combination share: copies, and core ids.
#include "analysis/opstats/combine/merge.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

// ---- copies ----

// Hosts of a session repeat each other's texts: each is kept once.
bool xpl_merge_text(const struct xpl_merge *m, xpl_str_t *text) {
    xpl_strid_t id;
    if (!m->texts) return true;
    if (!xpl_intern_put(m->texts, *text, &id)) return false;
    *text = xpl_intern_get(m->texts, id);
    return true;
}

bool xpl_merge_array(const struct xpl_merge *m, void *at_pointer, size_t n, size_t size) {
    const void *old;
    memcpy(&old, at_pointer, sizeof old);
    if (!m->texts || !old) return true;
    void *const copy = xpl_arena_array(m->result, n, size);
    if (!copy) return false;
    if (n) memcpy(copy, old, n * size);
    memcpy(at_pointer, &copy, sizeof copy);
    return true;
}

bool xpl_merge_bytes(const struct xpl_merge *m, xpl_bytes_t *bytes) {
    return xpl_merge_array(m, &bytes->ptr, bytes->len, 1);
}

// ---- core ids ----

uint32_t xpl_merge_core_id(size_t host, uint32_t core_id) {
    return (uint32_t)host * XPL_CORES_PER_HOST + core_id;
}

struct core_key {
    uint32_t core_id;
    size_t at;
};

static int by_core(const void *pa, const void *pb) {
    const struct core_key *a = pa, *b = pb;
    if (a->core_id != b->core_id) return a->core_id < b->core_id ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static uint32_t core_at(const char *base, size_t i, size_t size) {
    uint32_t id;
    memcpy(&id, base + i * size, sizeof id);
    return id;
}

bool xpl_merge_unique_by_core(void *v, size_t *n, size_t size, struct xpl_arena *scratch) {
    char *const base = v;
    size_t sorted = *n > 0;
    while (sorted < *n && core_at(base, sorted - 1, size) < core_at(base, sorted, size))
        sorted++;
    if (sorted == *n) return true;
    struct core_key *const keys = xpl_arena_array(scratch, *n, sizeof *keys);
    char *const copy = xpl_arena_array(scratch, *n, size);
    if (!keys || !copy) return false;
    for (size_t i = 0; i < *n; i++)
        keys[i] = (struct core_key){core_at(base, i, size), i};
    xpl_sort(keys, *n, sizeof *keys, by_core);
    memcpy(copy, base, *n * size);
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (i == 0 || keys[i - 1].core_id != keys[i].core_id)
            memcpy(base + kept++ * size, copy + keys[i].at * size, size);
    *n = kept;
    return true;
}
