// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/program_steps.h"

#include <stdlib.h>

#include "base/arena.h"

static void give_runs(struct xpl_steps *steps, const struct xpl_host_runs *r) {
    for (size_t i = 0; i < r->runs.n; i++) {
        const struct xpl_host_run *const run = &r->runs.v[i];
        struct xpl_step *const st = run->group >= 0 ? xpl_steps_find(steps, run->group) : NULL;
        if (st)
            xpl_step_add_work(st,
                              (struct xpl_timespan){run->begin_ps, run->end_ps - run->begin_ps});
    }
}

static int by_begin(const void *pa, const void *pb) {
    const struct xpl_step *const a = *(struct xpl_step *const *)pa, *const b = *(
                                                                        struct xpl_step *const *)pb;
    if (a->host_marker.begin_ps != b->host_marker.begin_ps)
        return a->host_marker.begin_ps < b->host_marker.begin_ps ? -1 : 1;
    if (a->host_marker.duration_ps != b->host_marker.duration_ps)
        return a->host_marker.duration_ps > b->host_marker.duration_ps ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

// The steps, by the begin of their annotations, which do not enclose each other.
static size_t choose(struct xpl_steps *steps, struct xpl_step **ret) {
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < steps->v.n; i++)
        if (steps->v.v[i].host_marker.duration_ps) ret[n++] = &steps->v.v[i];
    if (n) qsort(ret, n, sizeof(struct xpl_step *), by_begin);
    for (size_t i = 0; i < n; i++) {
        struct xpl_step *const around = kept ? ret[kept - 1] : NULL;
        if (!around || !xpl_timespan_includes(around->host_marker, ret[i]->host_marker)) {
            ret[kept++] = ret[i];
            continue;
        }
        xpl_step_add_work(around, ret[i]->work);
        xpl_step_join_spans(ret[i], around);
        ret[i]->host_marker = (struct xpl_timespan){0};
    }
    return kept;
}

// A loop runs ahead when the device still has work of earlier steps as an annotation begins: then
// the step begins with its first op, or, without one, when that work ends.
static uint64_t begin_of(const struct xpl_step *st, uint64_t earlier_end_ps) {
    const uint64_t marked = st->host_marker.begin_ps;
    if (earlier_end_ps <= marked) return marked;
    return st->work.duration_ps ? st->work.begin_ps : earlier_end_ps;
}

bool xpl_program_steps_set(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                           struct xpl_arena *scratch) {
    struct xpl_step **const v = xpl_arena_array(scratch, steps->v.n, sizeof *v);
    uint64_t *const begins = xpl_arena_array(scratch, steps->v.n, sizeof *begins);
    uint64_t work_end = 0, end = 0;
    if (!v || !begins) return false;
    give_runs(steps, runs);
    const size_t n = choose(steps, v);
    for (size_t i = 0; i < n; i++) {
        const uint64_t marked_end = xpl_timespan_end(v[i]->host_marker);
        const uint64_t last = xpl_timespan_end(v[i]->work);
        begins[i] = begin_of(v[i], work_end);
        // A step takes some time: views leave out steps of none.
        if (i && begins[i] <= begins[i - 1]) begins[i] = begins[i - 1] + 1;
        if (last > work_end) work_end = last;
        end = work_end > marked_end ? work_end : marked_end;
        if (end <= begins[i]) end = begins[i] + 1;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t next = i + 1 < n ? begins[i + 1] : end;
        v[i]->host_marker = (struct xpl_timespan){begins[i], next - begins[i]};
    }
    return true;
}
