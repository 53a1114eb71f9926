// SPDX-License-Identifier: Apache-2.0
// Tool input_pipeline_analyzer: tables of the core that waits longest for input, the steps, the
// input ops of the host, recommendations and diagnostics.
#include "analysis/tools/input_pipeline/input_pipeline.h"
#include "analysis/tools/lib/op_stats_tool.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"

static void max_infeed_core_table(const struct xpl_input_pipeline *ip, struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, NULL, 0);
    if (ip->is_tpu) {
        char text[24];
        xpl_gviz_column(&g, &(struct xpl_column)XPL_TEXTS("index", "Index"));
        for (size_t i = 0; i < ip->tpu_steps.n; i++) {
            (void)snprintf(text, sizeof text, "%zu", i);
            xpl_gviz_column(&g, &(struct xpl_column)XPL_TEXTS(text, text));
        }
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, XPL_STR("Step number"));
        for (size_t i = 0; i < ip->tpu_steps.n; i++) {
            (void)snprintf(text, sizeof text, "%" PRId32, ip->tpu_steps.v[i].step_number);
            xpl_gviz_text(&g, xpl_str_from(text));
        }
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, XPL_STR("Core name"));
        for (size_t i = 0; i < ip->tpu_steps.n; i++) {
            const xpl_str_t name = ip->tpu_steps.v[i].max_infeed_core_name;
            xpl_gviz_text(&g, name.len ? name : XPL_STR("unknown"));
        }
    }
    xpl_gviz_end(&g);
}

static void host_op_props(const struct xpl_input_time *t, struct xpl_gviz_props *p) {
    xpl_gviz_prop_printf(p, "enqueue_us", "%.3f", t->enqueue_us);
    xpl_gviz_prop_printf(p, "demanded_file_read_us", "%.3f", t->demanded_file_read_us);
    xpl_gviz_prop_printf(p, "advanced_file_read_us", "%.3f", t->advanced_file_read_us);
    xpl_gviz_prop_printf(p, "preprocessing_us", "%.3f", t->preprocessing_us);
    xpl_gviz_prop_printf(p, "unclassified_nonequeue_us", "%.3f", t->unclassified_non_enqueue_us);
}

static const struct xpl_column kOpColumns[] = {
    XPL_TEXTS("opName", "Input Op"),
    XPL_NUMBERS("count", "Count", NULL),
    XPL_NUMBERS("timeInMs", "Total Time (in ms)", "ms"),
    XPL_NUMBERS("timeInPercent", "Total Time (as % of total input-processing time)", XPL_FRACTION),
    XPL_NUMBERS("selfTimeInMs", "Total Self Time (in ms)", "ms"),
    XPL_NUMBERS("selfTimeInPercent", "Total Self Time (as % of total input-processing time)",
                XPL_FRACTION),
    XPL_TEXTS("category", "Category"),
    {0},
};

static void host_op_table(const struct xpl_input_pipeline *ip, struct xpl_arena *scratch,
                          struct xpl_buf *out) {
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kOpColumns, 0);
    struct xpl_gviz_props p;
    xpl_gviz_props_init(&p, scratch);
    host_op_props(&ip->input_time, &p);
    xpl_gviz_put_props(&g, &p);
    const double total = (double)ip->input_ops_self_time_ps;
    for (size_t i = 0; i < ip->input_ops.n; i++) {
        const struct xpl_op_metrics *const op = ip->input_ops.v[i].op;
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, op->name);
        xpl_gviz_number(&g, op->occurrences);
        xpl_gviz_number(&g, xpl_ps_to_ms(op->time_ps));
        // A percentage upstream, printed as a fraction: the roundings of both.
        xpl_gviz_number(&g, 100.0 * xpl_safe_divide((double)op->time_ps, total) / 100.0);
        xpl_gviz_number(&g, xpl_ps_to_ms(op->self_time_ps));
        xpl_gviz_number(&g, 100.0 * xpl_safe_divide((double)op->self_time_ps, total) / 100.0);
        xpl_gviz_text(&g, xpl_str_from(ip->input_ops.v[i].category));
    }
    xpl_gviz_end(&g);
}

#define DATASET_DOC "https://www.tensorflow.org/api_docs/python/tf/data/Dataset#"
#define RECORD_DOC                                                                                 \
    "https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset#class_tfrecorddataset"
#define GUIDE_DOC           "https://www.tensorflow.org/programmers_guide/datasets"
#define LINK(address, text) "<a href=\"" address "\" target=\"_blank\">" text "</a>"

static const struct xpl_column kTipColumns[] = {
    XPL_TEXTS("link", "link"),
    {0},
};

static void recommendation_table(struct xpl_buf *out) {
    static const char *const kTips[] = {
        "Enqueuing data: you may want to combine small input data chunks into fewer but larger "
        "chunks.",
        "Data preprocessing: you may increase num_parallel_calls in " LINK(
            DATASET_DOC "map", "Dataset map()") " or preprocess the data OFFLINE.",
        "Reading data from files in advance: you may tune parameters in the following tf.data API "
        "(" LINK(DATASET_DOC "prefetch", "prefetch size") ", " LINK(
            DATASET_DOC "interleave",
            "interleave cycle_length") ", " LINK(RECORD_DOC, "reader buffer_size") ")",
        "Reading data from files on demand: you should read data IN ADVANCE using the following "
        "tf.data API (" LINK(DATASET_DOC "prefetch", "prefetch") ", " LINK(
            DATASET_DOC "interleave", "interleave") ", " LINK(RECORD_DOC, "reader buffer") ")",
        "Other data reading or processing: you may consider using the " LINK(
            GUIDE_DOC, "tf.data API") " (if you are not using it now)",
    };
    struct xpl_gviz g;
    xpl_gviz_begin(&g, out, kTipColumns, 0);
    for (size_t i = 0; i < sizeof kTips / sizeof *kTips; i++) {
        xpl_gviz_row(&g);
        xpl_gviz_text(&g, xpl_str_from(kTips[i]));
    }
    xpl_gviz_end(&g);
}

static xpl_status_t write_answer(const struct xpl_opstats *stats, const void *options,
                                 struct xpl_arena *scratch, struct xpl_buf *out,
                                 struct xpl_error *err) {
    struct xpl_input_pipeline ip;
    XPL_TRY(xpl_input_pipeline_analyze(stats, options, scratch, &ip, err));
    xpl_buf_putc(out, '[');
    max_infeed_core_table(&ip, out);
    xpl_buf_putc(out, ',');
    xpl_input_pipeline_step_table(&ip, scratch, out);
    xpl_buf_putc(out, ',');
    host_op_table(&ip, scratch, out);
    xpl_buf_putc(out, ',');
    recommendation_table(out);
    xpl_buf_putc(out, ',');
    xpl_diagnostics_table(&stats->step_db, NULL, 0, NULL, 0, out);
    xpl_buf_putc(out, ']');
    if (out->failed) XPL_RETURN_OOM(err, "input_pipeline_analyzer");
    return XPL_OK;
}

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    return xpl_op_stats_render(in, write_answer, out, err);
}

static const char *const kAliases[] = {"input_pipeline", NULL};

static const char *const kTitles[] = {"Infeed",          "Steps",       "Input ops on the host",
                                      "Advice of XProf", "Diagnostics", NULL};

const struct xpl_tool xpl_tool_input_pipeline_analyzer = {
    .name = "input_pipeline_analyzer",
    .aliases = kAliases,
    .version = 4,
    .needs = xpl_op_stats_needs,
    .facts = XPL_FACT_STEPS,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_ALWAYS,
    .list_position = 6,
    .content_type = "application/json",
    .columns = {xpl_step_columns, xpl_tpu_step_columns, kOpColumns},
    .titles = kTitles,
    .worker_served = true,
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
