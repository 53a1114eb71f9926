// SPDX-License-Identifier: Apache-2.0
// Statistics over the repeats of a run, as JSON (docs/cli-json.md): the numbers that Reactant's
// @timed prints of its repeats.
#include <inttypes.h>

#include "analysis/compare/impl.h"
#include "base/json.h"

#define PS_PER_S 1e12

struct samples {
    XPL_VEC(uint64_t) v; // ps
    bool has_steps, has_runs;
};

static bool add_samples(struct samples *s, const struct xpl_run_summary *run,
                        struct xpl_arena *arena) {
    s->has_steps |= run->steps.n > 0;
    for (size_t i = 0; i < run->steps.n; i++) {
        uint64_t *const slot = xpl_vec_push(arena, &s->v);
        if (!slot) return false;
        *slot = run->steps.v[i];
    }
    if (run->steps.n || !run->n_devices || !run->wall_ps) return true; // bundles have no window
    uint64_t *const slot = xpl_vec_push(arena, &s->v);
    if (slot) *slot = run->wall_ps / run->n_devices;
    s->has_runs = true;
    return slot;
}

static void put_known(struct xpl_buf *out, const char *key, double v) {
    xpl_run_put_known(out, key, v, v > 0);
}

static void put_runtime(struct xpl_buf *out, const struct samples *s) {
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < s->v.n; i++) {
        if (s->v.v[i] < least) least = s->v.v[i];
        if (s->v.v[i] > most) most = s->v.v[i];
    }
    xpl_buf_printf(out, "\"runtime\":{\"of\":\"%s\",\"samples\":%zu,",
                   s->has_steps && s->has_runs ? "steps and runs"
                   : s->has_steps              ? "steps"
                                               : "runs",
                   s->v.n);
    xpl_run_put_known(out, "mean_ps", xpl_compare_mean(s->v.v, s->v.n), s->v.n);
    if (s->v.n)
        xpl_buf_printf(out, ",\"min_ps\":%" PRIu64 ",\"max_ps\":%" PRIu64 ",", least, most);
    else
        xpl_buf_str(out, XPL_STR(",\"min_ps\":null,\"max_ps\":null,"));
    xpl_run_put_known(out, "std_ps", xpl_compare_deviation(s->v.v, s->v.n), s->v.n > 1);
    xpl_buf_putc(out, '}');
}

struct costs {
    double model, bf16, busy_ps, normalized_s, peak;
    double steps; // of all runs; a run without steps counts as one
};

static void add_costs(struct costs *c, const struct xpl_run_summary *run) {
    c->model += (double)run->model_flops;
    c->bf16 += (double)run->bf16_flops;
    c->busy_ps += (double)run->busy_ps;
    double steps = 0;
    for (size_t i = 0; i < run->series.n; i++)
        steps += (double)run->series.v[i].n_steps;
    c->steps += steps > 0 ? steps : run->steps.n ? (double)run->steps.n : 1;
    if (run->bf16_flops_per_second)
        c->normalized_s += (double)run->bf16_flops / (double)run->bf16_flops_per_second;
    if ((double)run->peak_flops_per_second > c->peak) c->peak = (double)run->peak_flops_per_second;
}

static void put_costs(struct xpl_buf *out, const struct costs *c) {
    const double rate = c->normalized_s > 0 ? c->bf16 / c->normalized_s : 0;
    const double percent = c->peak > 0 ? 100 * rate / c->peak : 0;
    xpl_buf_str(out, XPL_STR(",\"flops\":{"));
    put_known(out, "model_flops", c->model / c->steps);
    xpl_buf_putc(out, ',');
    put_known(out, "bf16_flops", c->bf16 / c->steps);
    xpl_buf_putc(out, ',');
    put_known(out, "busy_ps", c->busy_ps / c->steps);
    xpl_buf_putc(out, ',');
    put_known(out, "model_flops_per_second", c->busy_ps > 0 ? c->model / c->busy_ps * PS_PER_S : 0);
    xpl_buf_putc(out, ',');
    put_known(out, "bf16_flops_per_second", rate);
    xpl_buf_putc(out, ',');
    put_known(out, "peak_flops_per_second", c->peak);
    xpl_buf_putc(out, ',');
    put_known(out, "utilization_percent", percent < 100 ? percent : 100);
    xpl_buf_putc(out, ',');
    put_known(out, "uncapped_utilization_percent", percent);
    xpl_buf_putc(out, '}');
}

// Where the time of a step of a device goes, of causes that take any.
static void put_times(struct xpl_buf *out, const struct xpl_run_summary *s) {
    bool any = false;
    xpl_buf_str(out, XPL_STR(",\"times\":["));
    for (size_t i = 0; i < s->times.n; i++) {
        if (!s->times.v[i].ps || !s->units) continue;
        xpl_buf_str(out, any ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(out, "cause", s->times.v[i].cause);
        xpl_buf_printf(out, ",\"mean_ps\":%.0f}", (double)s->times.v[i].ps / (double)s->units);
        any = true;
    }
    xpl_buf_putc(out, ']');
}

static void put_memory(struct xpl_buf *out, const struct xpl_run_summary *s) {
    xpl_buf_str(out, XPL_STR(",\"memory\":["));
    for (size_t i = 0; i < s->memory.n; i++) {
        xpl_buf_str(out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(out, "allocator", s->memory.v[i].name);
        xpl_buf_printf(out, ",\"peak_bytes\":%" PRIu64 ",\"capacity_bytes\":%" PRIu64 "}",
                       s->memory.v[i].peak_bytes, s->memory.v[i].capacity_bytes);
    }
    xpl_buf_putc(out, ']');
}

xpl_status_t xpl_aggregate_json(const struct xpl_run_summary *const *runs, size_t n,
                                struct xpl_arena *arena, struct xpl_buf *out,
                                struct xpl_error *err) {
    struct samples s = {0};
    struct costs c = {0};
    struct xpl_run_group all = {0};
    uint64_t compiles = 0, compile_ps = 0;
    for (size_t i = 0; i < n; i++) {
        if (!add_samples(&s, runs[i], arena) || !xpl_run_group_add(&all, runs[i], arena))
            XPL_RETURN_OOM(err, "aggregation");
        add_costs(&c, runs[i]);
        compiles = xpl_run_add(compiles, runs[i]->n_compiles);
        compile_ps = xpl_run_add(compile_ps, runs[i]->compile_ps);
    }
    xpl_run_summary_join(&all.all);
    xpl_buf_printf(out, "{\"runs\":%zu,\"hosts\":%" PRIu64 ",\"devices\":%" PRIu64 ",", n,
                   all.all.n_hosts, all.all.n_devices);
    put_runtime(out, &s);
    xpl_buf_printf(out, ",\"compile\":{\"count\":%" PRIu64 ",\"total_ps\":%" PRIu64 "}", compiles,
                   compile_ps);
    put_costs(out, &c);
    put_times(out, &all.all);
    put_memory(out, &all.all);
    xpl_buf_putc(out, '}');
    if (out->failed) XPL_RETURN_OOM(err, "aggregation");
    return XPL_OK;
}
