// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/span_list.h"

enum { FIRST_BLOCK = 4, LARGEST_BLOCK = 256, NANOSECOND = 1000 };

static bool divides(uint32_t unit, uint64_t v) {
    return unit == 1 || v % NANOSECOND == 0;
}
static uint64_t in_units(uint32_t unit, uint64_t v) {
    return unit == 1 ? v : v / NANOSECOND;
}

// Puts a span at position `at`; false when it does not fit the block's kind.
static bool write_span(struct span_block *b, uint32_t at, struct xpl_packed_span s) {
    if (b->unit == 0) {
        b->v[2 * at] = s.begin;
        b->v[2 * at + 1] = s.end;
        return true;
    }
    if (s.begin < b->base || s.end < s.begin) return false;
    const uint64_t after = s.begin - b->base, duration = s.end - s.begin;
    if (!divides(b->unit, after) || !divides(b->unit, duration)) return false;
    const uint64_t x = in_units(b->unit, after), y = in_units(b->unit, duration);
    if (x > UINT32_MAX || y > UINT32_MAX) return false;
    b->v[at] = x << 32 | y;
    return true;
}

static struct span_block *add_block(struct xpl_span_list *l, struct xpl_packed_span s,
                                    struct xpl_arena *arena) {
    const struct span_block *last = l->tail;
    struct span_block *b;
    const uint32_t cap = !last                       ? FIRST_BLOCK
                         : last->cap < LARGEST_BLOCK ? last->cap * 2
                                                     : last->cap;
    const uint64_t duration = s.end - s.begin;
    uint32_t unit = s.begin % NANOSECOND == 0 && duration % NANOSECOND == 0 ? NANOSECOND : 1;
    if (s.end < s.begin || in_units(unit, duration) > UINT32_MAX) unit = 0;
    const size_t size = unit ? sizeof b->v[0] : 2 * sizeof b->v[0];
    b = xpl_arena_alloc(arena, sizeof *b + cap * size);
    if (!b) return NULL;
    *b = (struct span_block){.base = s.begin, .cap = cap, .unit = unit};
    *(l->tail ? &l->tail->next : &l->head) = b;
    return l->tail = b;
}

bool xpl_span_list_push(struct xpl_span_list *l, struct xpl_packed_span s,
                        struct xpl_arena *arena) {
    struct span_block *b = l->tail;
    if (!b || b->n == b->cap || !write_span(b, b->n, s)) {
        b = add_block(l, s, arena);
        if (!b || !write_span(b, 0, s)) return false;
    }
    if (s.end > s.begin) l->open_block = b, l->open_at = b->n, l->open = s;
    b->n++;
    return true;
}

bool xpl_span_list_absorb(struct xpl_span_list *l, struct xpl_packed_span s) {
    if (!l->open_block || s.begin < l->open.begin || s.end < s.begin) return false;
    if (s.begin == s.end) return s.begin < l->open.end;
    if (s.begin > l->open.end) return false;
    if (s.end <= l->open.end) return true;
    const struct xpl_packed_span longer = {l->open.begin, s.end};
    if (!write_span(l->open_block, l->open_at, longer)) return false;
    l->open = longer;
    return true;
}
