// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/input_work.h"

#include "analysis/xplane/schema.h"
#include "base/arena.h"
#include "base/cleanup.h"

bool xpl_is_input_event(xpl_str_t name) {
    return xpl_str_starts(name, XPL_STR("Iterator::")) ||
           xpl_str_starts(name, XPL_STR("InstantiatedCapturedFunction::"));
}

bool xpl_is_input_line(const struct xpl_line *line) {
    return xpl_str_starts(line->name, XPL_STR("tf_data_"));
}

bool xpl_input_stack_next(struct xpl_input_stack *s, struct xpl_timespan span, bool is_input,
                          struct xpl_arena *arena, bool *ret) {
    while (s->v.n && !xpl_timespan_includes(s->v.v[s->v.n - 1], span))
        s->v.n--;
    *ret = is_input || s->v.n;
    if (!is_input) return true;
    struct xpl_timespan *slot = xpl_vec_push(arena, &s->v);
    if (slot) *slot = span;
    return slot != NULL;
}

// ---- functions of tf.data ----

// What one event hands to another: of executors of TensorFlow alone, which count without repeats.
struct context {
    uint64_t type, id;
};

// An event that runs on behalf of a context.
struct consumer {
    struct xpl_timespan span;
    struct context of;
};
// A function that is run while another is: input when that one is.
struct call {
    struct context caller, callee;
    size_t next; // index + 1 of another call of the same caller
};

struct finder {
    struct xpl_arena *arena; // of the result
    struct xpl_arena *scratch;
    struct xpl_input_work *work;
    const bool *is_input; // by position of metadata
    XPL_VEC(struct call) calls;
    struct xpl_map calls_of; // caller to index + 1 of its last call
    XPL_VEC(struct context) todo;
};

static bool read_context(const struct xpl_event *ev, enum xpl_stat_type type, enum xpl_stat_type id,
                         struct context *ret) {
    struct xpl_stat t, i;
    if (!xpl_stats_get(ev->stats, type, &t) || !xpl_stats_get(ev->stats, id, &i)) return false;
    *ret = (struct context){xpl_stat_int_or_uint(&t), xpl_stat_int_or_uint(&i)};
    return ret->type == XPL_CONTEXT_TF_EXECUTOR || ret->type == XPL_CONTEXT_TFRT_EXECUTOR;
}

static bool add_context(struct finder *f, struct context c) {
    bool is_new;
    if (!xpl_map_put(f->arena, &f->work->contexts, c.type, c.id, &is_new)) return false;
    if (!is_new) return true;
    struct context *slot = xpl_vec_push(f->scratch, &f->todo);
    if (slot) *slot = c;
    return slot != NULL;
}

static bool add_call(struct finder *f, struct context caller, struct context callee) {
    bool is_new;
    uint64_t *last = xpl_map_put(f->scratch, &f->calls_of, caller.type, caller.id, &is_new);
    struct call *c = last ? xpl_vec_push(f->scratch, &f->calls) : NULL;
    if (!c) return false;
    *c = (struct call){caller, callee, (size_t)*last};
    *last = f->calls.n;
    return true;
}

// One line, while it is read.
struct line_state {
    bool is_input; // all of it
    struct xpl_input_stack input;
    XPL_VEC(struct consumer) consumers;
};

static bool read_producer(struct finder *f, struct line_state *l, struct xpl_timespan span,
                          bool is_input, struct context c) {
    bool inside;
    if (!xpl_input_stack_next(&l->input, span, is_input, f->scratch, &inside)) return false;
    while (l->consumers.n && !xpl_timespan_includes(l->consumers.v[l->consumers.n - 1].span, span))
        l->consumers.n--;
    if (inside || l->is_input) return add_context(f, c);
    return !l->consumers.n || add_call(f, l->consumers.v[l->consumers.n - 1].of, c);
}

static bool read_consumer(struct finder *f, struct line_state *l, struct xpl_timespan span,
                          struct context c) {
    while (l->consumers.n && !xpl_timespan_includes(l->consumers.v[l->consumers.n - 1].span, span))
        l->consumers.n--;
    struct consumer *slot = xpl_vec_push(f->scratch, &l->consumers);
    if (slot) *slot = (struct consumer){span, c};
    return slot != NULL;
}

static bool read_event(struct finder *f, struct line_state *l, const struct xpl_event *ev,
                       struct xpl_timespan span) {
    const bool is_input = f->is_input[ev->md];
    struct context c;
    bool inside;
    if (read_context(ev, XPL_STAT_PRODUCER_TYPE, XPL_STAT_PRODUCER_ID, &c)) {
        if (!read_producer(f, l, span, is_input, c)) return false;
    } else if (is_input && !xpl_input_stack_next(&l->input, span, true, f->scratch, &inside)) {
        return false;
    }
    return !read_context(ev, XPL_STAT_CONSUMER_TYPE, XPL_STAT_CONSUMER_ID, &c) ||
           read_consumer(f, l, span, c);
}

enum { CANCEL_EVERY = 4096 }; // events

static xpl_status_t read_line(struct finder *f, const struct xpl_line *line, struct xpl_exec *exec,
                              struct xpl_error *err) {
    struct line_state l = {.is_input = xpl_is_input_line(line)};
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result r;
    xpl_events_begin(&cur, line);
    while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        const struct xpl_timespan span = {(uint64_t)xpl_event_begin_ps(line, &ev),
                                          (uint64_t)ev.duration_ps};
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "host events: cancelled");
        if (!read_event(f, &l, &ev, span)) XPL_RETURN_OOM(err, "functions of tf.data");
    }
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

// Functions that functions of tf.data run.
static bool follow_calls(struct finder *f) {
    while (f->todo.n) {
        const struct context c = f->todo.v[--f->todo.n];
        const uint64_t *last = xpl_map_get(&f->calls_of, c.type, c.id);
        for (size_t i = last ? (size_t)*last : 0; i; i = f->calls.v[i - 1].next)
            if (!add_context(f, f->calls.v[i - 1].callee)) return false;
    }
    return true;
}

static bool read_names(const struct xpl_plane *plane, bool *is_input) {
    bool any = false;
    for (uint32_t i = 0; i < plane->n_event_md; i++)
        any |= is_input[i] = xpl_is_input_event(plane->event_md[i].name);
    for (uint32_t i = 0; i < plane->n_lines; i++)
        any |= xpl_is_input_line(&plane->lines[i]);
    return any;
}

xpl_status_t xpl_input_work_find(const struct xpl_plane *plane, struct xpl_exec *exec,
                                 struct xpl_arena *arena, struct xpl_input_work *ret,
                                 struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init(&scratch, arena->limit);
    struct xpl_input_work work = {0};
    struct finder f = {.arena = arena, .scratch = &scratch, .work = &work};
    bool *is_input = xpl_arena_array(&scratch, plane->n_event_md, sizeof *is_input);
    if (!is_input) XPL_RETURN_OOM(err, "functions of tf.data");
    f.is_input = is_input;
    work.any = read_names(plane, is_input);
    for (uint32_t i = 0; work.any && i < plane->n_lines; i++) {
        XPL_TRY(read_line(&f, &plane->lines[i], exec, err));
    }
    if (!follow_calls(&f)) XPL_RETURN_OOM(err, "functions of tf.data");
    *ret = work;
    return XPL_OK;
}
