// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/plan/line_order.h"

#include <string.h>

#include "analysis/grouping/plan/regions.h"
#include "analysis/grouping/plan/span.h"
#include "base/std_sort.h"

static bool std_before(const void *ctx, const void *a, const void *b) {
    (void)ctx;
    return placed_before(a, b);
}

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "event groups");
}

xpl_status_t xpl_grp_place_events(const struct plan *plan, const struct xpl_line *line,
                                  struct xpl_arena *arena, struct placed_list *ret,
                                  struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    enum xpl_wire_result r;
    XPL_VEC(struct placed) regions = {0};
    bool open = false;
    uint64_t start = 0;
    *ret = (struct placed_list){0};
    if (!xpl_vec_reserve(arena, &ret->v, line->n_events)) return no_memory(err);
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        const uint32_t role = plan->role_of[ev.md];
        struct placed *const e = xpl_vec_push(arena, &ret->v);
        if (!e) return no_memory(err);
        *e = (struct placed){(uint64_t)ev.offset_ps, (uint64_t)ev.duration_ps, ev.at, ev.index};
        const struct xpl_raw_event raw = {
            .offset_ps = e->offset, .stats = ev.stats.p, .end = ev.stats.end};
        if ((role & ROLE_START_REGION) && xpl_grp_region_counts(plan, &raw)) {
            start = e->offset;
            open = span_of(line, start, 0).begin != 0;
        } else if ((role & ROLE_STOP_REGION) && open) {
            struct placed *const s = xpl_vec_push(arena, &regions);
            if (!s) return no_memory(err);
            *s = (struct placed){start, e->offset - start, 0, PLACED_REGION};
        }
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, err);
    if (!xpl_vec_reserve(arena, &ret->v, regions.n)) return no_memory(err);
    if (regions.n) memcpy(ret->v.v + ret->v.n, regions.v, regions.n * sizeof *regions.v);
    ret->v.n += regions.n;
    ret->n_regions = regions.n;
    if (regions.n) xpl_std_sort(ret->v.v, ret->v.n, sizeof *ret->v.v, std_before, NULL);
    return XPL_OK;
}
