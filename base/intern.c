// SPDX-License-Identifier: Apache-2.0
#include "base/intern.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"

enum { LONG = 1024 }; // bytes

struct slot {
    uint32_t hash, id;
};

struct xpl_intern {
    struct xpl_arena *arena;
    struct slot *slots;
    xpl_str_t *strs; // indexed by id
    uint32_t cap, count;
    uint64_t seed;
    struct xpl_map places; // address and length of long texts: ids
};

static bool grow(struct xpl_intern *in, uint32_t cap) {
    struct slot *slots = xpl_arena_array(in->arena, cap, sizeof *slots);
    xpl_str_t *strs = xpl_arena_array(in->arena, cap / 2 + 1, sizeof *strs);
    if (!slots || !strs) return false;
    memset(slots, 0, cap * sizeof *slots);
    if (in->count)
        memcpy(strs, in->strs, (in->count + 1) * sizeof *strs);
    else
        strs[0] = (xpl_str_t){"", 0};
    for (uint32_t i = 0; i < in->cap; i++) {
        if (!in->slots[i].id) continue;
        uint32_t j = in->slots[i].hash & (cap - 1);
        while (slots[j].id)
            j = (j + 1) & (cap - 1);
        slots[j] = in->slots[i];
    }
    in->slots = slots, in->strs = strs, in->cap = cap;
    return true;
}

struct xpl_intern *xpl_intern_new(struct xpl_arena *arena, uint64_t seed) {
    struct xpl_intern *in = xpl_arena_alloc(arena, sizeof *in);
    if (!in) return NULL;
    *in = (struct xpl_intern){.arena = arena, .seed = seed};
    return grow(in, 64) ? in : NULL;
}

// The slot of `s`, or the free one where it belongs.
static inline uint32_t slot_of(const struct xpl_intern *in, xpl_str_t s, uint32_t h) {
    uint32_t i = h & (in->cap - 1);
    for (; in->slots[i].id; i = (i + 1) & (in->cap - 1)) {
        const xpl_str_t have = in->strs[in->slots[i].id];
        if (in->slots[i].hash == h && have.len == s.len && !memcmp(have.ptr, s.ptr, s.len)) break;
    }
    return i;
}

bool xpl_intern_find(const struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret) {
    const uint32_t id = s.len ? in->slots[slot_of(in, s, xpl_hash_str(in->seed, s))].id : 0;
    if (s.len && !id) return false;
    ret->v = id;
    return true;
}

bool xpl_intern_put(struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret) {
    if (s.len == 0) {
        ret->v = 0;
        return true;
    }
    const uint32_t h = xpl_hash_str(in->seed, s);
    uint32_t i = slot_of(in, s, h);
    if (in->slots[i].id) {
        ret->v = in->slots[i].id;
        return true;
    }
    if (in->count + 1 > in->cap / 2) {
        if (in->cap > UINT32_MAX / 4 || !grow(in, in->cap * 2)) return false;
        i = h & (in->cap - 1);
        while (in->slots[i].id)
            i = (i + 1) & (in->cap - 1);
    }
    char *copy = xpl_arena_alloc(in->arena, s.len);
    if (!copy) return false;
    memcpy(copy, s.ptr, s.len);
    const uint32_t id = ++in->count;
    in->strs[id] = (xpl_str_t){copy, s.len};
    in->slots[i] = (struct slot){h, id};
    ret->v = id;
    return true;
}

bool xpl_intern_put_view(struct xpl_intern *in, xpl_str_t s, xpl_strid_t *ret) {
    if (s.len < LONG) return xpl_intern_put(in, s, ret);
    uint64_t *const id =
        xpl_map_put(in->arena, &in->places, (uint64_t)(uintptr_t)s.ptr, s.len, NULL);
    if (!id) return false;
    ret->v = (uint32_t)*id;
    if (!*id && !xpl_intern_put(in, s, ret)) return false;
    *id = ret->v;
    return true;
}

xpl_str_t xpl_intern_get(const struct xpl_intern *in, xpl_strid_t id) {
    return in->strs[id.v <= in->count ? id.v : 0];
}
