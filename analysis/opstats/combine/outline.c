// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/combine/outline.h"

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "base/hash.h"
#include "base/map.h"

// ParseHardwareType: whether a device_type text is "...GPU..." or "...TPU...".
static bool is_accelerator(xpl_str_t device_type) {
    return xpl_str_has(device_type, XPL_STR("GPU")) || xpl_str_has(device_type, XPL_STR("TPU"));
}

static bool has_ops(const struct xpl_op_metrics_db *db) {
    for (size_t i = 0; i < db->metrics_db.n; i++)
        if (!xpl_op_metrics_is_idle(&db->metrics_db.v[i])) return true;
    return false;
}

// Nothing happened there, as far as the profile shows.
static bool is_idle(const struct xpl_opstats *s) {
    return s->step_db.step_sequence.n == 0 && !has_ops(&s->host_op_metrics_db) &&
           !has_ops(&s->device_op_metrics_db);
}

static struct xpl_timespan step_span(const struct xpl_per_core_step_info *s) {
    const size_t n = s->step_info_per_core.n;
    uint64_t lo = UINT64_MAX, hi = 0;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_step_info *const c = &s->step_info_per_core.v[i];
        const uint64_t end = c->begin_ps + c->duration_ps;
        if (n == 1)
            return (struct xpl_timespan){c->begin_ps, end < c->begin_ps ? 0 : c->duration_ps};
        if (c->begin_ps < lo) lo = c->begin_ps;
        if (end > hi) hi = end;
    }
    return lo < hi ? (struct xpl_timespan){lo, hi - lo} : (struct xpl_timespan){0};
}

size_t xpl_host_outline_size(const struct xpl_opstats *s) {
    return sizeof(struct xpl_host_outline) +
           s->step_db.step_sequence.n *
               (sizeof(struct xpl_timespan) + sizeof(struct xpl_step_sizes) + sizeof(uint64_t));
}

// False when the program gave the step no number.
static bool key_of(const struct xpl_per_core_step_info *s, uint64_t *ret) {
    int64_t number;
    size_t at;
    if (!s->step_info_per_core.n) return false;
    const xpl_str_t name = s->step_info_per_core.v[0].step_name;
    if (!xpl_step_read_number(name, &number, &at)) return false;
    const uint64_t series = xpl_hash_str(xpl_hash_seed(), xpl_step_series(name));
    *ret = series << 32 | (uint32_t)number;
    return true;
}

struct xpl_host_outline *xpl_host_outline_put(const struct xpl_opstats *s, void *at) {
    struct xpl_host_outline *const o = at;
    const size_t n = s->step_db.step_sequence.n;
    struct xpl_timespan *const spans = (void *)(o + 1);
    uint64_t *const keys = (void *)(spans + n);
    struct xpl_step_sizes *const sizes = (void *)(keys + n);
    bool has_keys = n;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_per_core_step_info *const step = &s->step_db.step_sequence.v[i];
        spans[i] = step_span(step);
        has_keys &= key_of(step, &keys[i]);
        sizes[i] = (struct xpl_step_sizes){(uint32_t)step->step_info_per_core.n,
                                           (uint32_t)step->all_reduce_db_per_core.n,
                                           (uint32_t)step->core_id_to_replica_id_map.n};
    }
    *o = (struct xpl_host_outline){.idle = is_idle(s),
                                   .accelerated = is_accelerator(s->run_environment.device_type),
                                   .n_steps = n,
                                   .spans = spans,
                                   .sizes = sizes,
                                   .keys = has_keys ? keys : NULL};
    return o;
}
