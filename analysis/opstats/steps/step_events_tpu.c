// SPDX-License-Identifier: Apache-2.0
// Steps of TPU cores: the ops that ran in each, and its collectives.

#include "analysis/opstats/steps/step_events_tpu.h"
#include "analysis/opstats/steps/step_markers.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

// An op event that the next may be inside of.
struct open_event {
    struct xpl_event ev;
    struct xpl_timespan span;
    uint64_t children_ps;
    int64_t group;
    bool marked; // in a step; others matter only to their enclosing event
};

struct core_reader {
    const struct xpl_line *line;
    struct xpl_core_steps *core;
    struct xpl_marked marked;
    struct xpl_steps *steps;
    struct xpl_arena *arena;
    XPL_VEC(struct open_event) open;
    struct xpl_map step_of; // group to index + 1 into core->v
};

// Statistics of an op event that matter to steps.
struct op_event {
    struct xpl_timespan span; // on the device's clock, when it says so
    bool has_offset, has_duration, has_unique_id, has_all_reduce_id;
    uint64_t offset_ps, duration_ps, unique_id, all_reduce_id;
};

// The first of equal statistics counts.
static void read_first(const struct xpl_stat *s, bool *has, uint64_t *value) {
    if (!*has) *value = xpl_stat_int_or_uint(s);
    *has = true;
}

static struct op_event read_stats(const struct xpl_line *line, const struct xpl_event *ev) {
    struct op_event e = {
        .span = {(uint64_t)xpl_event_begin_ps(line, ev), (uint64_t)ev->duration_ps}};
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        switch ((int)s.md->type) {
            case XPL_STAT_DEVICE_OFFSET_PS: read_first(&s, &e.has_offset, &e.offset_ps); break;
            case XPL_STAT_DEVICE_DURATION_PS:
                read_first(&s, &e.has_duration, &e.duration_ps);
                break;
            case XPL_STAT_ALL_REDUCE_UNIQUE_ID:
                read_first(&s, &e.has_unique_id, &e.unique_id);
                break;
            case XPL_STAT_ALL_REDUCE_ID:
                read_first(&s, &e.has_all_reduce_id, &e.all_reduce_id);
                break;
            default: break;
        }
    if (e.has_offset && e.has_duration) e.span = (struct xpl_timespan){e.offset_ps, e.duration_ps};
    return e;
}

static struct xpl_tpu_ops *ops_of(struct core_reader *r, int64_t group) {
    bool is_new;
    uint64_t *slot = xpl_map_put(r->arena, &r->step_of, (uint64_t)group, 0, &is_new);
    if (!slot) return NULL;
    if (!*slot) {
        struct xpl_core_step *st = xpl_vec_push(r->arena, &r->core->v);
        if (!st) return NULL;
        st->id = group;
        xpl_tpu_ops_begin(&st->ops, &r->core->plane, XPL_TPU_OPS_STEP, r->arena);
        *slot = r->core->v.n;
    }
    return &r->core->v.v[*slot - 1].ops;
}

static bool close_innermost(struct core_reader *r) {
    const struct open_event o = r->open.v[--r->open.n];
    if (!o.marked) return true;
    struct xpl_tpu_ops *ops = ops_of(r, o.group);
    // Where children overlap none is left; the device's own table lets the difference wrap.
    const uint64_t duration = o.span.duration_ps;
    const uint64_t children = o.children_ps < duration ? o.children_ps : duration;
    return ops && xpl_tpu_ops_add(ops, &o.ev, duration, children, NULL);
}

static bool open_op(struct core_reader *r, const struct xpl_event *ev, struct xpl_timespan span,
                    int64_t group, bool marked) {
    while (r->open.n && !xpl_timespan_includes(r->open.v[r->open.n - 1].span, span))
        if (!close_innermost(r)) return false;
    if (r->open.n) r->open.v[r->open.n - 1].children_ps += span.duration_ps;
    struct open_event *o = xpl_vec_push(r->arena, &r->open);
    if (!o) return false;
    *o = (struct open_event){.ev = *ev, .span = span, .group = group, .marked = marked};
    return true;
}

static bool add_collective(struct core_reader *r, const struct xpl_event *ev,
                           const struct op_event *e, int64_t group) {
    const struct xpl_plane *p = r->line->plane;
    struct xpl_stat bytes;
    struct xpl_all_reduce_info info = {.id = e->unique_id,
                                       .all_reduce_id = e->all_reduce_id,
                                       .start_time_ps = (uint64_t)xpl_event_begin_ps(r->line, ev),
                                       .end_time_ps = (uint64_t)xpl_event_end_ps(r->line, ev)};
    if (e->has_offset) info.start_time_ps = e->offset_ps;
    if (e->has_duration) info.end_time_ps = info.start_time_ps + e->duration_ps;
    if (xpl_stats_get(xpl_event_md_stats(p, &p->event_md[ev->md]), XPL_STAT_BYTES_ACCESSED, &bytes))
        info.byte_size = xpl_stat_int_or_uint(&bytes);
    struct xpl_step *st = xpl_steps_put(r->steps, group);
    return st && xpl_step_add_collective(st, r->core->core_id, &info, r->arena);
}

static bool read_event(struct core_reader *r, const struct xpl_event *ev, int64_t group) {
    const struct op_event e = read_stats(r->line, ev);
    const bool marked = xpl_is_marked(&r->marked, group);
    // Every such group with an op event is a step, also when the op has no key to be counted under.
    if (marked && !xpl_steps_put(r->steps, group)) return false;
    return open_op(r, ev, e.span, group, marked) &&
           (!marked || !e.has_unique_id || add_collective(r, ev, &e, group));
}

static bool close_all(struct core_reader *r) {
    while (r->open.n)
        if (!close_innermost(r)) return false;
    return true;
}

// In file order.  With `sorted` it stops, *ret_disordered set, where that is another order.
static xpl_status_t read_as_it_stands(struct core_reader *r, const struct xpl_convert *c,
                                      bool sorted, bool *ret_disordered, struct xpl_error *err) {
    struct xpl_group_cursor *groups;
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result res;
    uint64_t begin = 0, duration = UINT64_MAX;
    XPL_TRY(xpl_group_cursor_new(c->groups, r->line, r->arena, &groups, err));
    xpl_events_begin(&cur, r->line);
    while ((res = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group g;
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "TPU steps: cancelled");
        xpl_group_cursor_next(groups, &ev, &g);
        xpl_place_in_execution(r->marked.markers->executions, r->line, &ev, &g);
        const uint64_t b = (uint64_t)ev.offset_ps, d = (uint64_t)ev.duration_ps;
        *ret_disordered |= sorted && (b < begin || (b == begin && d > duration));
        if (*ret_disordered) return XPL_OK;
        begin = b, duration = d;
        if (g.has_group && !read_event(r, &ev, g.group_id)) XPL_RETURN_OOM(err, "TPU steps");
    }
    if (res == XPL_WIRE_MALFORMED) return xpl_events_error(&cur, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "groups of events");
    if (!close_all(r)) XPL_RETURN_OOM(err, "TPU steps");
    return XPL_OK;
}

// Where an event stands that has a group.
struct place {
    uint64_t offset, duration, index;
    const uint8_t *p;
    int64_t group;
};

static int by_offset(const void *pa, const void *pb) {
    const struct place *a = pa, *b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->duration != b->duration) return a->duration > b->duration ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

typedef XPL_VEC(struct place) places_t;

static xpl_status_t list_places(const struct core_reader *r, const struct xpl_convert *c,
                                struct xpl_arena *arena, places_t *ret, struct xpl_error *err) {
    struct xpl_group_cursor *groups;
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result res;
    XPL_TRY(xpl_group_cursor_new(c->groups, r->line, arena, &groups, err));
    xpl_events_begin(&cur, r->line);
    for (const uint8_t *at = cur.p; (res = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD;
         at = cur.p) {
        struct xpl_event_group g;
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "TPU steps: cancelled");
        xpl_group_cursor_next(groups, &ev, &g);
        xpl_place_in_execution(r->marked.markers->executions, r->line, &ev, &g);
        if (!g.has_group) continue;
        struct place *place = xpl_vec_push(arena, ret);
        if (!place) XPL_RETURN_OOM(err, "TPU steps");
        *place = (struct place){(uint64_t)ev.offset_ps, (uint64_t)ev.duration_ps, ev.index, at,
                                g.group_id};
    }
    if (res == XPL_WIRE_MALFORMED) return xpl_events_error(&cur, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "groups of events");
    return XPL_OK;
}

// By begin, longer ones first.
static xpl_status_t read_in_order(struct core_reader *r, const struct xpl_convert *c,
                                  struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(c->scratch_limit);
    places_t places = {0};
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    XPL_TRY(list_places(r, c, &arena, &places, err));
    xpl_sort(places.v, places.n, sizeof *places.v, by_offset);
    xpl_events_begin(&cur, r->line);
    for (size_t i = 0; i < places.n; i++) {
        cur.p = places.v[i].p;
        cur.index = places.v[i].index;
        if (xpl_events_next(&cur, &ev) != XPL_WIRE_FIELD) return xpl_events_error(&cur, err);
        if (!read_event(r, &ev, places.v[i].group)) XPL_RETURN_OOM(err, "TPU steps");
    }
    if (!close_all(r)) XPL_RETURN_OOM(err, "TPU steps");
    return XPL_OK;
}

static bool begin_core(struct core_reader *r, const struct xpl_line *line,
                       const struct xpl_steps *markers, struct xpl_core_steps *core,
                       struct xpl_steps *ret) {
    struct xpl_arena *const arena = ret->arena;
    *r = (struct core_reader){.line = line, .core = core, .steps = ret, .arena = arena};
    r->marked.markers = markers;
    *core = (struct xpl_core_steps){.core_id = xpl_plane_core_id(line->plane)};
    xpl_steps_init(ret, arena);
    return xpl_tpu_plane_init(&core->plane, line->plane, arena);
}

xpl_status_t xpl_core_line_steps(const struct xpl_convert *c, const struct xpl_line *line,
                                 const struct xpl_steps *markers, struct xpl_core_steps *core,
                                 struct xpl_steps *ret, struct xpl_error *err) {
    // Upstream sorts the lines of TensorCores when it groups a profile.
    const bool sorted =
        line->plane->kind == XPL_PLANE_TPU_CORE && !xpl_groups_arrived_grouped(c->groups);
    bool disordered = false;
    struct core_reader r;
    if (!begin_core(&r, line, markers, core, ret)) XPL_RETURN_OOM(err, "TPU steps");
    XPL_TRY(read_as_it_stands(&r, c, sorted, &disordered, err));
    if (!disordered) return XPL_OK;
    if (!begin_core(&r, line, markers, core, ret)) XPL_RETURN_OOM(err, "TPU steps");
    return read_in_order(&r, c, err);
}

bool xpl_core_steps_finish(struct xpl_core_steps *core, struct xpl_steps *steps,
                           struct xpl_arena *result) {
    // Metadata decoded while lines were read in parallel is decoded again, into memory that stays.
    for (uint32_t i = 0; core->v.n && i < core->plane.plane->n_event_md; i++)
        core->plane.md[i].op = NULL;
    core->plane.arena = result;
    for (size_t i = 0; i < core->v.n; i++) {
        struct xpl_step *st = xpl_steps_find(steps, core->v.v[i].id);
        if (!st) continue;
        struct xpl_op_metrics_db *db = xpl_step_put_ops(st, core->core_id, steps->arena);
        core->v.v[i].ops.plane = &core->plane;
        if (!db || !xpl_tpu_ops_finish(&core->v.v[i].ops, steps->arena, db)) return false;
    }
    return true;
}
