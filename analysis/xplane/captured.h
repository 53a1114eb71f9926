// SPDX-License-Identifier: Apache-2.0
// When a profile was taken, as it says itself.
#ifndef XPL_ANALYSIS_XPLANE_CAPTURED_H_
#define XPL_ANALYSIS_XPLANE_CAPTURED_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/text/profile_file.h"

// Whether a time in nanoseconds is a date, of 2000 to 2200.  Smaller ones count from the start of a
// machine or of a program: they say nothing about other hosts.
static inline bool xpl_ns_is_date(int64_t ns) {
    return ns >= INT64_C(946684800000000000) && ns < INT64_C(7258118400000000000);
}

// Nanoseconds since 1970, or 0 where the XSpace does not say: `profile_start_time` of the plane
// "Task Environment" (profilers of XLA since 2024), else the earliest of the lines whose times are
// absolute (older ones).  Reads the heads of planes and lines, no events: at most 16 Ki of them.
// Any bytes are fine.  Any thread.
int64_t xpl_xspace_captured_ns(xpl_bytes_t xspace);
// The same time, `profile_stop_time` as written_ns, and the name of its longest program: whether
// runs are of one job (storage/joint.h).  False if the XSpace has no time.
bool xpl_xspace_identify(xpl_bytes_t xspace, struct xpl_profile_identity *ret);

#endif
