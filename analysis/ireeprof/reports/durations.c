// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/reports/durations.h"

#include <stdio.h>

#include "analysis/ireeprof/run.h"
#include "base/arena.h"
#include "base/vec.h"

uint64_t *xpl_iree_durations_new(xpl_iree_durations_of *of, void *groups, size_t n_groups) {
    uint64_t n = 0;
    for (size_t i = 0; i < n_groups; i++) {
        struct xpl_iree_durations *const d = of(groups, i);
        d->first = n;
        n += d->n;
    }
    return xpl_sys_alloc((size_t)(n + 1) * sizeof(uint64_t));
}

void xpl_iree_durations_add(struct xpl_iree_durations *d, uint64_t *all, uint64_t duration) {
    if (d->filled == d->n) return;
    all[d->first + d->filled++] = duration;
    xpl_iree_add(&d->sum, duration);
}

static int ascending(const void *pa, const void *pb) {
    const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

void xpl_iree_durations_write(struct xpl_iree_rows *r, const struct xpl_iree_durations *d,
                              uint64_t *all, const char *suffix) {
    static const struct {
        const char *name;
        unsigned percent;
    } ranks[] = {{"min", 0}, {"p50", 50}, {"p95", 95}, {"p99", 99}, {"max", 100}};
    uint64_t *const v = all + d->first;
    const uint64_t n = d->filled;
    char name[40];
    xpl_sort(v, (size_t)n, sizeof *v, ascending);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        // The nearest rank: the smallest duration that so many of a hundred do not exceed.
        const uint64_t rank = (n * ranks[i].percent + 99) / 100;
        (void)snprintf(name, sizeof name, "%s_%s", ranks[i].name, suffix);
        xpl_row_u64(r, name, n ? v[rank ? rank - 1 : 0] : 0);
        if (i > 0) continue;
        (void)snprintf(name, sizeof name, "avg_%s", suffix);
        xpl_row_fixed(r, name, n ? (double)d->sum / (double)n : 0, 3);
    }
}
