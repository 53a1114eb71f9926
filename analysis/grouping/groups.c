// Grouping from the outside: what to look at, in which order, and the answers.
#include "analysis/grouping/groups.h"
#include <stdatomic.h>

#include <string.h>

#include "analysis/grouping/impl.h"

// ---- sorting ----

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

static void sift(uint8_t *v, size_t i, size_t n, size_t size,
                 int (*cmp)(const void *, const void *)) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && cmp(v + (child + 1) * size, v + child * size) > 0) child++;
        if (cmp(v + i * size, v + child * size) >= 0) return;
        swap_bytes(v + i * size, v + child * size, size);
    }
}

// Heapsort: qsort() takes memory of its own, which no limit of ours would see.
void xpl_grp_sort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *)) {
    uint8_t *const v = base;
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = cmp(v + (i - 1) * size, v + i * size) <= 0;
    if (sorted) return;
    for (size_t i = n / 2; i-- > 0;)
        sift(v, i, n, size, cmp);
    for (size_t end = n; end-- > 1;) {
        swap_bytes(v, v + end * size, size);
        sift(v, 0, end, size, cmp);
    }
}

// ---- what there is to look for ----

struct outlook {
    bool roots;       // a host event can start a group
    bool lock_step;   // TPU steps get numbers of their own
    bool context;     // names can come from the host
    bool from_device; // groups can pass from a device to the host
    bool eager;       // is_eager can be true
    bool kernels;     // a device plane has correlation ids
    bool loops;       // TensorFlow's loop ops forbid grouping [CheckLoopOp]
    bool tpu;         // some plane is named /device:TPU:
    bool iterators;   // tf.data's are linked to executors
    bool tpu_execute; // TpuExecuteOp occurs
};

static bool has_loop_op(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_event_md; i++) {
        const enum xpl_event_type t = p->event_md[i].type;
        if (t == XPL_EVENT_WHILE_OP_EVAL_COND || t == XPL_EVENT_WHILE_OP_START_BODY ||
            t == XPL_EVENT_FOR_OP || t == XPL_EVENT_PARALLEL_FOR_OP || t == XPL_EVENT_FOREVER_OP)
            return true;
    }
    return false;
}

static bool has_is_func(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == XPL_STAT_IS_FUNC) return true;
    return false;
}

static void look_at(const struct plan *p, struct outlook *o) {
    const uint32_t loop = SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM);
    o->loops |= has_loop_op(p->plane);
    o->tpu |= p->tpu;
    o->iterators |= (p->roles & ROLE_ITERATOR) != 0;
    o->tpu_execute |= (p->roles & ROLE_TPU_EXECUTE) != 0;
    if (p->tpu) {
        o->lock_step |= p->plane->kind == XPL_PLANE_TPU_CORE && xpl_grp_tpu_line(p->plane, NULL);
        o->from_device |= (p->classes & SC_PRODUCER) == SC_PRODUCER;
        return;
    }
    o->roots |= (p->classes & SC_BIT(SC_IS_ROOT)) ||
                (p->roles & (ROLE_TRACE_CONTEXT | ROLE_ROOT_1 | ROLE_ROOT_2)) ||
                ((p->roles & ROLE_EXECUTOR) && (p->classes & loop) == loop);
    o->context |= (p->classes & SC_CONTEXT) != 0;
    o->eager |= (p->roles & ROLE_EAGER) && has_is_func(p->plane);
    o->kernels |= p->plane->kind != XPL_PLANE_HOST_THREADS && (p->classes & SC_BIT(SC_CORRELATION));
}

// [IsXSpaceGrouped]
static bool is_grouped(const struct xpl_groups *g) {
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        const struct plan *const p = &g->planes[i].plan;
        const bool counts = xpl_grp_is_device_plane(p->plane) || xpl_grp_is_host_plane(p->plane);
        if (counts && !p->own_groups) return false;
    }
    return true;
}

// ---- scans ----

struct scan_job {
    struct xpl_groups *g;
    struct scan *scans;
    size_t n;
};

// Lines of a plane that are scanned: of a TPU plane the grouping line alone.
static bool wants_line(const struct plan *p, const struct xpl_line *l,
                       const struct xpl_line *tpu_line) {
    return l->n_events > 0 && (p->tpu ? l == tpu_line : p->scan);
}

static xpl_status_t list_lines(struct xpl_groups *g, struct plane_groups *pg,
                               const struct outlook *o, struct xpl_error *err) {
    const struct xpl_plane *const p = pg->plan.plane;
    const struct xpl_line *tpu_line = NULL;
    const bool core = p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE;
    if (pg->plan.tpu && core && p->core_id >= 0) tpu_line = xpl_grp_tpu_line(p, NULL);
    if (!pg->plan.tpu && !(o->roots || o->eager || o->context || o->from_device)) return XPL_OK;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        n += wants_line(&pg->plan, &p->lines[i], tpu_line);
    if (n == 0) return XPL_OK;
    pg->lines = xpl_arena_zalloc(g->arena, n * sizeof *pg->lines);
    pg->plan.linked = xpl_arena_zalloc(g->arena, p->n_event_md);
    if (!pg->lines || !pg->plan.linked) XPL_RETURN_OOM(err, "event groups");
    for (uint32_t i = 0; i < p->n_event_md; i++) // cursors say whether it is eager
        if (p->event_md[i].type == XPL_EVENT_TF_OP_RUN) atomic_init(&pg->plan.linked[i], 1);
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (wants_line(&pg->plan, &p->lines[i], tpu_line))
            pg->lines[pg->n_lines++] = (struct line_groups){
                .line = &p->lines[i], .kind = pg->plan.tpu ? LINE_NODES : LINE_NESTED};
    return XPL_OK;
}

// Cuts the lines of a plane into scans: a large line is one, small ones share one.  Returns how
// many there are; writes them to `to` unless it is NULL.
static size_t cut_lines(struct plane_groups *pg, struct scan *to) {
    enum { ENOUGH_EVENTS = 16384 };
    size_t n = 0;
    for (uint32_t i = 0, end; i < pg->n_lines; i = end) {
        uint64_t events = 0;
        for (end = i; end < pg->n_lines && (end == i || events < ENOUGH_EVENTS); end++)
            events += pg->lines[end].line->n_events;
        if (to)
            to[n] = (struct scan){.plan = &pg->plan, .lines = &pg->lines[i], .n_lines = end - i};
        n++;
    }
    return n;
}

static xpl_status_t list_scans(struct scan_job *job, const struct outlook *o,
                               struct xpl_arena *temp, struct xpl_error *err) {
    struct xpl_groups *const g = job->g;
    size_t n = 0;
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        XPL_TRY(list_lines(g, &g->planes[i], o, err));
        n += cut_lines(&g->planes[i], NULL);
    }
    job->scans = xpl_arena_array(temp, n, sizeof *job->scans);
    if (!job->scans) XPL_RETURN_OOM(err, "event groups");
    for (uint32_t i = 0; i < g->xs->n_planes; i++)
        job->n += cut_lines(&g->planes[i], job->scans + job->n);
    return XPL_OK;
}

static uint64_t scan_events(const struct scan *s) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n_lines; i++)
        n += s->lines[i].line->n_events;
    return n;
}

// Scans that would still run when all others have ended are cut into pieces instead.
static void widen_scans(struct scan_job *job) {
    uint64_t all = 0;
    for (size_t i = 0; i < job->n; i++)
        all += scan_events(&job->scans[i]);
    for (size_t i = 0; i < job->n; i++) {
        struct scan *const s = &job->scans[i];
        const unsigned width = job->g->exec->width;
        s->wide = width > 1 && !s->plan->tpu && scan_events(s) > all / (2 * (uint64_t)width);
    }
}

static void run_scan(void *ctx, size_t i) {
    struct scan_job *const job = ctx;
    struct scan *const s = &job->scans[i];
    if (s->wide) return;
    if (s->plan->tpu)
        xpl_grp_scan_tpu(s, job->g->exec);
    else
        xpl_grp_scan_lines(s, job->g->exec);
}

static xpl_status_t run_scans(struct scan_job *job, bool keep_executors, struct xpl_error *err) {
    for (size_t i = 0; i < job->n; i++) {
        struct scan *const s = &job->scans[i];
        *s = (struct scan){.plan = s->plan,
                           .lines = s->lines,
                           .n_lines = s->n_lines,
                           .keep_executors = keep_executors};
        xpl_arena_init(&s->nodes_arena, job->g->arena->limit);
        xpl_arena_init(&s->links_arena, job->g->arena->limit);
    }
    widen_scans(job);
    xpl_exec_run(job->g->exec, job->n, run_scan, job);
    for (size_t i = 0; i < job->n; i++)
        if (job->scans[i].wide) xpl_grp_scan_lines(&job->scans[i], job->g->exec);
    for (size_t i = 0; i < job->n; i++) {
        if (job->scans[i].status == XPL_OK) continue;
        if (err && err->code == XPL_OK) *err = job->scans[i].err;
        return job->scans[i].status;
    }
    return XPL_OK;
}

static void end_scans(struct scan_job *job) {
    for (size_t i = 0; i < job->n; i++)
        xpl_grp_scan_fini(&job->scans[i]);
}

static xpl_status_t build_forest(struct scan_job *job, const struct outlook *o,
                                 struct xpl_error *err) {
    bool loops = false;
    xpl_status_t status = run_scans(job, o->iterators, err);
    for (size_t i = 0; i < job->n; i++)
        loops |= job->scans[i].has_loops;
    if (status == XPL_OK && loops && !o->iterators) { // executors matter after all
        end_scans(job);
        status = run_scans(job, true, err);
    }
    if (status == XPL_OK)
        status = xpl_grp_build_graph(job->g, job->scans, job->n, o->roots || o->lock_step, err);
    end_scans(job);
    return status;
}

// ---- devices ----

static xpl_status_t build_devices(struct xpl_groups *g, const struct outlook *o,
                                  struct xpl_error *err) {
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        struct plane_groups *const pg = &g->planes[i];
        const struct xpl_plane *const p = pg->plan.plane;
        if (!xpl_grp_is_device_plane(p)) continue;
        if (g->grouped || (o->loops && p->kind != XPL_PLANE_GPU))
            XPL_TRY(xpl_grp_raw_steps(g, pg, err));
        else if (p->kind == XPL_PLANE_GPU)
            XPL_TRY(xpl_grp_build_gpu(g, pg, err));
        else if (o->tpu)
            XPL_TRY(xpl_grp_build_tpu(g, pg, err));
    }
    return XPL_OK;
}

static bool find_empty(const struct xpl_groups *g) {
    if (g->n_groups) return false;
    for (uint32_t i = 0; i < g->xs->n_planes; i++)
        if (g->planes[i].plan.own_groups) return false;
    return true;
}

xpl_status_t xpl_groups_build(const struct xpl_xspace *xs, struct xpl_arena *arena,
                              struct xpl_exec *exec, struct xpl_groups **ret,
                              struct xpl_error *err) {
    struct xpl_groups *const g = xpl_arena_zalloc(arena, sizeof *g);
    struct outlook o = {0};
    if (!g) XPL_RETURN_OOM(err, "event groups");
    g->xs = xs, g->arena = arena, g->exec = exec;
    g->planes = xpl_arena_zalloc(arena, xs->n_planes * sizeof *g->planes);
    if (!g->planes) XPL_RETURN_OOM(err, "event groups");
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        if (!xpl_grp_plan_init(&g->planes[i].plan, &xs->planes[i], arena))
            XPL_RETURN_OOM(err, "event groups");
        look_at(&g->planes[i].plan, &o);
    }
    for (uint32_t i = 0; i < xs->n_planes; i++)
        g->planes[i].plan.tpu_execute = o.tpu_execute;
    g->grouped = is_grouped(g);
    g->computed = !g->grouped && !o.loops;
    if (g->computed && (o.roots || o.lock_step || o.eager)) {
        struct scan_job job = {.g = g};
        struct xpl_arena temp;
        xpl_arena_init(&temp, arena->limit);
        xpl_status_t status = list_scans(&job, &o, &temp, err);
        if (status == XPL_OK) status = build_forest(&job, &o, err);
        xpl_arena_fini(&temp);
        XPL_TRY(status);
    }
    XPL_TRY(build_devices(g, &o, err));
    g->empty = find_empty(g);
    *ret = g;
    return XPL_OK;
}

// ---- answers ----

bool xpl_groups_empty(const struct xpl_groups *g) {
    return g->empty;
}

bool xpl_groups_arrived_grouped(const struct xpl_groups *g) {
    return g->grouped;
}

xpl_str_t xpl_groups_name(const struct xpl_groups *g, int64_t group_id) {
    return group_id >= 0 && group_id < g->n_groups ? g->names[group_id] : (xpl_str_t){"", 0};
}

const struct xpl_step_event *xpl_groups_steps(const struct xpl_groups *g,
                                              const struct xpl_plane *plane, size_t *ret_n) {
    *ret_n = g->planes[plane->index].n_steps;
    return g->planes[plane->index].steps;
}

bool xpl_groups_steps_are_recorded(const struct xpl_groups *g, const struct xpl_plane *plane) {
    return g->planes[plane->index].raw_steps;
}

bool xpl_groups_replaces_line(const struct xpl_groups *g, const struct xpl_line *line) {
    const struct plane_groups *const pg = &g->planes[line->plane->index];
    if (pg->raw_steps)
        return xpl_str_eq(line->name, XPL_STR(XPL_LINE_STEPS)) ||
               xpl_str_eq(line->name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
    if (pg->step_line) return pg->step_line == line;
    return !g->grouped && pg->plan.plane->kind == XPL_PLANE_GPU && line->id == XPL_LINE_ID_STEPS;
}
