// SPDX-License-Identifier: Apache-2.0
// hlo_stats: one table of device ops, those with the most self time first; ops of sparse cores
// follow the op that waits for them (XProf: op_stats_to_hlo_stats.cc).
#include <inttypes.h>
#include <stdio.h>

#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "analysis/tools/lib/source_cell.h"
#include "base/arena.h"

struct table {
    struct xpl_gviz g;
    const struct xpl_opstats *s;
    struct xpl_arena *arena;
};

// The position of a row in the order of ops. Those of sparse cores have no place: all zero.
struct place {
    uint32_t rank;
    double fraction, cumulative;
};

static const struct xpl_column kColumns[] = {
    XPL_NUMBERS("rank", "Rank", NULL),
    XPL_TEXTS("program_id", "Program id"),
    XPL_TEXTS("category", "HLO op category"),
    XPL_TEXTS("hlo_op_name", "HLO op name"),
    XPL_TEXTS("hlo_op_expression", "HLO op text"),
    XPL_TEXTS("tf_op_name", "Framework op name"),
    XPL_NUMBERS("occurrences", "#Occurrences", NULL),
    XPL_NUMBERS("total_time", "Total time (us)", "us"),
    XPL_NUMBERS("avg_time", "Avg. time (us)", "us"),
    XPL_NUMBERS("total_self_time", "Total self time (us)", "us"),
    XPL_NUMBERS("avg_self_time", "Avg. self time (us)", "us"),
    XPL_NUMBERS("total_self_time_percent", "Total self time (%)", "%"),
    XPL_NUMBERS("cumulative_total_self_time_percent", "Cumulative total self time (%)", "%"),
    XPL_NUMBERS("dma_stall_percent", "%time stalled by DMA", XPL_FRACTION),
    XPL_NUMBERS("model_flop_rate", "Model GFLOP/s", "GFLOP/s"),
    XPL_NUMBERS("normalized_flop_rate", "Normalized GFLOP/s", "GFLOP/s"),
    XPL_NUMBERS("measured_memory_bw", "Measured memory BW (GiB/s)", "GiB/s"),
    XPL_NUMBERS("hbm_bw", "HBM BW (GiB/s)", "GiB/s"),
    XPL_NUMBERS("cmem_read_bw", "CMEM Read BW (GiB/s)", "GiB/s"),
    XPL_NUMBERS("cmem_write_bw", "CMEM Write BW (GiB/s)", "GiB/s"),
    XPL_NUMBERS("operational_intensity", "Operational intensity (FLOPS/Byte)", "FLOP/Byte"),
    XPL_TEXTS("bound_by", "Bound by"),
    XPL_TEXTS("hlo_rematerialization", "Rematerialization"),
    XPL_TEXTS("outside_compilation", "Outside Compilation"),
    XPL_TEXTS("autotuned", "Autotuned"),
    XPL_TEXTS("source_info", "Source Info"),
    XPL_TEXTS("core_type", "TPU core type"),
    XPL_TEXTS("parent_op_name", "Parent op name"),
    XPL_NUMBERS("vdd_energy", "VDD Energy (J)", "J"),
    {0},
};

// "dot.1" of "%dot.1 = f32[] dot(...)".
static xpl_str_t name_in(xpl_str_t text) {
    const xpl_str_t name = xpl_str_sub(text, 0, xpl_str_find(text, XPL_STR(" = "), 0));
    return xpl_str_starts(name, XPL_STR("%")) ? xpl_str_sub(name, 1, SIZE_MAX) : name;
}

// Whether the op recomputes a value that was not kept: XLA says so in its name, JAX in a scope.
static bool is_rematerialized(const struct xpl_op_metrics *m) {
    const xpl_str_t name =
        xpl_str_sub(m->long_name, 0, xpl_str_find(m->long_name, XPL_STR("="), 0));
    return xpl_str_has(name, XPL_STR(".remat")) ||
           xpl_str_has(m->provenance, XPL_STR("rematted_computation"));
}

// Whether the op hands data to a part of the program that runs on the host.
static bool is_outside_compilation(const struct xpl_op_metrics *m) {
    return xpl_str_ends(m->provenance, XPL_STR(":XlaSendToHost")) ||
           xpl_str_ends(m->provenance, XPL_STR(":XlaRecvFromHost")) ||
           (xpl_str_has(m->long_name, XPL_STR("send-done")) &&
            xpl_str_has(m->long_name, XPL_STR("is_host_transfer=true")));
}

static xpl_str_t core_name(enum xpl_core_type type) {
    switch (type) {
        case XPL_CORE_UNKNOWN: break;
        case XPL_CORE_TENSOR: return XPL_STR("TensorCore");
        case XPL_CORE_SPARSE: return XPL_STR("SparseCore");
    }
    return XPL_STR("");
}

static void put_answer_cell(struct xpl_gviz *g, bool yes) {
    xpl_gviz_text(g, yes ? XPL_STR("Yes") : XPL_STR("No"));
}

static void put_numbers(struct xpl_gviz *g, const struct xpl_op_record *r, uint32_t occurrences,
                        const struct place *p) {
    xpl_gviz_number(g, occurrences);
    xpl_gviz_number(g, r->total_us);
    xpl_gviz_number(g, r->average_us);
    xpl_gviz_number(g, r->self_us);
    xpl_gviz_number(g, r->average_self_us);
    xpl_gviz_number(g, p->fraction * 100);
    xpl_gviz_number(g, p->cumulative * 100);
    xpl_gviz_number(g, r->dma_stall);
    xpl_gviz_number(g, r->model_flop_rate);
    xpl_gviz_number(g, r->flop_rate);
    xpl_gviz_number(g, r->bandwidth);
    xpl_gviz_number(g, r->bandwidths[XPL_MEMORY_HBM]);
    xpl_gviz_number(g, r->bandwidths[XPL_MEMORY_CMEM_READ]);
    xpl_gviz_number(g, r->bandwidths[XPL_MEMORY_CMEM_WRITE]);
    xpl_gviz_number(g, r->intensity);
}

static bool put_row(struct table *t, const struct xpl_op_metrics *m, xpl_str_t parent,
                    const struct place *p) {
    const xpl_str_t text = m->long_name.len ? m->long_name : m->name;
    char program[24];
    const int n = snprintf(program, sizeof program, "%" PRIu64, m->hlo_module_id);
    struct xpl_op_record r;
    xpl_str_t source;
    if (!xpl_cell_of_source(&m->source_info, t->arena, &source)) return false;
    xpl_op_record_make(m, &t->s->perf_env, t->s->run_environment.hardware_type, &r);
    xpl_gviz_row(&t->g);
    xpl_gviz_number(&t->g, p->rank);
    xpl_gviz_text(&t->g, (xpl_str_t){program, (size_t)n});
    xpl_gviz_text(&t->g, m->category);
    xpl_gviz_text(&t->g, name_in(text));
    xpl_gviz_text(&t->g, text);
    xpl_gviz_text(&t->g, m->provenance);
    put_numbers(&t->g, &r, m->occurrences, p);
    xpl_gviz_text(&t->g, r.bound_by);
    put_answer_cell(&t->g, is_rematerialized(m));
    put_answer_cell(&t->g, is_outside_compilation(m));
    put_answer_cell(&t->g, m->autotuned);
    xpl_gviz_text(&t->g, source);
    xpl_gviz_text(&t->g, core_name(m->core_type));
    xpl_gviz_text(&t->g, parent);
    xpl_gviz_number(&t->g, m->vdd_energy_j);
    return true;
}

// Rows of what runs inside an op: of that only what runs on sparse cores is shown, whatever lies
// between.
static bool put_children(struct table *t, const struct xpl_op_metrics *op, unsigned nesting) {
    static const struct place nowhere = {0};
    const struct xpl_op_metrics **ops;
    size_t n;
    if (!op->children || nesting == XPL_OPSTATS_MAX_DEPTH) return true;
    if (!xpl_op_metrics_sorted(op->children, SIZE_MAX, t->arena, &ops, &n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->occurrences == 0) continue;
        // An op without a name cannot be told from none.
        if ((ops[i]->core_type == XPL_CORE_SPARSE || !op->name.len) &&
            !put_row(t, ops[i], op->name, &nowhere))
            return false;
        if (!put_children(t, ops[i], nesting + 1)) return false;
    }
    return true;
}

static bool put_rows(struct table *t) {
    const struct xpl_op_metrics_db *const db = &t->s->device_op_metrics_db;
    const double total_us = xpl_pico_to_micro(db->total_time_ps);
    const struct xpl_op_metrics **ops;
    struct place p = {0};
    size_t n;
    if (!xpl_op_metrics_sorted(db, SIZE_MAX, t->arena, &ops, &n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->occurrences == 0) continue; // idle time
        p.rank++;
        p.fraction = xpl_safe_divide(xpl_pico_to_micro(ops[i]->self_time_ps), total_us);
        p.cumulative += p.fraction;
        if (!put_row(t, ops[i], XPL_STR(""), &p) || !put_children(t, ops[i], 0)) return false;
    }
    return true;
}

// XProf's table says of no device; ours says where a CPU counts as one, whose peaks are for readers
// to give.
static void put_device(struct table *t, const struct xpl_common_options *o) {
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, t->arena);
    if (o->cpu_as_device && t->s->run_environment.hardware_type == XPL_HW_CPU_ONLY &&
        t->s->device_op_metrics_db.metrics_db.n)
        xpl_gviz_prop(&p, "device_type", t->s->run_environment.device_type);
    xpl_gviz_put_props(&t->g, &p);
}

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    struct table t = {.s = s, .arena = scratch};
    xpl_gviz_begin(&t.g, out, kColumns, 0);
    put_device(&t, options);
    if (!put_rows(&t)) XPL_RETURN_OOM(err, "hlo_stats");
    xpl_gviz_end(&t.g);
    if (out->failed) XPL_RETURN_OOM(err, "hlo_stats");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render_with_peaks(in, write_answer, out, err);
}

static const struct xpl_tool_option kOptions[] = {XPL_CPU_PEAK_OPTIONS};

const struct xpl_tool xpl_tool_hlo_stats = {
    .name = "hlo_stats",
    .version = 2,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_XLA_OPS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct xpl_cpu_peak_options),
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 14,
    .content_type = "application/json",
    .columns = {kColumns},
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
