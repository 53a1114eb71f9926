// SPDX-License-Identifier: Apache-2.0
// Spans of time, and kinds of work that go on in them.
#ifndef XPL_ANALYSIS_OPSTATS_STEPS_TIMESPAN_H_
#define XPL_ANALYSIS_OPSTATS_STEPS_TIMESPAN_H_

#include <stdbool.h>
#include <stdint.h>

// Kinds of work; of several at one instant the largest number owns it.  Keys of
// GenericStepBreakdown.type_ps.
enum xpl_span_type {
    XPL_SPAN_UNKNOWN_TIME = 0,
    XPL_SPAN_HOST_COMPUTE = 10,
    XPL_SPAN_HOST_PREPROCESS = 20,
    XPL_SPAN_HOST_POSTPROCESS = 30,
    XPL_SPAN_HOST_BATCH_FORMATION = 40,
    XPL_SPAN_HOST_RUNTIME = 50,
    XPL_SPAN_HOST_COMPILE = 60,
    XPL_SPAN_HOST_TO_HOST = 70,
    XPL_SPAN_HOST_TO_DEVICE = 80,
    XPL_SPAN_HOST_PREPARE = 90,
    XPL_SPAN_DEVICE_COLLECTIVES = 100,
    XPL_SPAN_HOST_WAIT_INPUT = 110,
    XPL_SPAN_DEVICE_TO_DEVICE = 120,
    XPL_SPAN_DEVICE_TO_HOST = 130,
    XPL_SPAN_DEVICE_COMPUTE_32 = 140,
    XPL_SPAN_DEVICE_COMPUTE_16 = 150,
    XPL_SPAN_DEVICE_WAIT_DEVICE = 160,
    XPL_SPAN_DEVICE_WAIT_HOST = 170,
};
// Types are multiples of 10: arrays are indexed by type / 10.
enum { XPL_SPAN_TYPES = 18 };

// A span of time; sums wrap as upstream's uint64 does (tsl/profiler/utils/timespan.h).
struct xpl_timespan {
    uint64_t begin_ps, duration_ps;
};
static inline uint64_t xpl_timespan_end(struct xpl_timespan s) {
    return s.begin_ps + s.duration_ps;
}
// Times before the profile's origin wrap, as those of a device whose clock is early.
static inline bool xpl_time_is_before(uint64_t a_ps, uint64_t b_ps) {
    return (int64_t)(a_ps - b_ps) < 0;
}
static inline bool xpl_timespan_includes(struct xpl_timespan a, struct xpl_timespan b) {
    return a.begin_ps <= b.begin_ps && xpl_timespan_end(b) <= xpl_timespan_end(a);
}
// How much of [begin, end] lies in `a`; spans that only touch share nothing.
static inline uint64_t xpl_timespan_overlap(struct xpl_timespan a, uint64_t begin, uint64_t end) {
    const uint64_t a_end = xpl_timespan_end(a);
    if (a.begin_ps > end || begin > a_end) return 0;
    return (a_end < end ? a_end : end) - (a.begin_ps > begin ? a.begin_ps : begin);
}

#endif
