// SPDX-License-Identifier: Apache-2.0
// The comparison as JSON (docs/cli-json.md).
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/json.h"

// What both sides have of one thing, per step and device.
struct pair {
    double a, b;             // ps or bytes
    double a_count, b_count; // occurrences
    bool in_a, in_b;
};

// A row of a table, ordered by the greatest difference.
struct row {
    struct pair pair;
    const struct xpl_run_row *what;
    size_t index; // in the order of names: rows that tie keep it
};

struct sides {
    struct xpl_run_group *a, *b;
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

// Sorts the steps: the interval does not depend on their order, nor does a mean.
static void put_side(struct xpl_buf *out, const char *key, struct xpl_run_group *g) {
    struct xpl_run_summary *const s = &g->all;
    if (s->steps.n) qsort(s->steps.v, s->steps.n, sizeof *s->steps.v, by_value);
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

static xpl_status_t put_step_time(const struct sides *s, struct xpl_error *err) {
    const struct xpl_run_summary *const a = &s->a->all, *const b = &s->b->all;
    const double x = xpl_compare_mean(a->steps.v, a->steps.n),
                 y = xpl_compare_mean(b->steps.v, b->steps.n);
    double ends[2];
    bool known;
    XPL_TRY(xpl_compare_interval(a, b, ends, &known, err));
    xpl_buf_str(s->out, XPL_STR("\"step_time\":{"));
    xpl_run_put_known(s->out, "difference_ps", y - x, a->steps.n && b->steps.n);
    xpl_buf_putc(s->out, ',');
    put_percent(s->out, b->steps.n ? x : 0, y);
    xpl_buf_str(s->out, XPL_STR(",\"interval_ps\":"));
    if (known) {
        xpl_buf_putc(s->out, '[');
        xpl_json_proto_double(s->out, ends[0]);
        xpl_buf_putc(s->out, ',');
        xpl_json_proto_double(s->out, ends[1]);
        xpl_buf_putc(s->out, ']');
    } else {
        xpl_buf_str(s->out, XPL_STR("null"));
    }
    xpl_buf_printf(s->out, ",\"least_steps\":%d}", XPL_COMPARE_LEAST_STEPS);
    return XPL_OK;
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

static void put_cause(struct xpl_buf *out, xpl_str_t cause, struct pair *p, struct pair *total) {
    if (out->p[out->n - 1] == '}') xpl_buf_putc(out, ',');
    xpl_buf_putc(out, '{');
    xpl_json_field(out, "cause", cause);
    xpl_buf_putc(out, ',');
    put_times(out, p);
    xpl_buf_putc(out, ',');
    put_percent(out, p->a, p->b);
    xpl_buf_putc(out, '}');
    total->a += p->a;
    total->b += p->b;
}

// Summaries of two versions may have other causes, or another order.
static void put_causes(const struct sides *s) {
    const struct xpl_run_summary *const a = &s->a->all, *const b = &s->b->all;
    struct pair total = {0}, p = {0};
    xpl_buf_str(s->out, XPL_STR(",\"times\":["));
    for (size_t i = 0; i < a->times.n && !s->out->failed; i++) {
        p.a = per_unit(a, a->times.v[i].ps);
        p.b = time_of(b, a->times.v[i].cause, &p.in_b);
        put_cause(s->out, a->times.v[i].cause, &p, &total);
    }
    for (size_t i = 0; i < b->times.n && !s->out->failed; i++) {
        p.a = time_of(a, b->times.v[i].cause, &p.in_a);
        p.b = per_unit(b, b->times.v[i].ps);
        if (!p.in_a) put_cause(s->out, b->times.v[i].cause, &p, &total);
    }
    xpl_buf_putc(s->out, ']');
    put_total(s->out, "times_total", &total);
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

// Which rows are told.
struct choice {
    size_t most;
    int sign; // 1: those that grew, -1: those that shrank, 0: all
};
static const struct choice everything = {SIZE_MAX, 0};

static bool is_chosen(const struct choice *c, const struct pair *p) {
    return !c->sign || (c->sign > 0 ? p->b > p->a : p->b < p->a);
}

static void add_row(struct rows *r, const struct xpl_run_row *what, const struct pair *p) {
    r->v[r->n] = (struct row){.pair = *p, .what = what, .index = r->n};
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

// The greatest difference first.  Of everything the differences add up to that of the total.
static void put_rows(struct xpl_buf *out, const char *key, struct rows *r,
                     void (*put)(struct xpl_buf *, const struct xpl_run_row *),
                     const struct choice *choice) {
    size_t n = 0;
    if (r->n) qsort(r->v, r->n, sizeof *r->v, by_difference);
    xpl_buf_printf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < r->n && n < choice->most; i++) {
        if (!is_chosen(choice, &r->v[i].pair)) continue;
        xpl_buf_str(out, n++ ? XPL_STR(",{") : XPL_STR("{"));
        put(out, r->v[i].what);
        xpl_buf_putc(out, ',');
        put_state(out, &r->v[i].pair);
        put_times(out, &r->v[i].pair);
        put_counts(out, &r->v[i].pair);
    }
    xpl_buf_putc(out, ']');
}

// Both lists are sorted and have nothing twice: they are walked side by side.
static xpl_status_t match(const struct sides *s, const struct xpl_run_rows *a,
                          const struct xpl_run_rows *b, struct rows *r, struct xpl_error *err) {
    *r = (struct rows){.v = xpl_arena_array(s->arena, a->n + b->n, sizeof *r->v)};
    if (!r->v) XPL_RETURN_OOM(err, "comparison");
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const struct xpl_run_row *x = i < a->n ? &a->v[i] : NULL;
        const struct xpl_run_row *y = k < b->n ? &b->v[k] : NULL;
        const int c = !x ? 1 : !y ? -1 : xpl_run_row_cmp(x, y);
        x = c <= 0 ? x : NULL;
        y = c >= 0 ? y : NULL;
        struct pair p = {.in_a = x != NULL, .in_b = y != NULL};
        if (x) p.a = per_unit(&s->a->all, x->ps), p.a_count = per_unit(&s->a->all, x->count);
        if (y) p.b = per_unit(&s->b->all, y->ps), p.b_count = per_unit(&s->b->all, y->count);
        add_row(r, x ? x : y, &p);
        i += x != NULL;
        k += y != NULL;
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
                              struct xpl_arena *arena, struct xpl_buf *out, struct xpl_error *err) {
    const struct sides s = {a, b, arena, out};
    xpl_run_summary_join(&a->all);
    xpl_run_summary_join(&b->all);
    xpl_buf_putc(out, '{');
    put_side(out, "a", a);
    put_side(out, "b", b);
    XPL_TRY(put_step_time(&s, err));
    put_causes(&s);
    XPL_TRY(put_ops(&s, err));
    put_memory(&s);
    xpl_buf_putc(out, '}');
    if (out->failed) XPL_RETURN_OOM(err, "comparison");
    return XPL_OK;
}

xpl_status_t xpl_compare_put_behind(struct xpl_run_group *a, struct xpl_run_group *b, int sign,
                                    struct xpl_arena *arena, struct xpl_buf *out,
                                    struct xpl_error *err) {
    const struct sides s = {a, b, arena, out};
    const struct choice choice = {XPL_COMPARE_BEHIND, sign};
    struct rows r;
    xpl_run_summary_join(&a->all);
    xpl_run_summary_join(&b->all);
    XPL_TRY(match(&s, &a->all.ops, &b->all.ops, &r, err));
    put_rows(out, "ops", &r, put_op, &choice);
    XPL_TRY(match(&s, &a->all.kernels, &b->all.kernels, &r, err));
    put_rows(out, "kernels", &r, put_kernel, &choice);
    return XPL_OK;
}
