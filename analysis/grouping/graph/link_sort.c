// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/graph/graph.h"

#include <stdint.h>

static void insertion_sort(struct link *v, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const struct link x = v[i];
        size_t k = i;
        for (; k > 0 && link_less(&x, &v[k - 1]); k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

// Radix of a link at depth 0..11: the bytes of the key, then those of its end.
static unsigned digit(const struct link *l, unsigned depth) {
    const uint32_t w = depth < 4 ? l->key_hi : depth < 8 ? l->key_lo : l->end;
    return w >> (24 - 8 * (depth & 3)) & 0xff;
}

// The first depth from `depth` on at which not all have the same radix; 12 when they are sorted.
static unsigned next_depth(const struct link *v, size_t n, unsigned depth) {
    uint32_t differ[3] = {0};
    bool sorted = true;
    for (size_t i = 1; i < n; i++) {
        differ[0] |= v[i].key_hi ^ v[i - 1].key_hi;
        differ[1] |= v[i].key_lo ^ v[i - 1].key_lo;
        differ[2] |= v[i].end ^ v[i - 1].end;
        sorted &= !link_less(&v[i], &v[i - 1]);
    }
    if (sorted) return 12;
    while (!(differ[depth / 4] >> (24 - 8 * (depth & 3)) & 0xff))
        depth++;
    return depth;
}

// In place, most significant byte first; at most 12 levels deep.
static void sort_links(struct link *v, size_t n, unsigned depth) {
    if (n < 48) {
        insertion_sort(v, n);
        return;
    }
    depth = next_depth(v, n, depth);
    if (depth == 12) return;
    size_t head[256] = {0}, tail[256];
    for (size_t i = 0; i < n; i++)
        head[digit(&v[i], depth)]++;
    for (size_t d = 0, sum = 0; d < 256; d++) {
        const size_t count = head[d];
        head[d] = sum;
        tail[d] = sum += count;
    }
    for (unsigned d = 0; d < 256; d++)
        while (head[d] < tail[d]) {
            struct link x = v[head[d]];
            for (unsigned to; (to = digit(&x, depth)) != d;) {
                const struct link y = v[head[to]];
                v[head[to]++] = x;
                x = y;
            }
            v[head[d]++] = x;
        }
    for (size_t d = 0, begin = 0; d < 256; begin = tail[d++])
        if (tail[d] - begin > 1) sort_links(v + begin, tail[d] - begin, depth + 1);
}

void xpl_grp_sort_links(struct link *v, size_t n) {
    sort_links(v, n, 0);
}
