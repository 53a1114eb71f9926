// SPDX-License-Identifier: Apache-2.0
// Sorting of many things by numbers: digit by digit, of which few differ.
#include "analysis/ireeprof/timeline/impl.h"

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

struct keyed {
    uint64_t key;
    uint32_t index;
};

// Sorts `from` by one digit into `to`; equal ones stay as they are.
static void sort_digit(const struct keyed *from, struct keyed *to, size_t n, unsigned shift) {
    uint32_t at[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[from[i].key >> shift & (DIGITS - 1)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        const uint32_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

// Returns the one of both that has the sorted ones.
static struct keyed *sort_keyed(struct keyed *v, struct keyed *other, size_t n) {
    uint64_t different = 0;
    bool sorted = true;
    for (size_t i = 1; i < n; i++) {
        different |= v[i].key ^ v[0].key;
        sorted &= v[i - 1].key <= v[i].key;
    }
    for (unsigned shift = 0; shift < 64 && !sorted; shift += DIGIT) {
        if (!(different >> shift & (DIGITS - 1))) continue;
        sort_digit(v, other, n, shift);
        struct keyed *const swap = v;
        v = other, other = swap;
    }
    return v;
}

uint32_t *xpl_iree_timeline_order(size_t n, unsigned n_keys, xpl_iree_order_key_fn *key,
                                  const void *ctx) {
    struct keyed *const room = n < UINT32_MAX ? xpl_sys_alloc((n + 1) * 2 * sizeof *room) : NULL;
    uint32_t *const ret = room ? xpl_sys_alloc((n + 1) * sizeof *ret) : NULL;
    struct keyed *v = room;
    for (size_t i = 0; ret && i < n; i++)
        v[i].index = (uint32_t)i;
    for (unsigned k = n_keys; ret && k-- > 0;) {
        for (size_t i = 0; i < n; i++)
            v[i].key = key(ctx, v[i].index, k);
        v = sort_keyed(v, v == room ? room + n : room, n);
    }
    for (size_t i = 0; ret && i < n; i++)
        ret[i] = v[i].index;
    xpl_sys_free(room);
    return ret;
}
