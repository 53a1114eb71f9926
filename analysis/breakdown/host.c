// SPDX-License-Identifier: Apache-2.0
// The work of a host's threads, in two passes: all lines for work that counts on any thread, then
// the main line, which starts most work, for its work at each instant.
#include <stdlib.h>

#include "analysis/breakdown/impl.h"
#include "analysis/opstats/host/input_work.h"
#include "analysis/xplane/tf_op.h"

enum { CANCEL_EVERY = 8192 };

// Of a metadata entry.
struct name {
    uint8_t work;    // enum xpl_host_work
    uint8_t compile; // enum xpl_compile_name
    uint8_t input_wait, is_input, framework_op, memory, runs, annotation;
    uint8_t layer;       // of a framework op
    uint8_t takes, puts; // from a queue, into one
    uint8_t program;     // a function of the program, or an annotation
    uint8_t jitted;      // a call of a jitted function
    uint8_t awaits;      // ends when the device has a result
    uint8_t adapter;     // of a module that takes input from the program's own functions
    uint8_t by_module;   // input because of its module
    uint8_t checked;     // of PyTorch: whether it is an op
    uint8_t allocates;   // asks the driver for memory, or gives it back
    uint8_t reads;       // a jax.Array
    uint64_t fed_ps;     // on threads that put into one, outside of the interpreter's own functions
    uint64_t ps[XPL_HOST_LAYERS];
};

struct reader {
    struct xpl_breaking *k;
    const struct xpl_plane *plane;
    struct name *names;
    struct xpl_device_time *ops;
    struct xpl_input_work input;
    bool has_hlo, has_correlation;
    bool has_modules;               // named after the data that they have
    XPL_VEC(uint64_t) inner, outer; // compilations
};

// Threads of the runtimes work for others.
static bool is_pool(const struct xpl_line *line) {
    return xpl_str_starts(line->name, XPL_STR("tf_")) ||
           xpl_str_starts(line->name, XPL_STR("Host Threads/"));
}

static bool is_framework_op(xpl_str_t name) {
    return name.len && xpl_tf_op_parse(name).category == XPL_TF_OP_TENSORFLOW &&
           name.ptr[name.len - 1] != ':' && !xpl_waits_for_input(name);
}

static bool read_names(struct reader *r) {
    const struct xpl_plane *const p = r->plane;
    r->names = xpl_arena_array(r->k->scratch, p->n_event_md, sizeof *r->names);
    for (uint32_t i = 0; r->names && i < p->n_event_md; i++) {
        const xpl_str_t name = p->event_md[i].name;
        const enum xpl_event_type type = p->event_md[i].type;
        r->names[i] = (struct name){
            .work = (uint8_t)xpl_host_work_of(name),
            .compile = (uint8_t)xpl_compile_name_of(name),
            .input_wait = xpl_waits_for_input(name) || (r->ops && xpl_is_torch_loader(name)),
            .is_input = xpl_is_input_event(name),
            .runs = xpl_waits_for_ops(name),
            .annotation = xpl_host_is_annotation(name),
            .framework_op = is_framework_op(name),
            .memory = type == XPL_EVENT_MEMORY_ALLOCATION || type == XPL_EVENT_MEMORY_DEALLOCATION,
            .layer = (uint8_t)xpl_op_layer_of(name),
            .takes = xpl_takes_from_queue(name),
            .puts = xpl_puts_into_queue(name),
            .program = xpl_is_program_function(name) || xpl_host_is_annotation(name),
            .jitted = xpl_str_starts(name, XPL_STR("PjitFunction")),
            .adapter = xpl_adapts_input(name),
            .by_module = xpl_is_of_input_module(name),
            .reads = xpl_reads_array(name),
            .awaits = xpl_str_ends(name, XPL_STR("Buffer::Await")),
            .allocates = r->k->is_torch && xpl_driver_allocates(name),
        };
        r->has_modules |= r->names[i].by_module;
        if (r->k->is_torch && xpl_str_starts(name, XPL_STR("ProfilerStep#")))
            r->names[i].work = XPL_WORK_NONE;
    }
    for (uint32_t i = 1; i < p->n_stat_md; i++) {
        r->has_hlo |= p->stat_md[i].type == XPL_STAT_HLO_OP;
        r->has_correlation |= p->stat_md[i].type == XPL_STAT_CORRELATION_ID;
    }
    return r->names;
}

// ---- first pass ----

static bool add_layer(struct reader *r, enum xpl_host_layer layer, uint32_t md,
                      struct xpl_span span) {
    struct xpl_host_time *const h = &r->k->host;
    struct name *const n = &r->names[md];
    n->ps[layer] += span.end - span.begin;
    if (n->ps[layer] > r->names[h->layer_md[layer]].ps[layer]) h->layer_md[layer] = md;
    return xpl_spans_add(&h->layers[layer], span, r->k->scratch);
}

static bool read_work(struct reader *r, uint32_t md, struct xpl_span span, bool is_main) {
    const struct name *const n = &r->names[md];
    if (n->compile != XPL_NO_COMPILE) {
        uint64_t *const slot = n->compile == XPL_COMPILE_OUTER
                                   ? xpl_vec_push(r->k->scratch, &r->outer)
                                   : xpl_vec_push(r->k->scratch, &r->inner);
        if (!slot) return false;
        *slot = span.begin;
    }
    if (n->input_wait) return add_layer(r, XPL_HOST_INPUT_WAIT, md, span);
    if (n->work == XPL_WORK_COMPILE) return add_layer(r, XPL_HOST_COMPILES, md, span);
    if (n->work == XPL_WORK_CALLBACK) return add_layer(r, XPL_HOST_CALLBACKS, md, span);
    if (is_main) return true;
    if (n->work == XPL_WORK_COPY) return add_layer(r, XPL_HOST_COPIES_APART, md, span);
    return n->work != XPL_WORK_INPUT || n->is_input || add_layer(r, XPL_HOST_INPUT_APART, md, span);
}

// Notes the use of an allocator.
static bool read_memory(struct reader *r, const struct xpl_event *ev) {
    static const enum xpl_stat_type types[] = {XPL_STAT_ALLOCATOR_NAME, XPL_STAT_PEAK_BYTES_IN_USE,
                                               XPL_STAT_BYTES_ALLOCATED, XPL_STAT_BYTES_AVAILABLE};
    struct xpl_stat s[4];
    struct xpl_time_breakdown *const b = r->k->b;
    enum { MOST = 64 };
    const unsigned all = 0xf;
    if (xpl_stats_find(ev->stats, types, 4, s) != all) return true;
    const xpl_str_t name = xpl_stat_str(&s[0]);
    const uint64_t peak = xpl_stat_int_or_uint(&s[1]), used = xpl_stat_int_or_uint(&s[2]),
                   left = xpl_stat_int_or_uint(&s[3]);
    if ((int64_t)peak < 0 || (int64_t)left < 0 || (int64_t)used < 0) return true;
    struct xpl_time_memory *m = NULL;
    for (size_t i = 0; i < b->memory.n && !m; i++)
        if (xpl_str_eq(b->memory.v[i].name, name)) m = &b->memory.v[i];
    if (!m && b->memory.n == MOST) return true;
    if (!m) {
        m = xpl_vec_push(r->k->result, &b->memory);
        if (!m) return false;
        *m = (struct xpl_time_memory){0};
        if (!xpl_arena_str(r->k->result, name, &m->name)) return false;
    }
    if (peak > m->peak_bytes) m->peak_bytes = peak;
    if (used + left > m->capacity_bytes) m->capacity_bytes = used + left;
    return true;
}

static bool read_launch(struct reader *r, const struct xpl_event *ev, uint64_t begin) {
    struct xpl_stat s;
    bool is_new;
    if (!xpl_stats_get(ev->stats, XPL_STAT_CORRELATION_ID, &s)) return true;
    uint64_t *const slot =
        xpl_map_put(r->k->scratch, &r->k->host.launches, xpl_stat_int_or_uint(&s), 0, &is_new);
    if (!slot) return false;
    if (is_new || begin + 1 < *slot) *slot = begin + 1;
    return true;
}

static bool is_tf_data_context(const struct reader *r, const struct xpl_event *ev) {
    struct xpl_stat t, i;
    return r->input.contexts.n && xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_TYPE, &t) &&
           xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_ID, &i) &&
           xpl_map_get(&r->input.contexts, xpl_stat_int_or_uint(&t), xpl_stat_int_or_uint(&i));
}

// An op of a CPU that counts as a device: docs/cpu-as-device.md.
static bool read_op(struct reader *r, const struct xpl_event *ev, struct xpl_span span,
                    struct xpl_input_stack *stack, bool *ret_is_op) {
    const struct name *const n = &r->names[ev->md];
    struct xpl_stat s;
    const bool xla =
        r->has_hlo && xpl_stats_get(ev->stats, XPL_STAT_HLO_OP, &s) && xpl_stat_str(&s).len;
    bool input = false;
    *ret_is_op = false;
    if (r->input.any) {
        const struct xpl_timespan at = {span.begin, span.end - span.begin};
        if (!xpl_input_stack_next(stack, at, n->is_input || is_tf_data_context(r, ev),
                                  r->k->scratch, &input))
            return false;
    }
    if (!xla && (!n->framework_op || input)) return true;
    if (input && xla) return true;
    *ret_is_op = true;
    r->ops->n_ops++;
    const enum xpl_op_layer layer = xla ? xpl_op_layer_of(xpl_stat_str(&s)) : n->layer;
    return xpl_spans_add(&r->ops->layers[layer], span, r->k->scratch);
}

struct line_pass {
    const struct xpl_line *line;
    bool is_input; // a thread of tf.data
    struct xpl_input_stack stack;
    uint64_t n_launches;
    bool puts;                   // into a queue
    bool has_steps, is_autograd; // of PyTorch
};

// All ops of PyTorch start work, whatever words are in their names: CheckpointFunction.
static void note_op(struct reader *r, struct line_pass *l, const struct xpl_event *ev) {
    struct name *const n = &r->names[ev->md];
    const xpl_str_t name = r->plane->event_md[ev->md].name;
    struct xpl_stat s;
    l->has_steps |= n->work == XPL_WORK_NONE;
    if (n->checked) return;
    n->checked = true;
    l->is_autograd |= xpl_str_starts(name, XPL_STR("autograd::engine"));
    const bool by_words =
        n->work == XPL_WORK_OTHER || n->work == XPL_WORK_CHECKPOINT || n->work == XPL_WORK_INPUT;
    if (by_words && xpl_stats_get(ev->stats, XPL_STAT_TF_OP, &s)) n->work = XPL_WORK_LAUNCH;
}

static bool first_event(struct reader *r, struct line_pass *l, const struct xpl_event *ev) {
    const struct name *const n = &r->names[ev->md];
    if (r->k->is_torch) note_op(r, l, ev);
    if (n->memory && !read_memory(r, ev)) return false;
    const struct xpl_span span = xpl_breaking_span(r->k, l->line, ev);
    xpl_breaking_count_impossible(r->k, l->line, ev);
    if (span.begin >= span.end) return true;
    l->n_launches += n->work == XPL_WORK_LAUNCH;
    l->puts |= n->puts;
    bool is_op = false;
    if (r->ops && !l->is_input && !read_op(r, ev, span, &l->stack, &is_op)) return false;
    if (r->ops && n->runs && !add_layer(r, XPL_HOST_RUNS, ev->md, span)) return false;
    if (r->has_correlation && !is_op && !read_launch(r, ev, span.begin)) return false;
    // The main line's work is read later; its input and copies belong to no other thread.
    return is_op || n->work <= XPL_WORK_COPY || n->work == XPL_WORK_INPUT ||
           read_work(r, ev->md, span, false);
}

typedef bool (*event_fn)(struct reader *, struct line_pass *, const struct xpl_event *);

static xpl_status_t walk(struct reader *r, struct line_pass *l, event_fn fn,
                         struct xpl_error *err) {
    struct xpl_event_cursor cur;
    struct xpl_event ev;
    enum xpl_wire_result got;
    xpl_events_begin(&cur, l->line);
    while ((got = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "time breakdown: cancelled");
        if (!fn(r, l, &ev)) XPL_RETURN_OOM(err, "time breakdown");
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

// ---- second pass: input and copies of other threads ----

// What a thread that puts into a queue is at, in the end by the most time.
static void add_feeder(struct reader *r, const struct line_pass *l, const struct xpl_event *ev) {
    struct xpl_host_time *const h = &r->k->host;
    struct name *const n = &r->names[ev->md];
    const struct xpl_span span = xpl_breaking_span(r->k, l->line, ev);
    if (!xpl_is_program_function(r->plane->event_md[ev->md].name)) return;
    n->fed_ps += span.end - span.begin;
    if (!h->has_feeder || n->fed_ps > r->names[h->feeder_md].fed_ps) h->feeder_md = ev->md;
    h->has_feeder = true;
}

// Of tf.data's own threads only what a step waits for counts: Keras' steps ask for their input
// there.
static bool apart_event(struct reader *r, struct line_pass *l, const struct xpl_event *ev) {
    const struct name *const n = &r->names[ev->md];
    if (l->puts && !n->puts) add_feeder(r, l, ev);
    if ((n->work != XPL_WORK_INPUT && n->work != XPL_WORK_COPY) || (l->is_input && !n->input_wait))
        return true;
    const struct xpl_span span = xpl_breaking_span(r->k, l->line, ev);
    return span.begin >= span.end || read_work(r, ev->md, span, false);
}

// ---- second pass: the main line ----

struct main_event {
    struct xpl_span span;
    enum xpl_host_work work;
    uint32_t md;
    // Where its first part ends: of a call of a jitted function the last compilation in it, of a
    // fetch its wait for the device; 0: it is whole.
    uint64_t part_end;
    bool takes;   // from a queue
    uint32_t own; // its metadata, whatever names it
};

struct main_pass {
    struct line_pass l; // first, so that the walk's callback finds it
    XPL_VEC(struct main_event) v;
    bool unordered;
};

static bool main_event(struct reader *r, struct line_pass *l, const struct xpl_event *ev) {
    struct main_pass *const m = (struct main_pass *)l;
    const struct xpl_span span = xpl_breaking_span(r->k, l->line, ev);
    struct xpl_stat s;
    if (span.begin >= span.end) return true;
    enum xpl_host_work work = r->names[ev->md].work;
    if (work == XPL_WORK_OTHER && xpl_stats_get(ev->stats, XPL_STAT_STEP_NUM, &s))
        work = XPL_WORK_NONE;
    if (r->ops && r->names[ev->md].reads) work = XPL_WORK_READY; // nothing is copied
    if (r->names[ev->md].input_wait && !read_work(r, ev->md, span, true)) return false;
    const struct main_event *const last = m->v.n ? &m->v.v[m->v.n - 1] : NULL;
    m->unordered |= last && (span.begin < last->span.begin ||
                             (span.begin == last->span.begin && span.end > last->span.end));
    struct main_event *const slot = xpl_vec_push(r->k->scratch, &m->v);
    if (slot) *slot = (struct main_event){span, work, ev->md, 0, r->names[ev->md].takes, ev->md};
    return slot != NULL;
}

static int outer_first(const void *a, const void *b) {
    const struct main_event *const x = a, *const y = b;
    if (x->span.begin != y->span.begin) return x->span.begin < y->span.begin ? -1 : 1;
    if (x->span.end != y->span.end) return x->span.end > y->span.end ? -1 : 1;
    return (x->md > y->md) - (x->md < y->md);
}

// ---- one launch after the other ----

// Where many launches are close together, the time between them is part of starting work, except
// work that the program has named.
enum { MANY_LAUNCHES = 16 };
static const uint64_t kLaunchesApart = 1000000000; // ps: 1 ms
// Runtimes have short events with such names, too, in starting work: "Wait for usage holds" of JAX,
// "convert_to_tensor" of TensorFlow.
static const uint64_t kOwnWork = 100000000; // ps: 100 us

struct launch_run {
    struct xpl_span span; // from the first to the last
    uint64_t n, longest;
    uint32_t md;                  // of the longest
    uint64_t last;                // begin of the last one
    XPL_VEC(struct xpl_span) own; // work of the program since the first; by time, apart
};

static bool add_launch_run(struct reader *r, const struct launch_run *run) {
    struct xpl_span part = run->span;
    for (size_t i = 0; i < run->own.n && run->own.v[i].begin < run->span.end; i++) {
        part.end = run->own.v[i].begin;
        if (part.begin < part.end && !add_layer(r, XPL_HOST_DISPATCH, run->md, part)) return false;
        part.begin = run->own.v[i].end;
    }
    part.end = run->span.end;
    return part.begin >= part.end || add_layer(r, XPL_HOST_DISPATCH, run->md, part);
}

static bool end_launch_run(struct reader *r, struct launch_run *run) {
    const bool ok = run->n < MANY_LAUNCHES || add_launch_run(r, run);
    run->n = run->longest = run->own.n = 0;
    return ok;
}

// Notes an event of the main line that ends: between two launches it may be what the device waits
// for. One that contains launches is their parent.
static bool add_own_work(struct reader *r, struct launch_run *run, const struct main_event *e) {
    if (!run->n || e->work != XPL_WORK_OTHER || !r->names[e->md].annotation ||
        e->span.end - e->span.begin < kOwnWork || run->last >= e->span.begin)
        return true;
    while (run->own.n && run->own.v[run->own.n - 1].begin >= e->span.begin)
        run->own.n--; // inside it
    struct xpl_span *const slot = xpl_vec_push(r->k->scratch, &run->own);
    if (slot) *slot = e->span;
    return slot != NULL;
}

// A launch that is in no other one.
static bool add_to_launch_run(struct reader *r, struct launch_run *run,
                              const struct main_event *e) {
    if (run->n && e->span.begin > run->span.end && e->span.begin - run->span.end > kLaunchesApart &&
        !end_launch_run(r, run))
        return false;
    if (!run->n++) run->span = e->span;
    if (e->span.end > run->span.end) run->span.end = e->span.end;
    run->last = e->span.begin;
    if (e->span.end - e->span.begin > run->longest) {
        run->longest = e->span.end - e->span.begin;
        run->md = e->md;
    }
    return true;
}

// Events that are open, the innermost last.
struct main_stack {
    struct xpl_main_spans *to;
    XPL_VEC(struct main_event) v;
    uint64_t at; // earlier spans are written
    struct launch_run launches;
};

// Starting one op takes PyTorch no milliseconds: what does so loads code, sets up a library or
// computes on the host.  Neither is asking the driver for memory part of starting work.
static const uint64_t kSlowLaunch = 2000000000; // ps: 2 ms

static bool is_slow(const struct reader *r, const struct main_event *e, uint64_t ps) {
    return r->k->is_torch && e->work == XPL_WORK_LAUNCH &&
           (ps >= kSlowLaunch || r->names[e->own].allocates);
}

static bool write_main(struct reader *r, struct main_stack *s, uint64_t until) {
    const struct main_event *const top = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    const uint64_t from = s->at;
    if (until <= from) return true;
    s->at = until;
    if (!top || top->work == XPL_WORK_NONE) return true;
    struct xpl_main_span *const last = s->to->n ? &s->to->v[s->to->n - 1] : NULL;
    const bool slow = is_slow(r, top, until - from);
    const struct xpl_main_span span = {from,       until, top->work, slow ? top->own : top->md,
                                       top->takes, slow};
    if (last && last->end == from && last->md == span.md && last->work == span.work &&
        last->slow == slow) {
        last->end = until;
        return true;
    }
    struct xpl_main_span *const slot = xpl_vec_push(r->k->scratch, s->to);
    if (slot) *slot = span;
    return slot != NULL;
}

static bool close_until(struct reader *r, struct main_stack *s, uint64_t until) {
    while (s->v.n && s->v.v[s->v.n - 1].span.end <= until) {
        const struct main_event *const e = &s->v.v[s->v.n - 1];
        if (!write_main(r, s, e->span.end) || !add_own_work(r, &s->launches, e)) return false;
        s->v.n--;
    }
    return write_main(r, s, until);
}

// Functions of the interpreter, and what merely waits, are named by the program's function or
// annotation that calls them.
static bool has_no_name(const struct reader *r, const struct main_event *e) {
    const xpl_str_t name = r->plane->event_md[e->md].name;
    return e->work == XPL_WORK_WAIT || (e->work == XPL_WORK_OTHER && name.len &&
                                        name.ptr[0] == '$' && !r->names[e->md].program);
}

// An event inside another: who is to name what the thread is at.
static struct main_event inside(const struct reader *r, const struct main_event *outer,
                                struct main_event e) {
    if (e.span.end > outer->span.end) e.span.end = outer->span.end;
    if (e.work == XPL_WORK_COMPILE && outer->work == XPL_WORK_LAUNCH)
        e.md = outer->md; // the function that is compiled
    else if (e.work < outer->work || (e.work == outer->work && e.work != XPL_WORK_OTHER)) {
        const bool called = r->names[outer->md].adapter && !r->names[e.md].adapter &&
                            xpl_is_program_function(r->plane->event_md[e.md].name);
        e.work = outer->work;
        if (!called) e.md = outer->md;
        e.takes = outer->takes;
    } else if (outer->work == XPL_WORK_OTHER && has_no_name(r, &e) && r->names[outer->md].program)
        e.md = outer->md;
    return e;
}

static bool has_part(const struct reader *r, const struct main_event *outer,
                     const struct main_event *e) {
    return r->names[outer->md].jitted ? e->work == XPL_WORK_COMPILE : r->names[e->md].awaits;
}

// A call of a jitted function that compiles it traces and lowers it first, in Python: all of that
// is compiling.  A fetch waits for the device until the runtime says that the result is there.  A
// module named after its data may have all of the program, which starts its work within.
static bool find_parts(struct reader *r, struct main_pass *m) {
    XPL_VEC(size_t) open = {0};
    size_t told = 0; // of the open ones: they contain a launch
    for (size_t i = 0; i < m->v.n; i++) {
        const struct main_event *const e = &m->v.v[i];
        while (open.n && m->v.v[open.v[open.n - 1]].span.end <= e->span.begin)
            open.n--;
        if (told > open.n) told = open.n;
        const bool ends_part = e->work == XPL_WORK_COMPILE || r->names[e->md].awaits,
                   launches = r->has_modules && e->work == XPL_WORK_LAUNCH;
        for (size_t k = open.n; (ends_part || launches) && k > (ends_part ? 0 : told); k--) {
            struct main_event *const outer = &m->v.v[open.v[k - 1]];
            if (ends_part && has_part(r, outer, e) && outer->part_end < e->span.end)
                outer->part_end = e->span.end;
            if (launches && r->names[outer->md].by_module) outer->work = XPL_WORK_OTHER;
        }
        if (launches) told = open.n;
        if (!r->names[e->md].jitted && !r->names[e->md].by_module && e->work != XPL_WORK_FETCH)
            continue;
        size_t *const slot = xpl_vec_push(r->k->scratch, &open);
        if (!slot) return false;
        *slot = i;
    }
    return true;
}

static bool open_event(struct reader *r, struct main_stack *s, struct main_event e) {
    struct main_event *const slot = xpl_vec_push(r->k->scratch, &s->v);
    if (slot) *slot = e;
    return slot != NULL;
}

// Waiting for the device is two short events of the runtime, where it begins and where it ends; an
// array's method that waits is not a Python function, so no other event shows it.
static bool add_await(struct reader *r, struct main_stack *s, const struct main_event *first,
                      const struct main_event *last) {
    if (!r->names[first->md].awaits || !r->names[last->md].awaits) return true;
    if (!close_until(r, s, first->span.end)) return false;
    const struct main_event *const outer = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    struct main_event e = {
        {first->span.end, last->span.begin}, XPL_WORK_READY, first->md, 0, false, first->md};
    if (e.span.begin >= e.span.end || (outer && outer->span.end <= last->span.begin)) return true;
    if (outer) e = inside(r, outer, e);
    return open_event(r, s, e);
}

static bool flatten(struct reader *r, struct main_pass *m, struct xpl_main_spans *to) {
    struct main_stack s = {.to = to};
    if (m->unordered) qsort(m->v.v, m->v.n, sizeof *m->v.v, outer_first);
    if (!find_parts(r, m)) return false;
    for (size_t i = 0; i < m->v.n; i++) {
        struct main_event e = m->v.v[i];
        if (i && !add_await(r, &s, &m->v.v[i - 1], &e)) return false;
        if (!close_until(r, &s, e.span.begin)) return false;
        const struct main_event *const outer = s.v.n ? &s.v.v[s.v.n - 1] : NULL;
        if (e.work == XPL_WORK_LAUNCH && (!outer || outer->work < XPL_WORK_LAUNCH) &&
            !add_to_launch_run(r, &s.launches, &e))
            return false;
        if (outer) e = inside(r, outer, e);
        if (!open_event(r, &s, e)) return false;
        const bool jitted = r->names[m->v.v[i].md].jitted;
        if (!e.part_end || (!jitted && e.work != XPL_WORK_FETCH)) continue;
        if (e.part_end < e.span.end) e.span.end = e.part_end;
        e.work = jitted ? XPL_WORK_COMPILE : XPL_WORK_READY;
        if (!open_event(r, &s, e)) return false;
    }
    return end_launch_run(r, &s.launches) && close_until(r, &s, UINT64_MAX >> 1);
}

static xpl_status_t read_main(struct reader *r, const struct xpl_line *line,
                              struct xpl_main_spans *to, struct xpl_error *err) {
    struct main_pass m = {.l = {.line = line}};
    XPL_TRY(walk(r, &m.l, main_event, err));
    if (!flatten(r, &m, to)) XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void finish(struct reader *r) {
    struct xpl_host_time *const h = &r->k->host;
    for (size_t i = 0; i < XPL_HOST_LAYERS; i++)
        xpl_spans_finish(&h->layers[i]);
    const bool outer = r->outer.n;
    h->compiles.v = outer ? r->outer.v : r->inner.v;
    h->compiles.n = outer ? r->outer.n : r->inner.n;
    if (h->compiles.n) qsort(h->compiles.v, h->compiles.n, sizeof *h->compiles.v, by_time);
}

// Lines that start work: the main one, and of PyTorch the one that starts most of the rest, which
// is autograd's.
struct chosen {
    const struct xpl_line *main, *aside;
    uint64_t most, next; // their weights
};

// By launches, those of threads that are in no pool in front, and that of PyTorch's steps first.
static uint64_t weight_of(const struct line_pass *l) {
    if (!l->n_launches) return 0;
    if (l->has_steps) return l->n_launches + (UINT64_MAX >> 2) * 3;
    return is_pool(l->line) || l->is_autograd ? l->n_launches : l->n_launches + (UINT64_MAX >> 1);
}

static void choose(struct chosen *c, const struct line_pass *l) {
    const uint64_t weight = weight_of(l);
    if (weight > c->most) {
        c->aside = c->main;
        c->next = c->main ? c->most : 0;
        c->main = l->line;
        c->most = weight;
    } else if (weight > c->next) {
        c->aside = l->line;
        c->next = weight;
    }
}

static xpl_status_t second_pass(struct reader *r, const struct chosen *c, const bool *puts,
                                struct xpl_error *err) {
    for (uint32_t i = 0; i < r->plane->n_lines; i++) {
        struct line_pass l = {.line = &r->plane->lines[i], .puts = puts[i]};
        l.is_input = xpl_is_input_line(l.line);
        if (l.line == c->main) {
            XPL_TRY(read_main(r, l.line, &r->k->host.main, err));
            continue;
        }
        if (l.line == c->aside && r->k->is_torch)
            XPL_TRY(read_main(r, l.line, &r->k->host.aside, err));
        XPL_TRY(walk(r, &l, apart_event, err));
    }
    return XPL_OK;
}

xpl_status_t xpl_breaking_read_host(struct xpl_breaking *k, struct xpl_device_time *ops,
                                    struct xpl_error *err) {
    struct reader r = {.k = k, .plane = k->host.plane, .ops = ops};
    struct chosen chosen = {.main = NULL};
    if (!r.plane) return XPL_OK;
    bool *const puts = xpl_arena_array(k->scratch, r.plane->n_lines, sizeof *puts);
    if (!puts || !read_names(&r)) XPL_RETURN_OOM(err, "time breakdown");
    if (ops) XPL_TRY(xpl_input_work_find(r.plane, k->exec, k->scratch, &r.input, err));
    for (uint32_t i = 0; i < r.plane->n_lines; i++) {
        const struct xpl_line *const line = &r.plane->lines[i];
        struct line_pass l = {.line = line, .is_input = xpl_is_input_line(line)};
        XPL_TRY(walk(&r, &l, first_event, err));
        puts[i] = l.puts;
        choose(&chosen, &l);
    }
    XPL_TRY(second_pass(&r, &chosen, puts, err));
    finish(&r);
    return XPL_OK;
}
