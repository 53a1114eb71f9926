// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/program_steps.h"

#include "base/arena.h"
#include "base/vec.h"

static void give_runs(struct xpl_steps *steps, const struct xpl_host_runs *r) {
    size_t last;
    const bool cut = xpl_host_runs_cut(r, true, &last);
    for (size_t i = 0; i < r->runs.n; i++) {
        const struct xpl_host_run *const run = &r->runs.v[i];
        struct xpl_step *const st = run->group >= 0 ? xpl_steps_find(steps, run->group) : NULL;
        if (!st) continue;
        xpl_step_add_work(st, (struct xpl_timespan){run->begin_ps, run->end_ps - run->begin_ps});
        if (cut && i == last) st->is_cut = true;
    }
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_step *const a = *(struct xpl_step *const *)pa, *const b = *(
                                                                        struct xpl_step *const *)pb;
    if (a->host_marker.begin_ps != b->host_marker.begin_ps)
        return xpl_time_is_before(a->host_marker.begin_ps, b->host_marker.begin_ps) ? -1 : 1;
    if (a->host_marker.duration_ps != b->host_marker.duration_ps)
        return a->host_marker.duration_ps > b->host_marker.duration_ps ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static bool encloses(struct xpl_timespan a, struct xpl_timespan b) {
    return !xpl_time_is_before(b.begin_ps, a.begin_ps) &&
           !xpl_time_is_before(xpl_timespan_end(a), xpl_timespan_end(b));
}

// The steps, by the begin of their annotations, which do not enclose each other.
static size_t choose(struct xpl_steps *steps, struct xpl_step **ret) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < steps->v.n; i++)
        if (steps->v.v[i].host_marker.duration_ps) ret[n++] = &steps->v.v[i];
    xpl_sort(ret, n, sizeof(struct xpl_step *), by_begin);
    for (size_t i = 0; i < n; i++) {
        struct xpl_step *const around = kept ? ret[kept - 1] : NULL;
        if (!around || around->ops || !encloses(around->host_marker, ret[i]->host_marker)) {
            ret[kept++] = ret[i];
            continue;
        }
        xpl_step_add_work(around, ret[i]->work);
        xpl_step_join_spans(ret[i], around);
        ret[i]->host_marker = (struct xpl_timespan){0};
    }
    return kept;
}

// Of a loop that runs ahead the profile may end before its last steps begin, or within one: these
// are left out.  Returns how many steps stay.
static size_t drop_unfinished(struct xpl_step **v, size_t n) {
    size_t with_work = n, kept = n;
    uint64_t end = 0;
    while (with_work && !v[with_work - 1]->work.duration_ps)
        with_work--;
    if (!with_work) return n;
    for (size_t i = 0; i < with_work; i++) {
        const uint64_t last = xpl_timespan_end(v[i]->work);
        if (v[i]->work.duration_ps && (!end || xpl_time_is_before(end, last))) end = last;
    }
    while (kept > with_work && xpl_time_is_before(xpl_timespan_end(v[kept - 1]->host_marker), end))
        v[--kept]->host_marker = (struct xpl_timespan){0};
    if (kept == with_work && kept > 1 && v[kept - 1]->is_cut)
        v[--kept]->host_marker = (struct xpl_timespan){0};
    return kept;
}

// Work that was launched before the profile or outside of annotations, and that the device has as
// the first step begins: *ret_end is when it ends.  False if there is none, or if what the step
// does afterwards until its first op, such as compiling, takes longer than that work.
static bool find_loose(const struct xpl_host_runs *r, const struct xpl_step *first,
                       uint64_t *ret_end) {
    bool any = false;
    for (size_t i = 0; r && i < r->runs.n; i++) {
        const struct xpl_host_run *const run = &r->runs.v[i];
        if (run->group >= 0 || !first->work.duration_ps ||
            !xpl_time_is_before(run->begin_ps, first->work.begin_ps))
            continue;
        if (!any || xpl_time_is_before(*ret_end, run->end_ps)) *ret_end = run->end_ps;
        any = true;
    }
    const uint64_t marked = first->host_marker.begin_ps;
    return any && xpl_time_is_before(marked, *ret_end) &&
           (!xpl_time_is_before(*ret_end, first->work.begin_ps) ||
            first->work.begin_ps - *ret_end <= *ret_end - marked);
}

// A loop runs ahead when the device still has work of earlier steps as an annotation begins: then
// the step begins with its first op, or, without one, when that work ends.
static uint64_t begin_of(const struct xpl_step *st, uint64_t earlier_end_ps) {
    const uint64_t marked = st->host_marker.begin_ps;
    if (!xpl_time_is_before(marked, earlier_end_ps)) return marked;
    return st->work.duration_ps ? st->work.begin_ps : earlier_end_ps;
}

// `runs`: of a host as a device; else NULL.
static bool set_times(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                      struct xpl_arena *scratch) {
    struct xpl_step **const v = xpl_arena_array(scratch, steps->v.n, sizeof *v);
    uint64_t *const begins = xpl_arena_array(scratch, steps->v.n, sizeof *begins);
    uint64_t work_end = 0, end = 0;
    if (!v || !begins) return false;
    const size_t n = drop_unfinished(v, choose(steps, v));
    const bool has_loose = n && find_loose(runs, v[0], &work_end);
    for (size_t i = 0; i < n; i++) {
        const uint64_t marked_end = xpl_timespan_end(v[i]->host_marker);
        const uint64_t last = xpl_timespan_end(v[i]->work);
        begins[i] = i || has_loose ? begin_of(v[i], work_end) : v[i]->host_marker.begin_ps;
        // A step takes some time: views leave out steps of none.
        if (i && !xpl_time_is_before(begins[i - 1], begins[i])) begins[i] = begins[i - 1] + 1;
        if (!i) work_end = begins[0];
        if (v[i]->work.duration_ps && xpl_time_is_before(work_end, last)) work_end = last;
        end = xpl_time_is_before(marked_end, work_end) ? work_end : marked_end;
        if (!xpl_time_is_before(begins[i], end)) end = begins[i] + 1;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t next = i + 1 < n ? begins[i + 1] : end;
        v[i]->host_marker = (struct xpl_timespan){begins[i], next - begins[i]};
    }
    return true;
}

bool xpl_program_steps_set(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                           struct xpl_arena *scratch) {
    give_runs(steps, runs);
    return set_times(steps, runs, scratch);
}

// ---- devices ----

// Clocks of host and device differ where the first step's work begins later after its annotation
// than all of the work takes: nothing waits so long for a device.
static bool clocks_differ(const struct xpl_steps *steps) {
    const struct xpl_step *first = NULL;
    uint64_t begin = 0, end = 0;
    for (size_t i = 0; i < steps->v.n; i++) {
        const struct xpl_step *const st = &steps->v.v[i];
        if (!st->work.duration_ps) continue;
        if (!first || xpl_time_is_before(end, xpl_timespan_end(st->work)))
            end = xpl_timespan_end(st->work);
        if (!first || xpl_time_is_before(st->work.begin_ps, begin))
            begin = st->work.begin_ps, first = st;
    }
    if (!first || !first->host_marker.duration_ps) return false;
    const uint64_t launched = xpl_timespan_end(first->host_marker);
    return xpl_time_is_before(launched, begin) && begin - launched > end - begin;
}

// An op that begins before the annotation which launched it begins the step.
static struct xpl_timespan annotation_of(const struct xpl_step *st) {
    const struct xpl_timespan a = st->host_marker;
    return a.duration_ps && !xpl_time_is_before(st->work.begin_ps, a.begin_ps) ? a : st->work;
}

// What no annotation launched is the longest stretch of the group on a device.
static void set_work(const struct xpl_convert *c, struct xpl_step *st) {
    int64_t begin, duration;
    const bool annotated =
        xpl_groups_annotation(c->groups, st->id, &begin, &duration) && duration > 0;
    if (annotated) st->host_marker = (struct xpl_timespan){(uint64_t)begin, (uint64_t)duration};
    if (!annotated) st->work = st->device_marker;
    for (const struct xpl_core_marker *m = st->core_markers; c->is_tpu && m; m = m->next)
        xpl_step_add_work(st, m->span);
}

bool xpl_device_steps_set(const struct xpl_convert *c, struct xpl_steps *steps) {
    for (size_t i = 0; i < steps->v.n; i++)
        set_work(c, &steps->v.v[i]);
    const bool apart = clocks_differ(steps);
    for (size_t i = 0; i < steps->v.n; i++) {
        struct xpl_step *const st = &steps->v.v[i];
        st->host_marker = apart ? st->work : annotation_of(st);
    }
    if (!set_times(steps, NULL, steps->arena)) return false;
    for (size_t i = 0; i < steps->v.n; i++)
        steps->v.v[i].device_marker = steps->v.v[i].host_marker;
    return true;
}
