// SPDX-License-Identifier: Apache-2.0
// Reads the events of a host line and passes their facts to the right consumers. Rules: XProf's
// convert/xplane_to_op_metrics_db.cc (CollectTfActivities), convert/xplane_to_step_events.cc
// (ConvertHostThreadsXLineToStepEvents) and convert/xplane_to_tf_functions.cc;
// docs/cpu-as-device.md.
#include "analysis/opstats/host/read.h"
#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/host/event_stats.h"
#include "analysis/xplane/event_read.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"
#include "analysis/xplane/tf_op.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum { CANCEL_EVERY = 8192 }; // events between two checks for cancellation

// An event on the way from the root: is it a stage of an input pipeline, or inside one?
struct stage {
    struct xpl_timespan span;
    bool is_stage, is_inside;
};

// A line, or a piece of one, while it is read.
struct reader {
    const struct xpl_host_plan *plan;
    const struct xpl_line *line;
    xpl_str_t module; // of the op of the event; empty: the event is none, or has none
    // Of the execution added last.  Empty: none, or not of a keyed op.
    xpl_bytes_t run;
    const char *run_module;
    uint64_t base_ps; // where the line's offsets count from
    struct xpl_arena *arena;
    struct xpl_host_piece *out;
    struct xpl_steps *steps;
    struct xpl_cpu_memory *memory;
    struct xpl_group_cursor *groups;
    const struct xpl_group_quick *quick; // of that cursor, or of none
    uint64_t covered_begin, covered_end; // in the last step, host work in here changes nothing
    int64_t last_group;
    size_t last_step; // index + 1 into steps->v, of last_group
    XPL_VEC(struct stage) stages;
    bool is_input_line; // with cpu: all of the line is tf.data's
    struct xpl_input_stack input;
    struct xpl_map tf_ops; // name of stat tf_op to its struct xpl_host_op
    struct xpl_intern *strings;
    bool only_ops; // second pass over a line out of order: collect its op events
    XPL_VEC(struct xpl_op_event) op_events;
    struct xpl_error *err;
};

// ---- ops ----

static bool add_op(struct reader *r, const struct xpl_host_op *op, struct xpl_timespan span,
                   bool is_eager) {
    if (r->only_ops) {
        struct xpl_op_event *e = xpl_vec_push(r->arena, &r->op_events);
        if (!e) return false;
        *e = (struct xpl_op_event){op, span, is_eager};
        return true;
    }
    if (!r->out->ops) {
        r->out->ops = xpl_arena_zalloc(r->arena, sizeof *r->out->ops);
        if (!r->out->ops) return false;
        r->out->ops->arena = r->arena;
    }
    return xpl_op_line_add(r->out->ops, op, span, is_eager);
}

static const struct xpl_host_op *op_of(const struct reader *r, const struct xpl_event *ev,
                                       const struct host_event_stats *w) {
    const struct xpl_host_plan *p = r->plan;
    uint64_t op = p->md[ev->md].op;
    if (p->stats & XPL_HOST_STAGE_ID) {
        const int64_t id = w->has & XPL_HOST_STAGE_ID ? w->stage_id : p->plane->event_md[ev->md].id;
        const uint64_t *slot = xpl_map_get(&p->op_of_id, (uint64_t)id, 0);
        op = slot ? *slot : 0;
    }
    return op ? &p->ops.v[op - 1] : NULL;
}

// The op that statistic tf_op names.  NULL at the arena's limit.
static const struct xpl_host_op *op_of_stat(struct reader *r, const struct xpl_stat *s) {
    xpl_str_t name = s->str;
    if (s->kind != XPL_VALUE_REF) { // names of metadata are the same view every time
        xpl_strid_t id;
        if (!r->strings && !(r->strings = xpl_intern_new(r->arena, xpl_hash_seed()))) return NULL;
        if (!xpl_intern_put(r->strings, name, &id)) return NULL;
        name = xpl_intern_get(r->strings, id);
    }
    bool is_new;
    uint64_t *slot = xpl_map_put(r->arena, &r->tf_ops, (uint64_t)(uintptr_t)name.ptr, 0, &is_new);
    if (!slot) return NULL;
    if (!*slot) {
        struct xpl_host_op *op = xpl_arena_zalloc(r->arena, sizeof *op);
        if (!op || !xpl_arena_str(r->arena, name, &name)) return NULL;
        const struct xpl_tf_op parsed = xpl_tf_op_parse(name);
        *op = (struct xpl_host_op){.name = parsed.name,
                                   .type = parsed.type,
                                   .is_infeed = xpl_is_infeed_enqueue_op(parsed.type),
                                   .crosses = parsed.category == XPL_TF_OP_PYTORCH};
        *slot = (uint64_t)(uintptr_t)op;
    }
    return (const struct xpl_host_op *)(uintptr_t)*slot;
}

static bool read_ops(struct reader *r, const struct xpl_event *ev, const struct host_event_stats *w,
                     const struct xpl_event_group *g, struct xpl_timespan span) {
    const struct xpl_host_op *op = op_of(r, ev, w);
    if (op && !add_op(r, op, span, g->has_is_eager && g->is_eager)) return false;
    if (!(w->has & XPL_HOST_TF_OP) || xpl_stat_str(&w->tf_op).len == 0) return true;
    op = op_of_stat(r, &w->tf_op);
    return op && add_op(r, op, span, false);
}

// ---- ops that count as a device's ----

static bool is_collective(xpl_str_t category) {
    static const char *const prefixes[] = {"all-gather", "all-reduce",     "all-to-all",
                                           "collective", "reduce-scatter", "ragged-all-to-all"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (xpl_str_starts(category, xpl_str_from(prefixes[i]))) return true;
    return false;
}

static xpl_status_t classify_cpu_op(const struct reader *r, struct xpl_cpu_op *op) {
    op->span = XPL_SPAN_DEVICE_COMPUTE_32;
    uint64_t id = op->program_id;
    if (op->framework ||
        (!op->has_program_id && !xpl_hlo_map_program_of(r->plan->c->hlo, op->module, &id)))
        return XPL_OK;
    struct xpl_hlo_instruction in;
    bool found;
    XPL_TRY(xpl_hlo_map_find(r->plan->c->hlo, id, op->name, &in, &found, r->err));
    if (found && is_collective(in.category)) op->span = XPL_SPAN_DEVICE_COLLECTIVES;
    return XPL_OK;
}

// Whether tf.data does the event, for input; asked of those that would count as a device's.
static bool is_input_work(struct reader *r, const struct xpl_host_md *md,
                          const struct host_event_stats *w, struct xpl_timespan span, bool counts,
                          bool *ret) {
    const struct xpl_input_work *const known = &r->plan->input;
    *ret = r->is_input_line;
    if (r->is_input_line || !known->any) return true;
    const bool here = md->flags & XPL_HOST_INPUT ||
                      (w->has_consumer_type && w->has_consumer_id &&
                       xpl_map_get(&known->contexts, w->consumer_type, w->consumer_id) != NULL);
    return (!here && !counts) || xpl_input_stack_next(&r->input, span, here, r->arena, ret);
}

// *ret_span: what the event is to its step, when it counts as a device's op.
static xpl_status_t read_cpu(struct reader *r, const struct xpl_event *ev,
                             struct host_event_stats *w, const struct xpl_event_group *g,
                             struct xpl_timespan span, enum xpl_span_type *ret_span) {
    const struct xpl_host_md *md = &r->plan->md[ev->md];
    const bool counts = w->keyed || w->has & XPL_HOST_HLO_OP || md->flags & XPL_HOST_FRAMEWORK;
    bool is_input;
    if (!is_input_work(r, md, w, span, counts, &is_input)) XPL_RETURN_OOM(r->err, "host ops");
    r->module = (xpl_str_t){0};
    if (is_input || !counts) return XPL_OK;
    struct xpl_cpu_line *l = r->out->cpu;
    if (!l) l = r->out->cpu = xpl_cpu_line_new(r->memory, r->arena);
    if (!l) XPL_RETURN_OOM(r->err, "host ops");
    struct xpl_cpu_op *op = NULL;
    if (w->keyed && !xpl_cpu_line_add_known(l, &w->key, span, &op))
        XPL_RETURN_OOM(r->err, "host ops");
    if (!op && w->keyed) xpl_host_read_stats(r->plan, ev, ev->stats.p, w);
    if (!op && w->has & XPL_HOST_HLO_OP)
        op = xpl_cpu_line_add_xla(l, &w->cpu, w->keyed ? &w->key : NULL, span);
    else if (!op && md->flags & XPL_HOST_FRAMEWORK)
        op = xpl_cpu_line_add_framework(l, &r->plan->ops.v[md->op - 1],
                                        g->has_is_eager && g->is_eager, span);
    else if (!op)
        return XPL_OK; // hlo_op was there, but empty
    if (!op) XPL_RETURN_OOM(r->err, "host ops");
    if (!op->span) XPL_TRY(classify_cpu_op(r, op));
    r->module = op->module;
    if (*ret_span == XPL_SPAN_HOST_COMPUTE) *ret_span = op->span;
    return XPL_OK;
}

// ---- steps ----

// Puts an event on the stack of those that enclose what follows.  It is inside a stage when one
// encloses it on its line, or when it consumes what an event on another line produced.
static struct stage *push_stage(struct reader *r, struct xpl_timespan span, bool is_stage,
                                bool is_inside) {
    while (r->stages.n && !xpl_timespan_includes(r->stages.v[r->stages.n - 1].span, span))
        r->stages.n--;
    if (r->stages.n) {
        const struct stage *parent = &r->stages.v[r->stages.n - 1];
        is_inside |= parent->is_inside || parent->is_stage;
    }
    struct stage *s = xpl_vec_push(r->arena, &r->stages);
    if (s) *s = (struct stage){span, is_stage, is_inside};
    return s;
}

// Whether the event is a stage of an input pipeline that no other stage encloses.  Sees every
// event, for any may enclose a later one.
static bool read_stage(struct reader *r, const struct host_event_stats *w, struct xpl_timespan span,
                       bool *ret_is_root) {
    const bool inside =
        w->has_consumer_type && w->has_consumer_id &&
        xpl_map_get(&r->plan->async_producers, w->consumer_type, w->consumer_id) != NULL;
    const struct stage *s =
        push_stage(r, span, w->has & XPL_HOST_STAGE_NAME && w->stage_name.len != 0, inside);
    if (!s) return false;
    *ret_is_root = s->is_stage && !s->is_inside;
    return true;
}

static struct xpl_step *step_of(struct reader *r, int64_t group) {
    if (r->last_step && r->last_group == group) return &r->steps->v.v[r->last_step - 1];
    struct xpl_step *st = xpl_steps_put(r->steps, group);
    if (!st) return NULL;
    r->last_group = group;
    r->last_step = (size_t)(st - r->steps->v.v) + 1;
    return st;
}

static bool add_span(struct reader *r, struct xpl_step *st, enum xpl_span_type kind,
                     struct xpl_timespan span) {
    if (r->plan->inputs_only) {
        if (kind == XPL_SPAN_HOST_WAIT_INPUT || kind == XPL_SPAN_HOST_TO_DEVICE)
            st->input_ps += span.duration_ps;
        return true;
    }
    return xpl_step_add_span(st, kind, span, r->arena);
}

// False when the event has none.
static bool run_of(const struct host_event_stats *w, int64_t *ret) {
    if (w->run.len) return xpl_host_read_run(w->run, ret);
    if (w->has_run_id) *ret = w->run_id;
    return w->has_run_id;
}

XPL_INLINE bool is_same_run(xpl_bytes_t a, xpl_bytes_t b) {
    uint32_t v[4]; // usually they have 4 to 8 bytes
    enum { N = sizeof *v };
    if (a.len != b.len) return false;
    if (a.len < N || a.len > 2 * N) return memcmp(a.ptr, b.ptr, a.len) == 0;
    memcpy(&v[0], a.ptr, N);
    memcpy(&v[1], b.ptr, N);
    memcpy(&v[2], a.ptr + a.len - N, N);
    memcpy(&v[3], b.ptr + b.len - N, N);
    return v[0] == v[1] && v[2] == v[3];
}

// An op whose execution is not that of the op before.
__attribute__((noinline)) static bool begin_run(struct reader *r, const struct host_event_stats *w,
                                                uint64_t begin_ps, uint64_t end_ps) {
    const uint64_t function = r->module.len ? xpl_host_function_of_module(r->module) : 0;
    struct xpl_host_run op = {.function = function,
                              .module = r->module,
                              .begin_ps = begin_ps,
                              .end_ps = end_ps,
                              .n_ops = 1};
    if (!run_of(w, &op.id)) return true;
    r->run = w->run, r->run_module = r->module.ptr;
    return xpl_host_runs_add_op(&r->out->runs, &op, r->arena);
}

// Adds an op to the execution that its run id names.
static bool add_to_run(struct reader *r, const struct host_event_stats *w, uint64_t begin_ps,
                       uint64_t end_ps) {
    const struct xpl_host_runs *const runs = &r->out->runs;
    if (begin_ps >= end_ps) return true;
    struct xpl_host_run *const last = r->run.len ? &runs->runs.v[runs->runs.n - 1] : NULL;
    if (!last || r->run_module != r->module.ptr || !is_same_run(r->run, w->run))
        return begin_run(r, w, begin_ps, end_ps);
    xpl_host_run_extend(last, begin_ps, end_ps, 1);
    return true;
}

// An op of the device: part of its group's step, else of an execution.
static bool read_device_op(struct reader *r, enum xpl_span_type kind,
                           const struct host_event_stats *w, const struct xpl_event_group *g,
                           struct xpl_timespan span) {
    if (g->has_group && g->group_id >= 0) {
        struct xpl_step *const st = step_of(r, g->group_id);
        if (!st) return false;
        xpl_step_add_work(st, span);
    } else if (!add_to_run(r, w, span.begin_ps, xpl_timespan_end(span))) {
        return false;
    }
    return xpl_step_add_union(&r->out->loose, kind, span, r->arena);
}

static bool read_step(struct reader *r, const struct xpl_event *ev, enum xpl_span_type kind,
                      const struct xpl_event_group *g, struct xpl_timespan span) {
    const unsigned flags = r->plan->md[ev->md].flags;
    if (!g->has_group || g->group_id < 0) return true;
    struct xpl_step *st = step_of(r, g->group_id);
    if (!st) return false;
    const bool named = g->has_step_name && g->step_name.len;
    if (flags & XPL_HOST_MARKER || named) {
        xpl_step_add_host_marker(st, span);
        if (named) st->name = g->step_name;
        return true;
    }
    return flags & XPL_HOST_NOT_COMPUTE || add_span(r, st, kind, span);
}

__attribute__((noinline)) static bool
read_launch(struct reader *r, const struct xpl_event *ev, const struct host_stats_head *h,
            struct host_event_stats *w, const struct xpl_event_group *g, struct xpl_timespan span) {
    struct xpl_host_launch *const l = xpl_vec_push(r->arena, &r->out->runs.launches);
    if (!l) return false;
    if (h->interest == NOT_OF_INTEREST) xpl_host_read_stats(r->plan, ev, ev->stats.p, w);
    *l = (struct xpl_host_launch){.begin_ps = span.begin_ps,
                                  .end_ps = xpl_timespan_end(span),
                                  .group = g->has_group ? g->group_id : -1};
    l->has_id = run_of(w, &l->id);
    return true;
}

__attribute__((noinline)) static bool read_call(struct reader *r, const struct xpl_event *ev,
                                                struct xpl_timespan span) {
    struct xpl_host_call *const c = xpl_vec_push(r->arena, &r->out->runs.calls);
    if (!c) return false;
    *c = (struct xpl_host_call){
        .begin_ps = span.begin_ps,
        .end_ps = xpl_timespan_end(span),
        .function = xpl_host_function_called(r->plan->plane->event_md[ev->md].name)};
    return true;
}

// ---- a line, or a piece of one ----

// Groups matter to steps, eagerness to ops; a cursor may have to see the other events, too.
static bool needs_group(const struct reader *r, const struct xpl_event *ev, bool eager) {
    const struct xpl_host_plan *const p = r->plan;
    const bool op = p->md[ev->md].op || p->stats & XPL_HOST_STAGE_ID;
    return r->groups && (!r->quick->stateless || p->steps || (op && eager));
}

static xpl_status_t read_event(struct reader *r, const struct xpl_event *ev,
                               const struct host_stats_head *h) {
    const struct xpl_host_plan *p = r->plan;
    struct xpl_event_group g = {0};
    struct host_event_stats w;
    w.has = 0;
    w.has_consumer_type = w.has_consumer_id = w.has_run_id = false;
    w.keyed = h->interest == KEYED_OP;
    w.run.len = 0;
    if (w.keyed) w.key = h->key, w.run = h->run;
    if (needs_group(r, ev, h->eager)) xpl_group_cursor_next(r->groups, ev, &g);
    if (h->interest == OF_INTEREST) xpl_host_read_stats(p, ev, h->first, &w);
    const struct xpl_timespan span = {r->base_ps + (uint64_t)ev->offset_ps,
                                      (uint64_t)ev->duration_ps};
    if ((p->any_ops || w.has & XPL_HOST_TF_OP) && !xpl_is_derived_line_id(r->line->id) &&
        !read_ops(r, ev, &w, &g, span))
        XPL_RETURN_OOM(r->err, "host ops");
    if (r->only_ops) return XPL_OK;
    if (w.has & XPL_HOST_TF_CALL && w.call.len) {
        struct xpl_tf_calls *calls = r->out->calls;
        if (!calls) calls = r->out->calls = xpl_arena_zalloc(r->arena, sizeof *calls);
        struct xpl_tf_call *c = calls ? xpl_vec_push(r->arena, &calls->v) : NULL;
        if (!c) XPL_RETURN_OOM(r->err, "tf.functions");
        *c = (struct xpl_tf_call){.name = xpl_op_text(p->plane->event_md[ev->md].name),
                                  .mode = xpl_op_text(w.call),
                                  .span = span,
                                  .tracing_count = w.tracing_count};
    }
    enum xpl_span_type kind = p->md[ev->md].span;
    if (p->stats & XPL_HOST_STAGE_NAME) {
        bool root;
        if (!read_stage(r, &w, span, &root)) XPL_RETURN_OOM(r->err, "input pipeline stages");
        if (root && kind == XPL_SPAN_HOST_COMPUTE) kind = XPL_SPAN_HOST_WAIT_INPUT;
    }
    if (p->cpu) XPL_TRY(read_cpu(r, ev, &w, &g, span, &kind));
    const unsigned flags = p->md[ev->md].flags;
    if (XPL_UNLIKELY(flags & (XPL_HOST_CALL | XPL_HOST_LAUNCH)) &&
        !(flags & XPL_HOST_CALL ? read_call(r, ev, span) : read_launch(r, ev, h, &w, &g, span)))
        XPL_RETURN_OOM(r->err, "executions");
    if (!p->steps) return XPL_OK;
    const bool device = kind >= XPL_SPAN_DEVICE_COLLECTIVES && kind != XPL_SPAN_HOST_WAIT_INPUT;
    if (!(device ? read_device_op(r, kind, &w, &g, span) : read_step(r, ev, kind, &g, span)))
        XPL_RETURN_OOM(r->err, "steps");
    return XPL_OK;
}

static void begin_piece(const struct xpl_host_piece *piece, const struct xpl_line *line,
                        struct xpl_event_cursor *cur) {
    xpl_events_begin_chunk(cur, line, piece->chunk);
    if (line->n_chunks < 2 || piece->end_chunk < 1) return;
    struct xpl_event_cursor last; // the pieces' events follow each other: only the end differs
    xpl_events_begin_chunk(&last, line, piece->end_chunk - 1);
    cur->stop = last.stop;
}

// ---- most events ----

// Host work of a step only counts where no other does.
static void note_covered(struct reader *r) {
    r->covered_begin = 0, r->covered_end = r->plan->inputs_only ? UINT64_MAX : 0;
    if (!r->last_step || r->plan->inputs_only) return;
    const struct xpl_timespan open =
        xpl_step_open_span(&r->steps->v.v[r->last_step - 1], XPL_SPAN_HOST_COMPUTE);
    if (open.duration_ps == 0) return;
    r->covered_begin = open.begin_ps, r->covered_end = xpl_timespan_end(open);
}

// Deals with an event that is host work like any other, when its group is known, too.  False: it
// has to be read.
XPL_INLINE bool skip_plain(struct reader *r, uint64_t at, uint32_t md, struct xpl_timespan span,
                           bool *ret_failed) {
    const struct xpl_group_quick *const q = r->quick;
    const uint64_t end = xpl_timespan_end(span);
    if (!xpl_group_quick_knows(q, at, md, span.begin_ps, end))
        return q->stateless && !r->plan->steps;
    if (!q->has_group || !r->plan->steps || r->only_ops) return true;
    if (r->last_step && r->last_group == q->group_id && r->covered_begin <= span.begin_ps &&
        span.begin_ps < end && end <= r->covered_end)
        return true;
    struct xpl_step *const st = step_of(r, q->group_id);
    if (!st || !add_span(r, st, XPL_SPAN_HOST_COMPUTE, span)) *ret_failed = true;
    note_covered(r);
    return true;
}

// An event by its first fields, and what its statistics are to us.
struct event_head {
    struct xpl_raw_event raw;
    const uint8_t *next;
    uint32_t md;
    struct host_stats_head stats;
};

// Whether nothing but well-formed statistics is in [p, end), as writers write it.
XPL_INLINE bool only_stats(const uint8_t *p, const uint8_t *end) {
    while (p != end && XPL_LIKELY(*p == XPL_TAG_FIELD4_LEN)) {
        const struct xpl_varint n = xpl_varint_read(p + 1, end);
        if (XPL_UNLIKELY(!n.p) || XPL_UNLIKELY(n.v > (uint64_t)(end - n.p))) return false;
        p = n.p + n.v;
    }
    return p == end;
}

// False when it is not written as usual, and has to be read in full.
XPL_INLINE bool read_head(const struct reader *r, const uint8_t *p, const uint8_t *end,
                          struct event_head *ret) {
    xpl_bytes_t message;
    if (XPL_UNLIKELY(xpl_next_message(&p, end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD) ||
        XPL_UNLIKELY(!xpl_raw_event_head(message, end, &ret->raw)))
        return false;
    ret->next = p;
    ret->md = xpl_event_md_at(r->line->plane, ret->raw.md_id);
    ret->stats.interest = NOT_OF_INTEREST;
    ret->stats.eager = false;
    if (ret->raw.stats == ret->raw.end) return true;
    xpl_host_read_head(r->plan, ret->raw.stats, ret->raw.end, ret->md, &ret->stats);
    return ret->stats.interest != OF_INTEREST || only_stats(ret->stats.unread, ret->raw.end);
}

// (Member by member: a copy would be read in wider pieces than it has just been written in.)
XPL_INLINE void make_event(const struct xpl_event_cursor *c, uint64_t at,
                           const struct event_head *g, struct xpl_event *ret) {
    ret->md = g->md;
    ret->offset_ps = (int64_t)g->raw.offset_ps;
    ret->duration_ps = (int64_t)g->raw.duration_ps;
    ret->num_occurrences = 0;
    ret->has_occurrences = false;
    ret->stats.plane = c->line->plane;
    ret->stats.p = g->raw.stats;
    ret->stats.end = g->raw.end;
    ret->stats.field = XEVENT_STATS;
    ret->index = c->index;
    ret->at = at;
}

// The event at *c; moves behind it.
XPL_INLINE xpl_status_t read_next(struct reader *r, struct xpl_event_cursor *c) {
    const struct xpl_host_plan *const p = r->plan;
    struct xpl_event ev;
    struct event_head g;
    bool failed = false;
    const uint8_t *const here = xpl_find_message(c->p, c->end, XLINE_EVENTS);
    const uint64_t at = (uint64_t)(here - r->line->message.ptr);
    if (XPL_LIKELY(read_head(r, here, c->end, &g))) {
        const struct xpl_timespan span = {r->base_ps + g.raw.offset_ps, g.raw.duration_ps};
        if (!(g.stats.interest == NOT_OF_INTEREST && p->md[g.md].plain &&
              skip_plain(r, at, g.md, span, &failed))) {
            make_event(c, at, &g, &ev);
            XPL_TRY(read_event(r, &ev, &g.stats));
            note_covered(r);
        }
        if (XPL_UNLIKELY(failed)) XPL_RETURN_OOM(r->err, "steps");
        c->p = g.next;
        c->index++;
        return XPL_OK;
    }
    const enum xpl_wire_result res = xpl_events_next(c, &ev);
    if (res == XPL_WIRE_MALFORMED) return xpl_events_error(c, r->err);
    if (res == XPL_WIRE_END) { // the bytes changed: there were more
        c->index = c->stop;
        return XPL_OK;
    }
    const struct host_stats_head all = {
        .interest = OF_INTEREST, .eager = true, .first = ev.stats.p};
    XPL_TRY(read_event(r, &ev, &all));
    note_covered(r);
    return XPL_OK;
}

static xpl_status_t read_piece(struct reader *r) {
    static const struct xpl_group_quick no_groups = {.stateless = true};
    struct xpl_event_cursor cur;
    r->quick = &no_groups;
    if (r->plan->groups) {
        XPL_TRY(xpl_group_cursor_new_at(r->plan->c->groups, r->line, r->out->chunk, r->arena,
                                        &r->groups, r->err));
        r->quick = xpl_group_cursor_quick(r->groups);
    }
    begin_piece(r->out, r->line, &cur);
    while (cur.index != cur.stop) {
        if (cur.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->plan->c->exec))
            XPL_RETURN_ERROR(r->err, XPL_CANCELLED, "host events: cancelled");
        XPL_TRY(read_next(r, &cur));
    }
    if (r->groups && !xpl_group_cursor_ok(r->groups)) XPL_RETURN_OOM(r->err, "groups of events");
    return XPL_OK;
}

xpl_status_t xpl_host_piece_read(const struct xpl_host_plan *plan, struct xpl_host_piece *piece,
                                 struct xpl_cpu_memory *memory, struct xpl_arena *arena,
                                 struct xpl_steps *ret_steps, struct xpl_error *err) {
    struct reader r = {.plan = plan,
                       .line = &plan->plane->lines[piece->line],
                       .arena = arena,
                       .out = piece,
                       .steps = ret_steps,
                       .memory = memory,
                       .err = err};
    r.base_ps = (uint64_t)r.line->timestamp_ns * 1000;
    r.is_input_line = plan->cpu && xpl_is_input_line(r.line);
    xpl_steps_init(r.steps, arena);
    XPL_TRY(read_piece(&r));
    if (piece->cpu && piece->end_chunk >= r.line->n_chunks && piece->chunk == 0)
        xpl_cpu_line_finish(piece->cpu);
    if (piece->calls && !xpl_tf_calls_nest(piece->calls, arena))
        XPL_RETURN_OOM(err, "tf.functions");
    if (!piece->ops) return XPL_OK;
    if (piece->ops->out_of_order) {
        r.only_ops = true;
        XPL_TRY(read_piece(&r));
        if (!xpl_op_line_sort(piece->ops, r.op_events.v, r.op_events.n))
            XPL_RETURN_OOM(err, "host ops");
    }
    if (!xpl_op_line_finish(piece->ops)) XPL_RETURN_OOM(err, "host ops");
    return XPL_OK;
}

// ---- where pieces of a line meet ----

static bool counts_as_device(const struct xpl_host_plan *p, const struct xpl_event *ev) {
    struct host_stats_head h = {.interest = NOT_OF_INTEREST};
    struct host_event_stats w;
    w.has = 0, w.keyed = false;
    if (p->stats) xpl_host_read_head(p, ev->stats.p, ev->stats.end, ev->md, &h);
    if (h.interest != NOT_OF_INTEREST) xpl_host_read_stats(p, ev, h.first, &w);
    return w.has & XPL_HOST_HLO_OP || p->md[ev->md].flags & XPL_HOST_FRAMEWORK;
}

xpl_status_t xpl_host_piece_pass(const struct xpl_host_plan *plan,
                                 const struct xpl_host_piece *piece, struct xpl_cpu_carry *carry,
                                 struct xpl_error *err) {
    const struct xpl_line *line = &plan->plane->lines[piece->line];
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(plan->c->scratch_limit);
    XPL_VEC(struct xpl_timespan) open = {0};
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result res = XPL_WIRE_END;
    if (!piece->cpu) return XPL_OK; // nothing in it counts
    begin_piece(piece, line, &cur);
    while (carry->v.n && (res = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        if (!counts_as_device(plan, &ev)) continue;
        const struct xpl_timespan span = {(uint64_t)xpl_event_begin_ps(line, &ev),
                                          (uint64_t)ev.duration_ps};
        while (open.n && !xpl_timespan_includes(open.v[open.n - 1], span))
            open.n--;
        if (!open.n) xpl_cpu_carry_pass(carry, span);
        struct xpl_timespan *o = xpl_vec_push(&scratch, &open);
        if (!o) XPL_RETURN_OOM(err, "host ops");
        *o = span;
    }
    return res == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}
