// SPDX-License-Identifier: Apache-2.0
// For analysis/trace and its tests: which events of a row are visible at a resolution (XProf:
// trace_viewer_visibility.{h,cc}).
//
// Upstream keeps, per row, a stack of the ends of the last visible events, one per nesting depth;
// an event's depth is the first whose end is not after the event's begin.  Events are ordered by
// their begins, so entries above that depth never count again, and of an end only the minimum of it
// and of all entries below matters.  Each search trims the stack here from the top, and the stack
// holds those minima.  A step is therefore constant on average, however deep events nest.
#ifndef XPL_ANALYSIS_TRACE_INDEX_VISIBILITY_H_
#define XPL_ANALYSIS_TRACE_INDEX_VISIBILITY_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h" // XPL_LIKELY, XPL_INLINE
#include "base/arena.h"

struct vis_row {
    uint64_t *ends;
    uint32_t n, cap;
    bool has_flow, has_counter;
    uint64_t last_flow, last_counter;
};

// Depth of an event that begins then.
XPL_INLINE uint32_t vis_depth(struct vis_row *r, uint64_t begin) {
    uint32_t i = r->n;
    while (i && r->ends[i - 1] <= begin)
        i--;
    if (r->n > i + 1) r->n = i + 1;
    return i;
}
// Whether an event too short by itself is far enough from the last visible one at its depth.
XPL_INLINE bool vis_apart(const struct vis_row *r, uint32_t depth, uint64_t begin,
                          uint64_t resolution) {
    return depth >= r->n || begin - r->ends[depth] >= resolution;
}

static inline bool vis_grow(struct vis_row *r, struct xpl_arena *a) {
    const uint32_t cap = r->cap ? r->cap * 2 : 16;
    uint64_t *const ends = cap > r->cap ? xpl_arena_array(a, cap, sizeof *ends) : NULL;
    if (!ends) return false;
    if (r->n) memcpy(ends, r->ends, r->n * sizeof *ends);
    r->ends = ends;
    r->cap = cap;
    return true;
}
// The event that ends then is visible.  False when out of memory.
XPL_INLINE bool vis_set(struct vis_row *r, uint32_t depth, uint64_t end, struct xpl_arena *a) {
    r->n = depth;
    if (XPL_UNLIKELY(depth == r->cap) && !vis_grow(r, a)) return false;
    r->ends[depth] = depth && r->ends[depth - 1] < end ? r->ends[depth - 1] : end;
    r->n = depth + 1;
    return true;
}

// The decision of a flow's first event for the others: 0 none yet, 1 hidden, 2 visible.
enum { VIS_FLOW_NONE, VIS_FLOW_HIDDEN, VIS_FLOW_SHOWN };

// A flow event of a row; `visible`: its row shows it even without the flow.  *state is the flow's.
XPL_INLINE bool vis_flow(struct vis_row *r, uint8_t *state, bool visible, bool last, uint64_t end,
                         uint64_t resolution) {
    if (*state == VIS_FLOW_NONE) {
        // The arrow binds to the end.
        *state = visible || !r->has_flow || end - r->last_flow >= resolution ? VIS_FLOW_SHOWN
                                                                             : VIS_FLOW_HIDDEN;
        visible = *state == VIS_FLOW_SHOWN;
    } else {
        visible = visible || *state == VIS_FLOW_SHOWN;
    }
    if (last) *state = VIS_FLOW_NONE;
    if (visible) r->has_flow = true, r->last_flow = end;
    return visible;
}

XPL_INLINE bool vis_counter(struct vis_row *r, uint64_t ts, uint64_t resolution) {
    const bool visible = !r->has_counter || ts - r->last_counter >= resolution;
    if (visible) r->has_counter = true, r->last_counter = ts;
    return visible;
}

#endif
