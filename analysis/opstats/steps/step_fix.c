// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/step_fix.h"

#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"

static bool has_infeed(const struct xpl_op_metrics_db *ops) {
    for (size_t i = 0; i < ops->metrics_db.n; i++) {
        const xpl_str_t category = ops->metrics_db.v[i].category;
        if (xpl_str_eq(category, XPL_STR("infeed")) ||
            xpl_str_eq(category, XPL_STR("sparsecorev0 infeed")))
            return true;
    }
    return false;
}

static uint64_t category_ps(const struct xpl_step_info *info, xpl_str_t category) {
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (xpl_str_eq(info->category_ps.v[i].category, category)) return info->category_ps.v[i].ps;
    return 0;
}

// The shape of a step over its TensorCores.
struct across {
    uint64_t n, shortest, least_compute, most_infeed, outfeed_sum, most_scv0_wait;
};

static void add_core(struct across *a, const struct xpl_step_info *info) {
    uint64_t busy = 0;
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (!xpl_str_eq(info->category_ps.v[i].category, XPL_IDLE_OP))
            busy += info->category_ps.v[i].ps;
    const uint64_t idle = info->duration_ps - busy;
    const uint64_t infeed = category_ps(info, XPL_STR("infeed"));
    const uint64_t outfeed = category_ps(info, XPL_STR("outfeed"));
    const uint64_t host =
        category_ps(info, XPL_STR("host send")) + category_ps(info, XPL_STR("host send-done")) +
        category_ps(info, XPL_STR("host recv")) + category_ps(info, XPL_STR("host recv-done"));
    // A SparseCoreV0 infeed waits for as long as it takes longer than the outfeed; without one (and
    // the caller made sure of that on the whole) the wait has a separate category.
    const uint64_t scv0 = category_ps(info, XPL_STR("sparsecorev0 infeed"));
    const uint64_t scv0_out = category_ps(info, XPL_STR("sparsecorev0 outfeed"));
    const uint64_t wait = scv0 ? scv0 - (scv0 < scv0_out ? scv0 : scv0_out)
                               : category_ps(info, XPL_STR("sparsecorev0 infeed wait"));
    const uint64_t waiting = infeed + outfeed + host + idle + wait; // wraps where ops overlap
    const uint64_t compute = info->duration_ps > waiting ? info->duration_ps - waiting : 0;
    if (a->n == 0 || info->duration_ps < a->shortest) a->shortest = info->duration_ps;
    if (a->n == 0 || compute < a->least_compute) a->least_compute = compute;
    if (infeed > a->most_infeed) a->most_infeed = infeed;
    if (wait > a->most_scv0_wait) a->most_scv0_wait = wait;
    a->outfeed_sum += outfeed;
    a->n++;
}

static double to_ms(uint64_t ps) {
    return (double)ps / 1e9;
}

static uint64_t to_u64(double v) {
    if (!(v > 0)) return 0;
    return v < 18446744073709551616.0 ? (uint64_t)v : UINT64_MAX;
}

static double idle_ms(const struct xpl_per_core_step_info *step) {
    struct across a = {0};
    for (size_t i = 0; i < step->step_info_per_core.n; i++)
        if (step->step_info_per_core.v[i].core_id < XPL_SPARSE_CORE_INDEX_START)
            add_core(&a, &step->step_info_per_core.v[i]);
    if (a.n == 0) return 0;
    const double busy = to_ms(a.least_compute) + to_ms(a.most_scv0_wait) + to_ms(a.most_infeed) +
                        to_ms(to_u64((double)a.outfeed_sum / (double)a.n));
    const double idle = to_ms(a.shortest) - busy;
    return idle > 0 ? idle : 0;
}

// The entry of that category, added in its place when absent.
static struct xpl_category_ps *put_category(struct xpl_step_info *info, xpl_str_t category,
                                            struct xpl_arena *result) {
    size_t i = 0;
    while (i < info->category_ps.n && xpl_str_cmp(info->category_ps.v[i].category, category) < 0)
        i++;
    if (i < info->category_ps.n && xpl_str_eq(info->category_ps.v[i].category, category))
        return &info->category_ps.v[i];
    if (!xpl_vec_push(result, &info->category_ps)) return NULL;
    for (size_t k = info->category_ps.n - 1; k > i; k--)
        info->category_ps.v[k] = info->category_ps.v[k - 1];
    info->category_ps.v[i] = (struct xpl_category_ps){category, 0};
    return &info->category_ps.v[i];
}

static bool fix_step(struct xpl_per_core_step_info *step, uint64_t input_ps,
                     struct xpl_arena *result) {
    const double idle = idle_ms(step);
    double share = idle < 1e-10 ? 0.0 : to_ms(input_ps) / idle;
    if (share > 1) share = 1;
    for (size_t i = 0; i < step->step_info_per_core.n; i++) {
        struct xpl_step_info *info = &step->step_info_per_core.v[i];
        if (info->core_id >= XPL_SPARSE_CORE_INDEX_START) continue;
        const uint64_t idle_ps = category_ps(info, XPL_IDLE_OP);
        if (idle_ps == 0) continue;
        const uint64_t moved = to_u64((double)idle_ps * share);
        struct xpl_category_ps *infeed = put_category(info, XPL_STR("infeed"), result);
        if (!infeed) return false;
        infeed->ps = moved;
        put_category(info, XPL_IDLE_OP, result)->ps = idle_ps - moved;
    }
    return true;
}

bool xpl_steps_fix_tpu(const struct xpl_steps *host, const struct xpl_op_metrics_db *device_ops,
                       struct xpl_step_db *db, struct xpl_arena *result) {
    if (has_infeed(device_ops)) return true;
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        struct xpl_per_core_step_info *step = &db->step_sequence.v[i];
        const struct xpl_step *st = xpl_steps_find(host, step->step_num);
        if (st && st->input_ps && !fix_step(step, st->input_ps, result)) return false;
    }
    return true;
}
