// SPDX-License-Identifier: Apache-2.0
// How much work the steps of a CPU are: the time that their ops take on average in the profile.  A
// step that takes longer with the same work had a slower machine.

#include "analysis/breakdown/impl.h"
#include "analysis/opstats/steps/step_number.h"
#include "base/vec.h"

enum { LEAST_STEPS = 5 };

struct op_time {
    uint64_t ps, count;
    uint32_t step, run; // the run that was counted last: index + 1
};

struct op_run {
    uint32_t step, op;
    uint64_t count;
};

// The op of a name that was counted last.
struct named_op {
    uint64_t program;
    uint32_t op; // index + 1
};

struct xpl_work {
    struct xpl_breaking *k;
    struct named_op *last;  // by position of metadata
    struct xpl_map by_name; // an event's name and program to index + 1 of ops
    struct xpl_map by_step; // step and op to index + 1 of runs
    XPL_VEC(struct op_time) ops;
    XPL_VEC(struct op_run) runs;
    uint32_t step; // of the op that was counted last
};

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Only steps that take longer than others are of interest, and only if their additional time is
// much of the window: findings ignore the rest on a CPU.
static bool is_needed(const struct xpl_breaking *k, bool *ret) {
    const struct xpl_time_breakdown *const b = k->b;
    uint64_t more = 0;
    *ret = false;
    if (b->steps.n < LEAST_STEPS || xpl_step_is_execution(b->steps.v[0].name)) return true;
    uint64_t *const walls = xpl_arena_array(k->scratch, b->steps.n, sizeof *walls);
    for (size_t i = 0; walls && i < b->steps.n; i++)
        walls[i] = b->steps.v[i].end_ps - b->steps.v[i].begin_ps;
    if (!walls) return false;
    xpl_sort(walls, b->steps.n, sizeof *walls, by_value);
    const uint64_t usual = walls[b->steps.n / 2];
    for (size_t i = b->steps.n; i-- && walls[i] / 3 > usual / 2;)
        more += walls[i] - usual;
    *ret = more > (b->end_ps - b->begin_ps) / 12;
    return true;
}

bool xpl_work_begin(struct xpl_breaking *k, struct xpl_work **ret) {
    bool needed;
    *ret = NULL;
    if (!is_needed(k, &needed)) return false;
    if (!needed) return true;
    struct xpl_work *const w = xpl_arena_zalloc(k->scratch, sizeof *w);
    if (!w) return false;
    w->k = k;
    w->last = xpl_arena_zalloc(k->scratch, k->host.plane->n_event_md * sizeof *w->last);
    *ret = w;
    return w->last != NULL;
}

static bool is_in_step(const struct xpl_time_breakdown *b, uint32_t i, uint64_t t) {
    return i < b->steps.n && b->steps.v[i].begin_ps <= t && t < b->steps.v[i].end_ps;
}

// Sets *n to the op.
static bool find_op(struct xpl_work *w, uint32_t md, uint64_t program, struct named_op *n) {
    struct xpl_arena *const a = w->k->scratch;
    bool is_new;
    uint64_t *const at = xpl_map_put(a, &w->by_name, md, program, &is_new);
    if (!at) return false;
    if (is_new) {
        struct op_time *const slot = xpl_vec_push(a, &w->ops);
        if (!slot) return false;
        *slot = (struct op_time){0};
        *at = w->ops.n;
    }
    *n = (struct named_op){program, (uint32_t)*at};
    return true;
}

// Sets the op's run to that of the step.
static bool find_run(struct xpl_work *w, uint32_t op, uint32_t step) {
    struct xpl_arena *const a = w->k->scratch;
    bool is_new;
    uint64_t *const at = xpl_map_put(a, &w->by_step, step, op, &is_new);
    if (!at) return false;
    if (is_new) {
        struct op_run *const slot = xpl_vec_push(a, &w->runs);
        if (!slot) return false;
        *slot = (struct op_run){.step = step, .op = op};
        *at = w->runs.n;
    }
    w->ops.v[op].step = step;
    w->ops.v[op].run = (uint32_t)*at;
    return true;
}

bool xpl_work_add(struct xpl_work *w, uint32_t md, uint64_t program, struct xpl_span span) {
    struct named_op *const n = &w->last[md];
    if ((!n->op || n->program != program) && !find_op(w, md, program, n)) return false;
    struct op_time *const op = &w->ops.v[n->op - 1];
    op->ps += span.end - span.begin;
    op->count++;
    if (!is_in_step(w->k->b, w->step, span.begin)) w->step = xpl_time_step_at(w->k->b, span.begin);
    if (w->step == XPL_BETWEEN_STEPS) return true;
    if ((!op->run || op->step != w->step) && !find_run(w, n->op - 1, w->step)) return false;
    w->runs.v[op->run - 1].count++;
    return true;
}

void xpl_work_end(const struct xpl_work *w) {
    struct xpl_time_breakdown *const b = w->k->b;
    for (size_t i = 0; i < w->runs.n; i++) {
        const struct op_run *const r = &w->runs.v[i];
        const struct op_time *const op = &w->ops.v[r->op];
        if (r->step < b->steps.n) b->steps.v[r->step].work_ps += op->ps / op->count * r->count;
    }
}
