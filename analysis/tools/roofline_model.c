// SPDX-License-Identifier: Apache-2.0
// roofline_model: what the program and its ops do per second beside what the device could, over the
// whole profile, on average over its steps, and for each step; once with the ops that wait for
// input and output and once without (XProf: op_stats_to_roofline_model.cc).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/hlo/opcodes.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/op_record.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "analysis/tools/lib/source_cell.h"
#include "analysis/xplane/tf_op.h"
#include "base/arena.h"

enum { MAX_OPS = 1000 }; // of the whole profile, those left out by name included

// What the device can do: GFLOP/s and GiB/s, 0 where it has no such memory or nothing is known.
struct peaks {
    double flop_rate, bandwidths[XPL_MEMORIES];
    bool has_cmem, has_vmem, has_megacore;
};

struct table {
    struct xpl_gviz g;
    const struct xpl_opstats *s;
    struct xpl_arena *arena;
    struct peaks peaks;
    bool shows_rows;
    bool is_gpu;         // columns of a GPU, else those of a TPU
    bool with_transfers; // rows with the ops that wait for input and output, else without
};

// What a row shows besides its metrics.
struct row {
    xpl_str_t step;
    uint32_t rank;
    uint64_t whole_ps;           // that its time is a share of
    double fraction, cumulative; // of the self time, among the ops
    const uint32_t *n_steps;     // that its times are divided by; NULL: they are not
};

// ---- the device ----

static struct peaks find_peaks(const struct xpl_perf_env *env, enum xpl_hardware hardware) {
    struct peaks p = {.flop_rate = env->peak_tera_flops_per_second * 1e3};
    size_t on_chip = 0; // the position of the first bandwidth of the memory on the chip
    p.bandwidths[XPL_MEMORY_HBM] = xpl_giga_to_gibi(xpl_peak_bandwidth(env, XPL_BW_HBM_RW));
    if (hardware == XPL_HW_TPU) {
        p.has_cmem = env->has_cmem;
        p.has_vmem = env->has_merged_vmem;
        p.has_megacore = env->has_megacore;
    } else {
        p.has_vmem = true; // what GPUs have as shared memory
    }
    if (p.has_cmem) {
        p.bandwidths[XPL_MEMORY_CMEM_READ] =
            xpl_giga_to_gibi(xpl_peak_bandwidth(env, XPL_BW_CMEM_RD));
        p.bandwidths[XPL_MEMORY_CMEM_WRITE] =
            xpl_giga_to_gibi(xpl_peak_bandwidth(env, XPL_BW_CMEM_WR));
    } else if (p.has_vmem) { // beside CMEM, XProf knows no peak of it
        on_chip = hardware == XPL_HW_TPU ? XPL_BW_VMEM_RD : XPL_BW_SRAM_RD;
        p.bandwidths[XPL_MEMORY_VMEM_READ] = xpl_giga_to_gibi(xpl_peak_bandwidth(env, on_chip));
        p.bandwidths[XPL_MEMORY_VMEM_WRITE] =
            xpl_giga_to_gibi(xpl_peak_bandwidth(env, on_chip + 1));
    }
    return p;
}

// ---- columns and properties ----

enum { OF_TPU = 1, OF_GPU = 2 }; // columns
static const struct xpl_column kColumns[] = {
    XPL_TEXTS("step", "Step"),
    XPL_NUMBERS("rank", "Rank", NULL),
    XPL_TEXTS("category", "Category"),
    XPL_TEXTS("operation", "Operation"),
    XPL_NUMBERS("occurrences", "# Occurrences", NULL),
    XPL_NUMBERS("total_time", "Total Time (us)", "us"),
    XPL_NUMBERS("avg_time", "Avg. time (us)", "us"),
    XPL_NUMBERS("total_self_time", "Total self time (us)", "us"),
    XPL_NUMBERS("avg_self_time", "Avg. self time (us)", "us"),
    XPL_NUMBERS("total_self_time_percent", "Total self time (%)", XPL_FRACTION),
    XPL_NUMBERS("cumulative_total_self_time_percent", "Cumulative total self time (%)",
                XPL_FRACTION),
    XPL_COLUMN("dma_stall_percent", "number", "%time stalled by DMA", XPL_FRACTION, OF_TPU),
    XPL_NUMBERS("measured_flop_rate", "Normalized FLOP Rate (GFLOP/s)", "GFLOP/s"),
    XPL_NUMBERS("model_flop_rate", "Model FLOP Rate (GFLOP/s)", "GFLOP/s"),
    XPL_NUMBERS("measured_memory_bw", "Memory BW (GiB/s)", "GiB/s"),
    XPL_NUMBERS("hbm_bw", "HBM BW (GiB/s)", "GiB/s"),
    XPL_COLUMN("cmem_read_bw", "number", "CMEM Read BW (GiB/s)", "GiB/s", OF_TPU),
    XPL_COLUMN("cmem_write_bw", "number", "CMEM Write BW (GiB/s)", "GiB/s", OF_TPU),
    XPL_COLUMN("vmem_read_bw", "number", "VMEM Read BW (GiB/s)", "GiB/s", OF_TPU),
    XPL_COLUMN("vmem_write_bw", "number", "VMEM Write BW (GiB/s)", "GiB/s", OF_TPU),
    XPL_COLUMN("vmem_write_bw", "number", "SHM/L1 BW (GiB/s)", "GiB/s", OF_GPU),
    XPL_NUMBERS("operational_intensity", "Operational Intensity (FLOP/Byte)", "FLOP/Byte"),
    XPL_NUMBERS("hbm_operational_intensity", "HBM Operational Intensity (FLOP/Byte)", "FLOP/Byte"),
    XPL_COLUMN("cmem_read_operational_intensity", "number",
               "CMEM Read Operational Intensity (FLOP/Byte)", "FLOP/Byte", OF_TPU),
    XPL_COLUMN("cmem_write_operational_intensity", "number",
               "CMEM Write Operational Intensity (FLOP/Byte)", "FLOP/Byte", OF_TPU),
    XPL_COLUMN("vmem_read_operational_intensity", "number",
               "VMEM Read Operational Intensity (FLOP/Byte)", "FLOP/Byte", OF_TPU),
    XPL_COLUMN("vmem_write_operational_intensity", "number",
               "VMEM Write Operational Intensity (FLOP/Byte)", "FLOP/Byte", OF_TPU),
    XPL_COLUMN("vmem_write_operational_intensity", "number",
               "SHM/L1 Operational Intensity (FLOP/Byte)", "FLOP/Byte", OF_GPU),
    XPL_NUMBERS("bottleneck_operational_intensity", "Bottleneck Operational Intensity (FLOP/Byte)",
                "FLOP/Byte"),
    XPL_TEXTS("bound_by", "Bound by"),
    XPL_NUMBERS("total_time_per_core", "Total Time per core (us)", "us"),
    XPL_NUMBERS("total_time_in_percentage", "Total Time (%)", XPL_FRACTION),
    XPL_NUMBERS("optimal_flop_rate", "Optimal FLOP Rate (GFLOP/s)", "GFLOP/s"),
    XPL_NUMBERS("roofline_efficiency", "Roofline efficiency (%)", XPL_FRACTION),
    XPL_NUMBERS("compute_efficiency", "FLOP Rate / Peak (%)", XPL_FRACTION),
    XPL_NUMBERS("max_mem_bw_utilization",
                "Max memory BW utilization (among supported memories) (%)", XPL_FRACTION),
    XPL_TRUTHS("include_infeed_outfeed", "Include Infeed/Outfeed"),
    XPL_TEXTS("hlo_module_id", "Program ID"),
    XPL_TEXTS("source_info", "Source Info"),
    {0},
};

// Six digits, as XProf's texts have them.
static void prop_number(struct xpl_gviz_props *p, const char *name, double v) {
    xpl_gviz_prop_printf(p, name, "%g", v);
}

// A peak, and the intensity from which on the memory is not the limit.
static void prop_memory(const struct table *t, struct xpl_gviz_props *p, enum xpl_memory memory,
                        const char *peak, const char *ridge) {
    const double bandwidth = t->peaks.bandwidths[memory];
    prop_number(p, peak, bandwidth);
    prop_number(p, ridge, xpl_safe_divide(t->peaks.flop_rate, xpl_gibi_to_giga(bandwidth)));
}

static void put_properties(struct table *t) {
    const struct xpl_op_metrics_db *const db = &t->s->device_op_metrics_db;
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, t->arena);
    xpl_gviz_prop(&p, "device_type",
                  t->shows_rows ? t->s->run_environment.device_type : XPL_STR(""));
    prop_number(&p, "peak_flop_rate", t->peaks.flop_rate);
    prop_memory(t, &p, XPL_MEMORY_HBM, "peak_hbm_bw", "hbm_ridge_point");
    prop_memory(t, &p, XPL_MEMORY_VMEM_WRITE, "peak_vmem_write_bw", "vmem_write_ridge_point");
    if (!t->is_gpu) {
        prop_number(&p, "megacore", t->peaks.has_megacore);
        prop_number(&p, "has_cmem", t->peaks.has_cmem);
        prop_number(&p, "has_merged_vmem", t->peaks.has_vmem);
        prop_memory(t, &p, XPL_MEMORY_CMEM_READ, "peak_cmem_read_bw", "cmem_read_ridge_point");
        prop_memory(t, &p, XPL_MEMORY_CMEM_WRITE, "peak_cmem_write_bw", "cmem_write_ridge_point");
        prop_memory(t, &p, XPL_MEMORY_VMEM_READ, "peak_vmem_read_bw", "vmem_read_ridge_point");
        prop_number(&p, "time_scale_multiplier",
                    t->shows_rows ? xpl_safe_divide((double)db->normalized_total_op_time_ps,
                                                    (double)db->total_op_time_ps)
                                  : 0);
    }
    xpl_gviz_put_props(&t->g, &p);
}

// ---- rows ----

// The greater one; of a NaN, XProf's, which is how std::max leaves it.
static double greater(double a, double b) {
    return a < b ? b : a;
}

// The largest share of a peak that a memory of the device is used by.
static double memory_utilization(const struct peaks *p, const struct xpl_op_record *r) {
    static const enum xpl_memory order[] = {XPL_MEMORY_CMEM_WRITE, XPL_MEMORY_CMEM_READ,
                                            XPL_MEMORY_HBM, XPL_MEMORY_VMEM_WRITE,
                                            XPL_MEMORY_VMEM_READ};
    double most = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const enum xpl_memory m = order[i];
        const bool cmem = m == XPL_MEMORY_CMEM_READ || m == XPL_MEMORY_CMEM_WRITE;
        const bool has = m == XPL_MEMORY_HBM || (cmem ? p->has_cmem : p->has_vmem);
        const double used = has ? xpl_safe_divide(r->bandwidths[m], p->bandwidths[m]) : 0;
        most = i ? greater(most, used) : used;
    }
    return most;
}

static void put_memories(struct table *t, const double values[XPL_MEMORIES]) {
    for (int m = 0; m < XPL_MEMORIES; m++)
        if (!t->is_gpu || m == XPL_MEMORY_HBM || m == XPL_MEMORY_VMEM_WRITE)
            xpl_gviz_number(&t->g, values[m]);
}

static void put_rates(struct table *t, const struct xpl_op_record *r) {
    xpl_gviz_number(&t->g, r->flop_rate);
    xpl_gviz_number(&t->g, r->model_flop_rate);
    xpl_gviz_number(&t->g, r->bandwidth);
    put_memories(t, r->bandwidths);
    xpl_gviz_number(&t->g, r->intensity);
    put_memories(t, r->intensities);
    xpl_gviz_number(&t->g, r->bound_intensity);
    xpl_gviz_text(&t->g, r->bound_by);
}

static void put_efficiency(struct table *t, const struct xpl_op_record *r) {
    const double flops = xpl_safe_divide(r->flop_rate, t->peaks.flop_rate);
    const double memory = memory_utilization(&t->peaks, r);
    const double efficiency = greater(memory, flops);
    xpl_gviz_number(&t->g, xpl_safe_divide(r->flop_rate, efficiency));
    xpl_gviz_number(&t->g, efficiency);
    xpl_gviz_number(&t->g, flops);
    xpl_gviz_number(&t->g, memory);
}

// Whether that is all there is to the name, in XLA as the release has it: hlo/opcodes.h also knows
// the names of old programs, which XLA reads as others.
static bool is_opcode(xpl_str_t name) {
    static const enum xpl_hlo_op old[] = {XPL_HLO_ATAN,         XPL_HLO_EQUAL_TO,
                                          XPL_HLO_GREATER_THAN, XPL_HLO_GREATER_THAN_OR_EQUAL_TO,
                                          XPL_HLO_LESS_THAN,    XPL_HLO_LESS_THAN_OR_EQUAL_TO,
                                          XPL_HLO_NOT_EQUAL_TO};
    const struct xpl_hlo_opcode *const op = xpl_hlo_opcode_find(name);
    for (size_t i = 0; op && i < sizeof old / sizeof *old; i++)
        if (op == xpl_hlo_opcode(old[i])) return false;
    return op != NULL;
}

// An op whose category is not known has that of its name, when the name is an opcode.
static xpl_str_t category_of(const struct xpl_op_metrics *m) {
    const bool known = m->category.len && !xpl_str_eq(m->category, XPL_STR("Unknown")) &&
                       !xpl_str_eq(m->category, XPL_STR("unknown"));
    if (!known && is_opcode(m->name)) return m->name;
    return m->category.len ? m->category : XPL_STR("unknown");
}

static void put_times(struct table *t, const struct xpl_op_metrics *m, const struct row *row,
                      struct xpl_op_record *r) {
    if (row->n_steps) {
        r->total_us = xpl_safe_divide(r->total_us, *row->n_steps);
        r->self_us = xpl_safe_divide(r->self_us, *row->n_steps);
    }
    xpl_gviz_number(&t->g, m->occurrences);
    xpl_gviz_number(&t->g, r->total_us);
    xpl_gviz_number(&t->g, r->average_us);
    xpl_gviz_number(&t->g, r->self_us);
    xpl_gviz_number(&t->g, r->average_self_us);
    xpl_gviz_number(&t->g, row->fraction);
    xpl_gviz_number(&t->g, row->cumulative);
    if (!t->is_gpu) xpl_gviz_number(&t->g, r->dma_stall);
}

static bool put_row(struct table *t, const struct xpl_op_metrics *m, const struct row *row) {
    const struct xpl_run_environment *const e = &t->s->run_environment;
    char program[24];
    const int n = snprintf(program, sizeof program, "%" PRIu64, m->hlo_module_id);
    struct xpl_op_record r;
    xpl_str_t source;
    if (!xpl_cell_of_source(&m->source_info, t->arena, &source)) return false;
    xpl_op_record_make(m, &t->s->perf_env, e->hardware_type, &r);
    xpl_gviz_row(&t->g);
    xpl_gviz_text(&t->g, row->step);
    xpl_gviz_number(&t->g, row->rank);
    xpl_gviz_text(&t->g, category_of(m));
    xpl_gviz_text(&t->g, m->name);
    put_times(t, m, row, &r);
    put_rates(t, &r);
    xpl_gviz_number(&t->g, xpl_safe_divide(r.total_us, e->device_core_count));
    xpl_gviz_number(&t->g, xpl_safe_divide((double)m->time_ps, (double)row->whole_ps));
    put_efficiency(t, &r);
    xpl_gviz_bool(&t->g, t->with_transfers);
    xpl_gviz_text(&t->g, (xpl_str_t){program, (size_t)n});
    xpl_gviz_text(&t->g, source);
    return true;
}

static bool means_transfer(xpl_str_t category) {
    return xpl_str_has(category, XPL_STR("infeed")) || xpl_str_has(category, XPL_STR("outfeed"));
}

static bool is_transfer(const struct xpl_op_metrics *m) {
    return means_transfer(category_of(m));
}

// Ops that only contain others are counted there, and sparse cores have separate peaks.
static bool is_not_summed(const struct xpl_op_metrics *m) {
    const xpl_str_t category = category_of(m);
    return m->core_type == XPL_CORE_SPARSE || xpl_str_eq(category, XPL_STR("call")) ||
           xpl_str_eq(category, XPL_STR("conditional")) || xpl_str_eq(category, XPL_STR("while")) ||
           xpl_str_eq(category, XPL_STR("megacore fusion"));
}

// Sums and differences of what profiles say stop at what 64 bits hold: they may say anything.
static uint64_t add_capped(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t without(uint64_t all, uint64_t part) {
    return all > part ? all - part : 0;
}

// Time of the ops that are left out: for the program, of those that would have been summed; for the
// shares of ops, of those whose own category says it.  Both as in XProf.
static uint64_t left_out_time(const struct table *t, const struct xpl_op_metrics_db *db,
                              bool of_program) {
    uint64_t ps = 0;
    for (size_t i = 0; !t->with_transfers && i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (of_program ? is_transfer(m) && !is_not_summed(m) : means_transfer(m->category))
            ps = add_capped(ps, m->time_ps);
    }
    return ps;
}

// What the op accesses, by memory and kind; a sum that 64 bits do not hold stays at the most.
static bool add_breakdown(const struct xpl_op_metrics *m, struct xpl_op_metrics *sum,
                          struct xpl_arena *arena) {
    for (size_t i = 0; i < m->memory_accessed_breakdown.n; i++) {
        struct xpl_memory_accessed one = m->memory_accessed_breakdown.v[i];
        for (size_t k = 0; k < sum->memory_accessed_breakdown.n; k++) {
            const struct xpl_memory_accessed *const d = &sum->memory_accessed_breakdown.v[k];
            if (d->memory_space == one.memory_space && d->operation_type == one.operation_type)
                one.bytes_accessed =
                    add_capped(d->bytes_accessed, one.bytes_accessed) - d->bytes_accessed;
        }
        if (!xpl_op_metrics_add_breakdown(&one, 1, sum, arena)) return false;
    }
    return true;
}

// The row of all ops of a database together.
static bool put_program(struct table *t, const struct xpl_op_metrics_db *db, const struct row *as) {
    struct row row = *as;
    struct xpl_op_metrics sum = {.name = XPL_STR("Program"),
                                 .category = XPL_STR("Program"),
                                 .occurrences = 1,
                                 .time_ps = without(db->total_time_ps, left_out_time(t, db, true))};
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (is_not_summed(m) || (!t->with_transfers && is_transfer(m))) continue;
        sum.flops_v2 += m->flops_v2;
        sum.model_flops_v2 += m->model_flops_v2;
        sum.bytes_accessed = add_capped(sum.bytes_accessed, m->bytes_accessed);
        if (!add_breakdown(m, &sum, t->arena)) return false;
    }
    row.whole_ps = sum.time_ps;
    return put_row(t, &sum, &row);
}

static bool put_ops(struct table *t, const struct xpl_op_metrics_db *db) {
    struct row row = {.step = XPL_STR("Total"),
                      .whole_ps = without(db->total_time_ps, left_out_time(t, db, false))};
    const double whole_us = xpl_pico_to_micro(row.whole_ps);
    const struct xpl_op_metrics **ops;
    size_t n;
    if (!xpl_op_metrics_sorted(db, MAX_OPS, t->arena, &ops, &n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (ops[i]->occurrences == 0 || (!t->with_transfers && is_transfer(ops[i]))) continue;
        row.rank++;
        row.fraction = xpl_safe_divide(xpl_pico_to_micro(ops[i]->self_time_ps), whole_us);
        row.cumulative += row.fraction;
        if (!put_row(t, ops[i], &row)) return false;
    }
    return true;
}

static bool put_steps(struct table *t) {
    static const struct xpl_op_metrics_db none = {0};
    const struct xpl_step_db *const steps = &t->s->step_db;
    for (size_t i = 0; i < steps->step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &steps->step_sequence.v[i];
        char name[16];
        const int n = snprintf(name, sizeof name, "%" PRIu32, step->step_num);
        const struct row row = {.step = {name, (size_t)n}};
        if (!put_program(t, step->hlo_metrics_db ? step->hlo_metrics_db : &none, &row))
            return false;
    }
    return true;
}

static bool put_rows(struct table *t) {
    const struct row total = {.step = XPL_STR("Total")};
    const uint32_t n_steps = (uint32_t)t->s->step_db.step_sequence.n;
    const struct row average = {.step = XPL_STR("Average"), .n_steps = &n_steps};
    for (int i = 0; i < 2; i++) {
        t->with_transfers = i == 0;
        if (!put_program(t, &t->s->device_op_metrics_db, &total) ||
            !put_ops(t, &t->s->device_op_metrics_db))
            return false;
        if (t->s->has_hlo_metrics_db_complete_steps_only &&
            !put_program(t, &t->s->hlo_metrics_db_complete_steps_only, &average))
            return false;
        if (!put_steps(t)) return false;
    }
    return true;
}

// XProf knows no roofline of a CPU. Where the CPU counts as a device we show the known figures of
// its ops.
static bool shows_rows(const struct xpl_opstats *s, const struct xpl_common_options *o) {
    const enum xpl_hardware hardware = s->run_environment.hardware_type;
    return hardware == XPL_HW_GPU || hardware == XPL_HW_TPU ||
           (o->cpu_as_device && s->device_op_metrics_db.metrics_db.n);
}

// Whether PyTorch recorded no shapes, from which costs of its ops are known.
static bool lacks_shapes(const struct xpl_op_metrics_db *db) {
    bool torch = false;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (m->long_name.len) return false;
        torch |= xpl_tf_op_parse(m->provenance).category == XPL_TF_OP_PYTORCH;
    }
    return torch;
}

static xpl_status_t write_answer(const struct xpl_opstats *s, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    struct table t = {.s = s, .arena = scratch, .shows_rows = shows_rows(s, options)};
    const struct xpl_step_db no_warnings = {.step_sequence = {.n = 1}};
    const enum xpl_hardware hardware = s->run_environment.hardware_type;
    if (lacks_shapes(&s->device_op_metrics_db))
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "the trace has no shapes of ops, from which their costs are known: profile "
            "with record_shapes=True");
    if (t.shows_rows) {
        t.is_gpu = xpl_str_has(s->run_environment.device_type, XPL_STR("GPU"));
        t.peaks = find_peaks(&s->perf_env, hardware);
    }
    xpl_buf_putc(out, '[');
    xpl_gviz_begin(&t.g, out, kColumns, t.is_gpu ? OF_GPU : OF_TPU);
    put_properties(&t);
    if (t.shows_rows && !put_rows(&t)) XPL_RETURN_OOM(err, "roofline_model");
    xpl_gviz_end(&t.g);
    xpl_buf_putc(out, ',');
    xpl_diagnostics_table(t.shows_rows ? &s->step_db : &no_warnings, NULL, 0, NULL, 0, out);
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "roofline_model");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render_with_peaks(in, write_answer, out, err);
}

static const struct xpl_tool_option kOptions[] = {XPL_CPU_PEAK_OPTIONS};

static const char *const kTitles[] = {"Ops", "Diagnostics", NULL};

const struct xpl_tool xpl_tool_roofline_model = {
    .name = "roofline_model",
    .version = 3,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_COSTS,
    .options = kOptions,
    .n_options = sizeof kOptions / sizeof *kOptions,
    .options_size = sizeof(struct xpl_cpu_peak_options),
    .hosts = XPL_HOSTS_EACH,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 10,
    .content_type = "application/json",
    .columns = {kColumns},
    .titles = kTitles,
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
