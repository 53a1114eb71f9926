// SPDX-License-Identifier: Apache-2.0
// Tool overview_page: the busiest ops and what share of time they take, the step table, where the
// profile ran, what to do next, diagnostics.
// Rules: XProf's convert/op_stats_to_overview_page.cc and utils/diagnostics.cc.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/lib/inference_tool.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { TOP_OPS = 10 };

// Below this percentage of 16-bit computing the overview suggests more of it.
static const double kLowPrecisionPercent = 10;

// By hardware_type; OpStats of old releases only have the device's name.
static enum xpl_hardware hardware_of(const struct xpl_run_environment *e) {
    if (e->hardware_type != XPL_HW_UNKNOWN) return e->hardware_type;
    if (xpl_str_has(e->device_type, XPL_STR("GPU"))) return XPL_HW_GPU;
    if (xpl_str_eq(e->device_type, XPL_STR("CPU"))) return XPL_HW_CPU_ONLY;
    if (xpl_str_has(e->device_type, XPL_STR("TPU"))) return XPL_HW_TPU;
    return XPL_HW_UNKNOWN;
}

// A share as "12.3%"; an invalid share (negative, not a number) is unknown.
static void prop_percent(struct xpl_gviz_props *p, const char *name, double percent) {
    if (percent >= 0)
        xpl_gviz_prop_printf(p, name, "%.1f%%", percent);
    else
        xpl_gviz_prop(p, name, XPL_STR("unknown"));
}

static double percent_of(uint64_t part, uint64_t whole) {
    return 100.0 * xpl_safe_divide((double)part, (double)whole);
}

// ---- analysis: top ops and shares ----

struct op_counts {
    uint64_t occurrences, time_ps, eager_ps; // times without idle
};

static struct op_counts count_ops(const struct xpl_op_metrics_db *db) {
    struct op_counts n = {0};
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        n.occurrences += m->occurrences;
        if (xpl_op_metrics_is_idle(m)) continue;
        n.time_ps += m->self_time_ps;
        if (m->is_eager) n.eager_ps += m->self_time_ps;
    }
    return n;
}

static void common_props(const struct xpl_opstats *s, const struct xpl_op_metrics_db *by_framework,
                         struct xpl_gviz_props *p) {
    const struct op_counts host = count_ops(&s->host_op_metrics_db);
    const struct op_counts device = count_ops(by_framework);
    const uint64_t ops = host.occurrences + device.occurrences;
    xpl_gviz_prop_printf(p, "host_trace_level", "%" PRIu32, s->run_environment.host_trace_level);
    prop_percent(p, "host_tf_op_percent", percent_of(host.occurrences, ops));
    prop_percent(p, "device_tf_op_percent", percent_of(device.occurrences, ops));
    prop_percent(p, "host_op_time_eager_percent", percent_of(host.eager_ps, host.time_ps));
    prop_percent(p, "device_op_time_eager_percent", percent_of(device.eager_ps, device.time_ps));
    xpl_gviz_prop(p, "remark_text", XPL_STR(""));
    xpl_gviz_prop(p, "remark_color", XPL_STR(""));
    prop_percent(p, "mxu_utilization_percent", s->matrix_unit_utilization_percent);
    prop_percent(p, "hbm_utilization_percent", s->hbm_utilization_percent);
}

static void gpu_props(const struct xpl_op_metrics_db *device, struct xpl_gviz_props *p) {
    const uint64_t both = device->compute_16bit_ps + device->compute_32bit_ps;
    prop_percent(p, "device_compute_16bit_percent", percent_of(device->compute_16bit_ps, both));
    prop_percent(p, "device_compute_32bit_percent", percent_of(device->compute_32bit_ps, both));
}

// The layout is that of a TPU for a CPU too, then all zero.
static void tpu_props(const struct xpl_opstats *s, bool is_tpu, struct xpl_gviz_props *p) {
    const struct xpl_op_metrics_db none = {0};
    const struct xpl_op_metrics_db *const d = is_tpu ? &s->device_op_metrics_db : &none;
    // The roofline needs limits of the hardware that XProf does not have outside Google.
    prop_percent(p, "flop_rate_utilization_relative_to_roofline", 0);
    prop_percent(p, "memory_bw_utilization_relative_to_hw_limit", 0);
    prop_percent(p, "device_duty_cycle_percent",
                 percent_of(d->busy_time_ps, d->busy_time_ps + d->idle_time_ps));
    prop_percent(p, "device_duty_cycle_high_confidence_percent",
                 percent_of(d->busy_time_high_confidence_ps,
                            d->busy_time_high_confidence_ps + d->idle_time_high_confidence_ps));
    prop_percent(p, "device_idle_time_percent", is_tpu ? 100.0 * xpl_op_metrics_idle_ratio(d) : 0);
    prop_percent(p, "host_idle_time_percent",
                 is_tpu ? 100.0 * xpl_op_metrics_idle_ratio(&s->host_op_metrics_db) : 0);
}

static void prop_if_positive(struct xpl_gviz_props *p, const char *name, double ms, int decimals) {
    if (ms > 0) xpl_gviz_prop_printf(p, name, "%s", xpl_digits(ms, decimals).z);
}

static void tpu_step_props(const struct xpl_input_pipeline *ip, struct xpl_gviz_props *p) {
    const double *const ms = ip->tpu_averages;
    prop_if_positive(p, "active_steptime_ms_average", ms[XPL_TPU_ACTIVE_STEP], 2);
    prop_if_positive(p, "tc_active_ms_average", ms[XPL_TPU_TC_ACTIVE], 2);
    prop_if_positive(p, "sc_active_ms_average", ms[XPL_TPU_SC_ACTIVE], 2);
    if (!(ms[XPL_TPU_SC_STEP_TIME] > 0)) return;
    xpl_gviz_prop_printf(p, "sc_steptime_average", "%.1f", ms[XPL_TPU_SC_STEP_TIME]);
    xpl_gviz_prop_printf(p, "sc_infeed_time_avg", "%.1f", ms[XPL_TPU_SC_INFEED]);
    xpl_gviz_prop_printf(p, "sc_outfeed_time_avg", "%.1f", ms[XPL_TPU_SC_OUTFEED]);
    xpl_gviz_prop_printf(p, "sc_idle_time_avg", "%.1f", ms[XPL_TPU_SC_IDLE]);
}

// What kernels of the same op name say about tensor cores (GroupKernelReportsByOpName).
static void tensor_core_use(const struct xpl_opstats *s, xpl_str_t op_name, bool *ret_eligible,
                            bool *ret_used) {
    *ret_eligible = false;
    uint64_t used_ns = 0;
    for (size_t i = 0; i < s->kernel_reports.n; i++) {
        const struct xpl_kernel_report *const k = &s->kernel_reports.v[i];
        if (!xpl_str_eq(k->op_name, op_name)) continue;
        *ret_eligible |= k->is_op_tensor_core_eligible;
        if (k->is_kernel_using_tensor_core) used_ns += k->total_duration_ns;
    }
    *ret_used = used_ns != 0;
}

static void analysis_rows(const struct xpl_opstats *s, const struct xpl_op_metrics_db *by_framework,
                          const struct xpl_op_metrics *const *top, size_t n, bool is_gpu,
                          struct xpl_gviz *g) {
    double cumulative = 0;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_op_metrics *const m = top[i];
        const double fraction =
            xpl_safe_divide((double)m->self_time_ps, (double)by_framework->total_time_ps);
        cumulative += fraction;
        xpl_gviz_row(g);
        xpl_gviz_number(g, fraction);
        xpl_gviz_number(g, cumulative);
        xpl_gviz_text(g, m->category);
        xpl_gviz_text(g, m->name);
        xpl_gviz_number(g, xpl_safe_divide(m->flops_v2, (double)m->time_ps / 1e3)); // per ns
        if (!is_gpu) continue;
        bool eligible, used;
        tensor_core_use(s, m->name, &eligible, &used);
        xpl_gviz_bool(g, eligible);
        xpl_gviz_bool(g, used);
    }
}

enum { OF_GPU = 1, OF_OTHERS = 2 }; // columns
static const struct xpl_column kOpColumns[] = {
    XPL_NUMBERS("selfTimePercent", "Time (%)", XPL_FRACTION),
    XPL_NUMBERS("cumulativeTimePercent", "Cumulative time (%)", XPL_FRACTION),
    XPL_TEXTS("category", "Category"),
    XPL_TEXTS("operation", "Operation"),
    XPL_COLUMN("flopRate", "number", "Bf16 Normalized Flop Rate(GFLOPs/Sec)", "GFLOP/s", OF_OTHERS),
    XPL_COLUMN("flopRate", "number", "GFLOPs/Sec", "GFLOP/s", OF_GPU),
    XPL_COLUMN("tcEligibility", "boolean", "TensorCore eligibility", NULL, OF_GPU),
    XPL_COLUMN("tcUtilization", "boolean", "Op is using TensorCore", NULL, OF_GPU),
    {0},
};

static bool analysis_table(const struct xpl_opstats *s, const struct xpl_input_pipeline *ip,
                           struct xpl_arena *scratch, struct xpl_buf *out) {
    const bool is_gpu = xpl_str_has(s->run_environment.device_type, XPL_STR("GPU"));
    struct xpl_op_metrics_db by_framework = {0};
    const struct xpl_op_metrics **top;
    size_t n;
    if (!xpl_op_metrics_by_framework_op(&s->device_op_metrics_db, false, XPL_GROUP_OP, scratch,
                                        &by_framework) ||
        !xpl_op_metrics_sorted(&by_framework, TOP_OPS, scratch, &top, &n))
        return false;
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kOpColumns, is_gpu ? OF_GPU : OF_OTHERS);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    common_props(s, &by_framework, &p);
    const bool is_tpu = hardware_of(&s->run_environment) == XPL_HW_TPU;
    if (is_gpu)
        gpu_props(&s->device_op_metrics_db, &p);
    else
        tpu_props(s, is_tpu, &p);
    if (is_tpu && s->device_op_metrics_db.idle_time_high_confidence_ps)
        xpl_gviz_prop_printf(&p, "idle_time_high_confidence_ps", "%.6g",
                             (double)s->device_op_metrics_db.idle_time_high_confidence_ps);
    tpu_step_props(ip, &p);
    xpl_gviz_put_props(&g, &p);
    analysis_rows(s, &by_framework, top, n, is_gpu, &g);
    xpl_gviz_end(&g);
    return true;
}

// ---- where it ran ----

static void prop_count(struct xpl_gviz_props *p, const char *name, int32_t count,
                       const char *more) {
    if (count >= 0)
        xpl_gviz_prop_printf(p, name, "%" PRId32 "%s", count, more);
    else
        xpl_gviz_prop_printf(p, name, "unknown%s", more);
}

static const struct xpl_column kHostColumns[] = {
    XPL_TEXTS("host_id", "host_id"),
    XPL_TEXTS("command_line", "command_line"),
    XPL_TEXTS("start_time", "start_time"),
    XPL_TEXTS("bns_address", "bns_address"),
    {0},
};

static void environment_table(const struct xpl_run_environment *e, struct xpl_arena *scratch,
                              struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kHostColumns, 0);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    char more[96] = "";
    prop_count(&p, "host_count", e->host_count, "");
    if (e->task_count > 0 && e->host_count > 0)
        (void)snprintf(more, sizeof more, " (num tasks per host = %" PRId32 ")",
                       e->task_count / e->host_count);
    prop_count(&p, "task_count", e->task_count, more);
    xpl_gviz_prop(&p, "device_type", e->device_type);
    more[0] = 0;
    if (e->replica_count > 0 && e->num_cores_per_replica > 0)
        (void)snprintf(more, sizeof more,
                       " (Replica count = %" PRId32 ", num cores per replica = %" PRId32 ")",
                       e->replica_count, e->num_cores_per_replica);
    // A CPU that counts as a device has as many as threads ran its ops: no profile has its cores.
    if (e->hardware_type == XPL_HW_CPU_ONLY && e->device_core_count > 0) {
        (void)snprintf(more, sizeof more, " (recorded threads: %" PRId32 ")", e->device_core_count);
        prop_count(&p, "device_core_count", -1, more);
    } else {
        prop_count(&p, "device_core_count", e->device_core_count, more);
    }
    xpl_gviz_prop(&p, "is_training", e->is_training ? XPL_STR("true") : XPL_STR("false"));
    xpl_gviz_put_props(&g, &p);
    xpl_gviz_end(&g); // a row per host would need job information that no profile carries
}

// ---- what to do next ----

static void put_tip(struct xpl_gviz *g, const char *type, xpl_str_t link, const char *description) {
    xpl_gviz_row(g);
    xpl_gviz_text(g, xpl_str_from(type));
    xpl_gviz_text(g, link);
    xpl_gviz_text(g, xpl_str_from(description));
}

static void put_tips(enum xpl_hardware hardware, struct xpl_gviz *g) {
    static const char kHost[] = "Next steps for reducing the Host time";
    static const char kDevice[] = "Next steps for reducing the Device time";
    static const char kDoc[] = "Other useful resources";
    const bool is_tpu = hardware == XPL_HW_TPU;
    const char *const device = xpl_input_pipeline_hardware_name(hardware);
    char text[200];
    put_tip(g, "faq", XPL_STR("Refer to the TF2 Profiler FAQ"), "Tool troubleshooting / FAQ");
    put_tip(g, "host",
            XPL_STR("input_pipeline_analyzer (especially Section 3 for the breakdown of input "
                    "operations on the Host)"),
            kHost);
    put_tip(g, "host",
            XPL_STR("trace_viewer (look at the activities on the timeline of each Host Thread near "
                    "the bottom of the trace view)"),
            kHost);
    (void)snprintf(text, sizeof text,
                   "%s (identify the time-consuming operations executed on the %s)",
                   is_tpu ? "op_profile" : "framework_op_stats", device);
    put_tip(g, "device", xpl_str_from(text), kDevice);
    (void)snprintf(text, sizeof text,
                   "trace_viewer (look at the activities on the timeline of each %s in the trace "
                   "view)",
                   is_tpu ? "TPU core" : device);
    put_tip(g, "device", xpl_str_from(text), kDevice);
    put_tip(g, "doc",
            XPL_STR("<a href=\"https://www.tensorflow.org/guide/data_performance_analysis\" "
                    "target=\"_blank\">Analyze tf.data performance with the TF Profiler</a>"),
            kDoc);
    put_tip(g, "doc",
            XPL_STR("<a href=\"https://www.tensorflow.org/guide/data_performance\" "
                    "target=\"_blank\">Better performance with the tf.data API</a>"),
            kDoc);
}

static void prop_precision(const struct xpl_op_metrics_db *device, struct xpl_gviz_props *p) {
    const uint64_t total = device->compute_16bit_ps + device->compute_32bit_ps;
    const double percent = total ? 100.0 * (double)device->compute_16bit_ps / (double)total : 100;
    if (percent < kLowPrecisionPercent)
        xpl_gviz_prop_printf(p, "precision_statement",
                             "Only %s%% of device computation is 16 bit. So you might want to "
                             "replace more 32-bit Ops by 16-bit Ops to improve performance (if the "
                             "reduced accuracy is acceptable).",
                             xpl_digits(percent, 1).z);
    else
        xpl_gviz_prop(p, "precision_statement", XPL_STR(""));
}

static const struct xpl_column kTipColumns[] = {
    XPL_TEXTS("tip_type", "tip_type"),
    XPL_TEXTS("link", "link"),
    XPL_TEXTS("description", "description"),
    {0},
};

static void recommendation_table(const struct xpl_opstats *s, const struct xpl_bottleneck *b,
                                 struct xpl_arena *scratch, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kTipColumns, 0);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    xpl_gviz_prop(&p, "bottleneck", xpl_str_from(b->input_class));
    xpl_gviz_prop(&p, "statement", b->input);
    xpl_gviz_prop(&p, "kernel_launch_bottleneck", xpl_str_from(b->kernel_launch_class));
    xpl_gviz_prop(&p, "kernel_launch_statement", b->kernel_launch);
    xpl_gviz_prop(&p, "all_other_bottleneck", xpl_str_from(b->all_other_class));
    xpl_gviz_prop(&p, "all_other_statement", b->all_other);
    xpl_gviz_prop(&p, "device_collectives_bottleneck", xpl_str_from(b->collectives_class));
    xpl_gviz_prop(&p, "device_collectives_statement", b->collectives);
    prop_precision(&s->device_op_metrics_db, &p);
    // Tips about the part that is not the bottleneck are hidden.
    const bool host = strcmp(b->input_class, "host") == 0;
    const bool device = strcmp(b->input_class, "device") == 0;
    xpl_gviz_prop(&p, "non_bottleneck_tip_types",
                  host     ? XPL_STR("device")
                  : device ? XPL_STR("host")
                           : XPL_STR(""));
    xpl_gviz_put_props(&g, &p);
    put_tips(hardware_of(&s->run_environment), &g);
    xpl_gviz_end(&g);
}

static void latency_rows(const struct xpl_infer_latency *v, struct xpl_gviz *g) {
    static const char *const kRows[XPL_INFER_LATENCIES] = {"Avg",   "50.0%", "75.0%",
                                                           "90.0%", "99.0%", "99.9%"};
    for (size_t i = 0; i < XPL_INFER_LATENCIES; i++) {
        xpl_gviz_row(g);
        xpl_gviz_text(g, xpl_str_from(kRows[i]));
        xpl_gviz_number(g, v[i].host / 1000);
        xpl_gviz_number(g, v[i].device / 1000);
        xpl_gviz_number(g, v[i].communication / 1000);
        xpl_gviz_number(g, v[i].total / 1000);
    }
}

static const struct xpl_column kLatencyColumns[] = {
    XPL_TEXTS("percentile", "percentile"),
    XPL_NUMBERS("hostTimeMs", "Host time (in ms)", "ms"),
    XPL_NUMBERS("deviceTimeMs", "Device time (in ms)", "ms"),
    XPL_NUMBERS("communicationTimeMs", "Host-device communication time (in ms)", "ms"),
    XPL_NUMBERS("totalTimeMs", "Total latency (in ms)", "ms"),
    {0},
};

// As upstream, a session that trains has no latencies, whatever its hosts served.
static xpl_status_t latency_table(const struct xpl_opstats *stats,
                                  const struct xpl_inferences *inferences,
                                  struct xpl_arena *scratch, struct xpl_buf *out,
                                  struct xpl_error *err) {
    struct xpl_infer_latency rows[XPL_INFER_LATENCIES];
    struct xpl_gviz g;
    bool any = false;
    if (!stats->run_environment.is_training)
        XPL_TRY(xpl_infer_latencies(inferences, scratch, rows, &any, err));
    xpl_gviz_begin(&g, out, kLatencyColumns, 0);
    if (any) latency_rows(rows, &g);
    xpl_gviz_end(&g);
    return XPL_OK;
}

// ---- diagnostics ----

static int by_text(const void *a, const void *b) {
    return xpl_str_cmp(*(const xpl_str_t *)a, *(const xpl_str_t *)b);
}

static bool diagnostics(const struct xpl_opstats *s, struct xpl_arena *scratch,
                        struct xpl_buf *out) {
    const struct xpl_run_environment *const e = &s->run_environment;
    size_t n = s->diagnostics.errors.n;
    xpl_str_t *const errors = xpl_arena_array(scratch, n + 1, sizeof *errors);
    if (!errors) return false;
    if (n) {
        memcpy(errors, s->diagnostics.errors.v, n * sizeof *errors);
        xpl_sort(errors, n, sizeof *errors, by_text);
    } else if (!xpl_str_eq(e->device_type, XPL_STR("CPU")) && e->device_core_count <= 0) {
        errors[n++] =
            XPL_STR("No TensorCore device trace was collected. This might happen if your job "
                    "hadn't been run on the device when sampling was turned on. You could try the "
                    "sampling again later.");
    }
    xpl_diagnostics_table(&s->step_db, s->diagnostics.warnings.v, s->diagnostics.warnings.n, errors,
                          n, out);
    return true;
}

static xpl_status_t write_answer(const struct xpl_opstats *stats, const void *options,
                                 const struct xpl_inferences *inferences, struct xpl_arena *scratch,
                                 struct xpl_buf *out, struct xpl_error *err) {
    struct xpl_input_pipeline ip;
    struct xpl_bottleneck bottleneck;
    XPL_TRY(xpl_input_pipeline_analyze(stats, options, scratch, &ip, err));
    if (!xpl_bottleneck_generic(&ip, scratch, &bottleneck)) XPL_RETURN_OOM(err, "overview_page");
    xpl_buf_putc(out, '[');
    if (!analysis_table(stats, &ip, scratch, out)) XPL_RETURN_OOM(err, "overview_page");
    xpl_buf_putc(out, ',');
    xpl_input_pipeline_step_table(&ip, scratch, out);
    xpl_buf_putc(out, ',');
    environment_table(&stats->run_environment, scratch, out);
    xpl_buf_putc(out, ',');
    recommendation_table(stats, &bottleneck, scratch, out);
    xpl_buf_putc(out, ',');
    XPL_TRY(latency_table(stats, inferences, scratch, out, err));
    xpl_buf_str(out, XPL_STR(", {},"));
    if (!diagnostics(stats, scratch, out)) XPL_RETURN_OOM(err, "overview_page");
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "overview_page");
    return XPL_OK;
}

enum { OP_STATS, INFERENCE }; // of the needs

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct xpl_opstats *stats;
    struct xpl_inferences *inferences;
    xpl_arena_init(&scratch, in->limit);
    XPL_TRY(xpl_op_stats_combine(in, OP_STATS, &scratch, &stats, err));
    XPL_TRY(xpl_inference_of_hosts(in, INFERENCE, &scratch, &inferences, err));
    return write_answer(stats, in->options, inferences, &scratch, out, err);
}

static const struct xpl_product *const kNeeds[] = {
    [OP_STATS] = &xpl_product_op_stats, [INFERENCE] = &xpl_product_inference, NULL};

static unsigned variant(const void *options, size_t i, bool session_has_device) {
    return i == OP_STATS ? xpl_op_stats_variant(options, i, session_has_device) : 0;
}

static const char *const kTitles[] = {
    "Top ops", "Steps", "Hosts", "Advice of XProf", "Latency of inference", "Diagnostics", NULL};

const struct xpl_tool xpl_tool_overview_page = {
    .name = "overview_page",
    .version = 4,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_ALL,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 1,
    .content_type = "application/json",
    .columns = {kOpColumns, xpl_step_columns, xpl_tpu_step_columns, kLatencyColumns},
    .titles = kTitles,
    .worker_served = true,
    .variant = variant,
    .asks_device = true,
    .render = render,
};
