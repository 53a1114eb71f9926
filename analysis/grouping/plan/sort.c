// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/sort.h"

#include <stdbool.h>
#include <stdint.h>

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

static void sift(uint8_t *v, size_t i, size_t n, size_t size,
                 int (*cmp)(const void *, const void *)) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && cmp(v + (child + 1) * size, v + child * size) > 0) child++;
        if (cmp(v + i * size, v + child * size) >= 0) return;
        swap_bytes(v + i * size, v + child * size, size);
    }
}

// Heapsort: qsort() allocates memory that our limits would not see.
void xpl_grp_sort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *)) {
    uint8_t *const v = base;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = cmp(v + (i - 1) * size, v + i * size) <= 0;
    if (sorted) return;
    for (size_t i = n / 2; i-- > 0;)
        sift(v, i, n, size, cmp);
    for (size_t end = n; end-- > 1;) {
        swap_bytes(v, v + end * size, size);
        sift(v, 0, end, size, cmp);
    }
}
