// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/input_work.h"

#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/metadata.h"
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

// The links between events: only of TensorFlow's executors, which count without repeats.
struct context {
    uint64_t type, id;
};

// The statistics that say what an event produces and consumes: type and id of each.
enum { PRODUCED, CONSUMED = 2, CONTEXT_STATS = 4 };
enum { PRODUCES = 3 << PRODUCED, CONSUMES = 3 << CONSUMED };
static const enum xpl_stat_type kContextStats[CONTEXT_STATS] = {
    XPL_STAT_PRODUCER_TYPE, XPL_STAT_PRODUCER_ID, XPL_STAT_CONSUMER_TYPE, XPL_STAT_CONSUMER_ID};
enum { FAST_IDS = 256 };
struct xpl_context_ids {
    uint8_t bit[FAST_IDS]; // by id of a statistic: 1 << its place in kContextStats
    bool wide;             // some have greater ids
};

// What an event says of them: bits, and a value for each.
struct ends {
    unsigned found;
    uint64_t v[CONTEXT_STATS];
};

static bool is_executor(uint64_t type) {
    return type == XPL_CONTEXT_TF_EXECUTOR || type == XPL_CONTEXT_TFRT_EXECUTOR;
}

static bool read_context(const struct ends *e, unsigned which, struct context *ret) {
    const unsigned both = 3u << which;
    if ((e->found & both) != both) return false;
    *ret = (struct context){e->v[which], e->v[which + 1]};
    return is_executor(ret->type);
}

static void list_ids(const struct xpl_plane *plane, struct xpl_context_ids *ret) {
    for (uint32_t i = 1; i < plane->n_stat_md; i++)
        for (unsigned k = 0; k < CONTEXT_STATS; k++) {
            const uint64_t id = (uint64_t)plane->stat_md[i].id;
            if (plane->stat_md[i].type != kContextStats[k] || xpl_plane_stat_md(plane, id) != i)
                continue; // of equal ids one counts
            ret->wide |= id >= FAST_IDS;
            if (id < FAST_IDS) ret->bit[id] = (uint8_t)(1u << k);
        }
}

// The value of a statistic that is written as usual, as an integer.
static bool read_integer(const uint8_t *at, const uint8_t *end, const uint8_t *limit,
                         uint64_t *ret) {
    if (at == end || (*at != XSTAT_UINT << 3 && *at != XSTAT_INT << 3)) return false;
    const struct xpl_varint v = xpl_varint_wide(at + 1, limit);
    *ret = v.v;
    return v.p == end;
}

// Reads those of `wanted`, PRODUCES and CONSUMES, whose type is an executor's.  False for an event
// that is not written as usual.
static bool read_fast(const struct xpl_context_ids *ids, const struct xpl_stats *stats,
                      unsigned wanted, struct ends *ret) {
    const uint8_t *const limit = xpl_input_end(stats->plane);
    struct xpl_fast_stat s;
    ret->found = 0;
    for (const uint8_t *p = stats->p; p != stats->end && wanted & ~ret->found; p += s.len) {
        if (XPL_UNLIKELY(!xpl_fast_stat_head(p, stats->end, XPL_TAG_FIELD4_LEN, &s))) return false;
        if (XPL_UNLIKELY(s.id >= FAST_IDS)) {
            if (ids->wide) return false;
            continue;
        }
        const unsigned bit = ids->bit[s.id] & wanted & ~ret->found; // the first counts
        if (XPL_LIKELY(!bit)) continue;
        const unsigned k = (unsigned)__builtin_ctz(bit);
        if (XPL_UNLIKELY(!read_integer(s.value, p + s.len, limit, &ret->v[k]))) return false;
        ret->found |= bit;
        if (k % 2 == 0 && !is_executor(ret->v[k])) wanted &= ~(3u << k);
    }
    return true;
}

static void read_ends(const struct xpl_context_ids *ids, const struct xpl_stats *stats,
                      unsigned wanted, struct ends *ret) {
    struct xpl_stat v[CONTEXT_STATS];
    if (read_fast(ids, stats, wanted, ret)) return;
    ret->found = xpl_stats_find(*stats, kContextStats, CONTEXT_STATS, v);
    for (unsigned k = 0; k < CONTEXT_STATS; k++)
        if (ret->found & 1u << k) ret->v[k] = xpl_stat_int_or_uint(&v[k]);
}

// ---- one line ----

// An event that runs on behalf of a context.
struct consumer {
    struct xpl_timespan span;
    struct context of;
};
// A function that is run while another is: input when that one is.
struct call {
    struct context caller, callee;
};

struct line_search {
    struct xpl_arena arena;
    bool is_input; // all of it
    bool whole;    // all of it was read
    struct xpl_input_stack input;
    XPL_VEC(struct consumer) consumers;
    XPL_VEC(struct context) produced; // by input
    XPL_VEC(struct call) calls;
};

struct xpl_input_search {
    const struct xpl_plane *plane;
    struct xpl_arena *arena; // of the result
    size_t limit;
    const bool *is_input; // by position of metadata
    struct xpl_context_ids *ids;
    _Atomic uint8_t *consumes;
    struct line_search *lines;
    struct xpl_arena_budget lines_budget; // of their arenas
    struct xpl_event_watch watch;
};

static void leave_consumers(struct line_search *l, struct xpl_timespan span) {
    while (l->consumers.n && !xpl_timespan_includes(l->consumers.v[l->consumers.n - 1].span, span))
        l->consumers.n--;
}

static bool add_produced(struct line_search *l, struct context c) {
    struct context *const slot = xpl_vec_push(&l->arena, &l->produced);
    if (slot) *slot = c;
    return slot != NULL;
}

static bool read_producer(struct line_search *l, struct xpl_timespan span, bool is_input,
                          struct context c) {
    bool inside;
    if (!xpl_input_stack_next(&l->input, span, is_input, &l->arena, &inside)) return false;
    leave_consumers(l, span);
    if (inside || l->is_input) return add_produced(l, c);
    if (!l->consumers.n) return true;
    struct call *const slot = xpl_vec_push(&l->arena, &l->calls);
    if (slot) *slot = (struct call){l->consumers.v[l->consumers.n - 1].of, c};
    return slot != NULL;
}

static bool read_consumer(struct line_search *l, struct xpl_timespan span, struct context c) {
    leave_consumers(l, span);
    struct consumer *const slot = xpl_vec_push(&l->arena, &l->consumers);
    if (slot) *slot = (struct consumer){span, c};
    return slot != NULL;
}

static bool read_event(struct xpl_input_search *s, struct line_search *l,
                       const struct xpl_watched_event *ev, uint32_t md) {
    const struct xpl_timespan span = {ev->begin_ps, ev->duration_ps};
    struct ends e;
    struct context c;
    bool inside;
    e.found = 0;
    if (ev->read)
        e = (struct ends){(ev->produces ? PRODUCES : 0u) | (ev->consumes ? CONSUMES : 0u),
                          {ev->producer_type, ev->producer_id, ev->consumer_type, ev->consumer_id}};
    else if (ev->produces || ev->consumes)
        read_ends(s->ids, &ev->stats,
                  (ev->produces ? PRODUCES : 0u) | (ev->consumes ? CONSUMES : 0u), &e);
    if (read_context(&e, PRODUCED, &c)) {
        if (!read_producer(l, span, ev->marked, c)) return false;
    } else if (ev->marked && !xpl_input_stack_next(&l->input, span, true, &l->arena, &inside)) {
        return false;
    }
    if (!read_context(&e, CONSUMED, &c)) return true;
    if (!atomic_load_explicit(&s->consumes[md], memory_order_relaxed))
        atomic_store_explicit(&s->consumes[md], 1, memory_order_relaxed);
    return read_consumer(l, span, c);
}

// ---- lines that grouping shows ----

// (All that a line of tf.data produces counts, whatever encloses it.)
static bool begin_line(void *ctx, const struct xpl_line *line) {
    struct xpl_input_search *const s = ctx;
    struct line_search *const l = &s->lines[line->index];
    xpl_arena_fini(&l->arena);
    *l = (struct line_search){.is_input = xpl_is_input_line(line)};
    xpl_arena_init_part(&l->arena, &s->lines_budget);
    return !l->is_input;
}

static bool show_event(void *ctx, const struct xpl_line *line, const struct xpl_watched_event *ev) {
    struct xpl_input_search *const s = ctx;
    return read_event(s, &s->lines[line->index], ev, xpl_event_md_at(s->plane, ev->md_id));
}

static void end_line(void *ctx, const struct xpl_line *line) {
    struct xpl_input_search *const s = ctx;
    s->lines[line->index].whole = true;
}

// ---- lines that only this reads ----

enum { CANCEL_EVERY = 4096 }; // events

static xpl_status_t read_line(struct xpl_input_search *s, const struct xpl_line *line,
                              struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result r;
    begin_line(s, line);
    xpl_events_begin(&cur, line);
    while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        const struct xpl_watched_event shown = {.begin_ps = (uint64_t)xpl_event_begin_ps(line, &ev),
                                                .duration_ps = (uint64_t)ev.duration_ps,
                                                .stats = ev.stats,
                                                .marked = s->is_input[ev.md],
                                                .produces = true,
                                                .consumes = true};
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "host events: cancelled");
        if (!read_event(s, &s->lines[line->index], &shown, ev.md))
            XPL_RETURN_OOM(err, "functions of tf.data");
    }
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

// ---- all lines ----

// A call among those of the same caller.
struct next_call {
    struct context callee;
    size_t next; // index + 1
};
struct finder {
    struct xpl_arena *arena; // of the result
    struct xpl_arena *scratch;
    struct xpl_input_work *work;
    XPL_VEC(struct next_call) calls;
    struct xpl_map calls_of; // caller to index + 1 of its last call
    XPL_VEC(struct context) todo;
};

static bool add_context(struct finder *f, struct context c) {
    bool is_new;
    if (!xpl_map_put(f->arena, &f->work->contexts, c.type, c.id, &is_new)) return false;
    if (!is_new) return true;
    struct context *const slot = xpl_vec_push(f->scratch, &f->todo);
    if (slot) *slot = c;
    return slot != NULL;
}

static bool add_call(struct finder *f, const struct call *call) {
    bool is_new;
    uint64_t *const last =
        xpl_map_put(f->scratch, &f->calls_of, call->caller.type, call->caller.id, &is_new);
    struct next_call *const c = last ? xpl_vec_push(f->scratch, &f->calls) : NULL;
    if (!c) return false;
    *c = (struct next_call){call->callee, (size_t)*last};
    *last = f->calls.n;
    return true;
}

static bool add_line(struct finder *f, const struct line_search *l) {
    for (size_t i = 0; i < l->produced.n; i++)
        if (!add_context(f, l->produced.v[i])) return false;
    for (size_t i = 0; i < l->calls.n; i++)
        if (!add_call(f, &l->calls.v[i])) return false;
    return true;
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

static xpl_status_t join_lines(struct xpl_input_search *s, struct xpl_input_work *work,
                               struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(s->limit);
    struct finder f = {.arena = s->arena, .scratch = &scratch, .work = work};
    for (uint32_t i = 0; i < s->plane->n_lines; i++) {
        if (!add_line(&f, &s->lines[i])) XPL_RETURN_OOM(err, "functions of tf.data");
        xpl_arena_fini(&s->lines[i].arena);
    }
    if (!follow_calls(&f)) XPL_RETURN_OOM(err, "functions of tf.data");
    return XPL_OK;
}

static bool read_names(const struct xpl_plane *plane, bool *is_input) {
    bool any = false;
    for (uint32_t i = 0; i < plane->n_event_md; i++)
        any |= is_input[i] = xpl_is_input_event(plane->event_md[i].name);
    for (uint32_t i = 0; i < plane->n_lines; i++)
        any |= xpl_is_input_line(&plane->lines[i]);
    return any;
}

xpl_status_t xpl_input_search_new(const struct xpl_plane *plane, struct xpl_arena *arena,
                                  struct xpl_input_search **ret, struct xpl_error *err) {
    bool *const is_input = xpl_arena_array(arena, plane->n_event_md, sizeof *is_input);
    *ret = NULL;
    if (!is_input) XPL_RETURN_OOM(err, "functions of tf.data");
    if (!read_names(plane, is_input)) return XPL_OK;
    struct xpl_input_search *const s = xpl_arena_zalloc(arena, sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "functions of tf.data");
    s->plane = plane, s->arena = arena, s->limit = arena->limit, s->is_input = is_input;
    xpl_arena_budget_init(&s->lines_budget, arena->limit);
    s->ids = xpl_arena_zalloc(arena, sizeof *s->ids);
    s->consumes = xpl_arena_zalloc(arena, plane->n_event_md);
    s->lines = xpl_arena_zalloc(arena, plane->n_lines * sizeof *s->lines);
    if (!s->ids || !s->consumes || !s->lines) XPL_RETURN_OOM(err, "functions of tf.data");
    list_ids(plane, s->ids);
    s->watch = (struct xpl_event_watch){.plane = plane,
                                        .marked = is_input,
                                        .types = 1u << XPL_CONTEXT_TF_EXECUTOR |
                                                 1u << XPL_CONTEXT_TFRT_EXECUTOR,
                                        .ctx = s,
                                        .begin = begin_line,
                                        .event = show_event,
                                        .end = end_line};
    *ret = s;
    return XPL_OK;
}

const struct xpl_event_watch *xpl_input_search_watch(struct xpl_input_search *s) {
    return s ? &s->watch : NULL;
}

xpl_status_t xpl_input_search_end(struct xpl_input_search *s, struct xpl_exec *exec,
                                  struct xpl_input_work *ret, struct xpl_error *err) {
    *ret = (struct xpl_input_work){.any = s != NULL};
    if (!s) return XPL_OK;
    for (uint32_t i = 0; i < s->plane->n_lines; i++)
        if (!s->lines[i].whole) XPL_TRY(read_line(s, &s->plane->lines[i], exec, err));
    ret->consumes = s->consumes;
    return join_lines(s, ret, err);
}

void xpl_input_search_free(struct xpl_input_search *s) {
    for (uint32_t i = 0; s && i < s->plane->n_lines; i++)
        xpl_arena_fini(&s->lines[i].arena);
}

static void free_search(struct xpl_input_search **s) {
    xpl_input_search_free(*s);
}

xpl_status_t xpl_input_work_find(const struct xpl_plane *plane, struct xpl_exec *exec,
                                 struct xpl_arena *arena, struct xpl_input_work *ret,
                                 struct xpl_error *err) {
    XPL_AUTO(free_search) struct xpl_input_search *s = NULL;
    XPL_TRY(xpl_input_search_new(plane, arena, &s, err));
    return xpl_input_search_end(s, exec, ret, err);
}

bool xpl_input_work_may_consume(const struct xpl_input_work *w, const struct xpl_plane *plane,
                                uint32_t md, const struct xpl_input_consumer *of) {
    const uint8_t *const limit = xpl_input_end(plane);
    struct context c;
    if (!w->contexts.n || !atomic_load_explicit(&w->consumes[md], memory_order_relaxed))
        return false;
    if (!read_integer(of->type.p, of->type.end, limit, &c.type)) return true;
    if (!is_executor(c.type)) return false;
    return !read_integer(of->id.p, of->id.end, limit, &c.id) ||
           xpl_map_get(&w->contexts, c.type, c.id);
}
