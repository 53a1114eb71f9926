// SPDX-License-Identifier: Apache-2.0
// Input-pipeline analysis: the time of each step by its parts, and whether input is the bottleneck.
// The overview page shows the same step table, so the analysis is separate from the tool's tables.
// Rules: XProf's convert/op_stats_to_input_pipeline_analysis.cc, as of the release that
// docs/differences.md names.  Times are milliseconds unless a name says otherwise.
// One thread; everything lives in the arena given to xpl_input_pipeline_analyze.
#ifndef XPL_ANALYSIS_TOOLS_INPUT_PIPELINE_INPUT_PIPELINE_H_
#define XPL_ANALYSIS_TOOLS_INPUT_PIPELINE_INPUT_PIPELINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/opstats/opstats.h"
#include "analysis/tools/lib/gviz.h"
#include "analysis/tools/lib/samples.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

struct xpl_arena;

// A step on a GPU or CPU (message PerGenericStepDetails).
struct xpl_generic_step {
    xpl_str_t name;
    double step_time, unknown, host_wait_input, host_to_device, output, device_compute,
        device_to_device, device_collectives, host_compute, host_prepare, host_compile;
};

// A step on TPU cores, collapsed into one row (message PerTpuStepDetails).
struct xpl_tpu_step {
    int32_t step_number;            // -1 without cores
    xpl_str_t max_infeed_core_name; // "host:ordinal", "" when unknown
    double tc_compute, tc_idle, tc_outfeed, tc_infeed, tc_active;
    double infeed_percent_average, infeed_percent_minimum, infeed_percent_maximum;
    double all_reduce_compute, all_reduce_sync, scv0_compute, scv0_infeed, host_transfer;
    double sc_compute, sc_idle, sc_outfeed, sc_infeed, sc_step_time, sc_active;
};

// What a TPU's steps are averaged over; also the order of struct xpl_input_pipeline.tpu_averages.
// "Active" is time in which a core is not waiting; that of a step is the busier kind of core's.
enum xpl_tpu_average {
    XPL_TPU_TC_COMPUTE,
    XPL_TPU_TC_INFEED,
    XPL_TPU_TC_OUTFEED,
    XPL_TPU_TC_IDLE,
    XPL_TPU_TC_ACTIVE,
    XPL_TPU_HOST_TRANSFER,
    XPL_TPU_ACTIVE_STEP,
    XPL_TPU_SCV0_COMPUTE,
    XPL_TPU_SCV0_INFEED,
    XPL_TPU_SC_COMPUTE, // from here on of SparseCores
    XPL_TPU_SC_INFEED,
    XPL_TPU_SC_OUTFEED,
    XPL_TPU_SC_IDLE,
    XPL_TPU_SC_ACTIVE,
    XPL_TPU_SC_STEP_TIME,
    XPL_TPU_AVERAGES
};

// Time of input ops on the host, us (message InputTimeBreakdown).
struct xpl_input_time {
    double demanded_file_read_us, advanced_file_read_us, preprocessing_us, enqueue_us,
        unclassified_non_enqueue_us;
};

struct xpl_input_op {
    const struct xpl_op_metrics *op;
    const char *category;
};

// What the times of all steps mean, in words (messages BottleneckAnalysis and
// TpuBottleneckAnalysis; the texts are part of the answer).
struct xpl_bottleneck {
    const char *input_class, *collectives_class, *kernel_launch_class, *all_other_class;
    xpl_str_t input, output, collectives, kernel_launch, all_other;
};

struct xpl_input_pipeline {
    bool is_tpu;               // tpu_steps and a TPU's table, else generic_steps
    bool unreadable;           // a generic step has another kind of breakdown: no step is shown
    bool has_sparse_core;      // some core is a SparseCore: columns and averages of that
    const char *hardware_type; // "TPU", "GPU", "CPU_ONLY", "UNKNOWN_HARDWARE"
    struct xpl_step_summary step_time, input_percent;
    // What steps of each series take, where there are several: step_time is of the one with most
    // steps then.
    xpl_str_t series;
    double tpu_averages[XPL_TPU_AVERAGES]; // ms, 0 without steps
    XPL_VEC(struct xpl_generic_step) generic_steps;
    XPL_VEC(struct xpl_tpu_step) tpu_steps;
    XPL_VEC(struct xpl_input_op) input_ops;
    uint64_t input_ops_self_time_ps;
    struct xpl_input_time input_time;
    struct xpl_bottleneck bottleneck;
    const char *next_step; // HTML
};

// `options`: of the tool, which begin with those that all tools have.
xpl_status_t xpl_input_pipeline_analyze(const struct xpl_opstats *s, const void *options,
                                        struct xpl_arena *arena, struct xpl_input_pipeline *ret,
                                        struct xpl_error *err) XPL_NODISCARD;

// ComputeBottleneckAnalysis over the generic steps; the overview page shows this even for a TPU,
// where it is empty once there are steps.
bool xpl_bottleneck_generic(const struct xpl_input_pipeline *ip, struct xpl_arena *arena,
                            struct xpl_bottleneck *ret) XPL_NODISCARD;
// Time of a TPU's step by its parts, without and with idle time (NonIdleTimeMs, StepTimeMs).
static inline double xpl_tpu_step_busy_time(const struct xpl_tpu_step *t) {
    return t->tc_compute + t->scv0_compute + (t->tc_infeed + t->scv0_infeed) +
           (t->all_reduce_compute + t->all_reduce_sync) + t->tc_outfeed;
}
static inline double xpl_tpu_step_time(const struct xpl_tpu_step *t) {
    return xpl_tpu_step_busy_time(t) + t->tc_idle;
}

// "TPU" and so on, as HardwareType's names.
const char *xpl_input_pipeline_hardware_name(enum xpl_hardware h);

// Columns of the step table: of TPUs the second.
extern const struct xpl_column xpl_step_columns[], xpl_tpu_step_columns[];
// The step table (the overview's second, this tool's second).
void xpl_input_pipeline_step_table(const struct xpl_input_pipeline *ip, struct xpl_arena *scratch,
                                   struct xpl_buf *out);
// What is to be said about steps that are missing, in order.  Do not copy: v may point into it.
struct xpl_input_pipeline_warnings {
    xpl_str_t v[2];
    size_t n;
    char dropped[200];
};
void xpl_input_pipeline_warn(const struct xpl_step_db *steps,
                             struct xpl_input_pipeline_warnings *ret);
// Diagnostics of a table: warnings about missing steps follow `warnings`.
void xpl_diagnostics_table(const struct xpl_step_db *steps, const xpl_str_t *warnings,
                           size_t n_warnings, const xpl_str_t *errors, size_t n_errors,
                           struct xpl_buf *out);

#endif
