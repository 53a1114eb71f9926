// SPDX-License-Identifier: Apache-2.0
// All GPU planes together, and the kernels of all.
#include "analysis/opstats/device/part.h"
#include "analysis/opstats/device/planes.h"

#include "analysis/opstats/device/gpu_plane.h"
#include "analysis/opstats/metrics/kernels.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/xplane/tf_op.h"
#include "base/cleanup.h"
#include "base/vec.h"

// Planes are worked on in batches, whose memory is given back in between: a profile may have a
// million of them.
enum { BATCH = 64 };

struct gpu_run {
    const struct xpl_convert *c;
    struct xpl_arena *scratch;
    bool kernels_only;
    struct xpl_opstats *s;
    struct xpl_map programs; // ids of programs that have a name
    struct xpl_op_metrics_builder builder;
    XPL_VEC(struct xpl_kernel_report) kernels; // of all planes so far, strings in scratch
    struct gpu_plane batch[BATCH];
};

static bool push_kernels(struct gpu_run *r, const struct gpu_plane *g) {
    if (g->kernels.n && !xpl_vec_reserve(r->scratch, &r->kernels, g->kernels.n)) return false;
    for (size_t i = 0; i < g->kernels.n; i++) {
        struct xpl_kernel_report *const k = xpl_vec_push(r->scratch, &r->kernels);
        if (!k) return false;
        *k = g->kernels.v[i];
        if (!xpl_arena_str(r->scratch, k->name, &k->name) ||
            !xpl_arena_str(r->scratch, k->op_name, &k->op_name))
            return false;
    }
    return true;
}

static bool note_program(struct gpu_run *r, uint64_t id, bool *ret_new) {
    return xpl_map_put(r->scratch, &r->programs, id, 0, ret_new);
}

// Names of programs that the profile does not have, as events say.
static bool push_programs(struct gpu_run *r, const struct gpu_plane *g) {
    for (size_t i = 0; i < g->xla_ops.n; i++) {
        const struct xla_op *const op = &g->xla_ops.v[i];
        bool is_new;
        if (op->module == UINT32_MAX) continue;
        if (!note_program(r, op->program_id, &is_new)) return false;
        if (!is_new) continue;
        struct xpl_program_name *const p =
            xpl_vec_push(r->c->result, &r->s->program_id_to_name_map);
        if (!p) return false;
        p->program_id = op->program_id;
        if (!xpl_arena_str(r->c->result, xpl_intern_get(g->strings, (xpl_strid_t){op->module}),
                           &p->name))
            return false;
    }
    return true;
}

static xpl_status_t merge_plane(struct gpu_run *r, const struct gpu_plane *g,
                                struct xpl_error *err) {
    if (g->piece.status != XPL_OK) {
        if (err && err->code == XPL_OK) *err = g->piece.error;
        return g->piece.status;
    }
    if (!r->kernels_only && !xpl_op_metrics_combine(&r->builder, &g->db, true))
        XPL_RETURN_OOM(err, "GPU op metrics");
    if (!r->kernels_only && !r->c->opt->xprof_exact && !push_programs(r, g))
        XPL_RETURN_OOM(err, "GPU programs");
    if (!push_kernels(r, g)) XPL_RETURN_OOM(err, "GPU kernels");
    return XPL_OK;
}

static xpl_status_t run_batch(struct gpu_run *r, const struct xpl_plane *const *planes, size_t n,
                              struct xpl_error *err) {
    struct xpl_arena_budget budget; // of all planes of the batch
    xpl_arena_budget_init(&budget, r->c->scratch_limit);
    for (size_t i = 0; i < n; i++) {
        r->batch[i] = (struct gpu_plane){
            .c = r->c,
            .plane = planes[i],
            .kernels_only = r->kernels_only,
        };
        xpl_arena_init_part(&r->batch[i].arena, &budget);
    }
    xpl_exec_run(r->c->exec, n, xpl_gpu_plane_run, r->batch);
    xpl_status_t st = XPL_OK;
    for (size_t i = 0; i < n; i++) {
        if (st == XPL_OK) st = merge_plane(r, &r->batch[i], err);
        xpl_arena_fini(&r->batch[i].arena);
    }
    return st;
}

static xpl_status_t finish_kernels(struct gpu_run *r, struct xpl_opstats *s,
                                   struct xpl_error *err) {
    struct xpl_arena *const a = r->c->result;
    size_t n = r->kernels.n;
    if (!xpl_kernels_merge_equal(r->kernels.v, &n, r->scratch)) XPL_RETURN_OOM(err, "GPU kernels");
    xpl_kernels_sort_and_cut(r->kernels.v, &n);
    if (n && !xpl_vec_reserve(a, &s->kernel_reports, n)) XPL_RETURN_OOM(err, "GPU kernels");
    for (size_t i = 0; i < n; i++) {
        struct xpl_kernel_report *const k = xpl_vec_push(a, &s->kernel_reports);
        if (!k) XPL_RETURN_OOM(err, "GPU kernels");
        *k = r->kernels.v[i];
        if (!xpl_arena_str(a, k->name, &k->name) || !xpl_arena_str(a, k->op_name, &k->op_name))
            XPL_RETURN_OOM(err, "GPU kernels");
    }
    return XPL_OK;
}

static xpl_status_t run_planes(const struct xpl_convert *c, bool kernels_only,
                               const struct xpl_plane *const *planes, size_t n,
                               struct xpl_opstats *s, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0};
    xpl_arena_init(&scratch, c->scratch_limit);
    struct gpu_run *const r = xpl_arena_zalloc(&scratch, sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "GPU planes");
    r->c = c, r->scratch = &scratch, r->kernels_only = kernels_only, r->s = s;
    const size_t known = s->program_id_to_name_map.n;
    for (size_t i = 0; i < known; i++) {
        bool is_new;
        if (!note_program(r, s->program_id_to_name_map.v[i].program_id, &is_new))
            XPL_RETURN_OOM(err, "GPU programs");
    }
    if (!kernels_only)
        xpl_op_metrics_begin(&r->builder, &s->device_op_metrics_db, XPL_OP_METRICS_COPY, c->result,
                             &scratch);
    for (size_t i = 0; i < n; i += BATCH)
        XPL_TRY(run_batch(r, planes + i, n - i < BATCH ? n - i : BATCH, err));
    if (s->program_id_to_name_map.n > known)
        xpl_sort(s->program_id_to_name_map.v, s->program_id_to_name_map.n,
                 sizeof *s->program_id_to_name_map.v, xpl_program_name_by_id);
    return finish_kernels(r, s, err);
}

enum { FASTEST_HBM = 10000 }; // GB/s; no GPU of 2026 has it

void xpl_device_forget_cached_bytes(struct xpl_opstats *s, double fastest_giga_bytes_per_second) {
    struct xpl_op_metrics_db *const db = &s->device_op_metrics_db;
    const double peak = s->perf_env.peak_hbm_bw_giga_bytes_per_second;
    const double bytes_ps = (peak > 0 ? peak : fastest_giga_bytes_per_second) / 1e3;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if ((double)m->bytes_accessed <= bytes_ps * (double)m->self_time_ps ||
            xpl_tf_op_parse(m->provenance).category != XPL_TF_OP_PYTORCH)
            continue;
        m->bytes_accessed = 0;
        m->memory_accessed_breakdown.n = 0;
    }
}

xpl_status_t xpl_device_gpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            size_t n, struct xpl_opstats *s, struct xpl_error *err) {
    XPL_TRY(run_planes(c, false, planes, n, s, err));
    xpl_device_forget_cached_bytes(s, FASTEST_HBM);
    return XPL_OK;
}

static bool may_have_kernels(const struct xpl_plane *p) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == XPL_STAT_KERNEL_DETAILS) return true;
    return false;
}

xpl_status_t xpl_device_kernels(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                                size_t n, struct xpl_opstats *s, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0};
    xpl_arena_init(&scratch, c->scratch_limit);
    const struct xpl_plane **const v = xpl_arena_array(&scratch, n, sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "kernels");
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (may_have_kernels(planes[i])) v[count++] = planes[i];
    return count ? run_planes(c, true, v, count, s, err) : XPL_OK;
}
