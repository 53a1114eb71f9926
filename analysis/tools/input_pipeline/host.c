// SPDX-License-Identifier: Apache-2.0
// Input ops on the host: which of them feed the device, and how long each kind takes.
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/tools/input_pipeline/impl.h"
#include "analysis/xplane/tf_op.h"
#include "base/arena.h"

enum input_kind {
    KIND_ENQUEUE,
    KIND_DEMANDED_READ,
    KIND_ADVANCED_READ,
    KIND_PREPROCESSING,
    KIND_UNKNOWN,
    N_KINDS
};

static const char *const kKindNames[N_KINDS] = {
    "Enqueue", "Demanded file read", "Advanced file read", "Preprocessing", "Unknown",
};

static bool equal_ignoring_case(xpl_str_t s, xpl_str_t lower) {
    if (s.len != lower.len) return false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != lower.ptr[i]) return false;
    }
    return true;
}

// Categories that input-pipeline stages carry by themselves.
static bool stage_kind(xpl_str_t category, enum input_kind *ret) {
    if (equal_ignoring_case(category, XPL_STR("enqueue")))
        *ret = KIND_ENQUEUE;
    else if (equal_ignoring_case(category, XPL_STR("read")))
        *ret = KIND_DEMANDED_READ;
    else if (equal_ignoring_case(category, XPL_STR("preprocessing")))
        *ret = KIND_PREPROCESSING;
    else if (equal_ignoring_case(category, XPL_STR("unknown")))
        *ret = KIND_UNKNOWN;
    else
        return false;
    return true;
}

// The name of a tf.data iterator lists the stages that it reads from.
static enum input_kind dataset_kind(xpl_str_t name) {
    static const char *const kFiles[] = {"::TFRecord", "::TextLine", "::FixedLengthRecord",
                                         "::SSTable",  "::RecordIO", "::ArrayRecord"};
    static const char *const kAhead[] = {"::MemoryReader", "::MemoryWriter", "::Interleave",
                                         "::Prefetch", "::ParallelMap"};
    bool reads_file = false;
    for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; i++)
        reads_file |= xpl_str_ends(name, xpl_str_from(kFiles[i]));
    if (!reads_file) return KIND_PREPROCESSING;
    for (size_t i = 0; i < sizeof kAhead / sizeof *kAhead; i++)
        if (xpl_str_has(name, xpl_str_from(kAhead[i]))) return KIND_ADVANCED_READ;
    return KIND_DEMANDED_READ;
}

// False for an op that is not input.
static bool classify(const struct xpl_op_metrics *op, enum input_kind *ret) {
    if (stage_kind(op->category, ret)) return true;
    if (xpl_is_infeed_enqueue_op(op->category) || xpl_is_memcpy_htod_op(op->category)) {
        *ret = KIND_ENQUEUE;
        return true;
    }
    if (!xpl_is_dataset_op(op->category)) return false;
    *ret = dataset_kind(op->name);
    return true;
}

// Share of a step in which data goes from host to device: of the infeed on TPUs that have one,
// else of the steps.
static double host_to_device_ratio(const struct xpl_op_metrics_db *host,
                                   const struct xpl_input_pipeline *ip) {
    double ratio;
    if (xpl_op_metrics_infeed_ratio(host, &ratio)) return ratio;
    if (!(ip->step_time.average > 0) || ip->is_tpu) return 0;
    struct xpl_samples host_to_device = XPL_SAMPLES_INIT;
    for (size_t i = 0; i < ip->generic_steps.n; i++)
        xpl_samples_add(&host_to_device, ip->generic_steps.v[i].host_to_device);
    return xpl_safe_divide(xpl_samples_summary(&host_to_device).average, ip->step_time.average);
}

// Times on parallel threads do not add up to waiting time. The enqueuing is kept; the rest is
// scaled so that enqueuing has the same share of the sum as in the steps.
static void scale_times(const double us[N_KINDS], double ratio, struct xpl_input_time *ret) {
    const double total = us[KIND_DEMANDED_READ] + us[KIND_ADVANCED_READ] + us[KIND_PREPROCESSING];
    if (!(ratio < 1.0)) ratio = 1.0;
    const bool no_ratio = ratio <= 0 && ratio >= 0;
    const double rest = no_ratio ? total : us[KIND_ENQUEUE] * (1.0 - ratio) / ratio;
    ret->enqueue_us = us[KIND_ENQUEUE];
    ret->demanded_file_read_us = xpl_safe_divide(rest * us[KIND_DEMANDED_READ], total);
    ret->advanced_file_read_us = xpl_safe_divide(rest * us[KIND_ADVANCED_READ], total);
    ret->preprocessing_us = xpl_safe_divide(rest * us[KIND_PREPROCESSING], total);
    const double left =
        rest - ret->demanded_file_read_us - ret->advanced_file_read_us - ret->preprocessing_us;
    ret->unclassified_non_enqueue_us = left > 0 ? left : 0;
}

bool xpl_input_pipeline_host_ops(const struct xpl_op_metrics_db *host, struct xpl_arena *arena,
                                 struct xpl_input_pipeline *ip) {
    const struct xpl_op_metrics **sorted;
    size_t n;
    if (!xpl_op_metrics_sorted(host, SIZE_MAX, arena, &sorted, &n)) return false;
    double us[N_KINDS] = {0};
    for (size_t i = 0; i < n; i++) {
        enum input_kind kind;
        if (!classify(sorted[i], &kind)) continue;
        struct xpl_input_op *const op = xpl_vec_push(arena, &ip->input_ops);
        if (!op) return false;
        *op = (struct xpl_input_op){sorted[i], kKindNames[kind]};
        ip->input_ops_self_time_ps += sorted[i]->self_time_ps;
        us[kind] += (double)sorted[i]->self_time_ps / 1e6;
    }
    if (ip->input_ops.n) scale_times(us, host_to_device_ratio(host, ip), &ip->input_time);
    return true;
}
