// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/compare.h"

// ---- steps and causes ----

// The time of a step is that of the device that takes longest.  Loops of a program that count alike
// (training and evaluation) have steps of their own: of one number, the nth of each device are one.
struct step_time {
    json_int_t number;
    size_t nth; // while steps of its device are added: their order
    double ps;
};

static int by_number(const void *a, const void *b) {
    const struct step_time *const x = a, *const y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->nth > y->nth) - (x->nth < y->nth);
}

struct steps {
    struct step_time *v;
    size_t n, cap;
};

static bool push_step(struct steps *s, json_int_t number, double ps) {
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 64;
        struct step_time *const v = xpl_sys_realloc(s->v, cap * sizeof *v);
        if (!v) return false;
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n] = (struct step_time){number, s->n, ps};
    s->n++;
    return true;
}

// Steps of one device, in their order: which one of its number each is.
static void number_repeats(struct step_time *v, size_t n) {
    if (n) qsort(v, n, sizeof *v, by_number);
    for (size_t i = 0; i < n; i++)
        v[i].nth = i && v[i].number == v[i - 1].number ? v[i - 1].nth + 1 : 0;
}

static bool add_steps(const json_t *device, struct steps *list) {
    const json_t *const steps = json_object_get(device, "steps");
    const size_t first = list->n;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *const s = json_array_get(steps, i), *const number =
                                                              json_object_get(s, "step");
        if (json_is_integer(number) && !push_step(list, json_integer_value(number),
                                                  json_number_value(json_object_get(s, "wall_ps"))))
            return false;
    }
    number_repeats(list->v + first, list->n - first);
    return true;
}

// Times by their keys, all but the sum; in the order of the answer.
static void add_times(struct xpl_compare_side *s, json_t *device) {
    const char *key;
    json_t *value;
    json_object_foreach(device, key, value) {
        const size_t len = strlen(key);
        size_t i = 0;
        if (len < 4 || strcmp(key + len - 3, "_ps") != 0 || strcmp(key, "wall_ps") == 0) continue;
        while (i < s->n_causes && strcmp(s->causes[i], key) != 0)
            i++;
        if (i == XPL_COMPARE_MAX_CAUSES) continue;
        if (i == s->n_causes) {
            s->causes[s->n_causes++] = key;
            s->times[i] = 0;
        }
        s->times[i] += json_number_value(value);
    }
}

static bool join_steps(struct xpl_compare_side *s, struct steps *list) {
    if (list->n) qsort(list->v, list->n, sizeof *list->v, by_number);
    double *const v = xpl_sys_realloc(s->steps, (s->n_steps + list->n + 1) * sizeof *v);
    if (!v) return false;
    s->steps = v;
    for (size_t i = 0; i < list->n; i++) {
        const bool again = i && by_number(&list->v[i], &list->v[i - 1]) == 0;
        if (!again) s->steps[s->n_steps++] = 0;
        double *const last = &s->steps[s->n_steps - 1];
        if (list->v[i].ps > *last) *last = list->v[i].ps;
    }
    return true;
}

static bool add_breakdown(struct xpl_compare_side *s, json_t *breakdown) {
    struct steps list = {0};
    size_t h, d, devices = 0;
    json_t *host, *device;
    const size_t before = s->n_steps;
    bool ok = json_is_array(json_object_get(breakdown, "hosts"));
    json_array_foreach(json_object_get(breakdown, "hosts"), h, host) {
        json_array_foreach(json_object_get(host, "devices"), d, device) {
            devices++;
            add_times(s, device);
            ok = ok && add_steps(device, &list);
        }
    }
    ok = ok && join_steps(s, &list);
    xpl_sys_free(list.v);
    const size_t steps = s->n_steps - before;
    s->n_devices += devices;
    s->units += (double)devices * (steps ? (double)steps : 1);
    return ok;
}

// ---- ops ----

static const char *text_of(const json_t *o, const char *key) {
    const char *const t = json_string_value(json_object_get(o, key));
    return t ? t : "";
}

// What an op is called in all compilations: "fusion" of "%fusion.12".
static json_t *stable_name(const char *name) {
    if (*name == '%') name++;
    size_t n = strlen(name);
    while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    return n && name[n - 1] == '.' ? json_stringn(name, n - 1) : json_string(name);
}

// "f32[8,128]" of "%x.1 = f32[8,128]{1,0} fusion(...)": the result without layouts.
static json_t *shape_of(const char *expression) {
    const char *const equal = strstr(expression, " = ");
    char out[200];
    size_t n = 0;
    int braces = 0, parentheses = 0;
    for (const char *p = equal ? equal + 3 : ""; *p && n < sizeof out; p++) {
        if (*p == '{') braces++;
        if (!braces && !parentheses && *p == ' ') break;
        if (!braces) out[n++] = *p;
        if (!braces) parentheses += (*p == '(') - (*p == ')');
        if (*p == '}') braces--;
    }
    json_t *const shape = json_stringn(out, n);
    return shape ? shape : json_string(""); // it was cut within a character
}

// A framework's op; frameworks end some names with a colon.
static json_t *framework_op(const char *from) {
    const size_t n = strlen(from);
    return json_stringn(from, n - (from[n - 1] == ':'));
}

static json_t *identity_of(const json_t *op) {
    const char *const from = text_of(op, "framework_op");
    const json_int_t line = json_integer_value(json_object_get(op, "source_line"));
    return json_pack(
        "{so ss ss sI so}", "op", *from ? framework_op(from) : stable_name(text_of(op, "name")),
        "category", text_of(op, "category"), "source_file", text_of(op, "source_file"),
        "source_line", line > 0 ? line : 0, "shape", shape_of(text_of(op, "expression")));
}

static bool add_op(struct xpl_compare_side *s, const json_t *op) {
    json_t *const identity = identity_of(op);
    char *const key = identity ? json_dumps(identity, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_t *known = key ? json_object_get(s->ops, key) : NULL;
    bool ok = key;
    if (ok && !known) {
        known = json_pack("{sO sf sI}", "identity", identity, "ps", 0.0, "count", (json_int_t)0);
        ok = known && json_object_set_new(s->ops, key, known) == 0;
    }
    if (ok) {
        json_t *const ps = json_object_get(known, "ps"), *const n = json_object_get(known, "count");
        (void)json_real_set(ps, json_real_value(ps) +
                                    json_number_value(json_object_get(op, "self_time_ps")));
        (void)json_integer_set(n, json_integer_value(n) +
                                      json_integer_value(json_object_get(op, "occurrences")));
    }
    free(key); // Jansson's
    json_decref(identity);
    return ok;
}

bool xpl_compare_add(struct xpl_compare_side *s, json_t *breakdown, json_t *ops) {
    if (!s->answers) s->answers = json_array();
    if (!s->ops) s->ops = json_object();
    // Keys of what was read stay in use.
    const bool kept = json_array_append_new(s->answers, breakdown) == 0;
    bool ok =
        kept && s->ops && json_is_array(json_object_get(ops, "ops")) && add_breakdown(s, breakdown);
    for (size_t i = 0; ok && i < json_array_size(json_object_get(ops, "ops")); i++)
        ok = add_op(s, json_array_get(json_object_get(ops, "ops"), i));
    json_decref(ops);
    return ok;
}

void xpl_compare_fini(struct xpl_compare_side *s) {
    xpl_sys_free(s->steps);
    json_decref(s->ops);
    json_decref(s->answers);
}

// ---- statistics ----

double xpl_compare_mean(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

static uint64_t next_random(uint64_t *state) { // SplitMix64
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum { MOST_STEPS = 4096, RESAMPLES = 2000 };

// The mean of as many steps, drawn with replacement.
static double resample(const double *v, size_t n, uint64_t *state) {
    const size_t draws = n < MOST_STEPS ? n : MOST_STEPS;
    double sum = 0;
    for (size_t i = 0; i < draws; i++)
        sum += v[next_random(state) % n];
    return sum / (double)draws;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool xpl_compare_interval(const struct xpl_compare_side *a, const struct xpl_compare_side *b,
                          double ret[2]) {
    uint64_t state = 1;
    if (a->n_steps < XPL_COMPARE_LEAST_STEPS || b->n_steps < XPL_COMPARE_LEAST_STEPS) return false;
    double *const v = xpl_sys_alloc(RESAMPLES * sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < RESAMPLES; i++)
        v[i] = resample(b->steps, b->n_steps, &state) - resample(a->steps, a->n_steps, &state);
    qsort(v, RESAMPLES, sizeof *v, by_value);
    ret[0] = v[RESAMPLES / 40];
    ret[1] = v[RESAMPLES - 1 - RESAMPLES / 40];
    xpl_sys_free(v);
    return true;
}

// ---- the comparison ----

static double median_of(const struct xpl_compare_side *s) {
    const size_t n = s->n_steps;
    double *const v = n ? xpl_sys_alloc(n * sizeof *v) : NULL;
    if (!v) return 0;
    memcpy(v, s->steps, n * sizeof *v);
    qsort(v, n, sizeof *v, by_value);
    const double m = n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
    xpl_sys_free(v);
    return m;
}

static json_t *percent(double a, double b) {
    return a > 0 ? json_real(100 * (b - a) / a) : json_null();
}

static json_t *side_json(const struct xpl_compare_side *s) {
    return json_pack("{sI sI sf sf}", "steps", (json_int_t)s->n_steps, "devices",
                     (json_int_t)s->n_devices, "mean_step_ps",
                     xpl_compare_mean(s->steps, s->n_steps), "median_step_ps", median_of(s));
}

static json_t *step_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b) {
    const double x = xpl_compare_mean(a->steps, a->n_steps),
                 y = xpl_compare_mean(b->steps, b->n_steps);
    double interval[2];
    json_t *const ends = xpl_compare_interval(a, b, interval)
                             ? json_pack("[ff]", interval[0], interval[1])
                             : json_null();
    return json_pack("{sf so so}", "difference_ps", y - x, "difference_percent",
                     a->n_steps && b->n_steps ? percent(x, y) : json_null(), "interval_ps", ends);
}

static double per_unit(const struct xpl_compare_side *s, double ps) {
    return s->units > 0 ? ps / s->units : 0;
}

// The time of a cause per step and device; 0 where an answer does not know the cause.
static double time_of(const struct xpl_compare_side *s, const char *cause) {
    for (size_t i = 0; i < s->n_causes; i++)
        if (strcmp(s->causes[i], cause) == 0) return per_unit(s, s->times[i]);
    return 0;
}

static bool has_cause(const struct xpl_compare_side *s, const char *cause) {
    size_t i = 0;
    while (i < s->n_causes && strcmp(s->causes[i], cause) != 0)
        i++;
    return i < s->n_causes;
}

static void add_cause(json_t *list, const char *cause, double x, double y) {
    (void)json_array_append_new(
        list, json_pack("{ss# sf sf sf so}", "cause", cause, (int)(strlen(cause) - 3), "a_ps", x,
                        "b_ps", y, "difference_ps", y - x, "difference_percent", percent(x, y)));
}

// Answers of two versions may have other causes, or another order.
static json_t *times_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b) {
    json_t *const list = json_array();
    for (size_t i = 0; i < a->n_causes; i++)
        add_cause(list, a->causes[i], time_of(a, a->causes[i]), time_of(b, a->causes[i]));
    for (size_t i = 0; i < b->n_causes; i++)
        if (!has_cause(a, b->causes[i])) add_cause(list, b->causes[i], 0, time_of(b, b->causes[i]));
    return list;
}

static int by_difference(const void *a, const void *b) {
    const json_t *const *const x = a, *const *const y = b;
    const double p = fabs(json_real_value(json_object_get(*x, "difference_ps"))),
                 q = fabs(json_real_value(json_object_get(*y, "difference_ps")));
    return (p < q) - (p > q);
}

static json_t *op_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b,
                       const json_t *x, const json_t *y) {
    json_t *const o = json_copy(json_object_get(x ? x : y, "identity"));
    const double p = per_unit(a, json_real_value(json_object_get(x, "ps"))),
                 q = per_unit(b, json_real_value(json_object_get(y, "ps")));
    if (o)
        (void)json_object_update_new(
            o, json_pack("{ss sf sf sf sf sf}", "state",
                         !x   ? "new"
                         : !y ? "vanished"
                              : "both",
                         "a_ps", p, "b_ps", q, "difference_ps", q - p, "a_count",
                         per_unit(a, (double)json_integer_value(json_object_get(x, "count"))),
                         "b_count",
                         per_unit(b, (double)json_integer_value(json_object_get(y, "count")))));
    return o;
}

// All ops of both, the greatest difference first: the differences add up.
static json_t *ops_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b) {
    const size_t most = json_object_size(a->ops) + json_object_size(b->ops);
    json_t **const list = xpl_sys_alloc((most + 1) * sizeof *list), *const ret = json_array();
    const char *key;
    json_t *op;
    size_t n = 0;
    if (!list) {
        json_decref(ret);
        return NULL;
    }
    json_object_foreach(a->ops, key,
                        op) if ((list[n] = op_json(a, b, op, json_object_get(b->ops, key)))) n++;
    json_object_foreach(b->ops, key, op) if (!json_object_get(a->ops, key) &&
                                             (list[n] = op_json(a, b, NULL, op))) n++;
    qsort(list, n, sizeof *list, by_difference);
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(ret, list[i]);
    xpl_sys_free(list);
    return ret;
}

json_t *xpl_compare_json(const struct xpl_compare_side *a, const struct xpl_compare_side *b) {
    return json_pack("{so so so so so}", "a", side_json(a), "b", side_json(b), "step_time",
                     step_json(a, b), "times", times_json(a, b), "ops", ops_json(a, b));
}
