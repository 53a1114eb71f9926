// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/step_events.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "analysis/opstats/steps/executions.h"
#include "analysis/opstats/steps/program_steps.h"
#include "analysis/opstats/steps/step_events_gpu.h"
#include "analysis/opstats/steps/step_events_tpu.h"

enum { MOST_PLANES = 1024 };

// A line whose events belong to steps.
struct task {
    const struct xpl_plane *plane;
    struct xpl_steps *markers;   // of the plane, shared by its tasks: no other steps count
    const struct xpl_line *line; // NULL: a core without ops
    bool is_core;                // ops of a TPU core; else a stream
    struct xpl_core_steps core;
    struct xpl_steps steps;
    xpl_status_t status;
    struct xpl_error err;
};

struct job {
    const struct xpl_convert *c;
    struct xpl_device_steps *out;
    XPL_VEC(struct task) tasks; // in plane and line order
    uint32_t n_planes;          // that have steps
    atomic_size_t next;
};

static bool is_core(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE;
}

static bool is_step_line(const struct xpl_line *l) {
    const xpl_str_t steps = l->plane->kind == XPL_PLANE_SPARSE_CORE
                                ? XPL_STR(XPL_LINE_SPARSE_CORE_STEPS)
                                : XPL_STR(XPL_LINE_STEPS);
    return is_core(l->plane) && xpl_str_eq(l->name, steps);
}

static bool is_op_line(const struct xpl_line *l) {
    if (l->plane->kind == XPL_PLANE_SPARSE_CORE)
        return xpl_str_eq(l->name, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
    return xpl_str_eq(l->name, XPL_STR(XPL_LINE_XLA_OPS)) ||
           xpl_str_eq(l->name, XPL_STR(XPL_LINE_FRAMEWORK_OPS)) ||
           xpl_str_eq(l->name, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}

static bool is_annotated(const struct xpl_convert *c, int64_t group) {
    int64_t begin, duration;
    return xpl_groups_annotation(c->groups, group, &begin, &duration);
}

// Whether annotations launched several of a TPU's executions.
static bool are_annotated(const struct xpl_convert *c, const struct xpl_step_event *v, size_t n) {
    const struct xpl_step_event *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].has_group || !is_annotated(c, v[i].group_id)) continue;
        if (!first) first = &v[i];
        if (v[i].group_id != first->group_id) return true;
    }
    return false;
}

static bool read_markers(const struct xpl_convert *c, const struct xpl_plane *p,
                         struct xpl_steps *ret) {
    size_t n, n_modules;
    const struct xpl_step_event *v = xpl_groups_steps(c->groups, p, &n);
    const struct xpl_step_event *const modules = xpl_groups_modules(c->groups, p, &n_modules);
    // Executions are the steps of a TPU without others.
    const bool runs = !n && !c->opt->xprof_exact && are_annotated(c, modules, n_modules);
    if (runs) v = modules, n = n_modules;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].has_group || (runs && !is_annotated(c, v[i].group_id))) continue;
        struct xpl_timespan span = {(uint64_t)v[i].begin_ps, (uint64_t)v[i].duration_ps};
        if (v[i].has_device_time)
            span = (struct xpl_timespan){(uint64_t)v[i].device_offset_ps,
                                         (uint64_t)v[i].device_duration_ps};
        if (v[i].duration_ps < 0 && !c->opt->xprof_exact) continue;
        struct xpl_step *st = xpl_steps_put(ret, v[i].group_id);
        // An annotation's name says more than the number that a device gives its steps.
        if (st && !c->opt->xprof_exact && !st->name.len)
            st->name =
                is_annotated(c, st->id) ? xpl_groups_name(c->groups, st->id) : v[i].step_name;
        if (!st || !xpl_step_add_device_marker(st, xpl_plane_core_id(p), span, ret->arena))
            return false;
    }
    return true;
}

static bool add_task(struct job *j, const struct xpl_plane *plane, const struct xpl_line *line,
                     struct xpl_steps *markers, bool core) {
    struct task *t = xpl_vec_push(&j->out->arena, &j->tasks);
    if (!t) return false;
    *t = (struct task){.plane = plane, .markers = markers, .line = line, .is_core = core};
    return true;
}

// The lines of a plane that count: all streams, or of a core the last line of ops. Only a
// SparseCore's markers define steps.
static bool add_lines(struct job *j, const struct xpl_plane *p, struct xpl_steps *markers) {
    const struct xpl_line *ops = NULL;
    bool marks = false;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const struct xpl_line *l = &p->lines[i];
        if (is_step_line(l)) marks = p->kind == XPL_PLANE_SPARSE_CORE;
        if (is_step_line(l) || xpl_is_derived_line_id(l->id)) continue;
        if (!is_core(p)) {
            if (l->n_events && !add_task(j, p, l, markers, false)) return false;
        } else if (is_op_line(l)) {
            ops = l;
        }
    }
    return (!ops && !marks) || add_task(j, p, ops, markers, true);
}

static bool add_marked_plane(struct job *j, const struct xpl_plane *p,
                             const struct xpl_steps *markers) {
    struct xpl_steps *const kept = xpl_arena_alloc(&j->out->arena, sizeof *kept);
    if (!kept) return false;
    *kept = *markers;
    j->n_planes++;
    return add_lines(j, p, kept);
}

// Groups without a marker on the plane are none of its steps, so that of a plane without markers
// nothing needs to be read.
static bool add_plane(struct job *j, const struct xpl_plane *p) {
    struct xpl_steps markers;
    xpl_steps_init(&markers, &j->out->arena);
    return read_markers(j->c, p, &markers) && (!markers.v.n || add_marked_plane(j, p, &markers));
}

// ---- where nothing marks steps ----

static bool mark_executions(const struct xpl_executions *e, const struct xpl_plane *p,
                            struct xpl_steps *ret) {
    for (size_t i = 0; i < e->n; i++) {
        struct xpl_step *const st = xpl_steps_put(ret, (int64_t)i);
        if (!st || !xpl_execution_name(e->program, i, ret->arena, &st->name) ||
            !xpl_step_add_device_marker(st, xpl_plane_core_id(p), e->v[i], ret->arena))
            return false;
    }
    ret->executions = e;
    return true;
}

// Executions of the program that takes most time on the first plane that has one are the steps.
static xpl_status_t add_executions(struct job *j, struct xpl_error *err) {
    const struct xpl_xspace *const xs = j->c->xs;
    xpl_str_t program = XPL_STR("");
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        const struct xpl_plane *const p = &xs->planes[i];
        struct xpl_steps markers;
        if (p->kind != XPL_PLANE_TPU_CORE && p->kind != XPL_PLANE_GPU) continue;
        if (!xpl_convert_is_device_plane(j->c, p)) continue;
        struct xpl_executions *const e = xpl_arena_alloc(&j->out->arena, sizeof *e);
        if (!e) XPL_RETURN_OOM(err, "device steps");
        XPL_TRY(xpl_executions_find(j->c, p, program, &j->out->arena, e, err));
        if (!e->n) continue;
        program = e->program;
        xpl_steps_init(&markers, &j->out->arena);
        if (!mark_executions(e, p, &markers) || !add_marked_plane(j, p, &markers))
            XPL_RETURN_OOM(err, "device steps");
    }
    return XPL_OK;
}

static void run_task(struct job *j, struct task *t, struct xpl_arena *arena) {
    xpl_steps_init(&t->steps, arena);
    if (!t->line) return;
    t->status = t->is_core
                    ? xpl_core_line_steps(j->c, t->line, t->markers, &t->core, &t->steps, &t->err)
                    : xpl_stream_steps(j->c, t->line, t->markers, &t->steps, &t->err);
}

static void run_shard(void *ctx, size_t i) {
    struct job *j = ctx;
    for (;;) {
        const size_t k = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (k >= j->tasks.n) return;
        run_task(j, &j->tasks.v[k], &j->out->shards[i]);
    }
}

// Makes every step of `src` one of `dst` too.
static bool put_all(const struct xpl_steps *src, struct xpl_steps *dst) {
    for (size_t i = 0; i < src->v.n; i++)
        if (!xpl_steps_put(dst, src->v.v[i].id)) return false;
    return true;
}

// Joins the tasks of one plane, which stand together, and its markers into the result.
static bool join_plane(struct job *j, struct task *t, size_t n) {
    struct xpl_arena *const arena = &j->out->arena;
    struct xpl_steps *const markers = t->markers;
    struct xpl_steps plane;
    xpl_steps_init(&plane, arena);
    for (size_t i = 0; i < n; i++)
        if (!xpl_steps_union(&t[i].steps, &plane)) return false;
    const bool sparse = t->plane->kind == XPL_PLANE_SPARSE_CORE;
    if (plane.v.n == 0 && !sparse) return true;
    if (sparse && !put_all(markers, &plane)) return false;
    if (!xpl_steps_intersect(markers, &plane)) return false;
    for (size_t i = 0; i < n; i++)
        if (t[i].is_core && !xpl_core_steps_finish(&t[i].core, &plane, j->c->result)) return false;
    if (plane.v.n == 0) return true;
    return j->c->is_tpu ? xpl_steps_intersect(&plane, &j->out->steps)
                        : xpl_steps_union(&plane, &j->out->steps);
}

static xpl_status_t join_planes(struct job *j, struct xpl_error *err) {
    for (size_t i = 0, n; i < j->tasks.n; i += n) {
        const struct xpl_plane *p = j->tasks.v[i].plane;
        for (n = 0; i + n < j->tasks.n && j->tasks.v[i + n].plane == p; n++) {
            const struct task *t = &j->tasks.v[i + n];
            if (t->status == XPL_OK) continue;
            if (err && err->code == XPL_OK) *err = t->err;
            return t->status;
        }
        if (!join_plane(j, &j->tasks.v[i], n)) XPL_RETURN_OOM(err, "device steps");
    }
    return XPL_OK;
}

xpl_status_t xpl_device_steps_run(const struct xpl_convert *c, struct xpl_device_steps *ret,
                                  struct xpl_error *err) {
    struct job j = {.c = c, .out = ret};
    atomic_init(&j.next, 0);
    xpl_arena_init(&ret->arena, c->scratch_limit);
    xpl_steps_init(&ret->steps, &ret->arena);
    const bool grouped = !xpl_groups_empty(c->groups);
    if (!grouped && c->opt->xprof_exact) return XPL_OK;
    for (uint32_t i = 0; grouped && i < c->xs->n_planes; i++)
        if (xpl_convert_is_device_plane(c, &c->xs->planes[i]) && !add_plane(&j, &c->xs->planes[i]))
            XPL_RETURN_OOM(err, "device steps");
    if (!j.tasks.n && !c->opt->xprof_exact) XPL_TRY(add_executions(&j, err));
    if (j.n_planes > MOST_PLANES) // each step lists its cores
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the steps of %" PRIu32 " devices: at most %d can be joined", j.n_planes,
                         MOST_PLANES);
    unsigned width = c->exec->width ? c->exec->width : 1;
    if (width > j.tasks.n) width = (unsigned)j.tasks.n;
    ret->shards = xpl_arena_array(&ret->arena, width, sizeof *ret->shards);
    if (!ret->shards) XPL_RETURN_OOM(err, "device steps");
    for (unsigned i = 0; i < width; i++)
        xpl_arena_init(&ret->shards[i], c->scratch_limit);
    ret->n_shards = width;
    xpl_exec_run(c->exec, width, run_shard, &j);
    XPL_TRY(join_planes(&j, err));
    if (!c->opt->xprof_exact && !xpl_device_steps_set(c, &ret->steps)) XPL_RETURN_OOM(err, "steps");
    if (!c->is_tpu) return XPL_OK;
    return xpl_sparse_core_steps(c, &ret->steps, &ret->arena, &ret->sparse, err);
}

void xpl_device_steps_fini(struct xpl_device_steps *d) {
    for (unsigned i = 0; i < d->n_shards; i++)
        xpl_arena_fini(&d->shards[i]);
    xpl_arena_fini(&d->arena);
    *d = (struct xpl_device_steps){0};
}
