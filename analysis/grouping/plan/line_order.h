// SPDX-License-Identifier: Apache-2.0
// The order in which XProf sees the events of a line on which it found a thread pool region: it
// adds the regions and sorts the line (ThreadpoolLineMutator and SortXLine, in
// xla/tsl/profiler/utils/preprocess_xplane.h and xplane_utils.cc).
#ifndef XPL_ANALYSIS_GROUPING_PLAN_LINE_ORDER_H_
#define XPL_ANALYSIS_GROUPING_PLAN_LINE_ORDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/grouping/plan/plan.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

// Events and regions of a line in the order that upstream's sort leaves them in; of a line without
// regions in that of the file.
struct placed {
    uint64_t offset, duration;
    uint64_t at, index; // of the event; PLACED_REGION: it is a region
};
#define PLACED_REGION UINT64_MAX
struct placed_list {
    XPL_VEC(struct placed) v;
    size_t n_regions;
};
xpl_status_t xpl_grp_place_events(const struct plan *plan, const struct xpl_line *line,
                                  struct xpl_arena *arena, struct placed_list *ret,
                                  struct xpl_error *err) XPL_NODISCARD;

// Longer ones first, as a parent precedes its children.
static inline bool placed_before(const struct placed *a, const struct placed *b) {
    return a->offset != b->offset ? a->offset < b->offset : a->duration > b->duration;
}

#endif
