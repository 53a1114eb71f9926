// SPDX-License-Identifier: Apache-2.0
// Lines whose events XProf sorts, for readers of events.
#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/groups.h"
#include "analysis/grouping/plan/line_order.h"
#include "analysis/grouping/plan/regions.h"

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "event groups");
}

bool xpl_groups_sorts_line(const struct xpl_groups *g, const struct xpl_line *line) {
    const struct plan *const plan = &g->planes[line->plane->index].plan;
    struct placed last = {.duration = UINT64_MAX};
    struct xpl_event_cursor c;
    struct xpl_event ev;
    bool open = false, found = false, moves = false;
    if (g->grouped || !plan->has_regions) return false;
    xpl_events_begin(&c, line);
    while (!(found && moves) && xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        const uint32_t role = plan->role_of[ev.md];
        const struct placed e = {.offset = (uint64_t)ev.offset_ps,
                                 .duration = (uint64_t)ev.duration_ps};
        const struct xpl_raw_event raw = {.stats = ev.stats.p, .end = ev.stats.end};
        if ((role & ROLE_START_REGION) && xpl_grp_region_counts(plan, &raw))
            open = span_of(line, e.offset, 0).begin != 0;
        else if (role & ROLE_STOP_REGION)
            found |= open;
        // Ties may change places, too.
        moves |= !placed_before(&last, &e);
        last = e;
    }
    return found && moves;
}

xpl_status_t xpl_groups_sorted_ranks(const struct xpl_groups *g, const struct xpl_line *line,
                                     struct xpl_arena *arena, uint64_t **ret,
                                     struct xpl_error *err) {
    struct placed_list list;
    XPL_TRY(xpl_grp_place_events(&g->planes[line->plane->index].plan, line, arena, &list, err));
    *ret = xpl_arena_array(arena, line->n_events, sizeof **ret);
    if (!*ret) return no_memory(err);
    for (size_t i = 0; i < list.v.n; i++)
        if (list.v.v[i].index != PLACED_REGION) (*ret)[list.v.v[i].index] = i;
    return XPL_OK;
}
