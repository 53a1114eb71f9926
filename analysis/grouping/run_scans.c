// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/run_scans.h"

#include <stdatomic.h>

#include "analysis/grouping/plan/planes.h"
#include "analysis/grouping/scan/scan_lines.h"
#include "analysis/grouping/scan/scan_tpu.h"

// The lines of a plane to scan: of a TPU plane, only the grouping line.
static bool wants_line(const struct plan *p, const struct xpl_line *l,
                       const struct xpl_line *tpu_line) {
    return l->n_events > 0 && (p->tpu ? l == tpu_line : p->scan);
}

static xpl_status_t list_lines(struct xpl_groups *g, struct plane_groups *pg,
                               const struct precheck *check, struct xpl_error *err) {
    const struct xpl_plane *const p = pg->plan.plane;
    const struct xpl_line *tpu_line = NULL;
    const bool core = p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE;
    if (pg->plan.tpu && core && p->core_id >= 0) tpu_line = xpl_grp_tpu_line(p, NULL);
    if (!pg->plan.tpu && !(check->roots || check->eager || check->context || check->from_device))
        return XPL_OK;
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

xpl_status_t xpl_grp_list_scans(struct scan_job *job, const struct precheck *check,
                                struct xpl_arena *temp, struct xpl_error *err) {
    struct xpl_groups *const g = job->g;
    size_t n = 0;
    for (uint32_t i = 0; i < g->xs->n_planes; i++) {
        XPL_TRY(list_lines(g, &g->planes[i], check, err));
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

xpl_status_t xpl_grp_run_scans(struct scan_job *job, bool keep_executors, struct xpl_error *err) {
    xpl_arena_budget_init(&job->budget, job->g->arena->limit);
    for (size_t i = 0; i < job->n; i++) {
        struct scan *const s = &job->scans[i];
        *s = (struct scan){.plan = s->plan,
                           .lines = s->lines,
                           .n_lines = s->n_lines,
                           .keep_executors = keep_executors};
        xpl_arena_init_part(&s->nodes_arena, &job->budget);
        xpl_arena_init_part(&s->links_arena, &job->budget);
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

void xpl_grp_end_scans(struct scan_job *job) {
    for (size_t i = 0; i < job->n; i++)
        xpl_grp_scan_fini(&job->scans[i]);
}
