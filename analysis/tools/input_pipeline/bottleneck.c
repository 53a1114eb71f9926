// SPDX-License-Identifier: Apache-2.0
// Bottlenecks from the steps' times: XProf's thresholds and sentences.
#include <string.h>

#include "analysis/tools/input_pipeline/impl.h"
#include "base/arena.h"

// Percent of the step time from which on a share is moderate or high.
static const double kModerateInput = 5, kHighInput = 20;
static const double kModerateOutput = 5, kHighOutput = 20;
static const double kModerateOther = 3, kHighOther = 15; // launches, collectives, all others

static bool put_sentence(struct xpl_arena *arena, xpl_str_t *ret, const char *before,
                         double percent, const char *after) {
    return xpl_arena_printf(arena, ret, "%s%s%s", before, xpl_digits(percent, 1).z, after);
}

// *ret_other_reported: the sentence is about "All Others" already.
static bool rate_input(double input, double all_other, struct xpl_arena *arena,
                       struct xpl_bottleneck *b, bool *ret_other_reported) {
    *ret_other_reported = false;
    if (input >= kHighInput) {
        b->input_class = "host";
        return put_sentence(
            arena, &b->input, "Your program is HIGHLY input-bound because ", input,
            "% of the total step time sampled is waiting for input. Therefore, you should "
            "first focus on reducing the input time.");
    }
    if (input >= kModerateInput) {
        b->input_class = "both";
        return put_sentence(
            arena, &b->input, "Your program is MODERATELY input-bound because ", input,
            "% of the total step time sampled is waiting for input. Therefore, you would "
            "need to reduce both the input time and other time.");
    }
    if (all_other >= kModerateOther) {
        b->input_class = "both";
        *ret_other_reported = true;
        return put_sentence(
            arena, &b->input, "Your program is POTENTIALLY input-bound because ", all_other,
            "% of the total step time sampled is spent on 'All Others' time (which could "
            "be due to I/O or Python execution or both).");
    }
    b->input_class = "device";
    return put_sentence(
        arena, &b->input, "Your program is NOT input-bound because only ", input,
        "% of the total step time sampled is waiting for input. Therefore, you should "
        "focus on reducing other time.");
}

static bool rate_output(double output, struct xpl_arena *arena, struct xpl_bottleneck *b) {
    if (output >= kHighOutput)
        return put_sentence(
            arena, &b->output, "Your program is HIGHLY output-bound because ", output,
            "% of the total step time sampled is spent on output. Therefore, you should "
            "first focus on reducing the output time.");
    if (output >= kModerateOutput)
        return put_sentence(
            arena, &b->output, "Your program is MODERATELY output-bound because ", output,
            "% of the total step time sampled is spent on output. Therefore, you would "
            "need to reduce both the output time and other time.");
    return true;
}

static bool rate_other(double percent, const char *sentence, struct xpl_arena *arena,
                       const char **ret_class, xpl_str_t *ret) {
    *ret_class = percent >= kHighOther ? "high" : percent >= kModerateOther ? "moderate" : "no";
    return !(percent >= kModerateOther) || put_sentence(arena, ret, "", percent, sentence);
}

static bool tf_data_in_use(const struct xpl_input_time *t) {
    return t->demanded_file_read_us > 0 || t->advanced_file_read_us > 0 || t->preprocessing_us > 0;
}

static struct xpl_bottleneck no_step_time(void) {
    return (struct xpl_bottleneck){
        .input_class = "unknown",
        .collectives_class = "no",
        .kernel_launch_class = "no",
        .all_other_class = "no",
        .input = XPL_STR("No step time measured. Therefore we cannot tell where the performance "
                         "bottleneck is."),
    };
}

bool xpl_bottleneck_generic(const struct xpl_input_pipeline *ip, struct xpl_arena *arena,
                            struct xpl_bottleneck *ret) {
    struct xpl_bottleneck b = {"", "", "", "", {"", 0}, {"", 0}, {"", 0}, {"", 0}, {"", 0}};
    double step = 0, input = 0, output = 0, prepare = 0, collectives = 0, unknown = 0;
    for (size_t i = 0; i < ip->generic_steps.n; i++) {
        const struct xpl_generic_step *const g = &ip->generic_steps.v[i];
        step += g->step_time;
        input += g->host_wait_input + g->host_to_device;
        output += g->output;
        prepare += g->host_prepare;
        collectives += g->device_collectives;
        unknown += g->unknown;
    }
    // A TPU's steps are not generic ones: then the sentence is empty.
    if (ip->tpu_steps.n) {
        *ret = b;
        return true;
    }
    if (!(step < 0) && !(step > 0)) {
        *ret = no_step_time();
        return true;
    }
    bool other_reported;
    const double other_percent = 100.0 * unknown / step;
    const char *const launches =
        tf_data_in_use(&ip->input_time)
            ? " % of the total step time sampled is spent on 'Kernel Launch'. It could be due to "
              "CPU contention with tf.data. In this case, you may try to set the environment "
              "variable TF_GPU_THREAD_MODE=gpu_private."
            : " % of the total step time sampled is spent on 'Kernel Launch'.";
    if (!rate_input(100.0 * input / step, other_percent, arena, &b, &other_reported) ||
        !rate_output(100.0 * output / step, arena, &b) ||
        !rate_other(100.0 * collectives / step,
                    " % of the total step time sampled is spent on 'Device Collective "
                    "Communication'.",
                    arena, &b.collectives_class, &b.collectives) ||
        !rate_other(100.0 * prepare / step, launches, arena, &b.kernel_launch_class,
                    &b.kernel_launch) ||
        !rate_other(other_reported ? 0 : other_percent,
                    " % of the total step time sampled is spent on 'All Others' time. This could "
                    "be due to Python execution overhead.",
                    arena, &b.all_other_class, &b.all_other))
        return false;
    *ret = b;
    return true;
}

bool xpl_bottleneck_tpu(const struct xpl_input_pipeline *ip, struct xpl_arena *arena,
                        struct xpl_bottleneck *ret) {
    double step = 0, input = 0, output = 0;
    for (size_t i = 0; i < ip->tpu_steps.n; i++) {
        const struct xpl_tpu_step *const t = &ip->tpu_steps.v[i];
        step += xpl_tpu_step_time(t);
        input += t->tc_infeed + t->scv0_infeed;
        output += t->tc_outfeed;
    }
    struct xpl_bottleneck b = no_step_time();
    if (step < 0 || step > 0) {
        bool other_reported;
        if (!rate_input(100.0 * input / step, 0, arena, &b, &other_reported) ||
            !rate_output(100.0 * output / step, arena, &b))
            return false;
    }
    *ret = b;
    return true;
}

const char *xpl_bottleneck_next_step(const struct xpl_bottleneck *b,
                                     const struct xpl_input_time *time) {
    if (strcmp(b->input_class, "host") != 0 && strcmp(b->input_class, "both") != 0)
        return "You may skip the rest of this page.";
    if (tf_data_in_use(time))
        return "Look at Section 3 for the breakdown of input time on the host.";
    return "Consider using <a href=\"https://www.tensorflow.org/guide/data\" target=\"_blank\">the "
           "tf.data API</a> to enable profiler's host-side analysis for input pipeline. Profiler "
           "currently does not support custom input pipeline (please ignore Section 3 below).";
}
