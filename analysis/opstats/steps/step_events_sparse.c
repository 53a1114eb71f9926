// SPDX-License-Identifier: Apache-2.0
// How long SparseCores were at work in each step.
// Rules: those of XProf 2.24.2, which the public source does not have; found by asking it.
#include <string.h>

#include "analysis/opstats/device/duty.h"
#include "analysis/opstats/steps/step_events_sparse.h"
#include "base/arena.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192, DRAIN_ABOVE = 1024 };

// Begin or end of a step as one core sees it: the busy time before it counts, or does not.
struct bound {
    uint64_t ps;
    uint64_t *busy_ps; // of the step
    bool is_end;
};

struct walk {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_arena arena;
    struct bound *bounds; // by time
    size_t n_bounds, at;  // those before `at` have had their turn
    uint64_t busy_ps;     // of all intervals before
    struct xpl_duty_plane duty;
    struct xpl_tpu_plane tp;
    bool any; // some interval was handed out
};

// Planes are worked on in batches: a profile may have any number of them.
enum { BATCH = 64 };
struct piece {
    xpl_status_t status;
    struct xpl_error err;
};
struct job {
    const struct xpl_convert *c;
    const struct xpl_steps *steps;
    struct xpl_arena *arena;
    struct xpl_sparse_cores *out;
    const struct xpl_plane **planes; // of out->v
    size_t from;
    struct piece *pieces; // of planes[from...]
};

static bool is_duty_line(const struct xpl_line *l) {
    return xpl_str_eq(l->name, XPL_STR(XPL_LINE_XLA_OPS)) ||
           xpl_str_eq(l->name, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}

static int by_time(const void *pa, const void *pb) {
    const struct bound *a = pa, *b = pb;
    return (a->ps > b->ps) - (a->ps < b->ps);
}

static bool make_bounds(struct walk *w, const struct xpl_steps *steps, struct xpl_sparse_core *s) {
    const size_t n = steps->v.n;
    w->bounds = xpl_arena_array(&w->arena, n, 2 * sizeof *w->bounds);
    if (!w->bounds) return false;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_step *st = &steps->v.v[i];
        const struct xpl_timespan time = xpl_step_has_marker(st, s->core_id)
                                             ? xpl_step_time_on_core(st, s->core_id)
                                             : xpl_step_time(st);
        const uint64_t end_ps = xpl_timespan_end(time);
        if (end_ps <= time.begin_ps) continue;
        w->bounds[w->n_bounds++] = (struct bound){time.begin_ps, &s->busy_ps[i], false};
        w->bounds[w->n_bounds++] = (struct bound){end_ps, &s->busy_ps[i], true};
    }
    xpl_sort(w->bounds, w->n_bounds, sizeof *w->bounds, by_time);
    return true;
}

// The bounds before `end_ps`, of which those from `begin_ps` on are in a busy interval; at the end
// of all time those that are left.
static void pass_bounds(struct walk *w, uint64_t begin_ps, uint64_t end_ps) {
    for (; w->at < w->n_bounds; w->at++) {
        const struct bound *b = &w->bounds[w->at];
        if (b->ps >= end_ps && end_ps != UINT64_MAX) break;
        const uint64_t before = w->busy_ps + (b->ps > begin_ps ? b->ps - begin_ps : 0);
        *b->busy_ps += b->is_end ? before : -before;
    }
}

static void hand_out(struct walk *w, const struct xpl_duty_interval *iv) {
    pass_bounds(w, iv->begin_ps, iv->end_ps);
    w->busy_ps += iv->end_ps - iv->begin_ps;
    w->any = true;
}

// Hands out the intervals that are complete, and forgets them.
static xpl_status_t drain(struct walk *w, struct xpl_error *err) {
    struct xpl_duty_set *set = &w->duty.busy;
    for (size_t i = 0; i < set->v.n; i++) {
        if (i % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "SparseCore steps: cancelled");
        hand_out(w, &set->v.v[i]);
    }
    set->v.n = 0;
    return XPL_OK;
}

// As they stand: upstream does not sort them here.
static xpl_status_t walk_line(struct walk *w, const struct xpl_line *line, bool keep_all,
                              struct xpl_error *err) {
    const bool sparse = xpl_str_eq(line->name, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
    struct xpl_duty_line duty;
    struct xpl_event_cursor cur = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result res;
    xpl_duty_line_begin(&duty, &w->duty, &w->arena);
    while ((res = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_duty_op op;
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "SparseCore steps: cancelled");
        xpl_duty_classify(&w->tp, line, &ev, sparse, &op);
        if (!xpl_duty_line_add(&duty, &op)) XPL_RETURN_OOM(err, "SparseCore steps");
        if (!keep_all && w->duty.busy.disordered) return XPL_OK; // all over again, then
        if (!keep_all && w->duty.busy.v.n > DRAIN_ABOVE) XPL_TRY(drain(w, err));
    }
    if (res == XPL_WIRE_MALFORMED) return xpl_events_error(&cur, err);
    if (!xpl_duty_line_end(&duty)) XPL_RETURN_OOM(err, "SparseCore steps");
    return XPL_OK;
}

static xpl_status_t walk_lines(struct walk *w, bool keep_all, struct xpl_error *err) {
    w->duty = (struct xpl_duty_plane){.busy.arena = &w->arena};
    for (uint32_t i = 0; i < w->plane->n_lines; i++) {
        if (!is_duty_line(&w->plane->lines[i])) continue;
        XPL_TRY(walk_line(w, &w->plane->lines[i], keep_all, err));
        if (!keep_all && w->duty.busy.disordered) return XPL_OK;
    }
    return XPL_OK;
}

static int by_interval(const void *pa, const void *pb) {
    const struct xpl_duty_interval *a = pa, *b = pb;
    return (a->begin_ps > b->begin_ps) - (a->begin_ps < b->begin_ps);
}

// Makes the intervals those of a union; `last` is one of them afterwards.
static bool merge(struct xpl_duty_set *set, struct xpl_arena *arena) {
    if (set->open) {
        struct xpl_duty_interval *iv = xpl_vec_push(arena, &set->v);
        if (!iv) return false;
        *iv = set->last;
        set->open = false;
    }
    xpl_sort(set->v.v, set->v.n, sizeof *set->v.v, by_interval);
    size_t n = 0;
    for (size_t i = 0; i < set->v.n; i++) {
        const struct xpl_duty_interval iv = set->v.v[i];
        struct xpl_duty_interval *last = n ? &set->v.v[n - 1] : NULL;
        if (!last || iv.begin_ps > last->end_ps)
            set->v.v[n++] = iv;
        else if (iv.end_ps > last->end_ps)
            last->end_ps = iv.end_ps;
    }
    set->v.n = n;
    return true;
}

static xpl_status_t walk_plane(struct walk *w, const struct xpl_steps *steps,
                               struct xpl_sparse_core *s, struct xpl_error *err) {
    if (!xpl_tpu_plane_init(&w->tp, w->plane, &w->arena) || !make_bounds(w, steps, s))
        XPL_RETURN_OOM(err, "SparseCore steps");
    XPL_TRY(walk_lines(w, false, err));
    if (w->duty.busy.disordered) {
        for (size_t i = 0; i < steps->v.n; i++)
            s->busy_ps[i] = 0;
        w->at = w->busy_ps = 0;
        XPL_TRY(walk_lines(w, true, err));
    }
    if (!merge(&w->duty.busy, &w->arena)) XPL_RETURN_OOM(err, "SparseCore steps");
    XPL_TRY(drain(w, err));
    pass_bounds(w, UINT64_MAX, UINT64_MAX);
    s->any = w->any;
    return XPL_OK;
}

static void run_plane(void *ctx, size_t i) {
    struct job *j = ctx;
    struct walk w = {.c = j->c, .plane = j->planes[j->from + i]};
    xpl_arena_init(&w.arena, j->c->scratch_limit);
    j->pieces[i].status = walk_plane(&w, j->steps, &j->out->v[j->from + i], &j->pieces[i].err);
    xpl_arena_fini(&w.arena);
}

// Whether the plane can have been busy at all.
static bool is_core(const struct xpl_plane *p) {
    if (p->kind != XPL_PLANE_SPARSE_CORE || xpl_plane_core_id(p) < XPL_SPARSE_CORE_INDEX_START)
        return false;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (is_duty_line(&p->lines[i]) && p->lines[i].n_events) return true;
    return false;
}

static bool list_planes(struct job *j) {
    struct xpl_arena *const arena = j->arena;
    const struct xpl_xspace *xs = j->c->xs;
    size_t n = 0;
    for (uint32_t i = 0; i < xs->n_planes; i++)
        n += is_core(&xs->planes[i]);
    j->planes = xpl_arena_array(arena, n, sizeof *j->planes);
    j->out->v = xpl_arena_array(arena, n, sizeof *j->out->v);
    if (!j->planes || !j->out->v) return false;
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        const struct xpl_plane *p = &xs->planes[i];
        if (!is_core(p)) continue;
        struct xpl_sparse_core *s = &j->out->v[j->out->n];
        *s = (struct xpl_sparse_core){.core_id = xpl_plane_core_id(p)};
        s->busy_ps = xpl_arena_zalloc(arena, j->steps->v.n * sizeof *s->busy_ps);
        if (!s->busy_ps) return false;
        j->planes[j->out->n++] = p;
    }
    return true;
}

xpl_status_t xpl_sparse_core_steps(const struct xpl_convert *c, const struct xpl_steps *steps,
                                   struct xpl_arena *arena, struct xpl_sparse_cores *ret,
                                   struct xpl_error *err) {
    struct job j = {.c = c, .steps = steps, .arena = arena, .out = ret};
    if (steps->v.n == 0) return XPL_OK;
    if (!list_planes(&j)) XPL_RETURN_OOM(err, "SparseCore steps");
    if (ret->n == 0) return XPL_OK;
    j.pieces = xpl_arena_array(arena, BATCH, sizeof *j.pieces);
    if (!j.pieces) XPL_RETURN_OOM(err, "SparseCore steps");
    for (; j.from < ret->n; j.from += BATCH) {
        const size_t n = ret->n - j.from < BATCH ? ret->n - j.from : BATCH;
        memset(j.pieces, 0, n * sizeof *j.pieces);
        xpl_exec_run(c->exec, n, run_plane, &j);
        for (size_t i = 0; i < n; i++) {
            if (j.pieces[i].status == XPL_OK) continue;
            if (err && err->code == XPL_OK) *err = j.pieces[i].err;
            return j.pieces[i].status;
        }
    }
    return XPL_OK;
}
