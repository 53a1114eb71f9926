// SPDX-License-Identifier: Apache-2.0
// Reads the events of a line as they are after preprocessing.

#include "analysis/trace/derived/impl.h"
#include "base/std_sort.h"

// ---- cursors ----

enum { FROM_GROUP = 1, FROM_EVENT = 2 }; // where the name of a step comes from

// An event of a line that has to be sorted.
struct sorted {
    uint64_t begin, duration;
    uint64_t at; // UINT64_MAX: a region
    int64_t group;
    bool has_group, has_is_eager, is_eager;
    uint8_t step_name; // FROM_*
};

struct xpl_derived_cursor {
    const struct xpl_derived_line *line;
    const struct xpl_derived_part *part;
    const struct xpl_groups *groups;
    struct xpl_event_cursor events;
    struct xpl_group_cursor *cursor;
    struct xpl_flow_reader flows;
    bool recorded; // recorded events are still to come
    bool eager;    // events get has_is_eager
    bool sort;     // recorded events by time
    struct sorted *sorted;
    size_t n_sorted;
    size_t next;      // step, sorted or added event
    int64_t shift_ps; // from the recorded line's begin to that of the added line that extends it
    struct xpl_stat stats[3];
    struct xpl_error err;
    xpl_status_t status;
};

static bool sorted_less(const void *ctx, const void *pa, const void *pb) {
    const struct sorted *const a = pa, *const b = pb;
    (void)ctx;
    return a->begin != b->begin ? a->begin < b->begin : a->duration > b->duration;
}

static bool region_less(const void *ctx, const void *pa, const void *pb) {
    const struct xpl_region_event *const a = pa, *const b = pb;
    (void)ctx;
    const uint64_t ba = (uint64_t)a->begin_ps, bb = (uint64_t)b->begin_ps;
    return ba != bb ? ba < bb : (uint64_t)a->duration_ps < (uint64_t)b->duration_ps;
}

// Regions in the order of the file, with the groups that the cursor found for some of them.
static void add_regions(struct xpl_derived_cursor *c, struct xpl_region_event *grouped,
                        size_t n_grouped) {
    xpl_std_sort(grouped, n_grouped, sizeof *grouped, region_less, NULL);
    for (size_t i = 0; i < c->part->n_regions; i++) {
        const struct xpl_region_event *const r = &c->part->regions[i];
        struct sorted *const s = &c->sorted[c->n_sorted++];
        size_t lo = 0, hi = n_grouped;
        *s = (struct sorted){
            .begin = (uint64_t)r->begin_ps, .duration = (uint64_t)r->duration_ps, .at = UINT64_MAX};
        while (lo < hi) {
            const size_t mid = lo + (hi - lo) / 2;
            if (region_less(NULL, &grouped[mid], r))
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == n_grouped || region_less(NULL, r, &grouped[lo])) continue;
        s->has_group = true;
        s->group = grouped[lo].group_id;
    }
}

static struct sorted sorted_of(const struct xpl_derived_cursor *c, const struct xpl_event *ev,
                               const struct xpl_event_group *eg) {
    struct sorted s = {.begin = (uint64_t)xpl_event_begin_ps(c->line->recorded, ev),
                       .duration = (uint64_t)ev->duration_ps,
                       .at = ev->at,
                       .group = eg->shown_group_id,
                       .has_group = eg->has_group,
                       .has_is_eager = eg->has_is_eager,
                       .is_eager = eg->is_eager};
    if (eg->has_step_name) {
        const xpl_str_t name = xpl_groups_name(c->groups, eg->group_id);
        const bool group = eg->has_group && name.ptr == eg->step_name.ptr;
        s.step_name = group ? FROM_GROUP : FROM_EVENT;
    }
    return s;
}

static xpl_status_t sort_line(struct xpl_derived_cursor *c, struct xpl_arena *arena,
                              struct xpl_error *err) {
    XPL_VEC(struct xpl_region_event) grouped = {0};
    struct xpl_event ev;
    enum xpl_wire_result r;
    const size_t n = c->line->recorded->n_events + c->part->n_regions;
    c->sorted = xpl_arena_array(arena, n, sizeof *c->sorted);
    if (!c->sorted) XPL_RETURN_OOM(err, "sorted line");
    while ((r = xpl_events_next(&c->events, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        size_t n_regions;
        xpl_group_cursor_next(c->cursor, &ev, &eg);
        const struct xpl_region_event *const regions =
            xpl_group_cursor_regions(c->cursor, &n_regions);
        for (size_t i = 0; i < n_regions; i++) {
            struct xpl_region_event *const slot = xpl_vec_push(arena, &grouped);
            if (!slot) XPL_RETURN_OOM(err, "sorted line");
            *slot = regions[i];
        }
        c->sorted[c->n_sorted++] = sorted_of(c, &ev, &eg);
    }
    if (r == XPL_WIRE_MALFORMED || c->events.index != c->events.stop)
        return xpl_events_error(&c->events, err);
    if (!xpl_group_cursor_ok(c->cursor)) XPL_RETURN_OOM(err, "sorted line");
    add_regions(c, grouped.v, grouped.n);
    xpl_std_sort(c->sorted, c->n_sorted, sizeof *c->sorted, sorted_less, NULL);
    return XPL_OK;
}

static xpl_status_t new_cursor(const struct xpl_derived_line *line, uint32_t piece, bool sort,
                               struct xpl_arena *arena, struct xpl_derived_cursor **ret,
                               struct xpl_error *err) {
    struct xpl_derived_cursor *const c = xpl_arena_zalloc(arena, sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "line cursor");
    c->line = line;
    c->part = line->part;
    c->groups = line->plane->space->groups;
    if (line->recorded && !c->part->use_steps) {
        c->recorded = true;
        c->shift_ps =
            (int64_t)(((uint64_t)line->timestamp_ns - (uint64_t)line->recorded->timestamp_ns) *
                      1000);
        if (line->n_pieces > 1 && !sort) {
            xpl_events_begin_chunk(&c->events, line->recorded, piece);
            XPL_TRY(
                xpl_group_cursor_new_at(c->groups, line->recorded, piece, arena, &c->cursor, err));
        } else {
            xpl_events_begin(&c->events, line->recorded);
            XPL_TRY(xpl_group_cursor_new(c->groups, line->recorded, arena, &c->cursor, err));
        }
    }
    if (line->recorded) xpl_flow_reader_init(&c->flows, c->groups, line->recorded);
    c->eager = line->recorded && line->plane->space->eager;
    c->sort = c->recorded && (sort || c->part->sort);
    if (c->sort) XPL_TRY(sort_line(c, arena, err));
    *ret = c;
    return XPL_OK;
}

xpl_status_t xpl_derived_cursor_new(const struct xpl_derived_line *line, uint32_t piece,
                                    struct xpl_arena *arena, struct xpl_derived_cursor **ret,
                                    struct xpl_error *err) {
    return new_cursor(line, piece, false, arena, ret, err);
}

xpl_status_t xpl_derived_cursor_new_sorted(const struct xpl_derived_line *line,
                                           struct xpl_arena *arena, struct xpl_derived_cursor **ret,
                                           struct xpl_error *err) {
    return new_cursor(line, 0, true, arena, ret, err);
}

static enum xpl_wire_result fail_cursor(struct xpl_derived_cursor *c, xpl_status_t status) {
    c->status = status;
    return XPL_WIRE_MALFORMED;
}

xpl_status_t xpl_derived_cursor_error(const struct xpl_derived_cursor *c, struct xpl_error *err) {
    if (err && !err->code) *err = c->err;
    return c->status;
}

// Kernels and TensorFlow ops without an EagerExecute above them are marked as well: not eager.
static bool is_kernel_or_op(const struct xpl_derived_cursor *c,
                            const struct xpl_derived_event *ev) {
    const struct xpl_plane *const p = c->line->recorded->plane;
    const enum xpl_event_type type = p->event_md[ev->md].type;
    if (type == XPL_EVENT_TF_OP_RUN) return true;
    return type == XPL_EVENT_UNKNOWN && ev->n_flows && ev->flows[0].of_kernel &&
           p->kind != XPL_PLANE_HOST_THREADS &&
           !xpl_str_starts(p->name, XPL_STR(XPL_PLANE_NAME_TPU_PREFIX));
}

static void set_recorded(struct xpl_derived_cursor *c, const struct xpl_event *ev,
                         const struct xpl_event_group *eg, struct xpl_derived_event *ret) {
    ret->md = ev->md;
    ret->has_group = eg->has_group;
    ret->has_step_name = eg->has_step_name;
    ret->is_eager = eg->is_eager;
    ret->begin_ps =
        (int64_t)((uint64_t)xpl_event_begin_ps(c->line->recorded, ev) + (uint64_t)c->shift_ps);
    ret->duration_ps = ev->duration_ps;
    ret->group_id = eg->shown_group_id;
    ret->step_name = eg->step_name;
    ret->n_flows = c->flows.any ? xpl_flows_of_event(&c->flows, ev, ret->flows) : 0;
    ret->has_is_eager = c->eager && (eg->has_is_eager || is_kernel_or_op(c, ret));
    ret->n_added = 0;
    ret->stats = ev->stats;
    ret->at = ev->at;
}

static void set_bare(struct xpl_derived_event *ret, uint32_t md, uint64_t begin,
                     uint64_t duration) {
    ret->md = md;
    ret->has_group = ret->has_step_name = ret->has_is_eager = ret->is_eager = false;
    ret->begin_ps = (int64_t)begin;
    ret->duration_ps = (int64_t)duration;
    ret->group_id = 0;
    ret->step_name = (xpl_str_t){"", 0};
    ret->n_flows = ret->n_added = 0;
    ret->stats = (struct xpl_stats){0};
    ret->at = UINT64_MAX;
}

static enum xpl_wire_result next_sorted(struct xpl_derived_cursor *c,
                                        struct xpl_derived_event *ret) {
    const struct sorted *const s = &c->sorted[c->next++];
    struct xpl_event ev;
    struct xpl_event_group eg = {.has_group = s->has_group,
                                 .has_step_name = s->step_name != 0,
                                 .has_is_eager = s->has_is_eager,
                                 .is_eager = s->is_eager,
                                 .group_id = s->group,
                                 .shown_group_id = s->group,
                                 .step_name = {"", 0}};
    if (s->at == UINT64_MAX) {
        set_bare(ret, c->part->region_md, s->begin, s->duration);
        ret->has_group = s->has_group;
        ret->group_id = s->group;
        return XPL_WIRE_FIELD;
    }
    const xpl_status_t status = xpl_event_at(c->line->recorded, s->at, &ev, &c->err);
    if (status != XPL_OK) return fail_cursor(c, status);
    struct xpl_stat st;
    if (s->step_name == FROM_GROUP) eg.step_name = xpl_groups_name(c->groups, s->group);
    if (s->step_name == FROM_EVENT && xpl_stats_get(ev.stats, XPL_STAT_STEP_NAME, &st))
        eg.step_name = xpl_stat_str(&st);
    set_recorded(c, &ev, &eg, ret);
    return XPL_WIRE_FIELD;
}

static enum xpl_wire_result next_recorded(struct xpl_derived_cursor *c,
                                          struct xpl_derived_event *ret) {
    struct xpl_event ev;
    struct xpl_event_group eg;
    const enum xpl_wire_result r = xpl_events_next(&c->events, &ev);
    if (XPL_LIKELY(r == XPL_WIRE_FIELD)) {
        xpl_group_cursor_next(c->cursor, &ev, &eg);
        set_recorded(c, &ev, &eg, ret);
        return r;
    }
    if (r == XPL_WIRE_MALFORMED || c->events.index != c->events.stop)
        return fail_cursor(c, xpl_events_error(&c->events, &c->err));
    if (!xpl_group_cursor_ok(c->cursor))
        return fail_cursor(c,
                           xpl_error_set(&c->err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__,
                                         UINT64_MAX, "groups of a line: over the request's limit"));
    return XPL_WIRE_END;
}

// ---- steps and added events: their statistics are made when they are read ----

XPL_ADDED_STAT_MD(md_async, XPL_STAT_IS_ASYNC, "_a");
XPL_ADDED_STAT_MD(md_correlation, XPL_STAT_CORRELATION_ID, "correlation_id");
XPL_ADDED_STAT_MD(md_graph, XPL_STAT_CUDA_GRAPH_ID, "cuda_graph_id");
XPL_ADDED_STAT_MD(md_launches, XPL_STAT_UNKNOWN, "num_launches");
XPL_ADDED_STAT_MD(md_max, XPL_STAT_UNKNOWN, "max_launch_time_us");
XPL_ADDED_STAT_MD(md_avg, XPL_STAT_UNKNOWN, "avg_launch_time_us");
XPL_ADDED_STAT_MD(md_raw, XPL_STAT_RAW_BYTES_ACCESSED, "raw_bytes_accessed");
XPL_ADDED_STAT_MD(md_shape, XPL_STAT_SHAPE_WITH_LAYOUT, "shape_with_layout");
XPL_ADDED_STAT_MD(md_device_offset, XPL_STAT_DEVICE_OFFSET_PS, "device_offset_ps");
XPL_ADDED_STAT_MD(md_device_duration, XPL_STAT_DEVICE_DURATION_PS, "device_duration_ps");
XPL_ADDED_STAT_MD(md_idle, XPL_STAT_STEP_IDLE_TIME_PS, "step_idle_time_ps");

static void set_extra(struct xpl_derived_cursor *c, const struct xpl_extra *x,
                      struct xpl_derived_event *ret) {
    uint32_t n = 0;
    if (x->kind == XPL_EXTRA_GRAPH) {
        c->stats[n++] = xpl_added_uint(&md_graph, x->graph);
        if (x->has_first) c->stats[n++] = xpl_added_int(&md_correlation, x->correlation);
    } else if (x->kind == XPL_EXTRA_LAUNCHES) {
        c->stats[n++] = xpl_added_int(&md_launches, x->launches);
        c->stats[n++] = xpl_added_double(&md_max, x->max_us);
        c->stats[n++] = xpl_added_double(&md_avg, x->avg_us);
    } else if (x->kind == XPL_EXTRA_OFFLOAD) {
        c->stats[n++] = xpl_added_int(&md_async, 1);
        if (x->has_first) c->stats[n++] = xpl_added_int(&md_raw, x->raw_bytes);
        if (x->has_second) c->stats[n++] = xpl_added_str(&md_shape, x->shape);
    }
    ret->added = c->stats;
    ret->n_added = n;
}

static void next_added(struct xpl_derived_cursor *c, struct xpl_derived_event *ret) {
    const struct xpl_added *const a = &c->part->added[c->next++];
    set_bare(ret, a->md, a->begin, a->duration);
    ret->has_group = a->extra & 1;
    ret->group_id = a->group;
    if (a->extra >> 1) set_extra(c, &c->line->plane->names->extras[a->extra >> 1], ret);
}

static void next_step(struct xpl_derived_cursor *c, struct xpl_derived_event *ret) {
    const struct xpl_step_event *const s = &c->part->steps[c->next];
    uint32_t n = 0;
    set_bare(ret, s->line ? s->ev.md : c->part->step_md[c->next], (uint64_t)s->begin_ps,
             (uint64_t)s->duration_ps);
    c->next++;
    ret->has_group = s->has_group;
    ret->group_id = s->line ? xpl_groups_shown(&s->ev, s->group_id) : s->group_id;
    ret->has_step_name = s->step_name.len > 0;
    ret->step_name = s->step_name;
    if (!s->line) return;
    ret->stats = s->ev.stats;
    ret->at = s->ev.at;
    if (s->has_device_time) {
        c->stats[n++] = xpl_added_int(&md_device_offset, s->device_offset_ps);
        c->stats[n++] = xpl_added_int(&md_device_duration, s->device_duration_ps);
    }
    if (s->has_idle_time) c->stats[n++] = xpl_added_uint(&md_idle, s->step_idle_time_ps);
    ret->added = c->stats;
    ret->n_added = n;
    if (c->flows.any && s->line == c->flows.line)
        ret->n_flows = xpl_flows_of_event(&c->flows, &s->ev, ret->flows);
}

enum xpl_wire_result xpl_derived_cursor_next(struct xpl_derived_cursor *c,
                                             struct xpl_derived_event *ev) {
    if (c->status != XPL_OK) return XPL_WIRE_MALFORMED;
    if (c->recorded) {
        if (!c->sort) {
            const enum xpl_wire_result r = next_recorded(c, ev);
            if (XPL_LIKELY(r != XPL_WIRE_END)) return r;
        } else if (c->next < c->n_sorted) {
            return next_sorted(c, ev);
        }
        c->recorded = false;
        c->next = 0;
    }
    if (c->part->use_steps) {
        if (c->next >= c->part->n_steps) return XPL_WIRE_END;
        next_step(c, ev);
        return XPL_WIRE_FIELD;
    }
    if (c->next >= c->part->n_added) return XPL_WIRE_END;
    next_added(c, ev);
    return XPL_WIRE_FIELD;
}
