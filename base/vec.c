// SPDX-License-Identifier: Apache-2.0
#include "base/vec.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
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

// ---- sorting ----

enum {
    FEW = 12,            // elements that are inserted one by one
    ON_STACK = 4 << 10,  // bytes
    ON_HEAP = 512 << 10, // more would not make merging much faster
};

struct sorter {
    size_t size; // bytes of an element
    int (*cmp)(const void *, const void *, void *);
    void *ctx;
    uint8_t *room; // for a part that is merged
    size_t n_room; // elements
};

static inline void copy_element(const struct sorter *s, uint8_t *to, const uint8_t *from) {
    uint64_t word;
    if (s->size != sizeof word) {
        memcpy(to, from, s->size);
        return;
    }
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
}

static inline bool is_less(const struct sorter *s, const uint8_t *a, const uint8_t *b) {
    return s->cmp(a, b, s->ctx) < 0;
}

static void insert_all(const struct sorter *s, uint8_t *v, size_t n) {
    const size_t size = s->size;
    for (size_t i = 1; i < n; i++) {
        size_t to = i;
        while (to > 0 && is_less(s, v + i * size, v + (to - 1) * size))
            to--;
        if (to == i) continue;
        copy_element(s, s->room, v + i * size);
        memmove(v + (to + 1) * size, v + to * size, (i - to) * size);
        copy_element(s, v + to * size, s->room);
    }
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n) {
    uint8_t t[256];
    for (size_t here; n; n -= here, a += here, b += here) {
        here = n < sizeof t ? n : sizeof t;
        memcpy(t, a, here);
        memcpy(a, b, here);
        memcpy(b, t, here);
    }
}

// The second part of `right` bytes moves before the first of `left`.
static void rotate_bytes(uint8_t *p, size_t left, size_t right) {
    while (left && right)
        if (left <= right) {
            swap_bytes(p, p + left, left);
            p += left;
            right -= left;
        } else {
            swap_bytes(p + left - right, p + left, right);
            left -= right;
        }
}

// How many of the n elements come before `key`: all that are less, or `equal` ones as well.
static size_t count_before(const struct sorter *s, const uint8_t *v, size_t n, const uint8_t *key,
                           bool equal) {
    size_t lo = 0;
    while (lo < n) {
        const size_t mid = lo + (n - lo) / 2;
        const uint8_t *const at = v + mid * s->size;
        if (equal ? !is_less(s, key, at) : is_less(s, at, key))
            lo = mid + 1;
        else
            n = mid;
    }
    return lo;
}

static void merge_left(const struct sorter *s, uint8_t *v, size_t left, size_t right) {
    const size_t size = s->size;
    const uint8_t *a = s->room, *b = v + left * size;
    const uint8_t *const a_end = a + left * size, *const b_end = b + right * size;
    memcpy(s->room, v, left * size);
    for (; a < a_end && b < b_end; v += size) {
        const bool second = is_less(s, b, a);
        copy_element(s, v, second ? b : a);
        *(second ? &b : &a) += size;
    }
    memcpy(v, a, (size_t)(a_end - a));
}

static void merge_right(const struct sorter *s, uint8_t *v, size_t left, size_t right) {
    const size_t size = s->size;
    uint8_t *to = v + (left + right) * size;
    memcpy(s->room, v + left * size, right * size);
    while (left && right) {
        const uint8_t *const a = v + (left - 1) * size, *const b = s->room + (right - 1) * size;
        const bool first = is_less(s, b, a);
        copy_element(s, to -= size, first ? a : b);
        *(first ? &left : &right) -= 1;
    }
    memcpy(v, s->room, right * size);
}

// Merges two sorted parts.  Those that are too long are cut at an element of the longer one, and
// what belongs before it is brought together.
static void merge_parts(const struct sorter *s, uint8_t *v, size_t left, size_t right) {
    const size_t size = s->size;
    while (left && right && left > s->n_room && right > s->n_room) {
        size_t first, second; // of each part, in the first half
        if (left >= right) {
            first = left / 2;
            second = count_before(s, v + left * size, right, v + first * size, false);
        } else {
            second = right / 2;
            first = count_before(s, v, left, v + (left + second) * size, true);
        }
        rotate_bytes(v + first * size, (left - first) * size, second * size);
        merge_parts(s, v, first, second);
        v += (first + second) * size;
        left -= first;
        right -= second;
    }
    if (left && right) (left <= s->n_room ? merge_left : merge_right)(s, v, left, right);
}

static void sort_part(const struct sorter *s, uint8_t *v, size_t n) {
    const size_t left = n / 2;
    if (n <= FEW) {
        insert_all(s, v, n);
        return;
    }
    sort_part(s, v, left);
    sort_part(s, v + left * s->size, n - left);
    if (is_less(s, v + left * s->size, v + (left - 1) * s->size)) merge_parts(s, v, left, n - left);
}

void xpl_sort_r(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *, void *),
                void *ctx) {
    _Alignas(max_align_t) uint8_t stack[ON_STACK]; // comparisons read elements there
    const size_t half = n / 2 * size, room = half < ON_HEAP ? half : ON_HEAP;
    assert(size && size <= sizeof stack);
    if (n < 2) return;
    struct sorter s = {size, cmp, ctx, stack, sizeof stack / size};
    void *const heap = room > sizeof stack ? xpl_sys_alloc(room) : NULL;
    if (heap) s.room = heap, s.n_room = room / size;
    sort_part(&s, v, n);
    xpl_sys_free(heap);
}

struct plain {
    int (*cmp)(const void *, const void *);
};

static int compare_plain(const void *a, const void *b, void *ctx) {
    return ((const struct plain *)ctx)->cmp(a, b);
}

void xpl_sort(void *v, size_t n, size_t size, int (*cmp)(const void *, const void *)) {
    struct plain plain = {cmp};
    xpl_sort_r(v, n, size, compare_plain, &plain);
}
