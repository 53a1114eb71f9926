// SPDX-License-Identifier: Apache-2.0
// Metrics over sessions as JSON (docs/cli-json.md).
#include "analysis/compare/series.h"

#include <inttypes.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/exec.h"
#include "base/json.h"
#include "base/text/near.h"
#include "base/vec.h"

// Runs of a side that are compared for the ops behind a change: those next to it.
enum { MOST_OF_SIDE = 16 };
// Each run is compared with the first one of as many programs.
enum { MOST_PROGRAMS = 16 };
// Of a name in an error, so that the proposed name has room, too.
enum { MAX_SHOWN = 80 };

// A metric of the runs that have it.
struct series {
    xpl_str_t metric;
    enum xpl_series_kind kind;
    bool more_is_better;
    double *v;
    const struct xpl_series_run **of; // of each value
    size_t n;
    const struct xpl_series_run **without; // that have no value
    size_t n_without;
    size_t *changes;
    size_t n_changes;
};

struct writing {
    const struct xpl_series_request *q;
    struct xpl_arena *arena;
    struct xpl_buf *out;
};

static xpl_status_t check_wanted(const struct xpl_series_request *q, struct xpl_error *err) {
    if (q->exec && xpl_exec_cancelled(q->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    return XPL_OK;
}

static void put_number(struct xpl_buf *out, const char *key, double v) {
    xpl_buf_printf(out, ",\"%s\":", key);
    xpl_json_proto_double(out, v);
}

static void put_percent(struct xpl_buf *out, const char *key, double before, double after) {
    if (before > 0)
        put_number(out, key, 100 * (after - before) / before);
    else
        xpl_buf_printf(out, ",\"%s\":null", key);
}

// ---- values ----

static int by_time(const void *a, const void *b) {
    const struct xpl_series_run *const x = a, *const y = b;
    if (x->captured_ms != y->captured_ms) return x->captured_ms < y->captured_ms ? -1 : 1;
    return xpl_str_cmp(x->session, y->session);
}

// Of a name that some run has only the time is unknown, as without steps: that is not an error.
static xpl_status_t check_name(const struct xpl_series_request *q,
                               const struct xpl_series_part *part, xpl_str_t name,
                               struct xpl_error *err) {
    struct xpl_near near = xpl_near_begin(name);
    char hint[XPL_NEAR_TEXT];
    xpl_str_t one;
    if (!name.len)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "metric \"%s\", character %zu: a name is missing", part->prefix,
                         xpl_str_from(part->prefix).len + 1);
    for (size_t i = 0; i < q->n_runs; i++) {
        XPL_TRY(check_wanted(q, err));
        for (size_t k = 0; q->runs[i].run && part->name(q->runs[i].run, k, &one); k++) {
            if (xpl_str_eq(one, name)) return XPL_OK;
            xpl_near_add(&near, one);
        }
    }
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no session has the %s \"%.*s\"%s", part->what,
                     XPL_STR_FMT(xpl_str_sub(name, 0, MAX_SHOWN)), xpl_near_text(&near, hint));
}

// Whether a metric that has no value in any run may be one all the same.
static xpl_status_t check_metric(const struct xpl_series_request *q, xpl_str_t metric,
                                 struct xpl_error *err) {
    xpl_str_t name;
    const struct xpl_series_part *const part = xpl_series_part_of(metric, &name);
    if (part) return check_name(q, part, name, err);
    struct xpl_near near = xpl_near_begin(metric);
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; xpl_series_name(i); i++)
        xpl_near_add(&near, xpl_str_from(xpl_series_name(i)));
    for (size_t i = 0; i < q->n_runs; i++)
        for (size_t k = 0; q->runs[i].run && k < q->runs[i].run->times.n; k++)
            xpl_near_add(&near, q->runs[i].run->times.v[k].cause);
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no session has the metric \"%.*s\"%s",
                     XPL_STR_FMT(metric), xpl_near_text(&near, hint));
}

static bool is_fixed(xpl_str_t metric) {
    for (size_t i = 0; xpl_series_name(i); i++)
        if (xpl_str_eq(metric, xpl_str_from(xpl_series_name(i)))) return true;
    return false;
}

static xpl_status_t read_series(const struct writing *w, xpl_str_t metric, struct series *ret,
                                struct xpl_error *err) {
    const size_t n = w->q->n_runs;
    size_t n_read = 0;
    *ret = (struct series){.metric = metric,
                           .v = xpl_arena_array(w->arena, n, sizeof *ret->v),
                           .of = xpl_arena_array(w->arena, n, sizeof(void *)),
                           .without = xpl_arena_array(w->arena, n, sizeof(void *)),
                           .changes = xpl_arena_array(w->arena, n, sizeof *ret->changes)};
    if (!ret->v || !ret->of || !ret->without || !ret->changes) XPL_RETURN_OOM(err, "history");
    const struct xpl_run_summary none = {0};
    struct xpl_series_value v;
    (void)xpl_series_get(&none, metric, &v);
    ret->kind = v.kind;
    ret->more_is_better = v.more_is_better;
    for (size_t i = 0; i < n; i++) {
        const struct xpl_series_run *const run = &w->q->runs[i];
        n_read += run->run != NULL;
        if (!run->run || !xpl_series_get(run->run, metric, &v)) {
            ret->without[ret->n_without++] = run;
            continue;
        }
        ret->v[ret->n] = v.v;
        ret->of[ret->n++] = run;
    }
    // Profiles may lack steps, a rate, or a use of memory; other metrics come only from profiles.
    if (n_read && !ret->n && !is_fixed(metric)) XPL_TRY(check_metric(w->q, metric, err));
    return xpl_series_changes(ret->v, ret->n, ret->changes, &ret->n_changes, err);
}

// ---- points ----

// Puts v among the n sorted values.
static void insert(double *sorted, size_t n, double v) {
    size_t i = n;
    for (; i > 0 && sorted[i - 1] > v; i--)
        sorted[i] = sorted[i - 1];
    sorted[i] = v;
}

static double median_of(const double *sorted, size_t n) {
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static xpl_status_t put_points(const struct writing *w, const struct series *s,
                               struct xpl_error *err) {
    double *const sorted = xpl_arena_array(w->arena, s->n, sizeof *sorted);
    if (!sorted) XPL_RETURN_OOM(err, "history");
    xpl_buf_str(w->out, XPL_STR(",\"points\":["));
    for (size_t i = 0; i < s->n; i++) {
        xpl_buf_str(w->out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(w->out, "session", s->of[i]->session);
        xpl_buf_printf(w->out, ",\"captured_unix_ms\":%" PRId64, s->of[i]->captured_ms);
        put_number(w->out, "value", s->v[i]);
        put_percent(w->out, "change_percent", i ? s->v[i - 1] : 0, s->v[i]);
        put_percent(w->out, "median_change_percent", i ? median_of(sorted, i) : 0, s->v[i]);
        xpl_buf_putc(w->out, '}');
        insert(sorted, i, s->v[i]);
    }
    xpl_buf_putc(w->out, ']');
    return XPL_OK;
}

// ---- sessions without a value ----

static bool is_of_steps(xpl_str_t metric) {
    return xpl_str_eq(metric, XPL_STR("step_time")) ||
           xpl_str_eq(metric, XPL_STR("step_deviation")) ||
           xpl_str_eq(metric, XPL_STR("longest_step"));
}

static bool did_nothing(const struct xpl_run_summary *s) {
    return !s->n_devices || (!s->busy_ps && !s->ops.n && !s->kernels.n);
}

static bool compiled_most(const struct xpl_run_summary *s) {
    return !s->steps.n && s->compile_ps && s->compile_ps >= s->wall_ps / s->n_devices / 2;
}

static xpl_str_t why_none(const struct xpl_series_run *r, xpl_str_t metric) {
    xpl_str_t name;
    const struct xpl_series_part *const part = xpl_series_part_of(metric, &name);
    if (!r->run) return r->error;
    if (did_nothing(r->run))
        return r->run->compile_ps ? XPL_STR("the host compiled; nothing ran on a device")
                                  : XPL_STR("no device events were recorded");
    if (compiled_most(r->run)) return XPL_STR("the host compiled most of the time");
    if (part && part->kind == XPL_SERIES_BYTES)
        return XPL_STR("the profile does not have this allocator");
    if (part) return XPL_STR("the profile has nothing of this name");
    if (is_of_steps(metric)) return XPL_STR("the profile has no steps, or too few");
    return XPL_STR("the profile does not say");
}

static void put_without(const struct writing *w, const struct series *s) {
    xpl_buf_str(w->out, XPL_STR(",\"without\":["));
    for (size_t i = 0; i < s->n_without; i++) {
        xpl_buf_str(w->out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(w->out, "session", s->without[i]->session);
        xpl_buf_putc(w->out, ',');
        xpl_json_field(w->out, "reason", why_none(s->without[i], s->metric));
        xpl_buf_putc(w->out, '}');
    }
    xpl_buf_putc(w->out, ']');
}

// ---- changes ----

static double mean_of(const struct series *s, size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += s->v[i];
    return sum / (double)(to - from);
}

static bool add_runs(struct xpl_run_group *g, const struct series *s, size_t from, size_t to,
                     struct xpl_arena *arena) {
    for (size_t i = from; i < to; i++)
        if (!xpl_run_group_add(g, s->of[i]->run, arena)) return false;
    return true;
}

// What grew where the change is for the worse, else what shrank.  Times tell nothing of memory, nor
// of the number of steps.
static xpl_status_t put_behind(const struct writing *w, const struct series *s, size_t k,
                               bool is_worse, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(w->arena->limit);
    struct xpl_run_group before = {0}, after = {0};
    const size_t at = s->changes[k];
    size_t from = k ? s->changes[k - 1] : 0, to = k + 1 < s->n_changes ? s->changes[k + 1] : s->n;
    if (s->kind == XPL_SERIES_BYTES || s->kind == XPL_SERIES_COUNT) {
        xpl_buf_str(w->out, XPL_STR(",\"times\":[],\"ops\":[],\"kernels\":[]"));
        return XPL_OK;
    }
    if (at - from > MOST_OF_SIDE) from = at - MOST_OF_SIDE;
    if (to - at > MOST_OF_SIDE) to = at + MOST_OF_SIDE;
    if (!add_runs(&before, s, from, at, &arena) || !add_runs(&after, s, at, to, &arena))
        XPL_RETURN_OOM(err, "history");
    return xpl_compare_put_behind(&before, &after, is_worse ? 1 : -1, &arena, w->out, err);
}

static xpl_status_t put_change(const struct writing *w, const struct series *s, size_t k,
                               struct xpl_error *err) {
    const size_t at = s->changes[k], from = k ? s->changes[k - 1] : 0,
                 to = k + 1 < s->n_changes ? s->changes[k + 1] : s->n;
    XPL_TRY(check_wanted(w->q, err));
    const double before = mean_of(s, from, at), after = mean_of(s, at, to);
    const bool is_worse =
        s->kind != XPL_SERIES_COUNT && (s->more_is_better ? after < before : after > before);
    xpl_buf_str(w->out, k ? XPL_STR(",{") : XPL_STR("{"));
    xpl_json_field(w->out, "session", s->of[at]->session);
    xpl_buf_printf(w->out, ",\"captured_unix_ms\":%" PRId64, s->of[at]->captured_ms);
    xpl_buf_printf(w->out, ",\"sessions_before\":%zu,\"sessions_after\":%zu", at - from, to - at);
    put_number(w->out, "before", before);
    put_number(w->out, "after", after);
    put_percent(w->out, "difference_percent", before, after);
    xpl_buf_printf(w->out, ",\"regression\":%s", is_worse ? "true" : "false");
    XPL_TRY(put_behind(w, s, k, is_worse, err));
    xpl_buf_putc(w->out, '}');
    return XPL_OK;
}

static xpl_status_t put_series(const struct writing *w, xpl_str_t metric, struct xpl_error *err) {
    struct series s;
    XPL_TRY(check_wanted(w->q, err));
    XPL_TRY(read_series(w, metric, &s, err));
    xpl_buf_putc(w->out, '{');
    xpl_json_field(w->out, "metric", metric);
    xpl_buf_printf(w->out, ",\"unit\":\"%s\",\"better\":\"%s\"", xpl_series_units[s.kind],
                   xpl_series_better(s.kind, s.more_is_better));
    XPL_TRY(put_points(w, &s, err));
    put_without(w, &s);
    xpl_buf_str(w->out, XPL_STR(",\"changes\":["));
    for (size_t k = 0; k < s.n_changes; k++)
        XPL_TRY(put_change(w, &s, k, err));
    xpl_buf_str(w->out, XPL_STR("]}"));
    return XPL_OK;
}

// ---- programs ----

// The part of a's time that is in ops which b has, too.  Both lists are sorted by name.
static double shared_part(const struct xpl_run_rows *a, const struct xpl_run_rows *b) {
    double all = 0, shared = 0;
    size_t k = 0;
    for (size_t i = 0; i < a->n; i++) {
        const xpl_str_t name = a->v[i].text[0];
        while (k < b->n && xpl_str_cmp(b->v[k].text[0], name) < 0)
            k++;
        all += (double)a->v[i].ps;
        if (k < b->n && xpl_str_eq(b->v[k].text[0], name)) shared += (double)a->v[i].ps;
    }
    return all > 0 ? shared / all : 0;
}

// Ops of one program keep their names (xpl_run_op_name); a changed program keeps most of them.
static bool are_alike(const struct xpl_run_summary *a, const struct xpl_run_summary *b) {
    const bool kernels = !a->ops.n || !b->ops.n;
    const struct xpl_run_rows *const x = kernels ? &a->kernels : &a->ops, *const y =
                                                                              kernels ? &b->kernels
                                                                                      : &b->ops;
    return !x->n || !y->n || shared_part(x, y) >= 0.5 || shared_part(y, x) >= 0.5;
}

// Each run is of the first program that it is like.
static xpl_status_t check_programs(const struct xpl_series_request *q, struct xpl_arena *arena,
                                   struct xpl_error *err) {
    const struct xpl_run_summary **const first = xpl_arena_array(arena, q->n_runs, sizeof(void *));
    size_t n = 0;
    if (!first) XPL_RETURN_OOM(err, "history");
    for (size_t i = 0; i < q->n_runs; i++) {
        const struct xpl_run_summary *const run = q->runs[i].run;
        size_t k = 0;
        if (!run || (!run->ops.n && !run->kernels.n)) continue;
        XPL_TRY(check_wanted(q, err));
        while (k < n && !are_alike(first[k], run))
            k++;
        if (k == n) first[n++] = run;
        if (n > MOST_PROGRAMS) break;
    }
    if (n > 1)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "these sessions are of %s%d programs: choose a label, a schedule or a "
                         "directory",
                         n > MOST_PROGRAMS ? "more than " : "",
                         n > MOST_PROGRAMS ? MOST_PROGRAMS : (int)n);
    return XPL_OK;
}

// ---- the document ----

static void put_sessions(const struct writing *w) {
    xpl_buf_str(w->out, XPL_STR("\"sessions\":["));
    for (size_t i = 0; i < w->q->n_runs; i++) {
        const struct xpl_series_run *const r = &w->q->runs[i];
        xpl_buf_str(w->out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(w->out, "session", r->session);
        xpl_buf_printf(w->out, ",\"captured_unix_ms\":%" PRId64 ",", r->captured_ms);
        xpl_json_field(w->out, "error", r->error);
        xpl_buf_putc(w->out, '}');
    }
    xpl_buf_putc(w->out, ']');
}

xpl_status_t xpl_series_json(const struct xpl_series_request *q, struct xpl_arena *arena,
                             struct xpl_buf *out, struct xpl_error *err) {
    const struct writing w = {q, arena, out};
    const xpl_str_t preset = XPL_STR("step_time");
    const size_t n = q->n_metrics ? q->n_metrics : 1;
    if (q->n_runs > XPL_SERIES_MOST)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%zu sessions: at most %d are followed",
                         q->n_runs, XPL_SERIES_MOST);
    if (q->n_metrics > XPL_SERIES_METRICS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%zu metrics: at most %d are followed",
                         q->n_metrics, XPL_SERIES_METRICS);
    xpl_sort(q->runs, q->n_runs, sizeof *q->runs, by_time);
    xpl_buf_printf(out, "{\"method\":\"optimal partitioning\",\"least_sessions\":%d,",
                   XPL_SERIES_LEAST);
    put_sessions(&w);
    xpl_buf_str(out, XPL_STR(",\"metrics\":["));
    for (size_t i = 0; i < n; i++) {
        if (i) xpl_buf_putc(out, ',');
        XPL_TRY(put_series(&w, q->n_metrics ? q->metrics[i] : preset, err));
        if (out->failed) XPL_RETURN_OOM(err, "history");
    }
    xpl_buf_str(out, XPL_STR("]}"));
    if (!q->selected) XPL_TRY(check_programs(q, arena, err)); // last: a wrong metric says more
    if (out->failed) XPL_RETURN_OOM(err, "history");
    return XPL_OK;
}
