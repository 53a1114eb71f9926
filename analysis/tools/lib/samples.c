// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/samples.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"

void xpl_samples_add(struct xpl_samples *s, double v) {
    // Compared this way round a NaN replaces the extremes, and the next sample replaces the NaN.
    s->max = v < s->max ? s->max : v;
    s->min = s->min < v ? s->min : v;
    s->count++;
    s->sum += v;
    s->squared_sum += v * v;
}

struct xpl_step_summary xpl_samples_summary(const struct xpl_samples *s) {
    if (!s->count) return (struct xpl_step_summary){0};
    const double n = (double)s->count;
    // Upstream's "all the same"; a NaN is not the same as itself.
    const bool same = s->min <= s->max && s->min >= s->max;
    const double variance = same ? 0 : (s->squared_sum - s->sum * s->sum / n) / (n - 1);
    return (struct xpl_step_summary){s->sum / n, sqrt(variance), s->min, s->max};
}

void xpl_ps_samples_add(struct xpl_ps_samples *s, uint64_t ps) {
    if (ps > s->max) s->max = ps;
    if (ps < s->min) s->min = ps;
    s->sum += ps;
    s->count++;
}

uint64_t xpl_ps_samples_average(const struct xpl_ps_samples *s) {
    return s->count ? xpl_to_u64((double)s->sum / (double)s->count) : 0;
}

struct xpl_digits xpl_digits(double v, int decimals) {
    struct xpl_digits d;
    if (isnan(v)) return (struct xpl_digits){"-nan"}; // its sign depends on the processor
    const size_t len = xpl_json_fixed(v, decimals, d.z);
    d.z[len] = 0;
    if (len) return d;
    const int n = snprintf(d.z, sizeof d.z, "%.*f", decimals, v);
    if (n < 0 || (size_t)n >= sizeof d.z) d.z[0] = 0;
    return d;
}

uint64_t xpl_to_u64(double v) {
    if (v >= 0 && v < 18446744073709551616.0) return (uint64_t)v;
    return v < 0 && v > -9223372036854775808.0 ? (uint64_t)(int64_t)v : UINT64_C(1) << 63;
}
