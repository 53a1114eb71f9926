// SPDX-License-Identifier: Apache-2.0
// The steps of a profile: of its devices, or of the host where it has none.
// Rules: the step part of XProf's convert/xplane_to_op_stats.cc (ConvertXSpaceToOpStats).
#include "analysis/opstats/steps/steps.h"
#include "analysis/opstats/host/host_scan.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/executions.h"
#include "analysis/opstats/steps/program_steps.h"
#include "analysis/opstats/steps/step_db.h"
#include "analysis/opstats/steps/step_events.h"
#include "analysis/opstats/steps/step_fix.h"
#include "base/cleanup.h"

static bool sum_complete_steps(const struct xpl_convert *c, struct xpl_opstats *s) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(c->scratch_limit);
    struct xpl_op_metrics_builder b;
    s->hlo_metrics_db_complete_steps_only = (struct xpl_op_metrics_db){0};
    s->has_hlo_metrics_db_complete_steps_only = true;
    xpl_op_metrics_begin(&b, &s->hlo_metrics_db_complete_steps_only, XPL_OP_METRICS_SHARE,
                         c->result, &scratch);
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++) {
        const struct xpl_op_metrics_db *db = s->step_db.step_sequence.v[i].hlo_metrics_db;
        static const struct xpl_op_metrics_db none;
        if (!xpl_op_metrics_combine(&b, db ? db : &none, true)) return false;
    }
    return true;
}

static void set_precision(struct xpl_opstats *s, const struct xpl_precision_ps *p) {
    s->device_op_metrics_db.compute_16bit_ps = p->compute_16bit_ps;
    s->device_op_metrics_db.compute_32bit_ps = p->compute_32bit_ps;
    s->device_op_metrics_db.has_precision_stats = true;
    s->has_device_op_metrics_db = true;
}

static xpl_status_t convert_tpu(const struct xpl_convert *c, struct xpl_host_scan *host,
                                struct xpl_opstats *s, struct xpl_error *err) {
    XPL_AUTO(xpl_device_steps_fini) struct xpl_device_steps device = {0};
    struct xpl_precision_ps precision;
    XPL_TRY(xpl_device_steps_run(c, &device, err));
    const struct xpl_step_db_rules rules = {
        .has_device = true, .sparse = device.sparse.v, .n_sparse = device.sparse.n};
    XPL_TRY(xpl_steps_to_db(c, &device.steps, &rules, &s->step_db, &precision, err));
    set_precision(s, &precision);
    if (!sum_complete_steps(c, s)) XPL_RETURN_OOM(err, "step database");
    if (!host->plane) return XPL_OK;
    if (!xpl_steps_fix_tpu(&host->steps, &s->device_op_metrics_db, &s->step_db, c->result))
        XPL_RETURN_OOM(err, "step database");
    return XPL_OK;
}

static xpl_status_t convert_gpu(const struct xpl_convert *c, struct xpl_opstats *s,
                                struct xpl_error *err) {
    XPL_AUTO(xpl_device_steps_fini) struct xpl_device_steps device = {0};
    const struct xpl_step_db_rules rules = {.has_device = true,
                                            .all_count = !c->opt->xprof_exact,
                                            .remove_overlaps = true,
                                            .drop_incomplete = c->opt->xprof_exact &&
                                                               !c->opt->keep_incomplete_steps};
    struct xpl_precision_ps precision;
    XPL_TRY(xpl_device_steps_run(c, &device, err));
    XPL_TRY(xpl_steps_to_db(c, &device.steps, &rules, &s->step_db, &precision, err));
    set_precision(s, &precision);
    return XPL_OK;
}

// Of TensorFlow, whose executions have no number, calls of functions say when one runs.
static bool add_calls(const struct xpl_host_scan *host, struct xpl_arena *scratch,
                      struct xpl_host_runs *ret) {
    for (size_t i = 0; i < host->n_pieces; i++) {
        const struct xpl_tf_calls *const calls = host->pieces[i].calls;
        for (size_t k = 0; calls && k < calls->v.n; k++) {
            const struct xpl_tf_call *const c = &calls->v.v[k];
            struct xpl_host_run *const slot = xpl_vec_push(scratch, &ret->runs);
            if (!slot) return false;
            *slot = (struct xpl_host_run){.function = xpl_host_function_of_module(c->name),
                                          .module = c->name,
                                          .begin_ps = c->span.begin_ps,
                                          .end_ps = xpl_timespan_end(c->span),
                                          .n_ops = 1};
        }
    }
    return true;
}

static bool add_executions(struct xpl_host_scan *host, struct xpl_arena *scratch) {
    struct xpl_host_runs calls = {0};
    if (host->runs.runs.n) return xpl_steps_add_runs(&host->steps, &host->runs, scratch);
    return add_calls(host, scratch, &calls) && xpl_steps_add_runs(&host->steps, &calls, scratch);
}

static xpl_status_t convert_cpu(const struct xpl_convert *c, struct xpl_host_scan *host,
                                struct xpl_opstats *s, struct xpl_error *err) {
    const bool program = c->opt->cpu_as_device;
    const struct xpl_step_db_rules rules = {.remove_overlaps = true,
                                            .drop_incomplete =
                                                !program && !c->opt->keep_incomplete_steps,
                                            .all_count = program,
                                            .cpu_device = program,
                                            .loose = &host->loose};
    struct xpl_precision_ps precision;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(c->scratch_limit);
    if (program && (!add_executions(host, &scratch) ||
                    !xpl_program_steps_set(&host->steps, &host->runs, &scratch)))
        XPL_RETURN_OOM(err, "steps");
    XPL_TRY(xpl_steps_to_db(c, &host->steps, &rules, &s->step_db, &precision, err));
    set_precision(s, &precision);
    return XPL_OK;
}

xpl_status_t xpl_convert_steps(const struct xpl_convert *c, struct xpl_opstats *s,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_host_scan_fini) struct xpl_host_scan own = {0};
    struct xpl_host_scan *host = c->host ? c->host : &own;
    XPL_TRY(xpl_host_scan_run(c, host, err));
    s->has_step_db = true;
    if (c->is_tpu) return convert_tpu(c, host, s, err);
    if (xpl_convert_has_device(c)) return convert_gpu(c, s, err);
    return convert_cpu(c, host, s, err);
}
