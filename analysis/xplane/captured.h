// SPDX-License-Identifier: Apache-2.0
// When a profile was taken, as it says itself.
#ifndef XPL_ANALYSIS_XPLANE_CAPTURED_H_
#define XPL_ANALYSIS_XPLANE_CAPTURED_H_

#include <stdint.h>

#include "base/str.h"

// Nanoseconds since 1970, or 0 where the XSpace does not say: `profile_start_time` of the plane
// "Task Environment" (profilers of XLA since 2024), else the earliest of the lines whose times are
// absolute (older ones).  Reads the heads of planes and lines, no events: at most 16 Ki of them.
// Any bytes are fine.  Any thread.
int64_t xpl_xspace_captured_ns(xpl_bytes_t xspace);

#endif
