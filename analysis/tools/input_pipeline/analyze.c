// SPDX-License-Identifier: Apache-2.0
// The analysis that input_pipeline_analyzer and overview_page show: steps, input ops, bottleneck.
#include "analysis/tools/input_pipeline/impl.h"

const char *xpl_input_pipeline_hardware_name(enum xpl_hardware h) {
    switch (h) {
        case XPL_HW_UNKNOWN: return "UNKNOWN_HARDWARE";
        case XPL_HW_CPU_ONLY: return "CPU_ONLY";
        case XPL_HW_GPU: return "GPU";
        case XPL_HW_TPU: return "TPU";
    }
    return "";
}

// A step takes as long as its slowest core.
static struct xpl_step_summary step_times(const struct xpl_step_db *db) {
    struct xpl_samples samples = XPL_SAMPLES_INIT;
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &db->step_sequence.v[i];
        uint64_t longest_ps = 0;
        for (size_t c = 0; c < step->step_info_per_core.n; c++) {
            const struct xpl_step_info *const info = &step->step_info_per_core.v[c];
            if (info->core_id < XPL_INPUT_SPARSE_CORE_START && info->duration_ps > longest_ps)
                longest_ps = info->duration_ps;
        }
        xpl_samples_add(&samples, xpl_ps_to_ms(longest_ps));
    }
    return xpl_samples_summary(&samples);
}

xpl_status_t xpl_input_pipeline_analyze(const struct xpl_opstats *s, struct xpl_arena *arena,
                                        struct xpl_input_pipeline *ret, struct xpl_error *err) {
    const enum xpl_hardware hardware = s->run_environment.hardware_type;
    struct xpl_input_pipeline ip = {
        .is_tpu = hardware == XPL_HW_TPU,
        .hardware_type = xpl_input_pipeline_hardware_name(hardware),
        .step_time = step_times(&s->step_db),
    };
    const bool ok = (ip.is_tpu ? xpl_input_pipeline_tpu_steps(s, arena, &ip)
                               : xpl_generic_steps(s, arena, &ip)) &&
                    xpl_input_pipeline_host_ops(&s->host_op_metrics_db, arena, &ip) &&
                    (ip.is_tpu ? xpl_bottleneck_tpu(&ip, arena, &ip.bottleneck)
                               : xpl_bottleneck_generic(&ip, arena, &ip.bottleneck));
    if (!ok) XPL_RETURN_OOM(err, "input pipeline analysis");
    ip.next_step = xpl_bottleneck_next_step(&ip.bottleneck, &ip.input_time);
    *ret = ip;
    return XPL_OK;
}
