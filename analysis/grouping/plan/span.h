// SPDX-License-Identifier: Apache-2.0
// Spans of time of events in picoseconds.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_SPAN_H_
#define XPL_ANALYSIS_GROUPING_PLAN_SPAN_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/xplane/xspace.h"

struct span {
    uint64_t begin, end; // unsigned, as upstream's Timespan
};
static inline bool span_includes(struct span a, struct span b) {
    return a.begin <= b.begin && b.end <= a.end;
}
static inline bool span_overlaps(struct span a, struct span b) {
    return a.begin <= b.end && b.begin <= a.end;
}
static inline struct span span_of(const struct xpl_line *l, uint64_t offset, uint64_t duration) {
    const uint64_t begin = (uint64_t)l->timestamp_ns * 1000 + offset;
    return (struct span){begin, begin + duration};
}

#endif
