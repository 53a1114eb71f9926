// SPDX-License-Identifier: Apache-2.0
// Tool run_summary: the summary of a run for comparisons, as the message of analysis/compare. Ours;
// XProf has none.

#include "analysis/breakdown/breakdown.h"
#include "analysis/compare/compare.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/tools/lib/op_stats_tool.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { TIME_BREAKDOWN, OP_STATS }; // its products
enum { PS_PER_NS = 1000 };
#define PS_PER_S 1e12

// ---- steps ----

// The time of a step is that on the device whose steps take longest in total, so that their mean is
// the time of the loop divided by its steps; of a step that this one has not, the longest.  A loop
// that begins again has several steps of one number: the nth of each device are one.
struct step_time {
    xpl_str_t series;
    int64_t number;
    size_t nth; // while steps of its device are added: their order
    uint64_t ps;
    size_t device;
};

struct making {
    struct xpl_arena *arena;
    struct xpl_run_summary s;
    XPL_VEC(struct step_time) steps;
    size_t slowest; // the device
    double slowest_ps;
};

static int by_number(const void *a, const void *b) {
    const struct step_time *const x = a, *const y = b;
    const int series = xpl_str_cmp(x->series, y->series);
    if (series) return series;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->nth > y->nth) - (x->nth < y->nth);
}

static bool is_next(const struct step_time *a, const struct step_time *b) {
    return a->number == b->number && xpl_str_eq(a->series, b->series);
}

// Steps of one device, in their order: which one of its name each is.
static void number_repeats(struct step_time *v, size_t n) {
    xpl_sort(v, n, sizeof *v, by_number);
    for (size_t i = 0; i < n; i++)
        v[i].nth = i && is_next(&v[i - 1], &v[i]) ? v[i - 1].nth + 1 : 0;
}

// Steps of all devices become one, sorted.
static void join_devices(struct making *m) {
    size_t n = 0;
    xpl_sort(m->steps.v, m->steps.n, sizeof *m->steps.v, by_number);
    for (size_t i = 0; i < m->steps.n; i++) {
        const struct step_time t = m->steps.v[i];
        struct step_time *const last = n ? &m->steps.v[n - 1] : NULL;
        if (!last || by_number(last, &t) != 0)
            m->steps.v[n++] = t;
        else if (last->device != m->slowest && (t.device == m->slowest || t.ps > last->ps))
            *last = t;
    }
    m->steps.n = n;
}

static bool is_greater(const struct xpl_run_series *a, const struct xpl_run_series *b) {
    return a->n_steps != b->n_steps ? a->n_steps > b->n_steps : a->ps > b->ps;
}

// Lists the series; the one with most steps, and of these with most time, is what runs compare by.
static bool join_steps(struct making *m) {
    struct xpl_run_series greatest = {0};
    size_t first = 0;
    join_devices(m);
    for (size_t i = 0, end; i < m->steps.n; i = end) {
        struct xpl_run_series *const l = xpl_vec_push(m->arena, &m->s.series);
        if (!l) return false;
        *l = (struct xpl_run_series){.name = m->steps.v[i].series};
        for (end = i; end < m->steps.n && xpl_str_eq(m->steps.v[end].series, l->name); end++)
            l->n_steps++, l->ps += m->steps.v[end].ps;
        if (is_greater(l, &greatest)) greatest = *l, first = i;
    }
    if (!xpl_vec_reserve(m->arena, &m->s.steps, greatest.n_steps)) return false;
    for (size_t i = 0; i < greatest.n_steps; i++)
        m->s.steps.v[m->s.steps.n++] = m->steps.v[first + i].ps;
    return true;
}

// ---- the time breakdown ----

// A device with these sums, and its rows.
static bool add_device(struct making *m, const struct xpl_time_breakdown *b,
                       const struct xpl_time_sums *sums, size_t row, size_t end) {
    const size_t first = m->steps.n, device = m->s.n_devices++;
    double ps = 0;
    m->s.wall_ps += sums->wall_ps;
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++)
        m->s.times.v[c].ps += sums->ps[c];
    for (; row < end; row++) {
        const struct xpl_time_row *const r = &b->rows.v[row];
        if (r->step == XPL_BETWEEN_STEPS || !r->wall_ps) continue;
        struct step_time *const t = xpl_vec_push(m->arena, &m->steps);
        if (!t) return false;
        const struct xpl_time_step *const step = &b->steps.v[r->step];
        *t = (struct step_time){xpl_step_series(step->name), step->number, m->steps.n, r->wall_ps,
                                device};
        ps += (double)r->wall_ps;
    }
    if (ps > m->slowest_ps) m->slowest = device, m->slowest_ps = ps;
    if (m->steps.n > first) number_repeats(&m->steps.v[first], m->steps.n - first);
    return true;
}

// With `used`: of the devices those that the program uses.
static bool add_devices(struct making *m, const struct xpl_time_breakdown *b, bool used) {
    const uint64_t most_ps = xpl_time_most_work_ps(b);
    size_t row = 0;
    for (size_t d = 0; d < b->devices.n; d++) {
        struct xpl_time_sums sums;
        const size_t first = row;
        xpl_time_sum_device(b, d, &row, &sums);
        if (used && !xpl_time_is_used(&sums, most_ps)) continue;
        if (!add_device(m, b, &sums, first, row)) return false;
    }
    return true;
}

static bool add_host(struct making *m, const struct xpl_time_breakdown *b) {
    m->s.n_hosts++;
    if (b->compile_ps > m->s.compile_ps) {
        m->s.compile_ps = b->compile_ps;
        m->s.n_compiles = b->all_compiles;
    }
    for (size_t i = 0; i < b->memory.n; i++) {
        struct xpl_run_memory *const slot = xpl_vec_push(m->arena, &m->s.memory);
        if (!slot) return false;
        *slot = (struct xpl_run_memory){b->memory.v[i].name, b->memory.v[i].peak_bytes,
                                        b->memory.v[i].capacity_bytes};
    }
    return add_devices(m, b, true);
}

// NULL: this host has none.
static const struct xpl_time_breakdown *breakdown_of(const struct xpl_tool_host *h) {
    const struct xpl_time_breakdown_value *const v =
        h->products ? h->products[TIME_BREAKDOWN] : NULL;
    return v ? v->breakdown : NULL;
}

// Devices that the program does not use are left out, as the findings do; a run that uses none has
// the steps and the idle time of all of them.
static bool add_breakdowns(struct making *m, const struct xpl_tool_input *in) {
    for (size_t c = 0; c < XPL_TIME_CAUSES; c++) {
        struct xpl_run_time *const t = xpl_vec_push(m->arena, &m->s.times);
        if (!t) return false;
        *t = (struct xpl_run_time){.cause = xpl_str_from(xpl_time_cause_names[c])};
    }
    for (size_t i = 0; i < in->n_hosts; i++) {
        const struct xpl_time_breakdown *const b = breakdown_of(&in->hosts[i]);
        if (b && !add_host(m, b)) return false;
    }
    const bool uses_none = !m->s.n_devices;
    for (size_t i = 0; uses_none && i < in->n_hosts; i++) {
        const struct xpl_time_breakdown *const b = breakdown_of(&in->hosts[i]);
        if (b && !add_devices(m, b, false)) return false;
    }
    if (!join_steps(m)) return false;
    m->s.units = m->s.n_devices * (m->steps.n ? m->steps.n : 1);
    if (!m->s.units) m->s.units = 1;
    return true;
}

// ---- ops and kernels ----

static bool add_op(struct making *m, const struct xpl_op_metrics *o) {
    struct xpl_run_row *const r = xpl_vec_push(m->arena, &m->s.ops);
    const int32_t line = o->source_info.line_number;
    if (!r) return false;
    *r = (struct xpl_run_row){.source_line = line > 0 ? (uint64_t)line : 0,
                              .ps = o->self_time_ps,
                              .count = o->occurrences};
    r->text[XPL_RUN_OP] = xpl_run_op_name(o->provenance, o->name);
    r->text[XPL_RUN_CATEGORY] = o->category;
    r->text[XPL_RUN_SOURCE_FILE] = o->source_info.file_name;
    return xpl_run_op_shape(o->long_name, m->arena, &r->text[XPL_RUN_SHAPE]);
}

static bool add_kernel(struct making *m, const struct xpl_kernel_report *k) {
    struct xpl_run_row *const r = xpl_vec_push(m->arena, &m->s.kernels);
    const uint64_t ns = k->total_duration_ns;
    if (!r) return false;
    *r = (struct xpl_run_row){.ps = ns < UINT64_MAX / PS_PER_NS ? ns * PS_PER_NS : UINT64_MAX,
                              .count = k->occurrences};
    r->text[XPL_RUN_KERNEL] = xpl_run_kernel_name(k->name);
    r->text[XPL_RUN_KERNEL_OP] = xpl_run_op_name(k->op_name, XPL_STR(""));
    return true;
}

static uint64_t whole(double v) {
    return v >= 1 && v < 9e18 ? (uint64_t)v : 0;
}

// As op_profile adds them up for a program: nested ops count once.
static void add_costs(struct making *m, const struct xpl_opstats *stats) {
    const struct xpl_op_metrics_db *const db = &stats->device_op_metrics_db;
    double flops = 0, model = 0, ps = 0, normalized = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *const o = &db->metrics_db.v[i];
        if (xpl_op_metrics_is_idle(o)) continue;
        ps += (double)o->self_time_ps;
        normalized += (double)o->normalized_time_ps;
        if (xpl_op_metrics_children_time(o) > 0) continue;
        flops += o->flops_v2;
        model += o->model_flops_v2;
    }
    m->s.busy_ps = whole(ps);
    m->s.model_flops = whole(model);
    m->s.bf16_flops = whole(flops);
    if (ps > 0)
        m->s.bf16_flops_per_second = whole(flops / (normalized > 0 ? normalized : ps) * PS_PER_S);
    m->s.peak_flops_per_second = whole(stats->perf_env.peak_tera_flops_per_second * 1e12);
}

static bool add_op_stats(struct making *m, const struct xpl_opstats *stats) {
    const struct xpl_op_metrics_db *const db = &stats->device_op_metrics_db;
    add_costs(m, stats);
    for (size_t i = 0; i < db->metrics_db.n; i++)
        if (!xpl_op_metrics_is_idle(&db->metrics_db.v[i]) && !add_op(m, &db->metrics_db.v[i]))
            return false;
    for (size_t i = 0; i < stats->kernel_reports.n; i++)
        if (!add_kernel(m, &stats->kernel_reports.v[i])) return false;
    return true;
}

// ---- the tool ----

static xpl_status_t render(const struct xpl_tool_input *in, struct xpl_buf *out,
                           struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(in->limit);
    struct xpl_opstats *stats;
    struct making m = {.arena = &arena};
    XPL_TRY(xpl_op_stats_combine(in, OP_STATS, &arena, &stats, err));
    if (!add_breakdowns(&m, in) || !add_op_stats(&m, stats)) XPL_RETURN_OOM(err, "run summary");
    xpl_run_summary_join(&m.s);
    return xpl_run_summary_encode(&m.s, out, err);
}

static const struct xpl_product *const kNeeds[] = {
    [TIME_BREAKDOWN] = &xpl_product_time_breakdown, [OP_STATS] = &xpl_product_op_stats, NULL};

const struct xpl_tool xpl_tool_run_summary = {
    .name = "run_summary",
    .version = 7,
    .needs = kNeeds,
    .facts = XPL_FACT_STEPS,
    .ignores = XPL_IGNORES_XPROF_EXACT,
    .hosts = XPL_HOSTS_EACH_OR_ALL,
    .shown = XPL_SHOWN_NEVER,
    .content_type = "application/octet-stream",
    .variant = xpl_op_stats_variant,
    .asks_device = true,
    .render = render,
};
