// SPDX-License-Identifier: Apache-2.0
// Groups a space: the choice and the order of scans.
#include "analysis/grouping/flows.h"
#include "analysis/grouping/graph/build_graph.h"
#include "analysis/grouping/groups.h"
#include "analysis/grouping/plan/planes.h"
#include "analysis/grouping/precheck.h"
#include "analysis/grouping/run_scans.h"
#include "analysis/grouping/steps/gpu_steps.h"
#include "analysis/grouping/steps/recorded_steps.h"
#include "analysis/grouping/steps/tpu_steps.h"

static void watch_plane(struct plan *p, const struct xpl_event_watch *watch) {
    if (!watch || watch->plane != p->plane) return;
    p->watch = watch;
    for (uint32_t i = 0; i < p->plane->n_event_md; i++)
        if (watch->marked[i]) p->role_of[i] |= ROLE_MARKED;
}

static xpl_status_t build_graph(struct scan_job *job, const struct precheck *check,
                                struct xpl_error *err) {
    bool loops = false;
    xpl_status_t status = xpl_grp_run_scans(job, check->iterators, err);
    for (size_t i = 0; i < job->n; i++)
        loops |= job->scans[i].has_loops;
    if (status == XPL_OK && loops && !check->iterators) { // executors matter after all
        xpl_grp_end_scans(job);
        status = xpl_grp_run_scans(job, true, err);
    }
    if (status == XPL_OK)
        status =
            xpl_grp_build_graph(job->g, job->scans, job->n, check->roots || check->lock_step, err);
    xpl_grp_end_scans(job);
    return status;
}

static xpl_status_t build_devices(struct xpl_groups *g, const struct precheck *check,
                                  struct xpl_error *err) {
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        struct plane_groups *const pg = &g->planes[i];
        const struct xpl_plane *const p = pg->plan.plane;
        if (!xpl_grp_is_device_plane(p)) continue;
        if (g->grouped || (check->loops && p->kind != XPL_PLANE_GPU))
            XPL_TRY(xpl_grp_keep_recorded_steps(g, pg, err));
        else if (p->kind == XPL_PLANE_GPU)
            XPL_TRY(xpl_grp_build_gpu(g, pg, err));
        else if (check->tpu)
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
    const struct xpl_group_options none = {0};
    return xpl_groups_build_with(xs, &none, arena, exec, ret, err);
}

xpl_status_t xpl_groups_build_with(const struct xpl_xspace *xs, const struct xpl_group_options *opt,
                                   struct xpl_arena *arena, struct xpl_exec *exec,
                                   struct xpl_groups **ret, struct xpl_error *err) {
    struct xpl_groups *const g = xpl_arena_zalloc(arena, sizeof *g);
    struct precheck check = {0};
    if (!g) XPL_RETURN_OOM(err, "event groups");
    g->xs = xs, g->arena = arena, g->exec = exec, g->relations = opt->relations;
    g->batches = opt->batches;
    g->flow_salt = xpl_grp_flow_salt(xs);
    g->planes = xpl_arena_zalloc(arena, xs->n_planes * sizeof *g->planes);
    if (!g->planes) XPL_RETURN_OOM(err, "event groups");
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        if (!xpl_grp_plan_init(&g->planes[i].plan, &xs->planes[i], opt->batches, arena))
            XPL_RETURN_OOM(err, "event groups");
        watch_plane(&g->planes[i].plan, opt->watch);
        xpl_grp_precheck_plane(&g->planes[i].plan, &check);
    }
    for (uint32_t i = 0; i < xs->n_planes; i++)
        g->planes[i].plan.tpu_execute = check.tpu_execute;
    g->grouped = xpl_grp_is_grouped(g);
    g->computed = !g->grouped && !check.loops;
    if (g->computed && (check.roots || check.lock_step || check.eager)) {
        struct scan_job job = {.g = g};
        struct xpl_arena temp = xpl_arena_of(arena->limit);
        xpl_status_t status = xpl_grp_list_scans(&job, &check, &temp, err);
        if (status == XPL_OK) status = build_graph(&job, &check, err);
        xpl_arena_fini(&temp);
        XPL_TRY(status);
    }
    XPL_TRY(build_devices(g, &check, err));
    g->empty = find_empty(g);
    *ret = g;
    return XPL_OK;
}
