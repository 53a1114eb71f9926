// SPDX-License-Identifier: Apache-2.0
// How much work the steps of a CPU are: the time that their ops take on average in the profile.  A
// step that takes longer with the same work had a slower machine.
#include <stdlib.h>

#include "analysis/breakdown/impl.h"
#include "analysis/opstats/host/input_work.h"
#include "analysis/opstats/steps/step_number.h"
#include "analysis/xplane/tf_op.h"

enum { CANCEL_EVERY = 8192, LEAST_STEPS = 5 };

// An event by its name. Containers have the time of their contents, and collectives wait.
enum kind { OTHER, OP_OF_XLA, OP_OF_FRAMEWORK };

struct op_time {
    uint64_t ps, count;
};

struct op_run {
    uint32_t step, op;
    uint64_t count;
};

struct work {
    struct xpl_breaking *k;
    uint8_t *kinds;         // of names: enum kind
    struct xpl_map by_name; // an event's name and program to index + 1 of ops
    struct xpl_map by_step; // step and op to index + 1 of runs
    XPL_VEC(struct op_time) ops;
    XPL_VEC(struct op_run) runs;
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
    if (b->devices.n != 1 || b->devices.v[0].kind != XPL_DEVICE_CPU || b->steps.n < LEAST_STEPS ||
        xpl_step_is_execution(b->steps.v[0].name))
        return true;
    uint64_t *const walls = xpl_arena_array(k->scratch, b->steps.n, sizeof *walls);
    for (size_t i = 0; walls && i < b->steps.n; i++)
        walls[i] = b->steps.v[i].end_ps - b->steps.v[i].begin_ps;
    if (!walls) return false;
    qsort(walls, b->steps.n, sizeof *walls, by_value);
    const uint64_t usual = walls[b->steps.n / 2];
    for (size_t i = b->steps.n; i-- && walls[i] / 3 > usual / 2;)
        more += walls[i] - usual;
    *ret = more > (b->end_ps - b->begin_ps) / 12;
    return true;
}

// The step in which an instant lies; XPL_BETWEEN_STEPS: none.
static uint32_t step_at(const struct xpl_time_breakdown *b, uint64_t t) {
    size_t low = 0, high = b->steps.n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        if (b->steps.v[mid].end_ps <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low < b->steps.n && b->steps.v[low].begin_ps <= t ? (uint32_t)low : XPL_BETWEEN_STEPS;
}

static bool add_run(struct work *w, const struct xpl_event *ev, uint64_t program,
                    struct xpl_span span) {
    struct xpl_arena *const a = w->k->scratch;
    bool is_new;
    uint64_t *at = xpl_map_put(a, &w->by_name, ev->md, program, &is_new);
    if (!at) return false;
    if (is_new) {
        struct op_time *const slot = xpl_vec_push(a, &w->ops);
        if (!slot) return false;
        *slot = (struct op_time){0};
        *at = w->ops.n;
    }
    const uint32_t op = (uint32_t)*at - 1, step = step_at(w->k->b, span.begin);
    w->ops.v[op].ps += span.end - span.begin;
    w->ops.v[op].count++;
    if (step == XPL_BETWEEN_STEPS) return true;
    at = xpl_map_put(a, &w->by_step, step, op, &is_new);
    if (!at) return false;
    if (is_new) {
        struct op_run *const slot = xpl_vec_push(a, &w->runs);
        if (!slot) return false;
        *slot = (struct op_run){.step = step, .op = op};
        *at = w->runs.n;
    }
    w->runs.v[*at - 1].count++;
    return true;
}

static bool read_kinds(struct work *w) {
    const struct xpl_plane *const p = w->k->host.plane;
    w->kinds = xpl_arena_array(w->k->scratch, p->n_event_md, sizeof *w->kinds);
    for (uint32_t i = 0; w->kinds && i < p->n_event_md; i++) {
        const xpl_str_t name = p->event_md[i].name;
        w->kinds[i] = xpl_op_layer_of(name) != XPL_LAYER_COMPUTE               ? OTHER
                      : xpl_tf_op_parse(name).category == XPL_TF_OP_TENSORFLOW ? OP_OF_FRAMEWORK
                                                                               : OP_OF_XLA;
    }
    return w->kinds;
}

static xpl_status_t read_line(struct work *w, const struct xpl_line *line, struct xpl_error *err) {
    static const enum xpl_stat_type types[] = {XPL_STAT_HLO_OP, XPL_STAT_PROGRAM_ID};
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result got;
    xpl_events_begin(&cur, line);
    while ((got = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        const struct xpl_span span = xpl_breaking_span(w->k, line, &ev);
        struct xpl_stat s[2];
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "time breakdown: cancelled");
        if (span.begin >= span.end || w->kinds[ev.md] == OTHER) continue;
        const unsigned has = xpl_stats_find(ev.stats, types, 2, s);
        if (!(has & 1) && w->kinds[ev.md] == OP_OF_XLA) continue; // no op at all
        if (!add_run(w, &ev, has & 2 ? xpl_stat_int_or_uint(&s[1]) : 0, span))
            XPL_RETURN_OOM(err, "time breakdown");
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

xpl_status_t xpl_breaking_measure_work(struct xpl_breaking *k, struct xpl_error *err) {
    struct work w = {.k = k};
    bool needed;
    if (!is_needed(k, &needed) || (needed && !read_kinds(&w)))
        XPL_RETURN_OOM(err, "time breakdown");
    for (uint32_t i = 0; needed && i < k->host.plane->n_lines; i++)
        if (!xpl_is_input_line(&k->host.plane->lines[i]))
            XPL_TRY(read_line(&w, &k->host.plane->lines[i], err));
    for (size_t i = 0; i < w.runs.n; i++) {
        const struct op_time *const op = &w.ops.v[w.runs.v[i].op];
        k->b->steps.v[w.runs.v[i].step].work_ps += op->ps / op->count * w.runs.v[i].count;
    }
    return XPL_OK;
}
