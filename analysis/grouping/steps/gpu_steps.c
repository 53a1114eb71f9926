// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/steps/gpu_steps.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/grouping/cursor.h"
#include "analysis/grouping/steps/recorded_steps.h"
#include "base/exec.h"
#include "base/vec.h"

static xpl_status_t no_memory(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "device steps");
}

// Events of all lines of a plane in the order of time: a heap of cursors, one per line.
struct feed {
    struct xpl_event_cursor events;
    struct xpl_group_cursor *groups;
    const struct xpl_line *line;
    uint64_t begin, duration;
    bool has_group;
    int64_t group;
    bool done;
};

struct timed_event { // an entry of the heap
    uint64_t begin, duration;
    int64_t group;
    uint32_t order; // its line
    bool has_group;
};

// Begin, then duration ascending [GetSortedEvents]; then the order of the lines.
static int timed_cmp(const void *pa, const void *pb) {
    const struct timed_event *const a = pa, *const b = pb;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->duration != b->duration) return a->duration < b->duration ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

struct gpu_build {
    struct xpl_groups *g;
    struct plane_groups *pg;
    struct xpl_arena temp;
    struct feed *feeds;
    uint32_t n_feeds;
    struct timed_event *heap; // heads of the feeds; order is the feed's number while in here
    uint32_t n_heap;
    XPL_VEC(struct run) runs;
    XPL_VEC(struct xpl_step_event) steps;
    bool unsorted;
    struct xpl_error *err;
};

static xpl_status_t read_feed(struct gpu_build *b, struct feed *f, struct timed_event *ret) {
    struct xpl_event ev;
    struct xpl_event_group eg;
    const enum xpl_wire_result r = xpl_events_next(&f->events, &ev);
    f->done = r != XPL_WIRE_FIELD;
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&f->events, b->err);
    if (f->done) return XPL_OK;
    xpl_group_cursor_next(f->groups, &ev, &eg);
    const struct span span =
        plan_span(&b->pg->plan, f->line, (uint64_t)ev.offset_ps, (uint64_t)ev.duration_ps);
    *ret = (struct timed_event){.begin = span.begin + b->pg->plan.origin_ps,
                                .duration = span.end - span.begin,
                                .group = eg.group_id,
                                .order = (uint32_t)(f - b->feeds),
                                .has_group = eg.has_group};
    return XPL_OK;
}

static void sift_down(struct gpu_build *b, uint32_t i) {
    const struct timed_event x = b->heap[i];
    for (uint32_t child; (child = 2 * i + 1) < b->n_heap; i = child) {
        if (child + 1 < b->n_heap && timed_cmp(&b->heap[child + 1], &b->heap[child]) < 0) child++;
        if (timed_cmp(&x, &b->heap[child]) <= 0) break;
        b->heap[i] = b->heap[child];
    }
    b->heap[i] = x;
}

static xpl_status_t begin_feeds(struct gpu_build *b) {
    const struct xpl_plane *const p = b->pg->plan.plane;
    b->n_feeds = b->n_heap = 0;
    b->feeds = xpl_arena_array(&b->temp, p->n_lines, sizeof *b->feeds);
    b->heap = xpl_arena_array(&b->temp, p->n_lines, sizeof *b->heap);
    if (!b->feeds || !b->heap) return no_memory(b->err);
    for (uint32_t i = 0; i < p->n_lines; i++) {
        if (xpl_is_derived_line_id(p->lines[i].id) || p->lines[i].n_events == 0) continue;
        struct feed *const f = &b->feeds[b->n_feeds++];
        *f = (struct feed){.line = &p->lines[i]};
        xpl_events_begin(&f->events, f->line);
        XPL_TRY(xpl_group_cursor_new(b->g, f->line, &b->temp, &f->groups, b->err));
        xpl_grp_cursor_no_fill(f->groups);
        XPL_TRY(read_feed(b, f, &b->heap[b->n_heap]));
        if (!f->done) b->n_heap++;
    }
    for (uint32_t i = b->n_heap / 2; i-- > 0;)
        sift_down(b, i);
    return XPL_OK;
}

static bool add_step(struct gpu_build *b, const struct timed_event *e,
                     const struct xpl_line *line) {
    struct run *const r = xpl_vec_push(&b->temp, &b->runs);
    struct xpl_step_event *const s = r ? xpl_vec_push(&b->temp, &b->steps) : NULL;
    if (!s) return false;
    *r = (struct run){e->begin, e->duration, line->index, e->group};
    *s = (struct xpl_step_event){.name = {"", 0},
                                 .step_name = xpl_groups_name(b->g, e->group),
                                 .has_group = true,
                                 .group_id = e->group,
                                 .begin_ps = (int64_t)e->begin,
                                 .duration_ps = (int64_t)e->duration};
    return true;
}

// One more event, in order: joins the last run or starts one.
static bool feed_event(struct gpu_build *b, const struct timed_event *e,
                       const struct xpl_line *line) {
    const size_t n = b->runs.n;
    if (e->has_group && (n == 0 || b->runs.v[n - 1].group != e->group)) return add_step(b, e, line);
    if (n == 0) return true; // before any group
    struct xpl_step_event *const s = &b->steps.v[n - 1];
    const uint64_t begin = (uint64_t)s->begin_ps, end = begin + (uint64_t)s->duration_ps;
    const uint64_t first = e->begin < begin ? e->begin : begin;
    const uint64_t last = e->begin + e->duration > end ? e->begin + e->duration : end;
    s->begin_ps = (int64_t)first;
    s->duration_ps = (int64_t)(last - first);
    return true;
}

static xpl_status_t merge_feeds(struct gpu_build *b) {
    uint64_t n = 0;
    while (b->n_heap && !b->unsorted) {
        struct timed_event next;
        const struct timed_event head = b->heap[0];
        struct feed *const f = &b->feeds[head.order];
        if ((n++ & 4095) == 0 && xpl_exec_cancelled(b->g->exec))
            XPL_RETURN_ERROR(b->err, XPL_CANCELLED, "cancelled");
        if (!feed_event(b, &head, f->line)) return no_memory(b->err);
        XPL_TRY(read_feed(b, f, &next));
        if (f->done) {
            b->heap[0] = b->heap[--b->n_heap];
        } else {
            b->unsorted = timed_cmp(&next, &head) < 0;
            b->heap[0] = next;
        }
        if (b->n_heap) sift_down(b, 0);
    }
    return XPL_OK;
}

// When a line is out of order, all events are sorted in memory.
static xpl_status_t sort_feeds(struct gpu_build *b) {
    size_t n = 0, at = 0;
    XPL_TRY(begin_feeds(b));
    for (uint32_t i = 0; i < b->n_feeds; i++)
        n += b->feeds[i].line->n_events;
    struct timed_event *const v = xpl_arena_array(&b->temp, n, sizeof *v);
    if (!v) return no_memory(b->err);
    for (uint32_t i = 0; i < b->n_heap; i++)
        v[at++] = b->heap[i];
    for (uint32_t i = 0; i < b->n_feeds; i++)
        while (!b->feeds[i].done && at < n) {
            if ((at & 4095) == 0 && xpl_exec_cancelled(b->g->exec))
                XPL_RETURN_ERROR(b->err, XPL_CANCELLED, "cancelled");
            XPL_TRY(read_feed(b, &b->feeds[i], &v[at]));
            at += !b->feeds[i].done;
        }
    xpl_sort(v, at, sizeof *v, timed_cmp);
    b->runs.n = b->steps.n = 0;
    for (size_t i = 0; i < at; i++)
        if (!feed_event(b, &v[i], b->feeds[v[i].order].line)) return no_memory(b->err);
    return XPL_OK;
}

// A line with the id of the derived Steps line keeps its events, ahead of the derived ones, but
// gets the plane's start as its own.
static const struct xpl_line *old_steps(const struct xpl_plane *p) {
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].id == XPL_LINE_ID_STEPS) return &p->lines[i];
    return NULL;
}

static int64_t plane_start_ns(const struct xpl_plane *p) {
    int64_t start = p->n_lines ? INT64_MAX : 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].timestamp_ns < start) start = p->lines[i].timestamp_ns;
    return start;
}

static xpl_status_t finish_gpu(struct gpu_build *b) {
    struct plane_groups *const pg = b->pg;
    struct xpl_arena *const a = b->g->arena;
    const struct xpl_line *const old = old_steps(pg->plan.plane);
    const size_t n_old = old ? old->n_events : 0;
    pg->runs = xpl_arena_array(a, b->runs.n, sizeof *pg->runs);
    pg->steps = xpl_arena_array(a, n_old + b->steps.n, sizeof *pg->steps);
    if (!pg->runs || !pg->steps) return no_memory(b->err);
    if (n_old) XPL_TRY(xpl_grp_read_steps(b->g, old, &b->temp, pg->steps, b->err));
    const int64_t start = plane_start_ns(pg->plan.plane);
    for (size_t i = 0; i < n_old; i++) {
        struct xpl_step_event *const s = &pg->steps[i];
        s->begin_ps = (int64_t)((uint64_t)start * 1000 + (uint64_t)s->ev.offset_ps);
        if (s->has_group && s->step_name.len == 0)
            s->step_name = xpl_groups_name(b->g, s->group_id);
    }
    for (size_t i = 0; i < b->steps.n; i++) {
        struct xpl_step_event *const s = &pg->steps[n_old + i];
        *s = b->steps.v[i];
        if (!xpl_arena_printf(a, &s->name, "%" PRId64, s->group_id)) return no_memory(b->err);
    }
    if (b->runs.n) memcpy(pg->runs, b->runs.v, b->runs.n * sizeof *pg->runs);
    pg->n_runs = b->runs.n;
    pg->n_steps = n_old + b->steps.n;
    return XPL_OK;
}

xpl_status_t xpl_grp_build_gpu(struct xpl_groups *g, struct plane_groups *pg,
                               struct xpl_error *err) {
    struct gpu_build b = {.g = g, .pg = pg, .err = err};
    xpl_arena_init(&b.temp, g->arena->limit);
    xpl_status_t status = begin_feeds(&b);
    if (status == XPL_OK) status = merge_feeds(&b);
    if (status == XPL_OK && b.unsorted) status = sort_feeds(&b);
    if (status == XPL_OK) status = finish_gpu(&b);
    xpl_arena_fini(&b.temp);
    return status;
}
