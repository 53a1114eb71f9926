// SPDX-License-Identifier: Apache-2.0
// Watches whether a line with regions of thread pools is in the order that XProf's sort makes.
#ifndef XPL_ANALYSIS_GROUPING_SCAN_ORDER_CHECK_H_
#define XPL_ANALYSIS_GROUPING_SCAN_ORDER_CHECK_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/scan/line_reader.h"
#include "analysis/grouping/scan/line_state.h"

// Upstream sorts a line that has regions.  If that changes its order, the line is scanned again in
// the new order.
struct order_check {
    uint64_t offset, duration;
    bool unsorted, open, has_regions;
};

static inline void check_order(struct order_check *o, const struct xpl_raw_event *raw) {
    o->unsorted |= raw->offset_ps < o->offset ||
                   (raw->offset_ps == o->offset && raw->duration_ps > o->duration);
    o->offset = raw->offset_ps;
    o->duration = raw->duration_ps;
}

// Handles a region's marker: events that do not contain the region are closed before its
// StartRegion.
void xpl_grp_pass_marker(struct line_state *st, struct order_check *o, const struct line_event *e,
                         uint64_t previous_offset);

#endif
