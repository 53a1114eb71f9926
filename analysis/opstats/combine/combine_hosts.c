// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/combine/combine_hosts.h"

#include "analysis/opstats/combine/step_intersection.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "base/arena.h"

enum xpl_hardware xpl_hardware_parse(xpl_str_t device_type) {
    if (xpl_str_has(device_type, XPL_STR("GPU"))) return XPL_HW_GPU;
    if (xpl_str_eq(device_type, XPL_STR("CPU"))) return XPL_HW_CPU_ONLY;
    return xpl_str_has(device_type, XPL_STR("TPU")) ? XPL_HW_TPU : XPL_HW_UNKNOWN;
}

static bool has_device(const struct xpl_opstats *s) {
    return xpl_hardware_parse(s->run_environment.device_type) > XPL_HW_CPU_ONLY;
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

static bool warn(struct xpl_combine_hosts *h, struct xpl_arena *arena, const char *what,
                 xpl_str_t host, xpl_str_t why) {
    xpl_str_t *w = xpl_vec_push(arena, &h->warnings);
    const xpl_str_t name = xpl_str_sub(host, 0, 200), reason = xpl_str_sub(why, 0, 300);
    return w && xpl_arena_printf(arena, w, "Host %.*s %s%s%.*s", XPL_STR_FMT(name), what,
                                 reason.len ? ": " : "", XPL_STR_FMT(reason));
}

// ---- who takes part at all ----

static xpl_status_t leave_out_broken(const struct xpl_host_opstats *hosts, size_t n,
                                     struct xpl_arena *arena, struct xpl_combine_hosts *h,
                                     struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!hosts[i].stats) {
            if (!warn(h, arena, "is left out, its profile cannot be read", hosts[i].host,
                      hosts[i].problem))
                XPL_RETURN_OOM(err, "combining hosts");
            continue;
        }
        struct xpl_combine_host *slot = xpl_vec_push(arena, &h->v);
        if (!slot) XPL_RETURN_OOM(err, "combining hosts");
        *slot = (struct xpl_combine_host){.host = &hosts[i]};
    }
    if (h->v.n || n == 0) return XPL_OK;
    const xpl_str_t name = xpl_str_sub(hosts[0].host, 0, 60);
    const xpl_str_t why = xpl_str_sub(hosts[0].problem, 0, 140);
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no profile of %zu can be read; host %.*s: %.*s", n,
                     XPL_STR_FMT(name), XPL_STR_FMT(why));
}

// A host without accelerator beside hosts with one coordinates them: it may well look idle.
static bool is_coordinator(const struct xpl_combine_host *c, bool accelerated) {
    return accelerated && !has_device(c->host->stats);
}

static bool any_accelerator(const struct xpl_combine_hosts *h) {
    for (size_t i = 0; i < h->v.n; i++)
        if (has_device(h->v.v[i].host->stats)) return true;
    return false;
}

static bool leave_out_idle(struct xpl_combine_hosts *h, bool accelerated, struct xpl_arena *arena) {
    size_t kept = 0, busy = 0;
    for (size_t i = 0; i < h->v.n; i++)
        busy += !is_idle(h->v.v[i].host->stats);
    for (size_t i = 0; i < h->v.n; i++) {
        const struct xpl_combine_host c = h->v.v[i];
        if (!busy || is_coordinator(&c, accelerated) || !is_idle(c.host->stats))
            h->v.v[kept++] = c;
        else if (!warn(h, arena, "is left out, it was idle: its profile has no steps and no ops",
                       c.host->host, (xpl_str_t){"", 0}))
            return false;
    }
    h->v.n = kept;
    return true;
}

// ---- whose steps take part ----

static bool leave_out_stepless(struct xpl_combine_hosts *h, struct xpl_arena *arena) {
    bool any = false;
    for (size_t i = 0; i < h->v.n; i++)
        any |= h->v.v[i].has_steps && h->v.v[i].host->stats->step_db.step_sequence.n;
    for (size_t i = 0; any && i < h->v.n; i++) {
        struct xpl_combine_host *c = &h->v.v[i];
        if (!c->has_steps || c->host->stats->step_db.step_sequence.n) continue;
        c->has_steps = false;
        if (!warn(h, arena, "has no steps; the step tables are those of the other hosts",
                  c->host->host, (xpl_str_t){"", 0}))
            return false;
    }
    return true;
}

static bool intersect(struct xpl_combine_hosts *h, struct xpl_arena *arena,
                      struct xpl_step_intersection *ret) {
    const struct xpl_step_db **dbs = xpl_arena_array(arena, h->v.n, sizeof *dbs);
    if (!dbs) return false;
    size_t n = 0;
    for (size_t i = 0; i < h->v.n; i++)
        if (h->v.v[i].has_steps) dbs[n++] = &h->v.v[i].host->stats->step_db;
    return xpl_step_intersect(dbs, n, UINT32_MAX, arena, ret);
}

// The chief's step beside which the most hosts have one; of equals the first.
static uint32_t best_shared_step(const struct xpl_step_intersection *in, size_t n, int32_t *delta,
                                 uint32_t n_chief) {
    for (size_t i = 0; i < n; i++) {
        delta[in->begin_chief[i]]++;
        delta[in->begin_chief[i] + in->n_aligned[i]]--;
    }
    uint32_t best = 0;
    int32_t here = 0, most = -1;
    for (uint32_t s = 0; s < n_chief; s++) {
        here += delta[s];
        if (here > most) most = here, best = s;
    }
    return best;
}

// When the hosts have no step in common: keeps the steps of those that share the most popular one.
static bool leave_out_stragglers(struct xpl_combine_hosts *h, struct xpl_arena *arena,
                                 struct xpl_step_intersection *in) {
    size_t n = 0, chief = SIZE_MAX;
    for (size_t i = 0; i < h->v.n; i++)
        if (h->v.v[i].has_steps && n++ == in->chief) chief = i;
    if (chief == SIZE_MAX) return true;
    const uint32_t n_chief = (uint32_t)h->v.v[chief].host->stats->step_db.step_sequence.n;
    int32_t *delta = xpl_arena_zalloc(arena, ((size_t)n_chief + 1) * sizeof *delta);
    if (!delta) return false;
    const uint32_t best = best_shared_step(in, n, delta, n_chief);
    for (size_t i = 0, k = 0; i < h->v.n; i++) {
        struct xpl_combine_host *c = &h->v.v[i];
        if (!c->has_steps) continue;
        const uint32_t from = in->begin_chief[k], steps = in->n_aligned[k];
        k++;
        if (from <= best && best - from < steps) continue;
        c->has_steps = false;
        if (!warn(h, arena,
                  "straggles: its steps lie beside none of the other hosts'; the step tables are "
                  "those of the other hosts",
                  c->host->host, (xpl_str_t){"", 0}))
            return false;
    }
    return intersect(h, arena, in);
}

static bool choose_steps(struct xpl_combine_hosts *h, bool exact, struct xpl_arena *arena) {
    struct xpl_step_intersection in;
    if (!exact && !leave_out_stepless(h, arena)) return false;
    if (!intersect(h, arena, &in)) return false;
    if (!exact && in.empty && !leave_out_stragglers(h, arena, &in)) return false;
    h->n_steps = in.n_steps;
    h->steps_dropped = in.dropped;
    h->empty_intersect = in.empty;
    for (size_t i = 0, k = 0; i < h->v.n; i++)
        if (h->v.v[i].has_steps) h->v.v[i].first_step = in.first[k++];
    return true;
}

xpl_status_t xpl_combine_choose(const struct xpl_host_opstats *hosts, size_t n, bool xprof_exact,
                                struct xpl_arena *arena, struct xpl_combine_hosts *ret,
                                struct xpl_error *err) {
    struct xpl_combine_hosts h = {0};
    XPL_TRY(leave_out_broken(hosts, n, arena, &h, err));
    const bool accelerated = any_accelerator(&h);
    if (!xprof_exact && !leave_out_idle(&h, accelerated, arena))
        XPL_RETURN_OOM(err, "combining hosts");
    for (size_t i = 0; i < h.v.n; i++)
        h.v.v[i].has_steps = !is_coordinator(&h.v.v[i], accelerated);
    if (h.v.n > 1 && !choose_steps(&h, xprof_exact, arena)) XPL_RETURN_OOM(err, "combining hosts");
    *ret = h;
    return XPL_OK;
}
