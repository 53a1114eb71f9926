// SPDX-License-Identifier: Apache-2.0
// The comparison as JSON (docs/cli-json.md).
#include <inttypes.h>
#include <math.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/vec.h"

// What both sides have of one thing, per step and device.
struct pair {
    double a, b;             // ps or bytes
    double a_count, b_count; // occurrences
    bool in_a, in_b;
};

// A row of a table, ordered by the greatest difference.
struct row {
    struct pair pair;
    const struct xpl_run_row *what, *was; // `was`: of A, if B has it, too
    size_t index;                         // in the order of names: rows that tie keep it
};

struct sides {
    struct xpl_run_group *a, *b;
    const struct xpl_run_history *history; // or NULL
    struct xpl_arena *arena;
    struct xpl_buf *out;
};

// ---- numbers ----

static double per_unit(const struct xpl_run_summary *s, uint64_t sum) {
    return s->units ? (double)sum / (double)s->units : 0;
}

static void put_number(struct xpl_buf *out, const char *key, double v) {
    xpl_buf_printf(out, "\"%s\":", key);
    xpl_json_proto_double(out, v);
}

void xpl_run_put_known(struct xpl_buf *out, const char *key, double v, bool known) {
    if (known)
        put_number(out, key, v);
    else
        xpl_buf_printf(out, "\"%s\":null", key);
}

static void put_percent(struct xpl_buf *out, double a, double b) {
    xpl_run_put_known(out, "difference_percent", 100 * (b - a) / a, a > 0);
}

// "a_ps", "b_ps", "difference_ps" of a pair.
static void put_times(struct xpl_buf *out, const struct pair *p) {
    put_number(out, "a_ps", p->a);
    xpl_buf_putc(out, ',');
    put_number(out, "b_ps", p->b);
    xpl_buf_putc(out, ',');
    put_number(out, "difference_ps", p->b - p->a);
}

static void put_total(struct xpl_buf *out, const char *key, const struct pair *p) {
    xpl_buf_printf(out, ",\"%s\":{", key);
    put_times(out, p);
    xpl_buf_putc(out, ',');
    put_percent(out, p->a, p->b);
    xpl_buf_putc(out, '}');
}

static void put_state(struct xpl_buf *out, const struct pair *p) {
    xpl_buf_printf(out, "\"state\":\"%s\",",
                   p->in_a && p->in_b ? "both"
                   : p->in_b          ? "new"
                                      : "vanished");
}

static void put_counts(struct xpl_buf *out, const struct pair *p) {
    xpl_buf_putc(out, ',');
    put_number(out, "a_count", p->a_count);
    xpl_buf_putc(out, ',');
    put_number(out, "b_count", p->b_count);
    xpl_buf_putc(out, '}');
}

// ---- steps ----

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Sorts the steps of all runs, whose order tells nothing.
static void put_side(struct xpl_buf *out, const char *key, struct xpl_run_group *g) {
    struct xpl_run_summary *const s = &g->all;
    xpl_sort(s->steps.v, s->steps.n, sizeof *s->steps.v, by_value);
    xpl_buf_printf(out,
                   "\"%s\":{\"runs\":%" PRIu64 ",\"hosts\":%" PRIu64 ",\"devices\":%" PRIu64
                   ",\"steps\":%zu,",
                   key, g->n_runs, s->n_hosts, s->n_devices, s->steps.n);
    xpl_run_put_known(out, "mean_step_ps", xpl_compare_mean(s->steps.v, s->steps.n), s->steps.n);
    xpl_buf_putc(out, ',');
    xpl_run_put_known(out, "median_step_ps", xpl_compare_median(s->steps.v, s->steps.n),
                      s->steps.n);
    xpl_buf_putc(out, ',');
    xpl_run_put_known(out, "std_step_ps", xpl_compare_deviation(s->steps.v, s->steps.n),
                      s->steps.n > 1);
    xpl_buf_str(out, XPL_STR(",\"series\":["));
    for (size_t i = 0; i < s->series.n; i++) {
        const struct xpl_run_series *const l = &s->series.v[i];
        xpl_buf_str(out, i ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(out, "name", l->name);
        xpl_buf_printf(out, ",\"steps\":%" PRIu64 ",", l->n_steps);
        xpl_run_put_known(out, "mean_step_ps", (double)l->ps / (double)l->n_steps, l->n_steps);
        xpl_buf_putc(out, '}');
    }
    xpl_buf_str(out, XPL_STR("]},"));
}

static const char *const noise_names[] = {[XPL_NOISE_NONE] = "null",
                                          [XPL_NOISE_STEPS] = "\"steps\"",
                                          [XPL_NOISE_HISTORY] = "\"history\"",
                                          [XPL_NOISE_RUNS] = "\"runs\""};

static void put_ends(struct xpl_buf *out, const char *key, double v, double half, bool known) {
    xpl_buf_printf(out, ",\"%s\":", key);
    if (!known) {
        xpl_buf_str(out, XPL_STR("null"));
        return;
    }
    xpl_buf_putc(out, '[');
    xpl_json_proto_double(out, v - half);
    xpl_buf_putc(out, ',');
    xpl_json_proto_double(out, v + half);
    xpl_buf_putc(out, ']');
}

// Interval, detectable difference and source of the noise, of a difference from `a` to `b`.
static void put_estimate(struct xpl_buf *out, const struct xpl_compare_estimate *e, double a,
                         double b) {
    const bool known = e->has_interval, percent = known && a > 0;
    put_ends(out, "interval_ps", b - a, e->half, known);
    put_ends(out, "interval_percent", percent ? 100 * (b - a) / a : 0,
             percent ? 100 * e->half / a : 0, percent);
    xpl_buf_putc(out, ',');
    xpl_run_put_known(out, "detectable_ps", e->detectable, known);
    xpl_buf_putc(out, ',');
    xpl_run_put_known(out, "detectable_percent", percent ? 100 * e->detectable / a : 0, percent);
    xpl_buf_printf(out, ",\"noise\":%s", noise_names[e->noise]);
}

static xpl_status_t put_metric(const struct sides *s, const char *metric, struct xpl_error *err) {
    struct xpl_compare_estimate e;
    XPL_TRY(xpl_compare_groups(s->a, s->b, s->history, xpl_str_from(metric), s->arena, &e, err));
    xpl_buf_printf(s->out, "\"%s\":{", metric);
    xpl_run_put_known(s->out, "a_ps", e.a, e.known);
    xpl_buf_putc(s->out, ',');
    xpl_run_put_known(s->out, "b_ps", e.b, e.known);
    xpl_buf_putc(s->out, ',');
    xpl_run_put_known(s->out, "difference_ps", e.b - e.a, e.known);
    xpl_buf_putc(s->out, ',');
    put_percent(s->out, e.known ? e.a : 0, e.b);
    put_estimate(s->out, &e, e.a, e.b);
    xpl_buf_printf(s->out, ",\"least_steps\":%d}", XPL_COMPARE_LEAST_STEPS);
    return XPL_OK;
}

static xpl_status_t put_step_times(const struct sides *s, struct xpl_error *err) {
    const struct xpl_run_history *const h = s->history;
    xpl_buf_str(s->out, XPL_STR("\"history\":"));
    if (h) {
        xpl_buf_putc(s->out, '{');
        xpl_json_field(s->out, "label", h->label);
        xpl_buf_printf(s->out, ",\"sessions\":%zu},", h->n);
    } else {
        xpl_buf_str(s->out, XPL_STR("null,"));
    }
    XPL_TRY(put_metric(s, "step_time", err));
    xpl_buf_putc(s->out, ',');
    return put_metric(s, "median_step_time", err);
}

// ---- the time breakdown ----

static double time_of(const struct xpl_run_summary *s, xpl_str_t cause, bool *ret_has) {
    for (size_t i = 0; i < s->times.n; i++)
        if (xpl_str_eq(s->times.v[i].cause, cause)) {
            *ret_has = true;
            return per_unit(s, s->times.v[i].ps);
        }
    *ret_has = false;
    return 0;
}

static xpl_status_t put_cause(const struct sides *s, xpl_str_t cause, const struct pair *p,
                              struct pair *total, struct xpl_error *err) {
    struct xpl_compare_estimate e;
    XPL_TRY(xpl_compare_groups(s->a, s->b, s->history, cause, s->arena, &e, err));
    if (s->out->p[s->out->n - 1] == '}') xpl_buf_putc(s->out, ',');
    xpl_buf_putc(s->out, '{');
    xpl_json_field(s->out, "cause", cause);
    xpl_buf_putc(s->out, ',');
    put_times(s->out, p);
    xpl_buf_putc(s->out, ',');
    put_percent(s->out, p->a, p->b);
    put_estimate(s->out, &e, p->a, p->b);
    xpl_buf_putc(s->out, '}');
    total->a += p->a;
    total->b += p->b;
    return XPL_OK;
}

// Summaries of two versions may have other causes, or another order.
static xpl_status_t put_causes(const struct sides *s, struct xpl_error *err) {
    const struct xpl_run_summary *const a = &s->a->all, *const b = &s->b->all;
    struct pair total = {0}, p = {0};
    xpl_buf_str(s->out, XPL_STR(",\"times\":["));
    for (size_t i = 0; i < a->times.n && !s->out->failed; i++) {
        p.a = per_unit(a, a->times.v[i].ps);
        p.b = time_of(b, a->times.v[i].cause, &p.in_b);
        XPL_TRY(put_cause(s, a->times.v[i].cause, &p, &total, err));
    }
    for (size_t i = 0; i < b->times.n && !s->out->failed; i++) {
        p.a = time_of(a, b->times.v[i].cause, &p.in_a);
        p.b = per_unit(b, b->times.v[i].ps);
        if (!p.in_a) XPL_TRY(put_cause(s, b->times.v[i].cause, &p, &total, err));
    }
    xpl_buf_putc(s->out, ']');
    put_total(s->out, "times_total", &total);
    return XPL_OK;
}

// ---- ops and kernels ----

static int by_difference(const void *a, const void *b) {
    const struct row *const x = a, *const y = b;
    const double p = fabs(x->pair.b - x->pair.a), q = fabs(y->pair.b - y->pair.a);
    if (p != q) return p < q ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

struct rows {
    struct row *v;
    size_t n;
    struct pair total;
};

// Which rows are listed.
struct choice {
    size_t most;
    int sign;      // 1: those that grew, -1: those that shrank, 0: all
    double enough; // of their differences together
};
static const struct choice everything = {SIZE_MAX, 0, (double)INFINITY};

static bool is_chosen(const struct choice *c, const struct pair *p) {
    return !c->sign || (c->sign > 0 ? p->b > p->a : p->b < p->a);
}

static void add_row(struct rows *r, const struct xpl_run_pair *rows, const struct pair *p) {
    r->v[r->n] = (struct row){
        .pair = *p, .what = rows->b ? rows->b : rows->a, .was = rows->a, .index = r->n};
    r->n++;
    r->total.a += p->a;
    r->total.b += p->b;
}

static void put_op(struct xpl_buf *out, const struct xpl_run_row *o) {
    xpl_json_field(out, "op", o->text[XPL_RUN_OP]);
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "category", o->text[XPL_RUN_CATEGORY]);
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "source_file", o->text[XPL_RUN_SOURCE_FILE]);
    xpl_buf_printf(out, ",\"source_line\":%" PRIu64 ",", o->source_line);
    xpl_json_field(out, "shape", o->text[XPL_RUN_SHAPE]);
}

static void put_kernel(struct xpl_buf *out, const struct xpl_run_row *k) {
    xpl_json_field(out, "kernel", k->text[XPL_RUN_KERNEL]);
    xpl_buf_putc(out, ',');
    xpl_json_field(out, "op", k->text[XPL_RUN_KERNEL_OP]);
}

// What A calls a row that B calls otherwise, or empty.
static void put_former_name(struct xpl_buf *out, const struct row *r) {
    const bool other = r->was && !xpl_str_eq(r->was->text[0], r->what->text[0]);
    xpl_json_field(out, "a_name", other ? r->was->text[0] : XPL_STR(""));
    xpl_buf_putc(out, ',');
}

// The greatest difference first.  Of everything the differences add up to that of the total.
static void put_rows(struct xpl_buf *out, const char *key, struct rows *r,
                     void (*put)(struct xpl_buf *, const struct xpl_run_row *),
                     const struct choice *choice) {
    size_t n = 0;
    double sum = 0;
    xpl_sort(r->v, r->n, sizeof *r->v, by_difference);
    xpl_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < r->n && n < choice->most && sum < choice->enough; i++) {
        if (!is_chosen(choice, &r->v[i].pair)) continue;
        sum += fabs(r->v[i].pair.b - r->v[i].pair.a);
        xpl_buf_str(out, n++ ? XPL_STR(",{") : XPL_STR("{"));
        put(out, r->v[i].what);
        xpl_buf_putc(out, ',');
        put_former_name(out, &r->v[i]);
        put_state(out, &r->v[i].pair);
        put_times(out, &r->v[i].pair);
        put_counts(out, &r->v[i].pair);
    }
    xpl_buf_putc(out, ']');
}

static xpl_status_t match(const struct sides *s, const struct xpl_run_rows *a,
                          const struct xpl_run_rows *b, struct rows *r, struct xpl_error *err) {
    struct xpl_run_pair *pairs;
    size_t n;
    XPL_TRY(xpl_run_rows_match(a, b, a == &s->a->all.kernels, s->arena, &pairs, &n, err));
    *r = (struct rows){.v = xpl_arena_array(s->arena, n, sizeof *r->v)};
    if (!r->v) XPL_RETURN_OOM(err, "comparison");
    for (size_t i = 0; i < n; i++) {
        const struct xpl_run_row *const x = pairs[i].a, *const y = pairs[i].b;
        struct pair p = {.in_a = x != NULL, .in_b = y != NULL};
        if (x) p.a = per_unit(&s->a->all, x->ps), p.a_count = per_unit(&s->a->all, x->count);
        if (y) p.b = per_unit(&s->b->all, y->ps), p.b_count = per_unit(&s->b->all, y->count);
        add_row(r, &pairs[i], &p);
    }
    return XPL_OK;
}

static xpl_status_t put_ops(const struct sides *s, struct xpl_error *err) {
    struct rows r;
    XPL_TRY(match(s, &s->a->all.ops, &s->b->all.ops, &r, err));
    put_rows(s->out, "ops", &r, put_op, &everything);
    put_total(s->out, "ops_total", &r.total);
    XPL_TRY(match(s, &s->a->all.kernels, &s->b->all.kernels, &r, err));
    put_rows(s->out, "kernels", &r, put_kernel, &everything);
    put_total(s->out, "kernels_total", &r.total);
    return XPL_OK;
}

// ---- memory ----

static void put_allocator(struct xpl_buf *out, const struct xpl_run_memory *a,
                          const struct xpl_run_memory *b) {
    const struct pair p = {.in_a = a != NULL, .in_b = b != NULL};
    const uint64_t x = a ? a->peak_bytes : 0, y = b ? b->peak_bytes : 0;
    if (out->n && out->p[out->n - 1] == '}') xpl_buf_putc(out, ',');
    xpl_buf_putc(out, '{');
    xpl_json_field(out, "allocator", a ? a->name : b->name);
    xpl_buf_putc(out, ',');
    put_state(out, &p);
    xpl_buf_printf(out, "\"a_peak_bytes\":%" PRIu64 ",\"b_peak_bytes\":%" PRIu64 ",", x, y);
    put_number(out, "difference_bytes", (double)y - (double)x);
    xpl_buf_putc(out, ',');
    put_percent(out, (double)x, (double)y);
    xpl_buf_putc(out, '}');
}

static void put_memory(const struct sides *s) {
    const struct xpl_run_summary *const a = &s->a->all, *const b = &s->b->all;
    xpl_buf_str(s->out, XPL_STR(",\"memory\":["));
    for (size_t i = 0, k = 0; i < a->memory.n || k < b->memory.n;) {
        const struct xpl_run_memory *const x = i < a->memory.n ? &a->memory.v[i] : NULL;
        const struct xpl_run_memory *const y = k < b->memory.n ? &b->memory.v[k] : NULL;
        const int c = !x ? 1 : !y ? -1 : xpl_str_cmp(x->name, y->name);
        put_allocator(s->out, c <= 0 ? x : NULL, c >= 0 ? y : NULL);
        i += c <= 0;
        k += c >= 0;
    }
    xpl_buf_putc(s->out, ']');
}

xpl_status_t xpl_compare_json(struct xpl_run_group *a, struct xpl_run_group *b,
                              const struct xpl_run_history *h, struct xpl_arena *arena,
                              struct xpl_buf *out, struct xpl_error *err) {
    const struct sides s = {a, b, h, arena, out};
    xpl_run_summary_join(&a->all);
    xpl_run_summary_join(&b->all);
    xpl_buf_putc(out, '{');
    put_side(out, "a", a);
    put_side(out, "b", b);
    XPL_TRY(put_step_times(&s, err));
    XPL_TRY(put_causes(&s, err));
    XPL_TRY(put_ops(&s, err));
    put_memory(&s);
    xpl_buf_putc(out, '}');
    if (out->failed) XPL_RETURN_OOM(err, "comparison");
    return XPL_OK;
}

// ---- the causes of a change ----

// Causes in which ops run: by as much as they grow, ops do.
static bool is_of_ops(xpl_str_t cause) {
    static const char *const names[] = {"compute", "overlapped_collectives", "exposed_collectives",
                                        "device_copies"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (xpl_str_eq(cause, xpl_str_from(names[i]))) return true;
    return false;
}

// The part of a listing of causes.
struct cause {
    xpl_str_t name;
    struct pair pair;
};

static int by_growth(const void *a, const void *b) {
    const struct cause *const x = a, *const y = b;
    const double p = fabs(x->pair.b - x->pair.a), q = fabs(y->pair.b - y->pair.a);
    return p != q ? (p < q ? 1 : -1) : xpl_str_cmp(x->name, y->name);
}

// Lists the causes that changed in the direction of `sign`, the greatest first, without those of
// less than 1% of them all.  *ret_all is by how much they did, *ret_ops the part of the ops.
static xpl_status_t put_causes_behind(const struct sides *s, int sign, double *ret_all,
                                      double *ret_ops, struct xpl_error *err) {
    const struct xpl_run_summary *const a = &s->a->all, *const b = &s->b->all;
    struct cause *const v = xpl_arena_array(s->arena, b->times.n, sizeof *v);
    size_t n = 0, listed = 0;
    if (!v) XPL_RETURN_OOM(err, "history");
    for (size_t i = 0; i < b->times.n; i++) {
        struct pair p = {.b = per_unit(b, b->times.v[i].ps)};
        p.a = time_of(a, b->times.v[i].cause, &p.in_a);
        if (is_of_ops(b->times.v[i].cause)) *ret_ops += sign * (p.b - p.a);
        if (!(sign * (p.b - p.a) > 0)) continue;
        *ret_all += sign * (p.b - p.a);
        v[n++] = (struct cause){b->times.v[i].cause, p};
    }
    xpl_sort(v, n, sizeof *v, by_growth);
    xpl_buf_str(s->out, XPL_STR(",\"times\":["));
    for (size_t i = 0; i < n; i++) {
        if (sign * (v[i].pair.b - v[i].pair.a) < *ret_all / 100) break;
        xpl_buf_str(s->out, listed++ ? XPL_STR(",{") : XPL_STR("{"));
        xpl_json_field(s->out, "cause", v[i].name);
        xpl_buf_putc(s->out, ',');
        put_times(s->out, &v[i].pair);
        xpl_buf_putc(s->out, ',');
        put_percent(s->out, v[i].pair.a, v[i].pair.b);
        xpl_buf_putc(s->out, '}');
    }
    xpl_buf_putc(s->out, ']');
    return XPL_OK;
}

// Time in ops of each run.
static bool op_times(const struct xpl_run_group *g, struct xpl_arena *arena,
                     struct xpl_compare_values *ret) {
    *ret =
        (struct xpl_compare_values){xpl_arena_zalloc(arena, g->runs.n * sizeof(double)), g->runs.n};
    for (size_t i = 0; ret->v && i < g->runs.n; i++) {
        const struct xpl_run_summary *const run = g->runs.v[i];
        for (size_t k = 0; k < run->times.n; k++)
            if (is_of_ops(run->times.v[k].cause)) ret->v[i] += per_unit(run, run->times.v[k].ps);
    }
    return ret->v;
}

// Whether the interval of their difference is on the side of `sign`.
static xpl_status_t have_ops_changed(const struct sides *s, int sign, bool *ret,
                                     struct xpl_error *err) {
    struct xpl_compare_sides v = {0};
    struct xpl_compare_estimate e;
    if (!op_times(s->a, s->arena, &v.a) || !op_times(s->b, s->arena, &v.b))
        XPL_RETURN_OOM(err, "history");
    XPL_TRY(xpl_compare_estimate(&v, s->arena, &e, err));
    *ret = e.has_interval && sign * (e.b - e.a) > e.half;
    return XPL_OK;
}

#define LEAST_PART 0.1 // of the causes' change, for ops to explain any of it

xpl_status_t xpl_compare_put_behind(struct xpl_run_group *a, struct xpl_run_group *b, int sign,
                                    struct xpl_arena *arena, struct xpl_buf *out,
                                    struct xpl_error *err) {
    const struct sides s = {.a = a, .b = b, .arena = arena, .out = out};
    double all = 0, of_ops = 0;
    bool changed = true;
    struct rows r;
    XPL_TRY(put_causes_behind(&s, sign, &all, &of_ops, err));
    if (b->all.times.n) XPL_TRY(have_ops_changed(&s, sign, &changed, err));
    if (b->all.times.n && (!changed || of_ops < LEAST_PART * all)) {
        xpl_buf_str(out, XPL_STR(",\"ops\":[],\"kernels\":[]"));
        return XPL_OK;
    }
    const struct choice choice = {XPL_COMPARE_BEHIND, sign,
                                  b->all.times.n ? of_ops : (double)INFINITY};
    xpl_run_summary_join(&a->all);
    xpl_run_summary_join(&b->all);
    XPL_TRY(match(&s, &a->all.ops, &b->all.ops, &r, err));
    put_rows(out, "ops", &r, put_op, &choice);
    XPL_TRY(match(&s, &a->all.kernels, &b->all.kernels, &r, err));
    put_rows(out, "kernels", &r, put_kernel, &choice);
    return XPL_OK;
}
