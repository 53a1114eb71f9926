// SPDX-License-Identifier: Apache-2.0
// Regions of thread pools, for viewers: all that upstream adds to a line, whether something gives
// them a group or not.  Rule: ThreadpoolLineMutator (xla tsl/profiler/utils/preprocess_xplane.h).
#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/groups.h"
#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/span.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"
#include "base/exec.h"
#include "base/vec.h"

struct search {
    const struct plan *plan;
    const struct xpl_line *line;
    uint64_t start; // of the region that a stop would end; 0: none
    XPL_VEC(struct xpl_region_event) found;
};

static bool on_marker(struct search *s, uint32_t role, const struct xpl_raw_event *raw,
                      struct xpl_arena *arena) {
    const uint64_t time = span_of(s->line, raw->offset_ps, 0).begin;
    uint32_t mask;
    if (role & ROLE_START_REGION) {
        if (xpl_grp_stats_mask(s->plan, raw, &mask) && (mask & SC_BIT(SC_CONSUMER_ID)))
            s->start = time;
        return true;
    }
    if (s->start == 0) return true;
    struct xpl_region_event *const r = xpl_vec_push(arena, &s->found);
    if (r)
        *r = (struct xpl_region_event){.begin_ps = (int64_t)s->start,
                                       .duration_ps = (int64_t)(time - s->start)};
    return r != NULL;
}

xpl_status_t xpl_groups_line_regions(const struct xpl_groups *g, const struct xpl_line *line,
                                     struct xpl_arena *arena, const struct xpl_region_event **ret,
                                     size_t *ret_n, struct xpl_error *err) {
    struct search s = {.plan = &g->planes[line->plane->index].plan, .line = line};
    struct xpl_wire w = xpl_wire_begin(line->message);
    uint64_t n = 0;
    *ret = NULL;
    *ret_n = 0;
    if (g->grouped || !s.plan->has_regions) return XPL_OK;
    for (xpl_bytes_t message;
         xpl_next_message(&w.p, w.end, XLINE_EVENTS, &message) == XPL_WIRE_FIELD;) {
        struct xpl_raw_event raw;
        if ((++n & 0xffff) == 0 && xpl_exec_cancelled(g->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (!xpl_raw_event_head(message, w.end, &raw)) break; // the line's reader reports it
        const uint32_t role = s.plan->role_of[xpl_event_md_at(s.plan->plane, raw.md_id)];
        if (XPL_LIKELY(!(role & (ROLE_START_REGION | ROLE_STOP_REGION)))) continue;
        if (!xpl_raw_event_read(message, w.end, &raw)) break;
        if (!on_marker(&s, role, &raw, arena)) XPL_RETURN_OOM(err, "thread pool regions");
    }
    *ret = s.found.v;
    *ret_n = s.found.n;
    return XPL_OK;
}
