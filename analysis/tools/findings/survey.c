// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/products/values.h"
#include "analysis/tools/findings/findings.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"

static size_t count_devices(const struct xpl_tool_input *in) {
    size_t n = 0;
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        const struct xpl_time_breakdown_value *const v = h->products ? h->products[0] : NULL;
        if (v) n += v->breakdown->devices.n;
    }
    return n;
}

static void add_device(struct xpl_survey *s, struct xpl_survey_device d,
                       const struct xpl_time_sums *sums, enum xpl_device_kind kind) {
    d.wall_ps = (double)sums->wall_ps;
    s->wall_ps += d.wall_ps;
    for (int c = 0; c < XPL_TIME_CAUSES; c++) {
        d.ps[c] = (double)sums->ps[c];
        s->ps[c] += d.ps[c];
    }
    s->is_cpu &= kind == XPL_DEVICE_CPU;
    s->is_tpu &= kind == XPL_DEVICE_TPU;
    s->devices[s->n_devices++] = d;
}

static void add_host(struct xpl_survey *s, uint32_t host) {
    const struct xpl_time_breakdown *const b = s->hosts[host].b;
    const uint64_t most_ps = xpl_time_most_work_ps(b);
    size_t at = 0;
    if (b->framework > s->framework) s->framework = b->framework;
    for (uint32_t i = 0; i < b->devices.n; i++) {
        struct xpl_time_sums sums;
        struct xpl_survey_device d = {.host = host, .index = i, .rows = &b->rows.v[at]};
        const size_t first = at;
        xpl_time_sum_device(b, i, &at, &sums);
        d.n_rows = at - first;
        if (xpl_time_is_used(&sums, most_ps))
            add_device(s, d, &sums, b->devices.v[i].kind);
        else
            s->n_idle_devices++;
    }
    s->has_python |= b->has_python;
    s->graph_ps += (double)b->graph_ps;
    s->queue_ps += (double)b->queue_ps;
    s->op_ps += (double)b->op_ps;
    s->outside_ps += (double)b->outside_ps;
    s->n_graph_breaks += (double)b->n_graph_breaks;
    s->sync_ps += (double)b->sync_ps;
    if (b->sync_ps > s->most_sync_ps) {
        s->most_sync_ps = b->sync_ps;
        s->sync_name = b->sync_name;
    }
}

bool xpl_survey_is_synced(const struct xpl_survey *s) {
    return s->sync_ps > (s->ps[XPL_TIME_LAUNCH] + s->ps[XPL_TIME_QUEUED]) / 2;
}

static bool is_of_step(const struct xpl_time_row *r) {
    return r->step != XPL_BETWEEN_STEPS && r->wall_ps;
}

static size_t find_slowest(const struct xpl_survey *s) {
    size_t ret = 0;
    double most = 0;
    for (size_t i = 0; i < s->n_devices; i++) {
        double ps = 0;
        for (size_t k = 0; k < s->devices[i].n_rows; k++)
            if (is_of_step(&s->devices[i].rows[k])) ps += (double)s->devices[i].rows[k].wall_ps;
        if (ps > most) most = ps, ret = i;
    }
    return ret;
}

static void add_own(struct xpl_survey_step *step, uint32_t device, const struct xpl_time_row *r,
                    double own) {
    const double starting = (double)(r->ps[XPL_TIME_LAUNCH] + r->ps[XPL_TIME_QUEUED]);
    if (own > step->most_own_ps) step->most_own_ps = own, step->last = device;
    step->own_ps += own;
    for (int c = 0; c < XPL_TIME_CAUSES; c++) {
        const bool starts = c == XPL_TIME_LAUNCH || c == XPL_TIME_QUEUED;
        const double without = own - (starts ? starting : (double)r->ps[c]);
        if (without > step->most_without_ps[c]) step->most_without_ps[c] = without;
    }
}

static void add_row(const struct xpl_survey *s, struct xpl_survey_step *step, uint32_t device,
                    const struct xpl_time_row *r, const struct xpl_time_step *of) {
    const double wall = (double)r->wall_ps, collectives = (double)r->ps[XPL_TIME_COLLECTIVES];
    if (device == s->slowest || (!step->has_slowest && wall > step->slowest_ps))
        step->slowest_ps = wall;
    step->has_slowest |= device == s->slowest;
    if (wall > step->wall_ps) {
        step->wall_ps = wall;
        step->work_ps = (double)of->work_ps;
    }
    if (!step->n_devices || collectives < step->least_collectives_ps)
        step->least_collectives_ps = collectives;
    add_own(step, device, r, wall - collectives);
    step->n_devices++;
    for (int c = 0; c < XPL_TIME_CAUSES; c++)
        step->ps[c] += (double)r->ps[c];
    if (of->n_compiles > step->n_compiles) step->n_compiles = of->n_compiles;
}

struct joining {
    struct xpl_survey *s;
    struct xpl_intern *series;
    struct xpl_map numbers; // series and number to a number of both
    struct xpl_map steps;   // that, and which one of these, to the position in s->steps
};

// The step that the device's next row of that name belongs to; NULL on OOM.  A loop that begins
// again has several steps of one number: the first of a device belongs to the first of the others,
// and so on.
static struct xpl_survey_step *step_of(struct joining *j, struct xpl_map *seen,
                                       const struct xpl_time_step *step) {
    struct xpl_survey *const s = j->s;
    xpl_strid_t series;
    bool is_new;
    if (!xpl_intern_put_view(j->series, xpl_step_series(step->name), &series)) return NULL;
    uint64_t *const id =
        xpl_map_put(s->arena, &j->numbers, series.v, (uint64_t)step->number, &is_new);
    if (!id) return NULL;
    if (is_new) *id = j->numbers.n;
    const uint64_t known = *id;
    uint64_t *const n = xpl_map_put(s->arena, seen, known, 0, &is_new);
    if (!n) return NULL;
    uint64_t *const at = xpl_map_put(s->arena, &j->steps, known, (*n)++, &is_new);
    if (!at) return NULL;
    if (!is_new) return &s->steps.v[*at];
    struct xpl_survey_step *const slot = xpl_vec_push(s->arena, &s->steps);
    if (!slot) return NULL;
    if (series.v >= s->n_series) s->n_series = series.v + 1;
    *slot =
        (struct xpl_survey_step){.number = step->number, .name = step->name, .series = series.v};
    *at = s->steps.n - 1;
    return slot;
}

static bool sum_series(struct xpl_survey *s) {
    s->series = xpl_arena_zalloc(s->arena, s->n_series * sizeof *s->series);
    if (!s->series) return false;
    for (size_t i = 0; i < s->steps.n; i++) {
        struct xpl_survey_series *const x = &s->series[s->steps.v[i].series];
        if (!x->n_steps++) x->first = i;
        x->slowest_ps += s->steps.v[i].slowest_ps;
    }
    return true;
}

static bool join_steps(struct xpl_survey *s) {
    struct joining j = {.s = s, .series = xpl_intern_new(s->arena, xpl_hash_seed())};
    if (!j.series) return false;
    s->slowest = find_slowest(s);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct xpl_survey_device *const d = &s->devices[i];
        const struct xpl_time_breakdown *const b = s->hosts[d->host].b;
        struct xpl_map seen = {0}; // series and number: how many rows of the device
        for (size_t k = 0; k < d->n_rows; k++) {
            const struct xpl_time_row *const r = &d->rows[k];
            if (!is_of_step(r)) continue;
            const struct xpl_time_step *const step = &b->steps.v[r->step];
            struct xpl_survey_step *const to = step_of(&j, &seen, step);
            if (!to) return false;
            add_row(s, to, i, r, step);
        }
    }
    for (size_t i = 0; i < s->steps.n; i++)
        for (int c = 0; c < XPL_TIME_CAUSES; c++)
            s->steps.v[i].ps[c] /= (double)s->steps.v[i].n_devices;
    return sum_series(s);
}

// ---- what a re-run without a cause would take ----

static bool is_start(enum xpl_time_cause c) {
    return c == XPL_TIME_LAUNCH || c == XPL_TIME_QUEUED;
}

// The mean of a step's devices; launch and queued are one.
static double mean_of(const struct xpl_survey_step *step, enum xpl_time_cause c) {
    return is_start(c) ? step->ps[XPL_TIME_LAUNCH] + step->ps[XPL_TIME_QUEUED] : step->ps[c];
}

static bool is_joined(const struct xpl_survey *s, const struct xpl_survey_step *step) {
    return step->n_devices == s->n_devices && s->n_devices > 1 &&
           step->ps[XPL_TIME_COLLECTIVES] > 0;
}

// How long the last devices would make the others wait if none had a cause.
static double wait_without(const struct xpl_survey *s, enum xpl_time_cause c) {
    double ps = 0;
    for (size_t i = 0; i < s->steps.n; i++) {
        const struct xpl_survey_step *const step = &s->steps.v[i];
        const double n = (double)step->n_devices, all = step->own_ps - n * mean_of(step, c);
        if (is_joined(s, step))
            ps += step->most_without_ps[c] - (all - step->most_without_ps[c]) / (n - 1);
    }
    return ps;
}

enum xpl_time_cause xpl_survey_late_cause(const struct xpl_survey *s) {
    int best = XPL_TIME_COMPUTE;
    for (int c = 0; c < XPL_TIME_CAUSES; c++)
        if (c != XPL_TIME_COLLECTIVES && c != XPL_TIME_OVERLAPPED &&
            wait_without(s, (enum xpl_time_cause)c) < wait_without(s, (enum xpl_time_cause)best))
            best = c;
    return (enum xpl_time_cause)best;
}

double xpl_survey_saving(const struct xpl_survey *s, enum xpl_time_cause c, double share) {
    double more = 0; // than the mean of the devices, which the share is
    for (size_t i = 0; i < s->steps.n; i++) {
        const struct xpl_survey_step *const step = &s->steps.v[i];
        if (is_joined(s, step))
            more += step->most_own_ps - step->most_without_ps[c] - mean_of(step, c);
    }
    const double saving = share + more * (double)s->n_devices / s->wall_ps;
    return saving < 0 ? 0 : saving < 1 ? saving : 1;
}

static void sum_ops(struct xpl_survey *s) {
    const struct xpl_op_metrics_db *const db = &s->stats->device_op_metrics_db;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(m)) continue;
        s->busy_op_ps += (double)m->self_time_ps;
        if (xpl_str_eq(m->category, XPL_CATEGORY_NO_HLO)) s->no_hlo_ps += (double)m->self_time_ps;
    }
    for (size_t i = 0; i < s->stats->kernel_reports.n; i++)
        s->kernel_ps += (double)s->stats->kernel_reports.v[i].total_duration_ns * 1e3;
    if (s->busy_op_ps > 0 && s->kernel_ps > s->busy_op_ps)
        s->no_hlo_ps += s->kernel_ps - s->busy_op_ps;
}

xpl_status_t xpl_survey_make(const struct xpl_tool_input *in, const struct xpl_opstats *stats,
                             struct xpl_arena *arena, struct xpl_survey *ret,
                             struct xpl_error *err) {
    struct xpl_survey s = {.arena = arena, .stats = stats, .is_cpu = true, .is_tpu = true};
    struct xpl_survey_host *const hosts = xpl_arena_array(arena, in->n_hosts, sizeof *hosts);
    s.devices = xpl_arena_array(arena, count_devices(in), sizeof *s.devices);
    if (!hosts || !s.devices) XPL_RETURN_OOM(err, "findings");
    s.hosts = hosts;
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_tool_host *const h = &in->hosts[i];
        if (!h->products) continue;
        const struct xpl_time_breakdown_value *const v = h->products[0];
        hosts[s.n_hosts++] = (struct xpl_survey_host){h->name, v->breakdown};
        add_host(&s, (uint32_t)s.n_hosts - 1);
    }
    if (!join_steps(&s)) XPL_RETURN_OOM(err, "findings");
    sum_ops(&s);
    *ret = s;
    return XPL_OK;
}
