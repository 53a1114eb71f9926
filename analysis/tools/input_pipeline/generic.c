// SPDX-License-Identifier: Apache-2.0
// Steps on GPUs and CPUs: one core's breakdown by event type is the step's.
#include <inttypes.h>

#include "analysis/tools/input_pipeline/impl.h"
#include "base/arena.h"

// Event types of a step breakdown (message GenericStepBreakdown, enum EventType of event_span.h);
// their numbers are part of the format.
enum event_type {
    EV_UNKNOWN_TIME = 0,
    EV_HOST_COMPUTE = 10,
    EV_HOST_COMPILE = 60,
    EV_HOST_TO_DEVICE = 80,
    EV_HOST_PREPARE = 90,
    EV_DEVICE_COLLECTIVES = 100,
    EV_HOST_WAIT_INPUT = 110,
    EV_DEVICE_TO_DEVICE = 120,
    EV_DEVICE_TO_HOST = 130,
    EV_DEVICE_COMPUTE_32 = 140,
    EV_DEVICE_COMPUTE_16 = 150,
    EV_DEVICE_WAIT_DEVICE = 160,
    EV_DEVICE_WAIT_HOST = 170,
};

// The core of steps without cores.
enum { GENERIC_CORE_ID = 1 };

static double type_ms(const struct xpl_step_info *info, enum event_type type) {
    for (size_t i = 0; i < info->type_ps.n; i++)
        if (info->type_ps.v[i].type == (int32_t)type) return xpl_ps_to_ms(info->type_ps.v[i].ps);
    return 0;
}

static bool fill_step(const struct xpl_step_info *info, struct xpl_arena *arena,
                      struct xpl_generic_step *ret) {
    *ret = (struct xpl_generic_step){
        .name = info->step_name,
        .step_time = xpl_ps_to_ms(info->duration_ps),
        .unknown = type_ms(info, EV_UNKNOWN_TIME),
        .host_wait_input = type_ms(info, EV_HOST_WAIT_INPUT),
        .host_to_device = type_ms(info, EV_HOST_TO_DEVICE) + type_ms(info, EV_DEVICE_WAIT_HOST),
        .output = type_ms(info, EV_DEVICE_TO_HOST),
        .device_compute = type_ms(info, EV_DEVICE_COMPUTE_16) + type_ms(info, EV_DEVICE_COMPUTE_32),
        .device_to_device =
            type_ms(info, EV_DEVICE_TO_DEVICE) + type_ms(info, EV_DEVICE_WAIT_DEVICE),
        .device_collectives = type_ms(info, EV_DEVICE_COLLECTIVES),
        .host_compute = type_ms(info, EV_HOST_COMPUTE),
        .host_prepare = type_ms(info, EV_HOST_PREPARE),
        .host_compile = type_ms(info, EV_HOST_COMPILE),
    };
    return info->step_name.len || xpl_arena_printf(arena, &ret->name, "%" PRIu32, info->step_num);
}

bool xpl_generic_steps(const struct xpl_opstats *s, struct xpl_arena *arena,
                       struct xpl_input_pipeline *ip) {
    struct xpl_samples percent = XPL_SAMPLES_INIT;
    for (size_t i = 0; i < s->step_db.step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &s->step_db.step_sequence.v[i];
        const struct xpl_step_info *info = NULL;
        for (size_t c = 0; c < step->step_info_per_core.n && !info; c++)
            if (step->step_info_per_core.v[c].core_id == GENERIC_CORE_ID)
                info = &step->step_info_per_core.v[c];
        if (!info) continue;
        if (info->breakdown == XPL_BREAKDOWN_TPU || info->breakdown == XPL_BREAKDOWN_SPARSE_CORE) {
            ip->unreadable = true;
            ip->generic_steps.n = 0;
            ip->step_time = (struct xpl_step_summary){0};
            return true;
        }
        struct xpl_generic_step *const g = xpl_vec_push(arena, &ip->generic_steps);
        if (!g || !fill_step(info, arena, g)) return false;
        xpl_samples_add(&percent, 100.0 * xpl_safe_divide(g->host_wait_input + g->host_to_device,
                                                          g->step_time));
    }
    ip->input_percent = xpl_samples_summary(&percent);
    return true;
}
