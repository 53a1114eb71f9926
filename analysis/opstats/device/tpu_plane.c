// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/tpu_plane.h"

#include <string.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 4096 };

xpl_status_t xpl_tpu_out_of_memory(struct tpu_plane *t) {
    XPL_RETURN_OOM(&t->piece.error, "TPU op metrics");
}

xpl_status_t xpl_tpu_check_cancelled(struct tpu_plane *t, const struct xpl_event *ev) {
    if (ev->index % CANCEL_EVERY == 0 && xpl_exec_cancelled(t->c->exec))
        XPL_RETURN_ERROR(&t->piece.error, XPL_CANCELLED, "conversion cancelled");
    return XPL_OK;
}

bool xpl_plane_has_stat_type(const struct xpl_plane *p, enum xpl_stat_type type) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == type) return true;
    return false;
}

bool xpl_tpu_prepare(struct tpu_plane *t) {
    t->framework_ops = t->sorted && xpl_plane_has_stat_type(t->plane, XPL_STAT_TF_OP);
    t->first_ps = UINT64_MAX;
    t->md_flags = xpl_arena_zalloc(&t->arena, t->plane->n_event_md);
    if (!t->md_flags || !xpl_tpu_plane_init(&t->tp, t->plane, &t->arena)) return false;
    xpl_tpu_ops_begin(&t->ops, &t->tp, XPL_TPU_OPS_TENSOR, &t->arena);
    return true;
}

// ---- statistics of events ----

enum { MD_READY = 1, MD_TF_OP = 2, MD_ASYNC = 4 };

static uint8_t md_flags(struct tpu_plane *t, uint32_t md) {
    uint8_t *const flags = &t->md_flags[md];
    if (*flags & MD_READY) return *flags;
    *flags = MD_READY;
    struct xpl_stats stats = xpl_event_md_stats(t->plane, &t->plane->event_md[md]);
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        if (s.md->type == XPL_STAT_TF_OP)
            *flags = (uint8_t)((*flags & ~MD_TF_OP) | (xpl_stat_str(&s).len ? MD_TF_OP : 0));
        if (s.md->type == XPL_STAT_IS_ASYNC)
            *flags = (uint8_t)((*flags & ~MD_ASYNC) | (xpl_stat_int_or_uint(&s) ? MD_ASYNC : 0));
    }
    return *flags;
}

void xpl_tpu_read_facts(struct tpu_plane *t, const struct xpl_line *line,
                        const struct xpl_event *ev, struct tpu_event_facts *ret) {
    const uint8_t flags = md_flags(t, ev->md);
    *ret = (struct tpu_event_facts){
        .span = {(uint64_t)xpl_event_begin_ps(line, ev), (uint64_t)ev->duration_ps},
        .has_tf_op = flags & MD_TF_OP,
        .is_async = flags & MD_ASYNC,
        .values = xpl_tpu_values_of(ev),
    };
    struct xpl_timespan device = {0};
    bool has_offset = false, has_duration = false;
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        switch ((int)s.md->type) { // of equal ones GetStat takes the first, a loop the last
            case XPL_STAT_DEVICE_OFFSET_PS:
                if (!has_offset) device.begin_ps = xpl_stat_int_or_uint(&s);
                has_offset = true;
                break;
            case XPL_STAT_DEVICE_DURATION_PS:
                if (!has_duration) device.duration_ps = xpl_stat_int_or_uint(&s);
                has_duration = true;
                break;
            case XPL_STAT_OFFLOAD_CORE_ID:
                if (!ret->has_core_id) ret->core_id = xpl_stat_uint(&s);
                ret->has_core_id = true;
                break;
            case XPL_STAT_TC_OFFLOAD_START_ID:
                if (!ret->has_start_id) ret->start_id = s;
                ret->has_start_id = true;
                break;
            case XPL_STAT_TF_OP: ret->has_tf_op = xpl_stat_str(&s).len > 0; break;
            case XPL_STAT_IS_ASYNC: ret->is_async = xpl_stat_int_or_uint(&s) != 0; break;
            default: xpl_tpu_values_note(&t->tp, &s, &ret->values); break;
        }
    }
    if (has_offset && has_duration) ret->span = device;
}

static void track(struct tpu_plane *t, struct xpl_timespan span) {
    const uint64_t end_ps = xpl_timespan_end(span);
    if (span.begin_ps < t->first_ps) t->first_ps = span.begin_ps;
    if (end_ps > t->last_ps) t->last_ps = end_ps;
}

// XProf derives a line of framework ops from events with a framework op, on the host's clock, and
// that line counts towards the time of the profile.
static void track_framework_op(struct tpu_plane *t, const struct xpl_line *line,
                               const struct xpl_event *ev, const struct tpu_event_facts *f) {
    if (t->framework_ops && f->has_tf_op && !f->is_async)
        track(t, (struct xpl_timespan){(uint64_t)xpl_event_begin_ps(line, ev),
                                       (uint64_t)ev->duration_ps});
}

// ---- ops of a line ----

static bool pop(struct tpu_plane *t) {
    const struct tpu_frame *const f = &t->stack.v[--t->stack.n];
    const struct xpl_tpu_run run = frame_run(f);
    return xpl_tpu_ops_add_run(&t->ops, &run);
}

static bool push(struct tpu_plane *t, const struct xpl_event *ev, const struct tpu_event_facts *f) {
    while (t->stack.n && !xpl_timespan_includes(t->stack.v[t->stack.n - 1].span, f->span))
        if (!pop(t)) return false;
    if (t->stack.n) t->stack.v[t->stack.n - 1].children_ps += f->span.duration_ps;
    struct tpu_frame *const frame = xpl_vec_push(&t->arena, &t->stack);
    if (!frame) return false;
    fill_frame(frame, ev, f);
    if (f->has_core_id && f->has_start_id)
        frame->offloaded =
            xpl_offloads_find(t->offloads, f->core_id, (uint64_t)xpl_stat_int(&f->start_id));
    return true;
}

struct line_walk {
    struct tpu_plane *t;
    const struct xpl_line *line;
    bool is_ops, is_duty, is_sparse, ordered;
    uint64_t last_offset, last_duration;
    struct xpl_duty_line duty;
};

static bool walk_event(struct line_walk *w, const struct xpl_event *ev) {
    struct tpu_plane *const t = w->t;
    const uint64_t offset = (uint64_t)ev->offset_ps, duration = (uint64_t)ev->duration_ps;
    if (offset < w->last_offset ||
        (offset == w->last_offset && duration > w->last_duration && ev->index > 0))
        w->ordered = false;
    w->last_offset = offset;
    w->last_duration = duration;
    if (w->is_duty) {
        struct xpl_duty_op op;
        xpl_duty_classify(&t->tp, w->line, ev, w->is_sparse, &op);
        if (!xpl_duty_line_add(&w->duty, &op)) return false;
    }
    if (t->is_sparse) return true;
    struct tpu_event_facts f;
    xpl_tpu_read_facts(t, w->line, ev, &f);
    track_framework_op(t, w->line, ev, &f);
    if (!w->is_ops) return true;
    track(t, f.span);
    return push(t, ev, &f);
}

static bool end_walk(struct line_walk *w) {
    while (w->t->stack.n)
        if (!pop(w->t)) return false;
    return !w->is_duty || xpl_duty_line_end(&w->duty);
}

// In file order.
static xpl_status_t walk_as_it_stands(struct line_walk *w) {
    struct tpu_plane *const t = w->t;
    struct xpl_event_cursor cursor = xpl_events_of(w->line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        if (!walk_event(w, &ev)) return xpl_tpu_out_of_memory(t);
        XPL_TRY(xpl_tpu_check_cancelled(t, &ev));
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return end_walk(w) ? XPL_OK : xpl_tpu_out_of_memory(t);
}

struct place { // where an event stands
    uint64_t offset, duration, index;
    const uint8_t *p;
};

static int by_offset(const void *pa, const void *pb) {
    const struct place *const a = pa, *const b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->duration != b->duration) return a->duration > b->duration ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

// By begin, longer ones first.  The index of a line's events is kept only while this runs.
static xpl_status_t walk_in_order(struct line_walk *w) {
    struct tpu_plane *const t = w->t;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = {0};
    xpl_arena_init(&arena, t->c->scratch_limit);
    struct place *const v = xpl_arena_array(&arena, w->line->n_events, sizeof *v);
    if (!v) return xpl_tpu_out_of_memory(t);
    struct xpl_event_cursor cursor = xpl_events_of(w->line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    size_t n = 0;
    const uint8_t *at = cursor.p;
    for (; n < w->line->n_events && (r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD;
         at = cursor.p)
        v[n++] = (struct place){(uint64_t)ev.offset_ps, (uint64_t)ev.duration_ps, ev.index, at};
    xpl_sort(v, n, sizeof *v, by_offset);
    for (size_t i = 0; i < n; i++) {
        cursor.p = v[i].p;
        cursor.index = v[i].index;
        if (xpl_events_next(&cursor, &ev) != XPL_WIRE_FIELD)
            return xpl_events_error(&cursor, &t->piece.error);
        if (!walk_event(w, &ev)) return xpl_tpu_out_of_memory(t);
        XPL_TRY(xpl_tpu_check_cancelled(t, &(struct xpl_event){.index = i}));
    }
    return end_walk(w) ? XPL_OK : xpl_tpu_out_of_memory(t);
}

// What a walk changes, to undo it.
struct undo {
    struct xpl_tpu_op_sums *sums;
    size_t n_sums;
    struct xpl_duty_plane duty;
};

static bool remember(const struct tpu_plane *t, struct xpl_arena *a, struct undo *ret) {
    *ret = (struct undo){.n_sums = t->ops.sums.n, .duty = t->duty};
    if (ret->n_sums == 0) return true;
    ret->sums = xpl_arena_array(a, ret->n_sums, sizeof *ret->sums);
    if (ret->sums) memcpy(ret->sums, t->ops.sums.v, ret->n_sums * sizeof *ret->sums);
    return ret->sums != NULL;
}

// Sums that appeared since stay, emptied: the second walk meets the same ops.
static void undo(struct tpu_plane *t, const struct undo *u) {
    if (u->n_sums) memcpy(t->ops.sums.v, u->sums, u->n_sums * sizeof *u->sums);
    for (size_t i = u->n_sums; i < t->ops.sums.n; i++)
        t->ops.sums.v[i] = (struct xpl_tpu_op_sums){.md = t->ops.sums.v[i].md};
    t->duty = u->duty;
}

static void begin_walk(struct line_walk *w, struct tpu_plane *t, const struct xpl_line *line) {
    *w = (struct line_walk){
        .t = t,
        .line = line,
        .is_ops = !t->is_sparse && is_op_line(line),
        .is_duty = is_duty_line(line),
        .is_sparse = line_is(line, XPL_STR(XPL_LINE_SPARSE_CORE_OPS)),
        .ordered = true,
    };
    xpl_duty_line_begin(&w->duty, &t->duty, &t->arena);
}

static bool has_gaps(const struct xpl_duty_set *s) {
    return !s->arena && s->disordered;
}

static xpl_status_t walk_op_line(struct tpu_plane *t, const struct xpl_line *line) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena before = {0};
    xpl_arena_init(&before, t->c->scratch_limit);
    struct undo u;
    if (!remember(t, &before, &u)) return xpl_tpu_out_of_memory(t);
    struct line_walk w;
    begin_walk(&w, t, line);
    XPL_TRY(walk_as_it_stands(&w));
    const bool sort = t->sorted && !w.ordered;
    if (!sort && !has_gaps(&t->duty.busy) && !has_gaps(&t->duty.confident)) return XPL_OK;
    // Once more, in order if that was the problem, and keeping intervals, which may then come in
    // any order.
    undo(t, &u);
    t->duty.busy.arena = t->duty.confident.arena = &t->arena;
    begin_walk(&w, t, line);
    return sort ? walk_in_order(&w) : walk_as_it_stands(&w);
}

// ---- other lines ----

static void track_steps(struct tpu_plane *t) {
    size_t n;
    const struct xpl_step_event *const v = xpl_groups_steps(t->c->groups, t->plane, &n);
    for (size_t i = 0; i < n; i++)
        track(t, v[i].has_device_time
                     ? (struct xpl_timespan){(uint64_t)v[i].device_offset_ps,
                                             (uint64_t)v[i].device_duration_ps}
                     : (struct xpl_timespan){(uint64_t)v[i].begin_ps, (uint64_t)v[i].duration_ps});
}

// Lines that are not op lines: steps and modules, and framework ops wherever they are.
static xpl_status_t walk_other_line(struct tpu_plane *t, const struct xpl_line *line) {
    const bool modules = is_module_line(line);
    const bool replaced = xpl_groups_replaces_line(t->c->groups, line);
    const bool steps = !t->is_sparse && is_step_line(line) && !replaced;
    if (!t->is_sparse && is_step_line(line) && replaced) track_steps(t);
    if (!modules && !steps && !t->framework_ops) return XPL_OK;
    struct xpl_event_cursor cursor = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct tpu_event_facts f;
        xpl_tpu_read_facts(t, line, &ev, &f);
        track_framework_op(t, line, &ev, &f);
        if (steps) track(t, f.span);
        if (modules)
            xpl_duty_extend(&t->duty, (uint64_t)xpl_event_begin_ps(line, &ev),
                            (uint64_t)ev.duration_ps);
        XPL_TRY(xpl_tpu_check_cancelled(t, &ev));
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

// ---- the plane ----

xpl_status_t xpl_tpu_walk_lines(struct tpu_plane *t) {
    for (uint32_t i = 0; i < t->plane->n_lines; i++) {
        const struct xpl_line *const line = &t->plane->lines[i];
        const bool ops = is_duty_line(line) || (!t->is_sparse && is_op_line(line));
        XPL_TRY(ops ? walk_op_line(t, line) : walk_other_line(t, line));
    }
    return XPL_OK;
}

xpl_status_t xpl_tpu_walk_tensor_core(struct tpu_plane *t) {
    XPL_TRY(xpl_tpu_walk_lines(t));
    if (!xpl_tpu_ops_finish(&t->ops, &t->arena, &t->db)) return xpl_tpu_out_of_memory(t);
    xpl_op_metrics_set_total_time(&t->db, t->last_ps - t->first_ps);
    if (!xpl_op_metrics_add_idle(&t->db, &t->arena)) return xpl_tpu_out_of_memory(t);
    return xpl_tpu_add_fusion_children(t->c->hlo, &t->arena, &t->db, &t->piece.error);
}
