// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/regions.h"

#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/span.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"
#include "base/vec.h"

bool xpl_grp_region_counts(const struct plan *plan, const struct xpl_raw_event *raw) {
    uint32_t mask;
    return xpl_grp_stats_mask(plan, raw, &mask) && (mask & SC_BIT(SC_CONSUMER_ID));
}

bool xpl_grp_region_starts(const struct plan *plan, const struct xpl_line *line,
                           const struct xpl_raw_event *raw) {
    return xpl_grp_region_counts(plan, raw) && span_of(line, raw->offset_ps, 0).begin != 0;
}

// Walks the StopRegions that belong to the StartRegion at `at`.
struct stops {
    const struct plan *plan;
    const uint8_t *p, *end;
    uint64_t start;
};

static bool begin_stops(struct stops *s, const struct plan *plan, const struct xpl_line *line,
                        uint64_t at) {
    const struct xpl_wire w = xpl_wire_begin(line->message);
    struct xpl_raw_event start;
    xpl_bytes_t message;
    *s = (struct stops){.plan = plan, .p = w.p + at, .end = w.end};
    if (xpl_next_message(&s->p, s->end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
        !xpl_raw_event_read(message, s->end, &start))
        return false; // the line's reader reports it
    s->start = start.offset_ps;
    return true;
}

static bool next_stop(struct stops *s, struct region *ret) {
    struct xpl_raw_event raw;
    xpl_bytes_t message;
    while (xpl_next_message(&s->p, s->end, XLINE_EVENTS, &message) == XPL_WIRE_FIELD) {
        if (!xpl_raw_event_head(message, s->end, &raw)) return false;
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        if (XPL_LIKELY(!(role & (ROLE_START_REGION | ROLE_STOP_REGION)))) continue;
        if (!xpl_raw_event_read(message, s->end, &raw)) return false;
        if (role & ROLE_STOP_REGION) {
            *ret = (struct region){s->start, raw.offset_ps - s->start};
            return true;
        }
        // A start without an id does not count; one at time 0 ends the region before it.
        if (xpl_grp_region_counts(s->plan, &raw)) return false;
    }
    return false;
}

static int longer_first(const void *pa, const void *pb) {
    const struct region *const a = pa, *const b = pb;
    return (a->duration < b->duration) - (a->duration > b->duration);
}

bool xpl_grp_regions_at(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                        struct xpl_arena *arena, struct region_list *ret) {
    struct stops s;
    struct region r;
    for (bool more = begin_stops(&s, plan, line, at); more && next_stop(&s, &r);) {
        struct region *const slot = xpl_vec_push(arena, &ret->v);
        if (!slot) return false;
        *slot = r;
    }
    xpl_sort(ret->v.v, ret->v.n, sizeof *ret->v.v, longer_first);
    return true;
}

bool xpl_grp_longest_region(const struct plan *plan, const struct xpl_line *line, uint64_t at,
                            struct region *ret) {
    struct stops s;
    struct region r;
    bool any = false;
    for (bool more = begin_stops(&s, plan, line, at); more && next_stop(&s, &r); any = true)
        if (!any || r.duration > ret->duration) *ret = r;
    return any;
}
