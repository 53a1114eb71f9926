// SPDX-License-Identifier: Apache-2.0
// Steps on TPUs: every core has a separate breakdown, by HLO category; a step's row has the
// maximum, minimum or average over the cores, field by field. XProf:
// ComputeTpuPerStepDataAcrossCores, and convert/profile_time_breakdown.{h,cc}.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/tools/input_pipeline/impl.h"
#include "base/arena.h"
#include "base/map.h"

static uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static uint64_t left_of(uint64_t whole, uint64_t part) {
    return whole > part ? whole - part : 0;
}

// ---- a core's categories into the fields of a TPU's breakdown ----

static uint64_t category_ps(const struct xpl_step_info *info, xpl_str_t category) {
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (xpl_str_eq(info->category_ps.v[i].category, category)) return info->category_ps.v[i].ps;
    return 0;
}

// Time not in any category is idle time; the IDLE category itself is ignored.  Only the fields
// that the table needs are filled.
static struct xpl_tpu_step_breakdown from_categories(const struct xpl_step_info *info) {
    uint64_t total = 0;
    for (size_t i = 0; i < info->category_ps.n; i++)
        if (!xpl_str_eq(info->category_ps.v[i].category, XPL_STR("IDLE")))
            total += info->category_ps.v[i].ps;
    // The TensorCore waits in a SparseCoreV0 infeed for as long as that lasts longer than the
    // outfeed, which does the same transformation.
    const uint64_t scv0_infeed = category_ps(info, XPL_STR("sparsecorev0 infeed"));
    const uint64_t scv0_outfeed = category_ps(info, XPL_STR("sparsecorev0 outfeed"));
    const uint64_t transform = scv0_infeed
                                   ? min_u64(scv0_infeed, scv0_outfeed)
                                   : category_ps(info, XPL_STR("sparsecorev0 infeed transform"));
    const uint64_t wait = scv0_infeed ? scv0_infeed - transform
                                      : category_ps(info, XPL_STR("sparsecorev0 infeed wait"));
    struct xpl_tpu_step_breakdown b = {
        .infeed_duration_ps = category_ps(info, XPL_STR("infeed")),
        .host_outfeed_ps = category_ps(info, XPL_STR("outfeed")),
        .wait_for_scv0_duration_ps = wait,
        .scv0_infeed_transform_ps = transform,
        .scv0_outfeed_ps = scv0_outfeed,
        .host_send_duration_ps =
            category_ps(info, XPL_STR("host send")) + category_ps(info, XPL_STR("host send-done")),
        .host_recv_duration_ps =
            category_ps(info, XPL_STR("host recv")) + category_ps(info, XPL_STR("host recv-done")),
        .tc_idle_ps = info->duration_ps - total,
    };
    const uint64_t off_duty = b.tc_idle_ps + b.infeed_duration_ps + b.host_outfeed_ps +
                              b.host_send_duration_ps + b.host_recv_duration_ps +
                              category_ps(info, XPL_STR("async-done")) +
                              category_ps(info, XPL_STR("megacore fusion"));
    b.tc_busy_ps = info->duration_ps - off_duty - wait;
    return b;
}

// ---- sums of a breakdown's fields (utils/tpu_step_breakdown_utils.h) ----

static uint64_t scv0_infeed_ps(const struct xpl_tpu_step_breakdown *b) {
    return xpl_to_u64((double)b->wait_for_scv0_duration_ps * b->scv0_infeed_percent / 100.0);
}
static uint64_t host_send_recv_ps(const struct xpl_tpu_step_breakdown *b) {
    return b->host_send_duration_ps + b->host_recv_duration_ps;
}
static uint64_t wait_for_host_or_scv0_ps(const struct xpl_tpu_step_breakdown *b) {
    return b->infeed_duration_ps + b->host_outfeed_ps + host_send_recv_ps(b) + b->tc_idle_ps +
           b->wait_for_scv0_duration_ps;
}

// ---- all-reduce: the fastest core shows the computing, the rest waits for others ----

struct all_reduce {
    uint64_t compute_ps, sync_ps;
};

// Shortest time of each all-reduce id over all cores.
static bool shortest_by_id(const struct xpl_per_core_step_info *step, struct xpl_arena *arena,
                           struct xpl_map *ret) {
    for (size_t c = 0; c < step->all_reduce_db_per_core.n; c++) {
        const struct xpl_all_reduce_db *const db = &step->all_reduce_db_per_core.v[c];
        for (size_t i = 0; i < db->all_reduce_info.n; i++) {
            const struct xpl_all_reduce_info *const a = &db->all_reduce_info.v[i];
            const uint64_t ps = a->end_time_ps - a->start_time_ps;
            bool is_new;
            uint64_t *const shortest = xpl_map_put(arena, ret, a->id, 0, &is_new);
            if (!shortest) return false;
            if (is_new || ps < *shortest) *shortest = ps;
        }
    }
    return true;
}

// Called for cores in ascending order; *cursor is the position, 0 at first.
static struct all_reduce all_reduce_of_core(const struct xpl_per_core_step_info *step,
                                            const struct xpl_map *shortest, uint32_t core_id,
                                            size_t *cursor) {
    struct all_reduce sum = {0};
    while (*cursor < step->all_reduce_db_per_core.n &&
           step->all_reduce_db_per_core.v[*cursor].core_id < core_id)
        ++*cursor;
    if (*cursor == step->all_reduce_db_per_core.n) return sum;
    const struct xpl_all_reduce_db *const db = &step->all_reduce_db_per_core.v[*cursor];
    if (db->core_id != core_id) return sum;
    for (size_t i = 0; i < db->all_reduce_info.n; i++) {
        const struct xpl_all_reduce_info *const a = &db->all_reduce_info.v[i];
        const uint64_t *const known = xpl_map_get(shortest, a->id, 0);
        const uint64_t computing = known ? *known : 0;
        sum.compute_ps += computing;
        sum.sync_ps += a->end_time_ps - a->start_time_ps - computing;
    }
    return sum;
}

// ---- a step over all its cores ----

// Samples and extremes over the cores of one step.
struct across_cores {
    struct xpl_samples infeed_percent;
    struct xpl_ps_samples step, optimal_step, outfeed, host_transfer, busy;
    struct xpl_ps_samples sc_step, sc_compute, sc_infeed, sc_outfeed, sc_idle, sc_busy;
    uint64_t scv0_infeed_ps, scv0_compute_ps; // of the core that waits longest for SparseCoreV0
    struct all_reduce all_reduce;             // of the core where it lasts longest
    uint64_t max_infeed_ps;
    const struct xpl_step_info *max_infeed_core;
};

static struct across_cores across_cores_init(void) {
    const struct xpl_ps_samples none = XPL_PS_SAMPLES_INIT;
    return (struct across_cores){
        .infeed_percent = XPL_SAMPLES_INIT,
        .step = none,
        .optimal_step = none,
        .outfeed = none,
        .host_transfer = none,
        .busy = none,
        .sc_step = none,
        .sc_compute = none,
        .sc_infeed = none,
        .sc_outfeed = none,
        .sc_idle = none,
        .sc_busy = none,
    };
}

static bool is_off_duty(xpl_str_t category) {
    static const char *const kOffDuty[] = {"host send",      "host send-done", "host recv",
                                           "host recv-done", "async-done",     "megacore fusion"};
    for (size_t i = 0; i < sizeof kOffDuty / sizeof *kOffDuty; i++)
        if (xpl_str_eq(category, xpl_str_from(kOffDuty[i]))) return true;
    return false;
}

// Computing is the rest of the step, or the sum of the categories if that is more.
static struct xpl_sparse_core_step_breakdown
sparse_from_categories(const struct xpl_step_info *info) {
    const uint64_t step = info->duration_ps;
    struct xpl_sparse_core_step_breakdown b = {0};
    for (size_t i = 0; i < info->category_ps.n; i++) {
        const struct xpl_category_ps *const c = &info->category_ps.v[i];
        if (xpl_str_eq(c->category, XPL_STR("infeed")))
            b.sc_infeed_ps += c->ps;
        else if (xpl_str_eq(c->category, XPL_STR("outfeed")))
            b.sc_outfeed_ps += c->ps;
        else if (xpl_str_eq(c->category, XPL_STR("IDLE")) || is_off_duty(c->category))
            b.sc_idle_ps += c->ps;
        else
            b.sc_compute_ps += c->ps;
    }
    b.sc_idle_ps = min_u64(b.sc_idle_ps, step);
    const uint64_t rest = left_of(step, b.sc_infeed_ps + b.sc_outfeed_ps + b.sc_idle_ps);
    b.sc_compute_ps = min_u64(b.sc_compute_ps > rest ? b.sc_compute_ps : rest, step);
    b.sc_busy_ps = b.sc_compute_ps;
    return b;
}

static void add_sparse_core(struct across_cores *a, const struct xpl_step_info *info) {
    const uint64_t step = info->duration_ps;
    struct xpl_sparse_core_step_breakdown b;
    if (info->breakdown == XPL_BREAKDOWN_GENERIC) {
        b = sparse_from_categories(info);
    } else { // its own compute time is ignored
        b = *info->sparse;
        b.sc_compute_ps = left_of(step, b.sc_infeed_ps + b.sc_outfeed_ps + b.sc_idle_ps);
        b.sc_busy_ps = min_u64(b.sc_busy_ps, step);
    }
    xpl_ps_samples_add(&a->sc_step, step);
    xpl_ps_samples_add(&a->sc_compute, b.sc_compute_ps);
    xpl_ps_samples_add(&a->sc_infeed, b.sc_infeed_ps);
    xpl_ps_samples_add(&a->sc_outfeed, b.sc_outfeed_ps);
    xpl_ps_samples_add(&a->sc_idle, b.sc_idle_ps);
    xpl_ps_samples_add(&a->sc_busy, b.sc_busy_ps);
}

static void add_tensor_core(struct across_cores *a, const struct xpl_step_info *info,
                            const struct xpl_tpu_step_breakdown *b,
                            const struct all_reduce *all_reduce) {
    xpl_ps_samples_add(&a->step, info->duration_ps);
    if (b->wait_for_scv0_duration_ps > a->scv0_infeed_ps + a->scv0_compute_ps) {
        a->scv0_infeed_ps = scv0_infeed_ps(b);
        a->scv0_compute_ps = b->wait_for_scv0_duration_ps - a->scv0_infeed_ps;
    }
    xpl_ps_samples_add(&a->outfeed, b->host_outfeed_ps);
    if (all_reduce->compute_ps + all_reduce->sync_ps >
        a->all_reduce.compute_ps + a->all_reduce.sync_ps)
        a->all_reduce = *all_reduce;
    const double infeed_ps = (double)(b->infeed_duration_ps + scv0_infeed_ps(b));
    xpl_samples_add(&a->infeed_percent,
                    100.0 * xpl_safe_divide(infeed_ps, (double)info->duration_ps));
    xpl_ps_samples_add(&a->optimal_step, left_of(info->duration_ps, wait_for_host_or_scv0_ps(b)));
    xpl_ps_samples_add(&a->host_transfer, host_send_recv_ps(b));
    xpl_ps_samples_add(&a->busy, min_u64(b->tc_busy_ps, info->duration_ps));
    if (b->infeed_duration_ps > a->max_infeed_ps) {
        a->max_infeed_ps = b->infeed_duration_ps;
        a->max_infeed_core = info;
    }
}

static const struct xpl_core_details *find_core(const struct xpl_opstats *s, uint32_t core_id) {
    size_t lo = 0, hi = s->core_id_to_details.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct xpl_core_details *const d = &s->core_id_to_details.v[mid];
        if (d->core_id == core_id) return d;
        if (d->core_id < core_id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

// "host:ordinal"; "" for a core without details.
static bool core_name(const struct xpl_opstats *s, uint32_t core_id, struct xpl_arena *arena,
                      xpl_str_t *ret) {
    const struct xpl_core_details *const d = find_core(s, core_id);
    if (!d) return true;
    char ordinal[16];
    const int n = snprintf(ordinal, sizeof ordinal, ":%" PRIu32, d->device_ordinal);
    char *const name = xpl_arena_alloc(arena, d->hostname.len + (size_t)n);
    if (!name) return false;
    if (d->hostname.len) memcpy(name, d->hostname.ptr, d->hostname.len);
    memcpy(name + d->hostname.len, ordinal, (size_t)n);
    *ret = (xpl_str_t){name, d->hostname.len + (size_t)n};
    return true;
}

static bool summarize_step(const struct xpl_opstats *s, const struct across_cores *a,
                           struct xpl_arena *arena, struct xpl_tpu_step *t) {
    if (a->step.count) {
        t->tc_outfeed = xpl_ps_to_ms(xpl_ps_samples_average(&a->outfeed));
        t->tc_compute = xpl_ps_to_ms(a->optimal_step.min);
        t->host_transfer = xpl_ps_to_ms(a->host_transfer.max);
        t->tc_active = xpl_ps_to_ms(xpl_ps_samples_average(&a->busy));
        t->infeed_percent_average = a->infeed_percent.sum / (double)a->infeed_percent.count;
        t->infeed_percent_minimum = a->infeed_percent.min;
        t->infeed_percent_maximum = a->infeed_percent.max;
    }
    t->tc_infeed = xpl_ps_to_ms(a->max_infeed_ps);
    t->scv0_compute = xpl_ps_to_ms(a->scv0_compute_ps);
    t->scv0_infeed = xpl_ps_to_ms(a->scv0_infeed_ps);
    // Idle is what the shortest step has left; the all-reduce is not known yet at this point.
    if (a->step.count) t->tc_idle = xpl_ps_to_ms(a->step.min) - xpl_tpu_step_busy_time(t);
    if (t->tc_idle < 0) t->tc_idle = 0;
    t->all_reduce_compute = xpl_ps_to_ms(a->all_reduce.compute_ps);
    t->all_reduce_sync = xpl_ps_to_ms(a->all_reduce.sync_ps);
    if (a->sc_step.count) {
        t->sc_infeed = xpl_ps_to_ms(xpl_ps_samples_average(&a->sc_infeed));
        t->sc_outfeed = xpl_ps_to_ms(xpl_ps_samples_average(&a->sc_outfeed));
        t->sc_compute = xpl_ps_to_ms(a->sc_compute.min);
        t->sc_idle = xpl_ps_to_ms(xpl_ps_samples_average(&a->sc_idle));
        t->sc_step_time = xpl_ps_to_ms(xpl_ps_samples_average(&a->sc_step));
        t->sc_active = xpl_ps_to_ms(xpl_ps_samples_average(&a->sc_busy));
    }
    return !a->max_infeed_core ||
           core_name(s, a->max_infeed_core->core_id, arena, &t->max_infeed_core_name);
}

static bool fill_step(const struct xpl_opstats *s, const struct xpl_per_core_step_info *step,
                      struct xpl_arena *arena, struct xpl_tpu_step *t) {
    *t = (struct xpl_tpu_step){.step_number = -1};
    struct xpl_map shortest = {0};
    if (!shortest_by_id(step, arena, &shortest)) return false;
    struct across_cores a = across_cores_init();
    size_t cursor = 0;
    for (size_t c = 0; c < step->step_info_per_core.n; c++) {
        const struct xpl_step_info *const info = &step->step_info_per_core.v[c];
        if (t->step_number < 0) t->step_number = (int32_t)info->step_num;
        if (info->breakdown == XPL_BREAKDOWN_NONE) return true; // unreadable: the rest stays 0
        if (info->breakdown == XPL_BREAKDOWN_SPARSE_CORE ||
            (info->breakdown == XPL_BREAKDOWN_GENERIC &&
             info->core_id >= XPL_INPUT_SPARSE_CORE_START)) {
            add_sparse_core(&a, info);
            continue;
        }
        const struct xpl_tpu_step_breakdown b =
            info->breakdown == XPL_BREAKDOWN_TPU ? *info->tpu : from_categories(info);
        const struct all_reduce all_reduce =
            all_reduce_of_core(step, &shortest, info->core_id, &cursor);
        add_tensor_core(&a, info, &b, &all_reduce);
    }
    return summarize_step(s, &a, arena, t);
}

static void average_steps(struct xpl_input_pipeline *ip) {
    double sum[XPL_TPU_AVERAGES] = {0};
    for (size_t i = 0; i < ip->tpu_steps.n; i++) {
        const struct xpl_tpu_step *const t = &ip->tpu_steps.v[i];
        sum[XPL_TPU_TC_COMPUTE] += t->tc_compute;
        sum[XPL_TPU_TC_INFEED] += t->tc_infeed;
        sum[XPL_TPU_TC_OUTFEED] += t->tc_outfeed;
        sum[XPL_TPU_TC_IDLE] += t->tc_idle;
        sum[XPL_TPU_TC_ACTIVE] += t->tc_active;
        sum[XPL_TPU_HOST_TRANSFER] += t->host_transfer;
        sum[XPL_TPU_ACTIVE_STEP] += t->tc_active < t->sc_active ? t->sc_active : t->tc_active;
        sum[XPL_TPU_SCV0_COMPUTE] += t->scv0_compute;
        sum[XPL_TPU_SCV0_INFEED] += t->scv0_infeed;
        sum[XPL_TPU_SC_COMPUTE] += t->sc_compute;
        sum[XPL_TPU_SC_INFEED] += t->sc_infeed;
        sum[XPL_TPU_SC_OUTFEED] += t->sc_outfeed;
        sum[XPL_TPU_SC_IDLE] += t->sc_idle;
        sum[XPL_TPU_SC_ACTIVE] += t->sc_active;
        sum[XPL_TPU_SC_STEP_TIME] += t->sc_step_time;
    }
    for (size_t c = 0; c < XPL_TPU_AVERAGES && ip->tpu_steps.n; c++)
        ip->tpu_averages[c] = sum[c] / (double)ip->tpu_steps.n;
}

bool xpl_input_pipeline_tpu_steps(const struct xpl_opstats *s, struct xpl_arena *arena,
                                  struct xpl_input_pipeline *ip) {
    for (size_t i = 0; i < s->core_id_to_details.n; i++)
        ip->has_sparse_core |= s->core_id_to_details.v[i].is_sparse_core;
    struct xpl_samples percent = XPL_SAMPLES_INIT;
    const size_t n = s->step_db.step_sequence.n;
    if (n && !xpl_vec_reserve(arena, &ip->tpu_steps, n)) return false;
    for (size_t i = 0; i < n; i++) {
        struct xpl_tpu_step *const t = &ip->tpu_steps.v[ip->tpu_steps.n++];
        if (!fill_step(s, &s->step_db.step_sequence.v[i], arena, t)) return false;
        xpl_samples_add(&percent, t->infeed_percent_maximum);
        ip->has_sparse_core |= t->sc_step_time > 0;
    }
    ip->input_percent = xpl_samples_summary(&percent);
    average_steps(ip);
    return true;
}
