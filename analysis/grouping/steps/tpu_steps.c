// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/steps/tpu_steps.h"

#include "analysis/grouping/plan/planes.h"
#include "analysis/grouping/steps/recorded_steps.h"
#include "base/exec.h"
#include "base/vec.h"

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "device steps");
}

static struct span device_span(const struct xpl_step_event *s) {
    const uint64_t begin = (uint64_t)(s->has_device_time ? s->device_offset_ps : s->begin_ps);
    const uint64_t length = (uint64_t)(s->has_device_time ? s->device_duration_ps : s->duration_ps);
    return (struct span){begin, begin + length};
}

// Extends a merged step by the next event of its group.
static void join_step(struct xpl_step_event *to, const struct xpl_step_event *s) {
    to->is_merged = true;
    if (to->has_device_time) {
        const struct span a = device_span(to), b = device_span(s);
        const uint64_t begin = a.begin < b.begin ? a.begin : b.begin;
        const uint64_t end = a.end > b.end ? a.end : b.end;
        to->device_offset_ps = (int64_t)begin;
        to->device_duration_ps = (int64_t)(end - begin);
    }
    const uint64_t end = (uint64_t)s->begin_ps + (uint64_t)s->duration_ps;
    to->duration_ps = (int64_t)(end - (uint64_t)to->begin_ps);
    if (s->has_idle_time) to->step_idle_time_ps += s->step_idle_time_ps;
}

// Neighbours of one group become one step, and events without a group go, unless none has one
// [MergeHostSteps].  In place; returns how many remain.
static size_t merge_steps(struct xpl_step_event *v, size_t n) {
    size_t kept = 0;
    bool open = false, any = false;
    uint64_t idle = 0; // upstream carries it over where an event brings none
    for (size_t i = 0; i < n; i++)
        any |= v[i].has_group;
    if (!any) return n;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_step_event s = v[i];
        if (!s.has_group) {
            open = false;
            idle = 0;
        } else if (open && v[kept - 1].group_id == s.group_id) {
            join_step(&v[kept - 1], &s);
            idle = v[kept - 1].step_idle_time_ps;
        } else {
            if (s.has_idle_time) idle = s.step_idle_time_ps;
            v[kept] = s;
            v[kept].has_idle_time = true;
            v[kept++].step_idle_time_ps = idle;
            open = true;
        }
    }
    return kept;
}

static int step_cmp(const void *pa, const void *pb) {
    const struct xpl_step_event *const a = pa, *const b = pb;
    const uint64_t ba = (uint64_t)a->begin_ps, bb = (uint64_t)b->begin_ps;
    const uint64_t da = (uint64_t)a->duration_ps, db = (uint64_t)b->duration_ps;
    if (ba != bb) return ba < bb ? -1 : 1;
    if (da != db) return da > db ? -1 : 1;
    return (a->ev.index > b->ev.index) - (a->ev.index < b->ev.index);
}

// Fills the spans that give the events of other lines their groups.
static xpl_status_t fill_spans(struct xpl_groups *g, struct plane_groups *pg,
                               const struct xpl_step_event *v, size_t n, struct xpl_error *err) {
    pg->spans = xpl_arena_array(g->arena, n, sizeof *pg->spans);
    if (!pg->spans) return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const uint64_t begin = (uint64_t)v[i].begin_ps;
        const struct span span = {begin, begin + (uint64_t)v[i].duration_ps};
        pg->spans[i] = (struct group_span){.span = span,
                                           .group = v[i].group_id,
                                           .after = v[i].group_id,
                                           .has_group = v[i].has_group,
                                           .has_after = v[i].has_group};
        pg->any_group |= v[i].has_group;
    }
    pg->n_spans = n;
    return xpl_grp_make_span_tree(pg, g->arena) ? XPL_OK : no_memory(err);
}

// Modules that replace steps are treated like any other line: each joins the one that it overlaps;
// if one begins at the moment when another ends, it joins that one [GroupLine,
// GetOverlappingEvent].
static void propagate_spans(struct plane_groups *pg) {
    struct group_span *const v = pg->spans;
    for (size_t i = 0, current = 0; i < pg->n_spans; i++) { // current: + 1
        if (!current || !span_overlaps(v[current - 1].span, v[i].span)) {
            const size_t k = xpl_grp_next_span(pg, current, v[i].span);
            if (k == pg->n_spans || v[k].span.begin > v[i].span.end) continue;
            current = k + 1;
            if (!span_overlaps(v[k].span, v[i].span)) continue;
        }
        if (!v[current - 1].has_after) continue;
        v[i].has_shown = true;
        v[i].shown = v[current - 1].after;
        if (v[i].has_group) continue;
        v[i].has_after = true;
        v[i].after = v[i].shown;
    }
}

static void name_steps(const struct xpl_groups *g, struct xpl_step_event *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (v[i].has_group && v[i].step_name.len == 0)
            v[i].step_name = xpl_groups_name(g, v[i].group_id);
}

static xpl_status_t build_module_spans(struct xpl_groups *g, struct plane_groups *pg,
                                       const struct xpl_line *line, struct xpl_arena *temp,
                                       struct xpl_error *err) {
    struct xpl_step_event *const v = xpl_arena_array(g->arena, line->n_events, sizeof *v);
    if (!v) return no_memory(err);
    XPL_TRY(xpl_grp_read_steps(g, line, temp, v, err));
    XPL_TRY(fill_spans(g, pg, v, line->n_events, err));
    pg->span_line = line;
    propagate_spans(pg);
    pg->modules = v;
    pg->n_modules = merge_steps(v, line->n_events);
    name_steps(g, v, pg->n_modules);
    return XPL_OK;
}

static xpl_status_t build_steps(struct xpl_groups *g, struct plane_groups *pg,
                                const struct xpl_line *line, bool grouping, struct xpl_arena *temp,
                                struct xpl_error *err) {
    size_t n = line->n_events;
    struct xpl_step_event *const v = xpl_arena_array(g->arena, n, sizeof *v);
    if (!v) return no_memory(err);
    XPL_TRY(xpl_grp_read_steps(g, line, temp, v, err));
    n = merge_steps(v, n);
    if (grouping) XPL_TRY(fill_spans(g, pg, v, n, err));
    name_steps(g, v, n);
    // GenerateDerivedTimeLines sorts the planes of TensorCores in the end.
    if (pg->plan.plane->kind == XPL_PLANE_TPU_CORE) xpl_sort(v, n, sizeof *v, step_cmp);
    pg->steps = v;
    pg->n_steps = n;
    pg->step_line = line;
    return XPL_OK;
}

xpl_status_t xpl_grp_build_tpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err) {
    const struct xpl_line *steps;
    const struct xpl_line *const grouping = xpl_grp_tpu_line(pg->plan.plane, &steps);
    struct xpl_arena temp;
    xpl_status_t status = XPL_OK;
    if (!grouping) return XPL_OK;
    xpl_arena_init(&temp, g->arena->limit);
    if (steps && steps->n_events) status = build_steps(g, pg, steps, grouping == steps, &temp, err);
    if (status == XPL_OK && grouping != steps)
        status = build_module_spans(g, pg, grouping, &temp, err);
    xpl_arena_fini(&temp);
    return status;
}
