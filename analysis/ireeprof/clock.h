// SPDX-License-Identifier: Apache-2.0
// Device ticks and time: what clock correlations of a device say, and IREE's fit through the first
// and the last of them (in the order of the file).
#ifndef XPL_ANALYSIS_IREEPROF_CLOCK_H_
#define XPL_ANALYSIS_IREEPROF_CLOCK_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/ireeprof/schema.h"

// Correlations of one device, summed up.  Zero-initialised: none.
struct xpl_iree_clock {
    uint64_t samples, unaligned; // unaligned ones say: do not map this device to time
    struct xpl_iree_clock_correlation first, last;
    // Lengths of the brackets of host time, for samples that have one (`bracketed` of them).
    uint64_t bracketed;
    int64_t min_uncertainty_ns, max_uncertainty_ns;
};
void xpl_iree_clock_add(struct xpl_iree_clock *c, const struct xpl_iree_clock_correlation *sample);

enum xpl_iree_time_domain {
    XPL_IREE_TIME_HOST_CPU, // the driver's host timestamps: IREE's reports
    XPL_IREE_TIME_BRACKET,  // midpoints of the brackets: the one that host events share
};
// ticks * ns / per_ticks, rounded half up.
struct xpl_iree_fit {
    bool valid;
    uint64_t first_tick, per_ticks, ns;
    int64_t first_ns;
    uint64_t first_sample_id, last_sample_id;
};
// Not valid with fewer than two samples, an unaligned one, or when either clock does not advance.
// NULL is a device without samples.
struct xpl_iree_fit xpl_iree_clock_fit(const struct xpl_iree_clock *c,
                                       enum xpl_iree_time_domain domain);
// A duration.  False (*ret is then 0) without a fit, or when it does not fit an int64_t.
bool xpl_iree_fit_ticks(const struct xpl_iree_fit *f, uint64_t ticks, int64_t *ret_ns);
// A point in time; also beyond the samples.
bool xpl_iree_fit_time(const struct xpl_iree_fit *f, uint64_t tick, int64_t *ret_ns);
// 0 without a fit.
double xpl_iree_fit_ns_per_tick(const struct xpl_iree_fit *f);
double xpl_iree_fit_hz(const struct xpl_iree_fit *f);

// Whether ticks are a span: neither is 0, and they are in order.
static inline bool xpl_iree_ticks_valid(uint64_t start, uint64_t end) {
    return start != 0 && end != 0 && end >= start;
}
static inline bool xpl_iree_host_valid(int64_t start_ns, int64_t end_ns) {
    return start_ns >= 0 && end_ns >= start_ns;
}

#endif
