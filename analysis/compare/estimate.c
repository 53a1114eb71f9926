// SPDX-License-Identifier: Apache-2.0
// The difference of two groups of runs and its 95% interval: Welch's t interval, with a run as one
// value (docs/compare.md).
#include <math.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/vec.h"

#define COVERED 0.975 // of a 95% interval, up to its upper end
#define SEEN    0.9   // of the differences that are as large as the detectable one

// ---- a run's value ----

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The steps that count: where there are enough, without the first and the last one.
static const uint64_t *counted(const struct xpl_run_summary *s, size_t *ret_n) {
    const size_t cut = s->steps.n >= XPL_COMPARE_LEAST_STEPS;
    *ret_n = s->steps.n - 2 * cut;
    return cut ? s->steps.v + 1 : s->steps.v;
}

static bool mean_step(const struct xpl_run_summary *s, double *ret) {
    size_t n;
    const uint64_t *const v = counted(s, &n);
    *ret = xpl_compare_mean(v, n);
    return n;
}

static bool median_step(const struct xpl_run_summary *s, struct xpl_arena *arena, double *ret) {
    size_t n;
    const uint64_t *const v = counted(s, &n);
    uint64_t *const sorted = n ? xpl_arena_array(arena, n, sizeof *sorted) : NULL;
    if (!sorted) return false;
    for (size_t i = 0; i < n; i++)
        sorted[i] = v[i];
    xpl_sort(sorted, n, sizeof *sorted, by_value);
    *ret = xpl_compare_median(sorted, n);
    return true;
}

static bool value_of(const struct xpl_run_summary *s, xpl_str_t metric, struct xpl_arena *arena,
                     double *ret) {
    struct xpl_series_value v;
    if (xpl_str_eq(metric, XPL_STR("step_time"))) return mean_step(s, ret);
    if (xpl_str_eq(metric, XPL_STR("median_step_time"))) return median_step(s, arena, ret);
    const bool known = xpl_series_get(s, metric, &v);
    *ret = v.v;
    return known;
}

bool xpl_compare_values(const struct xpl_run_summary *const *runs, size_t n, xpl_str_t metric,
                        struct xpl_arena *arena, struct xpl_compare_values *ret) {
    *ret = (struct xpl_compare_values){.v = xpl_arena_array(arena, n, sizeof *ret->v)};
    if (!ret->v) return false;
    for (size_t i = 0; i < n; i++)
        ret->n += value_of(runs[i], metric, arena, &ret->v[ret->n]);
    return true;
}

// ---- variances ----

static double mean_of(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

static double squares_of(const double *v, size_t n) {
    const double mean = mean_of(v, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (v[i] - mean) * (v[i] - mean);
    return sum;
}

struct noise {
    double variance, freedom; // of one run; no freedom: not known
    double level;             // the mean of the runs that it is of
};

// Noise grows with the level: the estimate of other runs, for a run of this level.
static double variance_at(const struct noise *n, double level) {
    const double ratio = n->level > 0 && level > n->level ? level / n->level : 1;
    return n->variance * ratio * ratio;
}

static struct noise noise_of_runs(const struct xpl_compare_values *v) {
    const double freedom = v->n > 1 ? (double)(v->n - 1) : 0;
    return (struct noise){freedom > 0 ? squares_of(v->v, v->n) / freedom : 0, freedom,
                          mean_of(v->v, v->n)};
}

// Levels of the history have different means: a change is not noise. The noise of each is taken
// relative to its mean, where they have one, and is then that of the newest level.
static xpl_status_t noise_of_history(const struct xpl_compare_values *v, struct xpl_arena *arena,
                                     struct noise *ret, struct xpl_error *err) {
    size_t *const starts = xpl_arena_array(arena, v->n + 1, sizeof *starts), n = 0, from = 0;
    double squares = 0, relative = 0, level = 0;
    bool positive = true;
    if (!starts) XPL_RETURN_OOM(err, "comparison");
    XPL_TRY(xpl_series_changes(v->v, v->n, starts, &n, err));
    starts[n] = v->n;
    for (size_t i = 0; i <= n; from = starts[i++]) {
        const double part = squares_of(v->v + from, starts[i] - from);
        level = mean_of(v->v + from, starts[i] - from);
        positive = positive && level > 0;
        squares += part;
        relative += positive ? part / (level * level) : 0;
    }
    *ret = (struct noise){.level = level};
    if (v->n < n + 1 + XPL_COMPARE_LEAST_FREEDOM) return XPL_OK;
    ret->freedom = (double)(v->n - n - 1);
    ret->variance = (positive ? relative * level * level : squares) / ret->freedom;
    return XPL_OK;
}

// Of one run: how far the mean of its steps is from what more steps would give, if they are
// independent.
static struct noise noise_of_steps(const struct xpl_run_summary *run) {
    size_t n;
    const uint64_t *const v = counted(run, &n);
    const double deviation = xpl_compare_deviation(v, n);
    if (run->steps.n < XPL_COMPARE_LEAST_STEPS) return (struct noise){0};
    return (struct noise){deviation * deviation / (double)n, (double)(n - 1), 0};
}

// ---- the interval ----

// Welch's: each part is the variance of a mean, with the freedom of its estimate.  Two sides with
// one estimate are one part, as they do not err independently.
static void put_interval(const struct noise parts[2], struct xpl_compare_estimate *e) {
    double sum = 0, below = 0;
    for (size_t i = 0; i < 2; i++) {
        sum += parts[i].variance;
        if (parts[i].freedom > 0) below += parts[i].variance * parts[i].variance / parts[i].freedom;
    }
    e->has_interval = true;
    if (!(sum > 0)) return;
    const double freedom = sum * sum / below, t = xpl_compare_student(COVERED, freedom);
    e->half = t * sqrt(sum);
    e->detectable = (t + xpl_compare_student(SEEN, freedom)) * sqrt(sum);
}

static void use_steps(const struct xpl_compare_sides *s, struct xpl_compare_estimate *e) {
    if (!s->one_a || !s->one_b) return;
    const struct noise parts[2] = {noise_of_steps(s->one_a), noise_of_steps(s->one_b)};
    if (!(parts[0].freedom > 0) || !(parts[1].freedom > 0)) return;
    e->noise = XPL_NOISE_STEPS;
    put_interval(parts, e);
}

// A side of few runs has the noise of the history, and one run without a history that of the other
// side's runs.
static void choose(const struct xpl_compare_sides *s, const struct noise *history,
                   struct xpl_compare_estimate *e) {
    const struct noise own[2] = {noise_of_runs(&s->a), noise_of_runs(&s->b)}, *from[2];
    const double n[2] = {(double)s->a.n, (double)s->b.n}, level[2] = {e->a, e->b};
    struct noise parts[2];
    for (size_t i = 0; i < 2; i++)
        from[i] = n[i] < XPL_COMPARE_LEAST_RUNS && history->freedom > 0 ? history : &own[i];
    for (size_t i = 0; i < 2; i++)
        if (!(from[i]->freedom > 0)) from[i] = from[1 - i];
    if (!(from[0]->freedom > 0)) {
        use_steps(s, e);
        return;
    }
    e->noise = from[0] == history || from[1] == history ? XPL_NOISE_HISTORY : XPL_NOISE_RUNS;
    for (size_t i = 0; i < 2; i++)
        parts[i] = (struct noise){variance_at(from[i], level[i]) / n[i], from[i]->freedom, 0};
    if (from[0] == from[1]) {
        parts[0].variance += parts[1].variance;
        parts[1] = (struct noise){0};
    }
    put_interval(parts, e);
}

xpl_status_t xpl_compare_estimate(const struct xpl_compare_sides *s, struct xpl_arena *arena,
                                  struct xpl_compare_estimate *ret, struct xpl_error *err) {
    struct noise history = {0};
    *ret = (struct xpl_compare_estimate){
        .a = mean_of(s->a.v, s->a.n), .b = mean_of(s->b.v, s->b.n), .known = s->a.n && s->b.n};
    if (!ret->known) return XPL_OK;
    if (s->history.n) XPL_TRY(noise_of_history(&s->history, arena, &history, err));
    choose(s, &history, ret);
    return XPL_OK;
}

xpl_status_t xpl_compare_groups(const struct xpl_run_group *a, const struct xpl_run_group *b,
                                const struct xpl_run_history *h, xpl_str_t metric,
                                struct xpl_arena *arena, struct xpl_compare_estimate *ret,
                                struct xpl_error *err) {
    struct xpl_compare_sides s = {0};
    if (!xpl_compare_values(a->runs.v, a->runs.n, metric, arena, &s.a) ||
        !xpl_compare_values(b->runs.v, b->runs.n, metric, arena, &s.b) ||
        (h && !xpl_compare_values(h->runs, h->n, metric, arena, &s.history)))
        XPL_RETURN_OOM(err, "comparison");
    if (xpl_str_eq(metric, XPL_STR("step_time")) && a->runs.n == 1 && b->runs.n == 1) {
        s.one_a = a->runs.v[0];
        s.one_b = b->runs.v[0];
    }
    return xpl_compare_estimate(&s, arena, ret, err);
}
