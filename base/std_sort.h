// SPDX-License-Identifier: Apache-2.0
// Sorting that leaves elements which compare equal in the order in which XProf's build leaves them.
// Where XProf sorts a list that is the same in every process, the order of ties shows in its answer
// and is as stable as everything else; it follows from the steps of introsort and heap selection in
// GNU's C++ library.  So these functions do the same steps.
//
// Generic over element size and comparison; everything is inlined where it is called with constant
// arguments, so a record with an integer key sorts about as fast as code written for it.
// `less` must be a strict weak order for xpl_std_sort; xpl_std_partial_sort stays within bounds
// with any.  Nothing allocates, nothing recurses.
#ifndef XPL_BASE_STD_SORT_H_
#define XPL_BASE_STD_SORT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef bool (*xpl_less_fn)(const void *ctx, const void *a, const void *b);

// The elements and their order. size: at most XPL_STD_SORT_MAX_ELEM.
struct xpl_std_sort {
    uint8_t *base;
    size_t size;
    xpl_less_fn less;
    const void *ctx;
};
enum { XPL_STD_SORT_MAX_ELEM = 128, XPL_STD_SORT_SMALL = 16 };

#define XPL_SORT_INLINE static inline __attribute__((always_inline))

XPL_SORT_INLINE uint8_t *xpl_sort_at_(const struct xpl_std_sort *s, size_t i) {
    return s->base + i * s->size;
}
XPL_SORT_INLINE bool xpl_sort_less_(const struct xpl_std_sort *s, size_t i, size_t j) {
    return s->less(s->ctx, xpl_sort_at_(s, i), xpl_sort_at_(s, j));
}
XPL_SORT_INLINE void xpl_sort_move_(const struct xpl_std_sort *s, size_t to, size_t from) {
    memmove(xpl_sort_at_(s, to), xpl_sort_at_(s, from), s->size);
}
XPL_SORT_INLINE void xpl_sort_swap_(const struct xpl_std_sort *s, size_t i, size_t j) {
    uint8_t tmp[XPL_STD_SORT_MAX_ELEM];
    if (i == j) return;
    memcpy(tmp, xpl_sort_at_(s, i), s->size);
    xpl_sort_move_(s, i, j);
    memcpy(xpl_sort_at_(s, j), tmp, s->size);
}

// ---- heap: elements [first, first + len), the greatest on top ----

// Puts `value` into the hole at `hole`: the hole sinks to the bottom along the greater children,
// then the value rises from there, not above where it began.
XPL_SORT_INLINE void xpl_sort_sift_(const struct xpl_std_sort *s, size_t first, size_t hole,
                                    size_t len, const uint8_t *value) {
    const size_t top = hole;
    for (size_t child; (child = 2 * hole + 2) <= len; hole = child) {
        // A lone left child has no sibling to lose against.
        if (child == len || xpl_sort_less_(s, first + child, first + child - 1)) child--;
        xpl_sort_move_(s, first + hole, first + child);
    }
    while (hole > top) {
        const size_t parent = (hole - 1) / 2;
        if (!s->less(s->ctx, xpl_sort_at_(s, first + parent), value)) break;
        xpl_sort_move_(s, first + hole, first + parent);
        hole = parent;
    }
    memcpy(xpl_sort_at_(s, first + hole), value, s->size);
}

// The top of the heap of `len` changes places with the element at `out`, which joins the heap.
XPL_SORT_INLINE void xpl_sort_pop_(const struct xpl_std_sort *s, size_t first, size_t len,
                                   size_t out) {
    uint8_t value[XPL_STD_SORT_MAX_ELEM];
    memcpy(value, xpl_sort_at_(s, out), s->size);
    xpl_sort_move_(s, out, first);
    xpl_sort_sift_(s, first, 0, len, value);
}

// The `k` least of [first, first + n) come first, as a heap; the others follow in any order.
XPL_SORT_INLINE void xpl_sort_gather_(const struct xpl_std_sort *s, size_t first, size_t k,
                                      size_t n) {
    uint8_t value[XPL_STD_SORT_MAX_ELEM];
    for (size_t i = k / 2; i-- > 0;) {
        memcpy(value, xpl_sort_at_(s, first + i), s->size);
        xpl_sort_sift_(s, first, i, k, value);
    }
    for (size_t i = k; i < n; i++)
        if (xpl_sort_less_(s, first + i, first)) xpl_sort_pop_(s, first, k, first + i);
}

// As above, and in order.
XPL_SORT_INLINE void xpl_sort_select_(const struct xpl_std_sort *s, size_t first, size_t k,
                                      size_t n) {
    xpl_sort_gather_(s, first, k, n);
    for (size_t len = k; len-- > 1;)
        xpl_sort_pop_(s, first, len, first + len);
}

// ---- introsort ----

// Brings the median of a, b and c to `to`.
XPL_SORT_INLINE void xpl_sort_median_(const struct xpl_std_sort *s, size_t to, size_t a, size_t b,
                                      size_t c) {
    size_t median;
    if (xpl_sort_less_(s, a, b))
        median = xpl_sort_less_(s, b, c) ? b : xpl_sort_less_(s, a, c) ? c : a;
    else
        median = xpl_sort_less_(s, a, c) ? a : xpl_sort_less_(s, b, c) ? c : b;
    xpl_sort_swap_(s, to, median);
}

// Splits [first, last) around a pivot, which it moves to `first`; returns where the upper part
// begins.  The median of three bounds both scans.
XPL_SORT_INLINE size_t xpl_sort_split_(const struct xpl_std_sort *s, size_t first, size_t last) {
    xpl_sort_median_(s, first, first + 1, first + (last - first) / 2, last - 1);
    size_t lo = first + 1, hi = last;
    for (;; lo++) {
        while (xpl_sort_less_(s, lo, first))
            lo++;
        do
            hi--;
        while (xpl_sort_less_(s, first, hi));
        if (lo >= hi) return lo;
        xpl_sort_swap_(s, lo, hi);
    }
}

// Moves element i down to its place among the sorted ones before it.
XPL_SORT_INLINE void xpl_sort_insert_(const struct xpl_std_sort *s, size_t i) {
    uint8_t value[XPL_STD_SORT_MAX_ELEM];
    size_t to = i;
    memcpy(value, xpl_sort_at_(s, i), s->size);
    while (to > 0 && s->less(s->ctx, value, xpl_sort_at_(s, to - 1))) {
        xpl_sort_move_(s, to, to - 1);
        to--;
    }
    if (to != i) memcpy(xpl_sort_at_(s, to), value, s->size);
}

// std::sort.
XPL_SORT_INLINE void xpl_std_sort(void *base, size_t n, size_t size, xpl_less_fn less,
                                  const void *ctx) {
    const struct xpl_std_sort s = {base, size, less, ctx};
    struct {
        size_t first, last;
        unsigned splits_left;
    } todo[8 * sizeof(size_t) * 2 + 2]; // a part is split at most twice its binary logarithm
    size_t n_todo = 0;
    if (n < 2) return;
    const unsigned log2n = (unsigned)(8 * sizeof(unsigned long long) - 1) -
                           (unsigned)__builtin_clzll((unsigned long long)n);
    todo[n_todo].first = 0, todo[n_todo].last = n, todo[n_todo++].splits_left = 2 * log2n;
    while (n_todo) {
        n_todo--;
        const size_t first = todo[n_todo].first;
        size_t last = todo[n_todo].last;
        for (unsigned left = todo[n_todo].splits_left; last - first > XPL_STD_SORT_SMALL;) {
            if (left-- == 0) {
                xpl_sort_select_(&s, first, last - first, last - first);
                break;
            }
            const size_t cut = xpl_sort_split_(&s, first, last);
            todo[n_todo].first = cut, todo[n_todo].last = last;
            todo[n_todo++].splits_left = left;
            last = cut;
        }
    }
    for (size_t i = 1; i < n; i++)
        xpl_sort_insert_(&s, i);
}

// std::partial_sort of the `k` least, k <= n.
XPL_SORT_INLINE void xpl_std_partial_sort(void *base, size_t k, size_t n, size_t size,
                                          xpl_less_fn less, const void *ctx) {
    const struct xpl_std_sort s = {base, size, less, ctx};
    xpl_sort_select_(&s, 0, k, n);
}

// The elements that std::partial_sort selects, without their order.
XPL_SORT_INLINE void xpl_std_heap_select(void *base, size_t k, size_t n, size_t size,
                                         xpl_less_fn less, const void *ctx) {
    const struct xpl_std_sort s = {base, size, less, ctx};
    xpl_sort_gather_(&s, 0, k, n);
}

#endif
