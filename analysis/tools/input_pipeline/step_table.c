// SPDX-License-Identifier: Apache-2.0
// The table of steps that the input-pipeline analyzer and the overview page show.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "base/arena.h"
#include "base/cleanup.h"

static void prop_digits(struct xpl_gviz_props *p, const char *name, double v, int decimals) {
    xpl_gviz_prop_printf(p, name, "%s", xpl_digits(v, decimals).z);
}

static void props_of_steps(struct xpl_gviz_props *p, const struct xpl_input_pipeline *ip,
                           int decimals) {
    xpl_gviz_prop(p, "hardware_type", xpl_str_from(ip->hardware_type));
    prop_digits(p, "steptime_ms_average", ip->step_time.average, decimals);
    prop_digits(p, "steptime_ms_standard_deviation", ip->step_time.standard_deviation, decimals);
    prop_digits(p, "steptime_ms_minimum", ip->step_time.minimum, decimals);
    prop_digits(p, "steptime_ms_maximum", ip->step_time.maximum, decimals);
    if (ip->series.len) xpl_gviz_prop(p, "steptime_series", ip->series);
    xpl_gviz_prop(p, "input_conclusion", ip->bottleneck.input);
    xpl_gviz_prop(p, "summary_nextstep", xpl_str_from(ip->next_step));
}

// ---- GPUs and CPUs ----

static double generic_input(const struct xpl_generic_step *g) {
    return g->host_wait_input + g->host_to_device;
}

// Columns that are summarized in properties: average and deviation.
static void generic_columns(const struct xpl_generic_step *g, double v[9]) {
    v[0] = g->device_compute;
    v[1] = g->device_to_device;
    v[2] = g->device_collectives;
    v[3] = g->host_compute;
    v[4] = g->host_prepare;
    v[5] = generic_input(g);
    v[6] = g->output;
    v[7] = g->host_compile;
    v[8] = g->unknown;
}

static void generic_props(const struct xpl_input_pipeline *ip, struct xpl_gviz_props *p) {
    static const char *const kNames[9][2] = {
        {"device_compute_time_ms_avg", "device_compute_time_ms_sdv"},
        {"device_to_device_time_ms_avg", "device_to_device_time_ms_sdv"},
        {"device_collectives_time_ms_avg", "device_collectives_time_ms_sdv"},
        {"host_compute_time_ms_avg", "host_compute_time_ms_sdv"},
        {"kernel_launch_time_ms_avg", "kernel_launch_time_ms_sdv"},
        {"infeed_time_ms_avg", "infeed_time_ms_sdv"},
        {"outfeed_time_ms_avg", "outfeed_time_ms_sdv"},
        {"compile_time_ms_avg", "compile_time_ms_sdv"},
        {"other_time_ms_avg", "other_time_ms_sdv"},
    };
    struct xpl_samples samples[9];
    for (size_t c = 0; c < 9; c++)
        samples[c] = XPL_SAMPLES_INIT;
    for (size_t i = 0; i < ip->generic_steps.n; i++) {
        double v[9];
        generic_columns(&ip->generic_steps.v[i], v);
        for (size_t c = 0; c < 9; c++)
            xpl_samples_add(&samples[c], v[c]);
    }
    for (size_t c = 0; c < 9 && !ip->unreadable; c++) {
        const struct xpl_step_summary sum = xpl_samples_summary(&samples[c]);
        prop_digits(p, kNames[c][0], sum.average, 1);
        prop_digits(p, kNames[c][1], sum.standard_deviation, 1);
    }
    const struct xpl_bottleneck *const b = &ip->bottleneck;
    xpl_gviz_prop(p, "device_collectives_bottleneck", b->collectives);
    xpl_gviz_prop(p, "device_collectives_statement", b->collectives);
    xpl_gviz_prop(p, "kernel_launch_bottleneck", b->kernel_launch);
    xpl_gviz_prop(p, "kernel_launch_statement", b->kernel_launch);
    xpl_gviz_prop(p, "all_other_bottleneck", b->all_other);
    xpl_gviz_prop(p, "all_other_statement", b->all_other);
    xpl_gviz_prop(p, "step_time_graph_column_ids",
                  XPL_STR("stepnum,deviceComputeTimeMs,deviceToDeviceTimeMs,"
                          "deviceCollectivesTimeMs,hostComputeTimeMs,kernelLaunchTimeMs,"
                          "infeedTimeMs,outfeedTimeMs,compileTimeMs,otherTimeMs, tooltip"));
}

static void generic_tooltip(const struct xpl_generic_step *g, struct xpl_buf *tip) {
    tip->n = 0;
    xpl_buf_str(tip, XPL_STR("Step "));
    xpl_buf_str(tip, g->name);
    const struct {
        xpl_str_t text;
        double ms;
    } parts[] = {
        {XPL_STR(", duration: "), g->step_time},
        {XPL_STR("\n-All others: "), g->unknown},
        {XPL_STR("\n-Compilation: "), g->host_compile},
        {XPL_STR("\n-Output: "), g->output},
        {XPL_STR("\n-Input: "), generic_input(g)},
        {XPL_STR("\n-Kernel launch: "), g->host_prepare},
        {XPL_STR("\n-Host compute: "), g->host_compute},
        {XPL_STR("\n-Device collectives: "), g->device_collectives},
        {XPL_STR("\n-Device to device: "), g->device_to_device},
        {XPL_STR("\n-Device compute: "), g->device_compute},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct xpl_digits ms = xpl_digits(parts[i].ms, 2);
        xpl_buf_str(tip, parts[i].text);
        xpl_buf_str(tip, xpl_str_from(ms.z));
        xpl_buf_str(tip, XPL_STR(" ms"));
    }
}

const struct xpl_column xpl_step_columns[] = {
    XPL_TEXTS("stepnum", "Step number"),
    XPL_NUMBERS("deviceComputeTimeMs", "Device compute", "ms"),
    XPL_NUMBERS("deviceToDeviceTimeMs", "Device to device", "ms"),
    XPL_NUMBERS("deviceCollectivesTimeMs", "Device collective communication", "ms"),
    XPL_NUMBERS("hostComputeTimeMs", "Host compute", "ms"),
    XPL_NUMBERS("kernelLaunchTimeMs", "Kernel launch", "ms"),
    XPL_NUMBERS("infeedTimeMs", "Input", "ms"),
    XPL_NUMBERS("outfeedTimeMs", "Output", "ms"),
    XPL_NUMBERS("compileTimeMs", "Compilation", "ms"),
    XPL_NUMBERS("otherTimeMs", "All others", "ms"),
    {.id = "tooltip", .type = "string", .label = "tooltip", .role = "tooltip"},
    XPL_NUMBERS("stepTimeMs", "Step time", "ms"),
    {0},
};

static void generic_table(const struct xpl_input_pipeline *ip, struct xpl_arena *scratch,
                          struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, xpl_step_columns, 0);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    props_of_steps(&p, ip, 1);
    generic_props(ip, &p);
    xpl_gviz_put_props(&g, &p);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf tip = xpl_buf_of(out->max);
    for (size_t i = 0; i < ip->generic_steps.n; i++) {
        const struct xpl_generic_step *const step = &ip->generic_steps.v[i];
        double v[9];
        generic_columns(step, v);
        generic_tooltip(step, &tip);
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, step->name);
        for (size_t c = 0; c < 9; c++)
            xpl_gviz_number(&g, v[c]);
        xpl_gviz_text(&g, (xpl_str_t){(const char *)tip.p, tip.n});
        xpl_gviz_number(&g, step->step_time);
    }
    if (tip.failed) out->failed = true;
    xpl_gviz_end(&g);
}

// ---- TPUs ----

// Properties of the averages.
static const char *const kTpuAverages[XPL_TPU_AVERAGES] = {
    [XPL_TPU_TC_COMPUTE] = "tc_compute_ms_average",
    [XPL_TPU_TC_INFEED] = "tc_infeed_ms_average",
    [XPL_TPU_TC_OUTFEED] = "tc_outfeed_ms_average",
    [XPL_TPU_TC_IDLE] = "tc_idle_ms_average",
    [XPL_TPU_TC_ACTIVE] = "tc_active_ms_average",
    [XPL_TPU_HOST_TRANSFER] = "host_transfer_ms_average",
    [XPL_TPU_ACTIVE_STEP] = "active_steptime_ms_average",
    [XPL_TPU_SCV0_COMPUTE] = "scv0_compute_ms_average",
    [XPL_TPU_SCV0_INFEED] = "scv0_infeed_ms_average",
    [XPL_TPU_SC_COMPUTE] = "sc_compute_ms_average",
    [XPL_TPU_SC_INFEED] = "sc_infeed_ms_average",
    [XPL_TPU_SC_OUTFEED] = "sc_outfeed_ms_average",
    [XPL_TPU_SC_IDLE] = "sc_idle_ms_average",
    [XPL_TPU_SC_ACTIVE] = "sc_active_ms_average",
    [XPL_TPU_SC_STEP_TIME] = "sc_step_time_ms_average",
};

static void tpu_props(const struct xpl_input_pipeline *ip, struct xpl_gviz_props *p) {
    const bool sc = ip->tpu_averages[XPL_TPU_SC_STEP_TIME] > 0;
    for (size_t c = 0; c < XPL_TPU_AVERAGES; c++) {
        const bool is_scv0 = c == XPL_TPU_SCV0_COMPUTE || c == XPL_TPU_SCV0_INFEED;
        if ((is_scv0 && ip->has_sparse_core) || (c >= XPL_TPU_SC_COMPUTE && !sc)) continue;
        prop_digits(p, kTpuAverages[c], ip->tpu_averages[c], c == XPL_TPU_SC_STEP_TIME ? 1 : 2);
    }
    prop_digits(p, "infeed_percent_average", ip->input_percent.average, 1);
    prop_digits(p, "infeed_percent_standard_deviation", ip->input_percent.standard_deviation, 1);
    prop_digits(p, "infeed_percent_minimum", ip->input_percent.minimum, 1);
    prop_digits(p, "infeed_percent_maximum", ip->input_percent.maximum, 1);
    xpl_gviz_prop(p, "output_conclusion", ip->bottleneck.output);
    xpl_gviz_prop(p, "step_time_graph_column_ids",
                  ip->has_sparse_core
                      ? XPL_STR("stepnum,tcComputeTimeMs,tcInfeedTimeMs,tcOutfeedTimeMs,"
                                "tcIdleTimeMs,hostTransferTimeMs,tooltip")
                      : XPL_STR("stepnum,tcComputeTimeMs,scv0ComputeTimeMs,scv0InfeedTimeMs,"
                                "tcInfeedTimeMs,tcOutfeedTimeMs,tcIdleTimeMs,hostTransferTimeMs,"
                                "tooltip"));
}

static void tpu_row(const struct xpl_input_pipeline *ip, const struct xpl_tpu_step *t,
                    struct xpl_gviz *g) {
    char text[160];
    int n = snprintf(text, sizeof text, "%" PRId32, t->step_number);
    xpl_gviz_row(g);
    xpl_gviz_text(g, (xpl_str_t){text, (size_t)n});
    xpl_gviz_number(g, t->tc_compute);
    if (!ip->has_sparse_core) {
        xpl_gviz_number(g, t->scv0_compute);
        xpl_gviz_number(g, t->scv0_infeed);
    }
    xpl_gviz_number(g, t->tc_infeed);
    xpl_gviz_number(g, t->tc_outfeed);
    xpl_gviz_number(g, t->tc_idle);
    xpl_gviz_number(g, t->host_transfer);
    const double step = xpl_tpu_step_time(t) - (t->all_reduce_compute + t->all_reduce_sync);
    n = snprintf(text, sizeof text,
                 "step %" PRId32 ":\nTime waiting for input data = %s ms, Step time = %s ms",
                 t->step_number, xpl_digits(t->tc_infeed + t->scv0_infeed, 3).z,
                 xpl_digits(step, 3).z);
    xpl_gviz_text(g, (xpl_str_t){text, (size_t)n});
    xpl_gviz_number(g, t->infeed_percent_average);
    xpl_gviz_number(g, t->infeed_percent_minimum);
    xpl_gviz_number(g, t->infeed_percent_maximum);
}

enum { OF_SPARSE_CORE = 1 }; // columns
const struct xpl_column xpl_tpu_step_columns[] = {
    XPL_TEXTS("stepnum", "stepnum"),
    XPL_NUMBERS("tcComputeTimeMs", "TensorCore compute (in ms)", "ms"),
    XPL_COLUMN("scv0ComputeTimeMs", "number", "SparseCoreV0 compute (in ms)", "ms", OF_SPARSE_CORE),
    XPL_COLUMN("scv0InfeedTimeMs", "number", "SparseCoreV0 input (in ms)", "ms", OF_SPARSE_CORE),
    XPL_NUMBERS("tcInfeedTimeMs", "TensorCore input (in ms)", "ms"),
    XPL_NUMBERS("tcOutfeedTimeMs", "TensorCore output (in ms)", "ms"),
    XPL_NUMBERS("tcIdleTimeMs", "TensorCore idle (in ms)", "ms"),
    XPL_NUMBERS("hostTransferTimeMs", "Host transfer (in ms)", "ms"),
    {.id = "tooltip", .type = "string", .label = "tooltip", .role = "tooltip"},
    XPL_NUMBERS("infeedPercentAverage", "% step time waiting for input data", "%"),
    {.id = "infeedPercentMin",
     .type = "number",
     .label = "Infeed percent min",
     .unit = "%",
     .role = "interval"},
    {.id = "infeedPercentMax",
     .type = "number",
     .label = "Infeed percent max",
     .unit = "%",
     .role = "interval"},
    {0},
};

static void tpu_table(const struct xpl_input_pipeline *ip, struct xpl_arena *scratch,
                      struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, xpl_tpu_step_columns, ip->has_sparse_core ? 0 : OF_SPARSE_CORE);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    props_of_steps(&p, ip, 2);
    tpu_props(ip, &p);
    xpl_gviz_put_props(&g, &p);
    for (size_t i = 0; i < ip->tpu_steps.n; i++)
        tpu_row(ip, &ip->tpu_steps.v[i], &g);
    xpl_gviz_end(&g);
}

void xpl_input_pipeline_step_table(const struct xpl_input_pipeline *ip, struct xpl_arena *scratch,
                                   struct xpl_buf *out) {
    if (ip->is_tpu)
        tpu_table(ip, scratch, out);
    else
        generic_table(ip, scratch, out);
}
