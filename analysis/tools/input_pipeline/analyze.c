// SPDX-License-Identifier: Apache-2.0
// The analysis that input_pipeline_analyzer and overview_page show: steps, input ops, bottleneck.
#include "analysis/opstats/steps/step_db.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/input_pipeline/impl.h"
#include "analysis/tools/tool.h"
#include "base/arena.h"

const char *xpl_input_pipeline_hardware_name(enum xpl_hardware h) {
    switch (h) {
        case XPL_HW_UNKNOWN: return "UNKNOWN_HARDWARE";
        case XPL_HW_CPU_ONLY: return "CPU_ONLY";
        case XPL_HW_GPU: return "GPU";
        case XPL_HW_TPU: return "TPU";
    }
    return "";
}

// ---- step times ----

// Series beyond these count as the last one.
enum { MAX_SERIES = 8 };

struct series {
    xpl_str_t name;
    struct xpl_samples samples;
    size_t n;
    double ms;
};

static xpl_str_t name_of(const struct xpl_per_core_step_info *step) {
    for (size_t c = 0; c < step->step_info_per_core.n; c++)
        if (step->step_info_per_core.v[c].step_name.len)
            return step->step_info_per_core.v[c].step_name;
    return XPL_STR("");
}

static bool say_series(const struct series *v, size_t n, struct xpl_arena *arena, xpl_str_t *ret) {
    for (size_t i = 0; i < n; i++)
        if (!xpl_arena_printf(arena, ret, "%.*s%s%.*s: %zu of %.2f ms", XPL_STR_FMT(*ret),
                              i ? ", " : "", XPL_STR_FMT(v[i].name), v[i].n,
                              v[i].ms / (double)v[i].n))
            return false;
    return true;
}

// XProf averages all steps, of each its slowest core; others are those of the series with most
// steps, or with most time, on the core that is the slowest in total.  Where a CPU shall be no
// device, its steps are XProf's.
static bool find_step_times(const struct xpl_step_db *db, const struct xpl_common_options *o,
                            struct xpl_arena *arena, struct xpl_input_pipeline *ip) {
    struct series v[MAX_SERIES];
    size_t n = 0, best = 0;
    uint32_t core = UINT32_MAX;
    if (o->cpu_as_device && !xpl_steps_slowest_core(db, arena, &core)) return false;
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &db->step_sequence.v[i];
        const double ms = xpl_ps_to_ms(xpl_step_ps_on(step, core));
        const xpl_str_t series = o->xprof_exact ? XPL_STR("") : xpl_step_series(name_of(step));
        size_t at = 0;
        while (at < n && !xpl_str_eq(v[at].name, series))
            at++;
        if (at == MAX_SERIES) at--;
        if (at == n) v[n++] = (struct series){.name = series, .samples = XPL_SAMPLES_INIT};
        xpl_samples_add(&v[at].samples, ms);
        v[at].n++;
        v[at].ms += ms;
    }
    for (size_t i = 1; i < n; i++)
        if (v[i].n > v[best].n || (v[i].n == v[best].n && v[i].ms > v[best].ms)) best = i;
    const struct xpl_samples none = XPL_SAMPLES_INIT;
    ip->step_time = xpl_samples_summary(n ? &v[best].samples : &none);
    ip->series = XPL_STR("");
    return n < 2 || say_series(v, n, arena, &ip->series);
}

xpl_status_t xpl_input_pipeline_analyze(const struct xpl_opstats *s, const void *options,
                                        struct xpl_arena *arena, struct xpl_input_pipeline *ret,
                                        struct xpl_error *err) {
    const struct xpl_common_options *const common = options;
    const enum xpl_hardware hardware = s->run_environment.hardware_type;
    struct xpl_input_pipeline ip = {
        .is_tpu = hardware == XPL_HW_TPU,
        .hardware_type = xpl_input_pipeline_hardware_name(hardware),
    };
    const bool ok = find_step_times(&s->step_db, common, arena, &ip) &&
                    (ip.is_tpu ? xpl_input_pipeline_tpu_steps(s, arena, &ip)
                               : xpl_generic_steps(s, arena, &ip)) &&
                    xpl_input_pipeline_host_ops(&s->host_op_metrics_db, arena, &ip) &&
                    (ip.is_tpu ? xpl_bottleneck_tpu(&ip, arena, &ip.bottleneck)
                               : xpl_bottleneck_generic(&ip, arena, &ip.bottleneck));
    if (!ok) XPL_RETURN_OOM(err, "input pipeline analysis");
    ip.next_step = xpl_bottleneck_next_step(&ip.bottleneck, &ip.input_time);
    *ret = ip;
    return XPL_OK;
}
