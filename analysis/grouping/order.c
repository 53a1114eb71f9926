// The order in which upstream sees the events of a line on which it found a thread pool region: it
// adds the regions and sorts the line (ThreadpoolLineMutator and SortXLine, in
// xla/tsl/profiler/utils/preprocess_xplane.h and xplane_utils.cc).
#include <string.h>

#include "analysis/grouping/impl.h"
#include "base/std_sort.h"

// Longer ones first, as a parent stands before its children.
static bool placed_before(const void *ctx, const void *pa, const void *pb) {
    const struct placed *const a = pa, *const b = pb;
    (void)ctx;
    return a->offset != b->offset ? a->offset < b->offset : a->duration > b->duration;
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
    if (regions.n) xpl_std_sort(ret->v.v, ret->v.n, sizeof *ret->v.v, placed_before, NULL);
    return XPL_OK;
}

// ---- for readers of events ----

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
        moves |= !placed_before(NULL, &last, &e);
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
