// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/combine/combine_hosts.h"

#include "analysis/opstats/combine/step_intersection.h"
#include "base/arena.h"

static bool warn(struct xpl_combine_hosts *h, struct xpl_arena *arena, const char *what,
                 xpl_str_t host, xpl_str_t why) {
    xpl_str_t *w = xpl_vec_push(arena, &h->warnings);
    const xpl_str_t name = xpl_str_sub(host, 0, 200), reason = xpl_str_sub(why, 0, 300);
    return w && xpl_arena_printf(arena, w, "Host %.*s %s%s%.*s", XPL_STR_FMT(name), what,
                                 reason.len ? ": " : "", XPL_STR_FMT(reason));
}

// ---- the participating hosts ----

static bool add_host(struct xpl_combine_hosts *h, const struct xpl_host_opstats *host, size_t at,
                     struct xpl_arena *arena) {
    const struct xpl_host_outline *outline = host->outline;
    struct xpl_combine_host *const slot = xpl_vec_push(arena, &h->v);
    if (slot && !outline) {
        void *const room = xpl_arena_alloc(arena, xpl_host_outline_size(host->stats));
        outline = room ? xpl_host_outline_put(host->stats, room) : NULL;
    }
    if (!slot || !outline) return false;
    *slot = (struct xpl_combine_host){.host = host, .outline = outline, .at = at};
    return true;
}

static xpl_status_t leave_out_broken(const struct xpl_host_opstats *hosts, size_t n,
                                     struct xpl_arena *arena, struct xpl_combine_hosts *h,
                                     struct xpl_error *err) {
    for (size_t i = 0; i < n; i++) {
        const bool ok = xpl_host_is_broken(&hosts[i])
                            ? warn(h, arena, "is left out, its profile cannot be read",
                                   hosts[i].host, hosts[i].problem)
                            : add_host(h, &hosts[i], i, arena);
        if (!ok) XPL_RETURN_OOM(err, "combining hosts");
    }
    if (h->v.n || n == 0) return XPL_OK;
    const xpl_str_t name = xpl_str_sub(hosts[0].host, 0, 60);
    const xpl_str_t why = xpl_str_sub(hosts[0].problem, 0, 140);
    XPL_RETURN_ERROR(err, XPL_DATA_LOSS, "no profile of %zu can be read; host %.*s: %.*s", n,
                     XPL_STR_FMT(name), XPL_STR_FMT(why));
}

// A host without accelerator beside hosts with one coordinates them: it may well look idle.
static bool is_coordinator(const struct xpl_combine_host *c, bool accelerated) {
    return accelerated && !c->outline->accelerated;
}

static bool any_accelerator(const struct xpl_combine_hosts *h) {
    for (size_t i = 0; i < h->v.n; i++)
        if (h->v.v[i].outline->accelerated) return true;
    return false;
}

static bool leave_out_idle(struct xpl_combine_hosts *h, bool accelerated, struct xpl_arena *arena) {
    size_t kept = 0, busy = 0;
    for (size_t i = 0; i < h->v.n; i++)
        busy += !h->v.v[i].outline->idle;
    for (size_t i = 0; i < h->v.n; i++) {
        const struct xpl_combine_host c = h->v.v[i];
        if (!busy || is_coordinator(&c, accelerated) || !c.outline->idle)
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
        any |= h->v.v[i].has_steps && h->v.v[i].outline->n_steps;
    for (size_t i = 0; any && i < h->v.n; i++) {
        struct xpl_combine_host *c = &h->v.v[i];
        if (!c->has_steps || c->outline->n_steps) continue;
        c->has_steps = false;
        if (!warn(h, arena, "has no steps; the step tables are those of the other hosts",
                  c->host->host, (xpl_str_t){"", 0}))
            return false;
    }
    return true;
}

static bool intersect(struct xpl_combine_hosts *h, bool exact, struct xpl_arena *arena,
                      struct xpl_step_intersection *ret) {
    struct xpl_step_spans *const spans = xpl_arena_array(arena, h->v.n, sizeof *spans);
    if (!spans) return false;
    size_t n = 0;
    for (size_t i = 0; i < h->v.n; i++) {
        const struct xpl_host_outline *const o = h->v.v[i].outline;
        if (h->v.v[i].has_steps)
            spans[n++] = (struct xpl_step_spans){o->spans, o->n_steps, exact ? NULL : o->keys};
    }
    return xpl_step_intersect(spans, n, UINT32_MAX, arena, ret);
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
    const uint32_t n_chief = (uint32_t)h->v.v[chief].outline->n_steps;
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
                  "straggles: its steps overlap no other host's steps; the step tables are those "
                  "of the other hosts",
                  c->host->host, (xpl_str_t){"", 0}))
            return false;
    }
    return intersect(h, false, arena, in);
}

static bool choose_steps(struct xpl_combine_hosts *h, bool exact, struct xpl_arena *arena) {
    struct xpl_step_intersection in;
    if (!exact && !leave_out_stepless(h, arena)) return false;
    if (!intersect(h, exact, arena, &in)) return false;
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
