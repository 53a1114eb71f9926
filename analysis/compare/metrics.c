// SPDX-License-Identifier: Apache-2.0
// A run's metrics by name.
#include <string.h>

#include "analysis/compare/impl.h"
#include "analysis/compare/series.h"
#include "base/arena.h"

#define PS_PER_S 1e12

const char *const xpl_series_units[] = {[XPL_SERIES_PS] = "ps",
                                        [XPL_SERIES_COUNT] = "count",
                                        [XPL_SERIES_BYTES] = "bytes",
                                        [XPL_SERIES_PER_SECOND] = "flops_per_second",
                                        [XPL_SERIES_PERCENT] = "percent"};

// ---- metrics of every run ----

static bool step_time(const struct xpl_run_summary *s, double *ret) {
    *ret = xpl_compare_mean(s->steps.v, s->steps.n);
    return s->steps.n;
}

static bool step_deviation(const struct xpl_run_summary *s, double *ret) {
    *ret = xpl_compare_deviation(s->steps.v, s->steps.n);
    return s->steps.n > 1;
}

static bool longest_step(const struct xpl_run_summary *s, double *ret) {
    uint64_t most = 0;
    for (size_t i = 0; i < s->steps.n; i++)
        if (s->steps.v[i] > most) most = s->steps.v[i];
    *ret = (double)most;
    return s->steps.n;
}

static bool count_steps(const struct xpl_run_summary *s, double *ret) {
    *ret = (double)s->steps.n;
    return true;
}

static bool busy_time(const struct xpl_run_summary *s, double *ret) {
    *ret = s->units ? (double)s->busy_ps / (double)s->units : 0;
    return s->units && s->busy_ps;
}

static bool compile_time(const struct xpl_run_summary *s, double *ret) {
    *ret = (double)s->compile_ps;
    return true;
}

static bool model_rate(const struct xpl_run_summary *s, double *ret) {
    *ret = s->busy_ps ? (double)s->model_flops / (double)s->busy_ps * PS_PER_S : 0;
    return s->busy_ps && s->model_flops;
}

static bool bf16_rate(const struct xpl_run_summary *s, double *ret) {
    *ret = (double)s->bf16_flops_per_second;
    return s->bf16_flops_per_second;
}

static bool utilization(const struct xpl_run_summary *s, double *ret) {
    if (!s->peak_flops_per_second || !s->bf16_flops_per_second) return false;
    *ret = 100 * (double)s->bf16_flops_per_second / (double)s->peak_flops_per_second;
    return true;
}

static bool peak_memory(const struct xpl_run_summary *s, double *ret) {
    uint64_t most = 0;
    for (size_t i = 0; i < s->memory.n; i++)
        if (s->memory.v[i].peak_bytes > most) most = s->memory.v[i].peak_bytes;
    *ret = (double)most;
    return s->memory.n;
}

static const struct metric {
    const char *name;
    bool (*get)(const struct xpl_run_summary *s, double *ret);
    enum xpl_series_kind kind;
    bool more_is_better;
} metrics[] = {
    {"step_time", step_time, XPL_SERIES_PS, false},
    {"step_deviation", step_deviation, XPL_SERIES_PS, false},
    {"longest_step", longest_step, XPL_SERIES_PS, false},
    {"steps", count_steps, XPL_SERIES_COUNT, true},
    {"busy_time", busy_time, XPL_SERIES_PS, false},
    {"compile_time", compile_time, XPL_SERIES_PS, false},
    {"model_rate", model_rate, XPL_SERIES_PER_SECOND, true},
    {"bf16_rate", bf16_rate, XPL_SERIES_PER_SECOND, true},
    {"utilization", utilization, XPL_SERIES_PERCENT, true},
    {"peak_memory", peak_memory, XPL_SERIES_BYTES, false},
};

enum { N_METRICS = sizeof metrics / sizeof *metrics };

const char *xpl_series_name(size_t i) {
    return i < N_METRICS ? metrics[i].name : NULL;
}

// ---- metrics of what a run has ----

// The rows of one name, of all shapes and places.  Rows are sorted by their first text, the name.
static bool sum_of(const struct xpl_run_summary *s, const struct xpl_run_rows *rows, xpl_str_t name,
                   double *ret) {
    uint64_t ps = 0;
    size_t first = 0, end = rows->n;
    while (first < end) {
        const size_t mid = first + (end - first) / 2;
        if (xpl_str_cmp(rows->v[mid].text[0], name) < 0)
            first = mid + 1;
        else
            end = mid;
    }
    while (end < rows->n && xpl_str_eq(rows->v[end].text[0], name))
        ps = xpl_run_add(ps, rows->v[end++].ps);
    *ret = s->units ? (double)ps / (double)s->units : 0;
    return end > first && s->units;
}

static bool time_of(const struct xpl_run_summary *s, xpl_str_t cause, double *ret) {
    for (size_t i = 0; i < s->times.n; i++) {
        if (!xpl_str_eq(s->times.v[i].cause, cause)) continue;
        *ret = s->units ? (double)s->times.v[i].ps / (double)s->units : 0;
        return s->units;
    }
    return false;
}

static bool memory_of(const struct xpl_run_summary *s, xpl_str_t allocator, double *ret) {
    bool any = false;
    *ret = 0;
    for (size_t i = 0; i < s->memory.n; i++) {
        if (!xpl_str_eq(s->memory.v[i].name, allocator)) continue;
        if ((double)s->memory.v[i].peak_bytes > *ret) *ret = (double)s->memory.v[i].peak_bytes;
        any = true;
    }
    return any;
}

static bool op_time(const struct xpl_run_summary *s, xpl_str_t name, double *ret) {
    return sum_of(s, &s->ops, name, ret);
}

static bool kernel_time(const struct xpl_run_summary *s, xpl_str_t name, double *ret) {
    return sum_of(s, &s->kernels, name, ret);
}

static bool op_name(const struct xpl_run_summary *s, size_t i, xpl_str_t *ret) {
    if (i < s->ops.n) *ret = s->ops.v[i].text[XPL_RUN_OP];
    return i < s->ops.n;
}

static bool kernel_name(const struct xpl_run_summary *s, size_t i, xpl_str_t *ret) {
    if (i < s->kernels.n) *ret = s->kernels.v[i].text[XPL_RUN_KERNEL];
    return i < s->kernels.n;
}

static bool allocator_name(const struct xpl_run_summary *s, size_t i, xpl_str_t *ret) {
    if (i < s->memory.n) *ret = s->memory.v[i].name;
    return i < s->memory.n;
}

static const struct xpl_series_part parts[] = {
    {"op:", "op", op_name, op_time, XPL_SERIES_PS},
    {"kernel:", "kernel", kernel_name, kernel_time, XPL_SERIES_PS},
    {"memory:", "allocator", allocator_name, memory_of, XPL_SERIES_BYTES},
};

const struct xpl_series_part *xpl_series_part_of(xpl_str_t metric, xpl_str_t *ret_name) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const xpl_str_t prefix = xpl_str_from(parts[i].prefix);
        if (!xpl_str_starts(metric, prefix)) continue;
        *ret_name = xpl_str_sub(metric, prefix.len, SIZE_MAX);
        return &parts[i];
    }
    return NULL;
}

bool xpl_series_get(const struct xpl_run_summary *run, xpl_str_t metric,
                    struct xpl_series_value *ret) {
    xpl_str_t name;
    *ret = (struct xpl_series_value){.kind = XPL_SERIES_PS};
    for (size_t i = 0; i < N_METRICS; i++) {
        if (!xpl_str_eq(metric, xpl_str_from(metrics[i].name))) continue;
        ret->kind = metrics[i].kind;
        ret->more_is_better = metrics[i].more_is_better;
        return metrics[i].get(run, &ret->v);
    }
    const struct xpl_series_part *const part = xpl_series_part_of(metric, &name);
    if (!part) return time_of(run, metric, &ret->v);
    ret->kind = part->kind;
    return part->get(run, name, &ret->v);
}

const char *xpl_series_better(enum xpl_series_kind kind, bool more_is_better) {
    if (kind == XPL_SERIES_COUNT) return "";
    return more_is_better ? "more" : "less";
}

// ---- all metrics of a run ----

struct listing {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_series_metric) v;
};

static bool list_value(struct listing *l, xpl_str_t metric, struct xpl_series_value value) {
    struct xpl_series_metric *const m = xpl_vec_push(l->arena, &l->v);
    if (m) *m = (struct xpl_series_metric){metric, value};
    return m;
}

// Names may have any bytes.
static bool join_name(struct listing *l, xpl_str_t prefix, xpl_str_t name, xpl_str_t *ret) {
    char *const p = xpl_arena_alloc(l->arena, prefix.len + name.len);
    if (!p) return false;
    memcpy(p, prefix.ptr, prefix.len);
    if (name.len) memcpy(p + prefix.len, name.ptr, name.len);
    *ret = (xpl_str_t){p, prefix.len + name.len};
    return true;
}

static bool list_metric(struct listing *l, const struct xpl_run_summary *run, xpl_str_t metric) {
    struct xpl_series_value value;
    return !xpl_series_get(run, metric, &value) || list_value(l, metric, value);
}

// Rows are sorted by their first text: those of one name stand together, and are added as sum_of
// adds them.
static bool list_rows(struct listing *l, const struct xpl_run_summary *run,
                      const struct xpl_run_rows *rows, xpl_str_t prefix) {
    for (size_t i = 0, k; i < rows->n && run->units; i = k) {
        const xpl_str_t name = rows->v[i].text[0];
        uint64_t ps = 0;
        xpl_str_t metric;
        for (k = i; k < rows->n && xpl_str_eq(rows->v[k].text[0], name); k++)
            ps = xpl_run_add(ps, rows->v[k].ps);
        const struct xpl_series_value value = {.kind = XPL_SERIES_PS,
                                               .v = (double)ps / (double)run->units};
        if (!join_name(l, prefix, name, &metric) || !list_value(l, metric, value)) return false;
    }
    return true;
}

static bool list_all(struct listing *l, const struct xpl_run_summary *run) {
    for (size_t i = 0; i < N_METRICS; i++)
        if (!list_metric(l, run, xpl_str_from(metrics[i].name))) return false;
    for (size_t i = 0; i < run->times.n; i++)
        if (!list_metric(l, run, run->times.v[i].cause)) return false;
    for (size_t i = 0; i < run->memory.n; i++) {
        xpl_str_t metric;
        if (!join_name(l, XPL_STR("memory:"), run->memory.v[i].name, &metric) ||
            !list_metric(l, run, metric))
            return false;
    }
    return list_rows(l, run, &run->ops, XPL_STR("op:")) &&
           list_rows(l, run, &run->kernels, XPL_STR("kernel:"));
}

xpl_status_t xpl_series_all(const struct xpl_run_summary *run, struct xpl_arena *arena,
                            struct xpl_series_metric **ret, size_t *ret_n, struct xpl_error *err) {
    struct listing l = {.arena = arena};
    if (!list_all(&l, run)) XPL_RETURN_OOM(err, "metrics");
    *ret = l.v.v;
    *ret_n = l.v.n;
    return XPL_OK;
}
