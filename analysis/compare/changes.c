// SPDX-License-Identifier: Apache-2.0
// Changes of a level: optimal partitioning (Jackson et al., 2005) with the cost of a changing mean;
// then each change must be one by a t interval of the difference of its levels.
#include <assert.h>
#include <math.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/vec.h"

// What a further level must save: PENALTY times the variance of the noise times log n.  The noise
// comes from the differences of neighbours, which a change of the level hardly touches; below
// LEAST_NOISE of the values, changes are of no interest.
#define PENALTY     4.0
#define LEAST_NOISE 0.005
#define MAD_TO_STD  1.4826 // of normal noise

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
    xpl_sort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// `room` has n values; *ret_level is the median of the values' sizes.
static double noise_of(const double *v, size_t n, double *room, double *ret_level) {
    for (size_t i = 0; i + 1 < n; i++)
        room[i] = fabs(v[i + 1] - v[i]);
    const double deviation = MAD_TO_STD * median(room, n - 1) / sqrt(2);
    for (size_t i = 0; i < n; i++)
        room[i] = fabs(v[i]);
    *ret_level = median(room, n);
    const double least = LEAST_NOISE * *ret_level;
    return deviation > least ? deviation : least;
}

struct partition {
    double *sum, *squares; // of the first i values, less the first value
    double *cost;          // of the best partition of the first i values
    size_t *last;          // where its last stretch begins
    double penalty;
    double least_noise; // a standard deviation
};

// The squared distance of the values from their mean.
static double cost_of(const struct partition *p, size_t from, size_t to) {
    const double sum = p->sum[to] - p->sum[from], n = (double)(to - from);
    const double cost = p->squares[to] - p->squares[from] - sum * sum / n;
    return cost > 0 ? cost : 0;
}

static void add_up(struct partition *p, const double *v, size_t n) {
    p->sum[0] = p->squares[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = v[i] - v[0];
        p->sum[i + 1] = p->sum[i] + x;
        p->squares[i + 1] = p->squares[i] + x * x;
    }
}

static void divide(struct partition *p, size_t n) {
    p->cost[0] = -p->penalty;
    p->last[0] = 0;
    for (size_t to = 1; to <= n; to++) {
        p->cost[to] = (double)INFINITY;
        p->last[to] = 0;
        for (size_t from = 0; from + XPL_SERIES_SEGMENT <= to; from++) {
            const double cost = p->cost[from] + cost_of(p, from, to) + p->penalty;
            if (cost >= p->cost[to]) continue;
            p->cost[to] = cost;
            p->last[to] = from;
        }
    }
}

// ---- which changes hold ----

struct levels {
    const struct partition *p;
    size_t *start, n; // where levels but the first begin
    size_t end;
};

static size_t start_of(const struct levels *l, size_t level) {
    return level == 0 ? 0 : level > l->n ? l->end : l->start[level - 1];
}

static double mean_of(const struct partition *p, size_t from, size_t to) {
    return (p->sum[to] - p->sum[from]) / (double)(to - from);
}

// How many of its standard errors the difference of a level and the next one takes.
static double distance(const struct levels *l, size_t level, double deviation) {
    const size_t from = start_of(l, level), at = start_of(l, level + 1),
                 to = start_of(l, level + 2);
    const double error = deviation * sqrt(1 / (double)(at - from) + 1 / (double)(to - at));
    return error > 0 ? fabs(mean_of(l->p, at, to) - mean_of(l->p, from, at)) / error
                     : (double)INFINITY;
}

// The noise of all levels together has this many degrees of freedom.
static size_t freedom_of(const struct levels *l) {
    return l->end - l->n - 1;
}

static double deviation_of(const struct levels *l) {
    double cost = 0;
    for (size_t i = 0; i <= l->n; i++)
        cost += cost_of(l->p, start_of(l, i), start_of(l, i + 1));
    const double deviation = sqrt(cost / (double)freedom_of(l));
    return deviation > l->p->least_noise ? deviation : l->p->least_noise;
}

// Takes away the change that is the least certain, until all are: the interval of the difference
// excludes 0, at 95% for all places together where the change could have been (Bonferroni).
static void drop_uncertain(struct levels *l) {
    const double places = (double)(l->end - 2 * XPL_SERIES_SEGMENT + 1);
    while (l->n) {
        const double deviation = deviation_of(l);
        size_t worst = 0;
        double least = (double)INFINITY;
        for (size_t i = 0; i < l->n; i++) {
            const double d = distance(l, i, deviation);
            if (d < least) least = d, worst = i;
        }
        if (least > xpl_compare_student(1 - 0.025 / places, (double)freedom_of(l))) return;
        for (size_t i = worst; i + 1 < l->n; i++)
            l->start[i] = l->start[i + 1];
        l->n--;
    }
}

// ---- all of it ----

xpl_status_t xpl_series_changes(const double *v, size_t n, size_t *ret, size_t *ret_n,
                                struct xpl_error *err) {
    *ret_n = 0;
    assert(n <= XPL_SERIES_MOST);
    if (n < XPL_SERIES_LEAST) return XPL_OK;
    double *const room = xpl_sys_alloc(4 * (n + 1) * sizeof *room);
    size_t *const last = xpl_sys_alloc((n + 1) * sizeof *last);
    if (!room || !last) {
        xpl_sys_free(room);
        xpl_sys_free(last);
        XPL_RETURN_OOM(err, "changes");
    }
    double level;
    const double noise = noise_of(v, n, room, &level);
    struct partition p = {.sum = room,
                          .squares = room + n + 1,
                          .cost = room + 2 * (n + 1),
                          .last = last,
                          .penalty = PENALTY * noise * noise * log((double)n),
                          .least_noise = LEAST_NOISE * level};
    add_up(&p, v, n);
    divide(&p, n);
    for (size_t at = last[n]; at; at = last[at])
        ++*ret_n;
    size_t k = *ret_n;
    for (size_t at = last[n]; at; at = last[at])
        ret[--k] = at;
    struct levels l = {&p, ret, *ret_n, n};
    drop_uncertain(&l);
    *ret_n = l.n;
    xpl_sys_free(room);
    xpl_sys_free(last);
    return XPL_OK;
}
