// SPDX-License-Identifier: Apache-2.0
// Steps: ProfilerStep#N, or, without these, iterations that inference servers and trainers
// annotate.
#include <stdlib.h>

#include "analysis/kineto/impl.h"

enum { LEAST_ITERATIONS = 3 };

xpl_str_t xpl_kineto_pattern(xpl_str_t name, char buf[XPL_KINETO_MAX_PATTERN]) {
    size_t n = 0, depth = 0;
    for (size_t i = 0; i < name.len && n < XPL_KINETO_MAX_PATTERN; i++) {
        const char c = name.ptr[i];
        const bool opens = c == '(' || c == '[', closes = c == ')' || c == ']';
        const bool blank = c == '_' || c == ' ' || c == '#' || c == ':';
        depth += opens;
        if (depth && closes) depth--;
        if (depth || closes || (c >= '0' && c <= '9')) continue;
        if (blank && (!n || buf[n - 1] == c)) continue;
        buf[n++] = c;
    }
    while (n && (buf[n - 1] == '_' || buf[n - 1] == ' ' || buf[n - 1] == '#' || buf[n - 1] == ':'))
        n--;
    return (xpl_str_t){buf, n};
}

// Parts of an iteration are annotated as well: "forward", "Optimizer.step#Adam.step".
static bool is_iteration(xpl_str_t pattern) {
    static const char *const parts[] = {"ptim", "zero_grad", "scheduler"};
    static const char *const words[] = {"step",      "Step",          "iteration", "Iteration",
                                        "execute",   "generation",    "decode",    "DECODE",
                                        "run_batch", "training_batch"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (xpl_str_has(pattern, xpl_str_from(parts[i]))) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (xpl_str_has(pattern, xpl_str_from(words[i]))) return true;
    return false;
}

struct series {
    uint32_t row, pattern; // pattern: in `names`
    uint32_t n;
    int64_t ns;
};

struct finder {
    struct trace *t;
    XPL_VEC(struct series) series;
    struct xpl_map series_of;  // by row and pattern
    struct xpl_map pattern_of; // by name: in `names`; 0: no iteration
};

static bool find_pattern(struct finder *f, uint32_t name, uint32_t *ret) {
    bool is_new;
    uint64_t *const at = xpl_map_put(&f->t->links, &f->pattern_of, name, 0, &is_new);
    if (!at) return false;
    if (is_new) {
        char buf[XPL_KINETO_MAX_PATTERN];
        xpl_strid_t id = {0};
        const xpl_str_t pattern =
            xpl_kineto_pattern(xpl_intern_get(f->t->names, (xpl_strid_t){name}), buf);
        if (is_iteration(pattern) && !xpl_intern_put(f->t->names, pattern, &id)) return false;
        *at = id.v;
    }
    *ret = (uint32_t)*at;
    return true;
}

typedef bool (*iteration_fn)(struct finder *f, uint32_t row, struct event *e, uint32_t pattern,
                             void *ctx);

// Calls `fn` for the outermost annotations of a row whose names are an iteration's.
static bool each_iteration(struct finder *f, uint32_t row, iteration_fn fn, void *ctx) {
    const struct row *const r = &f->t->rows.v[row];
    int64_t end = INT64_MIN;
    for (uint64_t i = 0; i < r->n; i++) {
        struct event *const e = &r->events[i];
        uint32_t pattern;
        if (xpl_kineto_cancelled_at(f->t, i)) return false;
        if (e->category != CAT_ANNOTATION || e->begin < end || e->length <= 0) continue;
        end = e->begin + e->length;
        if (!find_pattern(f, e->name, &pattern)) return false;
        if (pattern && !fn(f, row, e, pattern, ctx)) return false;
    }
    return true;
}

static bool count(struct finder *f, uint32_t row, struct event *e, uint32_t pattern, void *ctx) {
    bool is_new;
    (void)ctx;
    uint64_t *const at = xpl_map_put(&f->t->links, &f->series_of, row, pattern, &is_new);
    if (!at) return false;
    if (is_new) {
        struct series *const s = xpl_vec_push(&f->t->links, &f->series);
        if (!s) return false;
        *s = (struct series){.row = row, .pattern = pattern};
        *at = f->series.n - 1;
    }
    f->series.v[*at].n++;
    f->series.v[*at].ns += e->length;
    return true;
}

static bool push(struct trace *t, uint32_t row, struct event *e, int64_t number, uint32_t name) {
    struct step *const s = xpl_vec_push(&t->arena, &t->steps);
    if (!s) return false;
    *s = (struct step){
        .begin = e->begin, .end = e->begin + e->length, .number = number, .row = row, .name = name};
    e->is_step = true;
    return true;
}

static bool add_iteration(struct finder *f, uint32_t row, struct event *e, uint32_t pattern,
                          void *ctx) {
    const uint32_t *const chosen = ctx;
    return pattern != *chosen || push(f->t, row, e, (int64_t)f->t->steps.n + 1, pattern);
}

// Of several series the one that takes most time.
static bool find_iterations(struct trace *t) {
    struct finder f = {.t = t};
    const struct series *best = NULL;
    for (uint32_t i = 0; i < t->rows.n; i++)
        if (t->rows.v[i].kind == ROW_HOST && !each_iteration(&f, i, count, NULL)) return false;
    for (size_t i = 0; i < f.series.n; i++)
        if (f.series.v[i].n >= LEAST_ITERATIONS && (!best || f.series.v[i].ns > best->ns))
            best = &f.series.v[i];
    if (!best) return true;
    uint32_t pattern = best->pattern;
    return each_iteration(&f, best->row, add_iteration, &pattern);
}

static int by_begin(const void *pa, const void *pb) {
    const struct step *const a = pa, *const b = pb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

bool xpl_kineto_find_steps(struct trace *t) {
    struct event_cursor c = {0};
    struct event *e;
    while ((e = xpl_kineto_next_event(t, &c))) {
        int64_t number;
        if (e->category == CAT_ANNOTATION &&
            xpl_kineto_is_step(xpl_intern_get(t->names, (xpl_strid_t){e->name}), &number) &&
            !push(t, (uint32_t)c.row, e, number, e->name))
            return false;
    }
    if (t->cancelled || (!t->steps.n && !find_iterations(t))) return false;
    xpl_sort(t->steps.v, t->steps.n, sizeof *t->steps.v, by_begin);
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < t->steps.n; i++) {
        struct step *const s = &t->steps.v[i];
        if (s->end > latest) latest = s->end;
        s->latest_end = latest;
    }
    return true;
}
