// SPDX-License-Identifier: Apache-2.0
// Means, medians and deviations.
#include <math.h>

#include "analysis/compare/impl.h"

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
