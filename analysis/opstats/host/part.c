// SPDX-License-Identifier: Apache-2.0
// What the host contributes: its op metrics, calls of tf.functions and performance counters.
// Rules: XProf's convert/xplane_to_op_metrics_db.cc (ConvertHostThreadsXPlaneToOpMetricsDb) and the
// host part of convert/xplane_to_op_stats.cc.
#include "analysis/opstats/host/part.h"
#include "analysis/opstats/host/host_scan.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/cleanup.h"

// One line's ops as a separate database, idle time included: XProf makes one per line and adds them
// up. `db` is used again for the next line.
static bool line_db(const struct xpl_op_line *ops, struct xpl_arena *scratch,
                    struct xpl_op_metrics_db *db) {
    struct xpl_op_metrics_db out = {0};
    out.metrics_db = db->metrics_db;
    out.metrics_db.n = 0;
    for (size_t i = 0; ops && i < ops->entries.n; i++) {
        const struct xpl_host_op_entry *e = &ops->entries.v[i];
        struct xpl_op_metrics *m = xpl_vec_push(scratch, &out.metrics_db);
        if (!m) return false;
        *m = (struct xpl_op_metrics){.hlo_module_id = (uint64_t)e->op->id,
                                     .name = e->op->name,
                                     .category = e->op->type,
                                     .is_eager = e->is_eager,
                                     .occurrences = e->occurrences,
                                     .time_ps = e->time_ps,
                                     .self_time_ps = e->self_time_ps,
                                     .num_cores = 1};
    }
    if (ops) {
        out.total_op_time_ps = ops->total_op_time_ps;
        out.total_host_infeed_enq_duration_ps = ops->infeed_duration_ps;
        out.total_host_infeed_enq_start_timestamp_ps_diff = ops->infeed_start_diff_ps;
        out.total_time_ps = ops->total_time_ps;
    }
    if (!xpl_op_metrics_add_idle(&out, scratch)) return false;
    *db = out;
    return true;
}

static bool add_ops(const struct xpl_convert *c, const struct xpl_host_scan *scan,
                    struct xpl_opstats *s) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(c->scratch_limit);
    struct xpl_op_metrics_builder b;
    struct xpl_op_metrics_db db = {0};
    s->host_op_metrics_db = (struct xpl_op_metrics_db){0};
    s->has_host_op_metrics_db = true;
    xpl_op_metrics_begin(&b, &s->host_op_metrics_db, XPL_OP_METRICS_COPY, c->result, &scratch);
    size_t piece = 0;
    for (uint32_t i = 0; i < scan->plane->n_lines; i++) {
        const struct xpl_op_line *ops = NULL;
        for (; piece < scan->n_pieces && scan->pieces[piece].line == i; piece++)
            if (scan->pieces[piece].ops) ops = scan->pieces[piece].ops;
        if (!line_db(ops, &scratch, &db) || !xpl_op_metrics_combine(&b, &db, false)) return false;
    }
    return true;
}

static bool add_tf_functions(const struct xpl_convert *c, const struct xpl_host_scan *scan,
                             struct xpl_opstats *s) {
    struct xpl_tf_function_table t = {.result = c->result};
    for (size_t i = 0; i < scan->n_pieces; i++)
        if (scan->pieces[i].calls && !xpl_tf_functions_add(&t, scan->pieces[i].calls)) return false;
    xpl_tf_functions_finish(&t);
    s->has_tf_function_db = true;
    s->tf_functions.v = t.v.v, s->tf_functions.n = t.v.n, s->tf_functions.cap = t.v.cap;
    return true;
}

static void add_counters(const struct xpl_plane *p, struct xpl_opstats *s) {
    struct xpl_stat stat;
    if (xpl_stats_get(p->stats, XPL_STAT_MATRIX_UNIT_UTILIZATION_PERCENT, &stat)) {
        s->matrix_unit_utilization_percent = xpl_stat_double(&stat);
        s->has_performance_counter_result = true;
    }
    if (xpl_stats_get(p->stats, XPL_STAT_HBM_UTILIZATION_PERCENT, &stat)) {
        s->hbm_utilization_percent = xpl_stat_double(&stat);
        s->has_performance_counter_result = true;
    }
}

xpl_status_t xpl_convert_host(const struct xpl_convert *c, struct xpl_opstats *s,
                              struct xpl_error *err) {
    XPL_AUTO(xpl_host_scan_fini) struct xpl_host_scan own = {0};
    struct xpl_host_scan *scan = c->host ? c->host : &own;
    XPL_TRY(xpl_host_scan_run(c, scan, err));
    if (!scan->plane) return XPL_OK;
    if (!add_ops(c, scan, s)) XPL_RETURN_OOM(err, "host ops");
    if (!add_tf_functions(c, scan, s)) XPL_RETURN_OOM(err, "tf.functions");
    add_counters(scan->plane, s);
    return XPL_OK;
}
