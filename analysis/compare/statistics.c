// SPDX-License-Identifier: Apache-2.0
// Means, and the interval of a difference.
#include <math.h>
#include <stdlib.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"

double xpl_compare_mean(const uint64_t *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i];
    return n ? sum / (double)n : 0;
}

double xpl_compare_median(const uint64_t *sorted, size_t n) {
    if (!n) return 0;
    return n % 2 ? (double)sorted[n / 2] : ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]) / 2;
}

double xpl_compare_deviation(const uint64_t *v, size_t n) {
    const double mean = xpl_compare_mean(v, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)v[i] - mean) * ((double)v[i] - mean);
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

static uint64_t next_random(uint64_t *state) { // SplitMix64
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum { MOST_STEPS = 4096, RESAMPLES = 2000 };

// The mean of as many steps, drawn with replacement.
static double resample(const uint64_t *v, size_t n, uint64_t *state) {
    const size_t draws = n < MOST_STEPS ? n : MOST_STEPS;
    double sum = 0;
    for (size_t i = 0; i < draws; i++)
        sum += (double)v[next_random(state) % n];
    return sum / (double)draws;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

xpl_status_t xpl_compare_interval(const struct xpl_run_summary *a, const struct xpl_run_summary *b,
                                  double ret[2], bool *ret_known, struct xpl_error *err) {
    uint64_t state = 1;
    *ret_known = a->steps.n >= XPL_COMPARE_LEAST_STEPS && b->steps.n >= XPL_COMPARE_LEAST_STEPS;
    if (!*ret_known) return XPL_OK;
    double *const v = xpl_sys_alloc(RESAMPLES * sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "comparison");
    for (size_t i = 0; i < RESAMPLES; i++)
        v[i] = resample(b->steps.v, b->steps.n, &state) - resample(a->steps.v, a->steps.n, &state);
    qsort(v, RESAMPLES, sizeof *v, by_value);
    ret[0] = v[RESAMPLES / 40];
    ret[1] = v[RESAMPLES - 1 - RESAMPLES / 40];
    xpl_sys_free(v);
    return XPL_OK;
}
