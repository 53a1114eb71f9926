// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/order_check.h"

#include "analysis/grouping/plan/regions.h"

// Handles a region's marker: events that do not contain the region are closed before its
// StartRegion.
void xpl_grp_pass_marker(struct line_state *st, struct order_check *o, const struct line_event *e,
                         uint64_t previous_offset) {
    struct region longest;
    if (e->role & ROLE_STOP_REGION) {
        o->has_regions |= o->open;
        return;
    }
    o->open = xpl_grp_region_starts(st->plan, st->line, &e->raw);
    if (!o->open || st->stack.n == 0) return;
    // A region comes before shorter events that begin with it.
    o->unsorted |= e->raw.offset_ps == previous_offset;
    if (xpl_grp_longest_region(st->plan, st->line, e->at, &longest))
        pop_until_includes(st, span_of(st->line, longest.offset, longest.duration));
}
