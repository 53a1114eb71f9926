// SPDX-License-Identifier: Apache-2.0
// Regions of thread pools.  XProf adds an event ThreadpoolListener::Region for each StopRegion,
// from the StartRegion before it on, and sorts the line then [ThreadpoolLineMutator].  XProf 2.24.2
// links it to nothing: it only takes part in the nesting.
#ifndef XPL_ANALYSIS_GROUPING_PLAN_REGIONS_H_
#define XPL_ANALYSIS_GROUPING_PLAN_REGIONS_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/plan/plan.h"
#include "analysis/xplane/event_read.h"
#include "base/arena.h"
#include "base/vec.h"

struct region {
    uint64_t offset, duration;
};
struct region_list {
    XPL_VEC(struct region) v; // the longest first
};
// Regions that the StartRegion at `at` begins; adds to *ret.  False when out of memory.
bool xpl_grp_regions_at(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                        struct xpl_arena *arena, struct region_list *ret);
// The longest of them; false when there are none.
bool xpl_grp_longest_region(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                            struct region *ret);
// True when that StartRegion counts, as one that has an id does.
bool xpl_grp_region_counts(const struct plan *plan, const struct xpl_raw_event *raw);
// Likewise, and it does not stand at time 0, where it only ends the one before it.
bool xpl_grp_region_starts(const struct plan *plan, const struct xpl_line *line,
                           const struct xpl_raw_event *raw);

#endif
