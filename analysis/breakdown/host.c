// SPDX-License-Identifier: Apache-2.0
// The work of a host's threads, in one pass over their events: work that counts on any thread at
// once; input, copies and the events of a thread that may be the main line, which starts most work,
// when the main line is known.  That one is read again where its events cross, and events that
// seemed to add nothing are missing.

#include "analysis/breakdown/events.h"
#include "analysis/breakdown/impl.h"
#include "analysis/opstats/host/input_work.h"
#include "analysis/xplane/tf_op.h"
#include "base/intern.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

// Containers have the time of their contents, and collectives wait.
enum counted { NOT_COUNTED, OP_OF_XLA, OP_OF_FRAMEWORK };

// Of a metadata entry.
struct name {
    uint8_t work;    // enum xpl_host_work
    uint8_t compile; // enum xpl_compile_name
    uint8_t input_wait, is_input, framework_op, memory, runs, annotation;
    uint8_t layer;       // of a framework op
    uint8_t takes, puts; // from a queue, into one
    uint8_t program;     // a function of the program, or an annotation
    uint8_t interpreter; // a function of Python that is none of the program's
    uint8_t jitted;      // a call of a jitted function
    uint8_t awaits;      // ends when the device has a result
    uint8_t adapter;     // of a module that takes input from the program's own functions
    uint8_t by_module;   // input because of its module
    uint8_t checked;     // of PyTorch: whether it is an op
    uint8_t counts;      // enum counted: as work of a step
    uint8_t allocates;   // asks the driver for memory, or gives it back
    uint8_t reads;       // a jax.Array
    uint8_t eager;       // enum xpl_eager_name
    uint8_t resumes;     // what torch.compile could not put into one graph
    uint8_t plain;       // matters only to the main line, unless its statistics do
};

// The same for its times: few events have any, and all are looked up above.
struct name_times {
    uint64_t fed_ps; // on threads that put into one, outside of the interpreter's own functions
    uint64_t ps[XPL_HOST_LAYERS];
};

// An event of the main line.
struct main_event {
    struct xpl_span span;
    // Where its first part ends: of a call of a jitted function the last compilation in it, of
    // TensorFlow's call of a function its preparation, of a fetch its wait for the device; 0: it is
    // whole.
    uint64_t part_end;
    uint32_t md;
    uint32_t own; // its metadata, whatever names it
    uint8_t work; // enum xpl_host_work
    bool takes;   // from a queue
    bool follows; // no event between it and the one before it was left out
};

// An event ends where one does in which it began.
struct open_event {
    uint64_t end;
    bool left_out;
};

struct main_pass {
    struct line_pass *line; // NULL: none
    XPL_VEC(struct main_event) v;
    bool unordered;
    bool left_out; // events since the last one
    bool lacks;    // any events
    // Must lack none: some cross others, or, in PyTorch's, they part launches, which are slow where
    // one of their parts is long.
    bool whole;
    bool crosses;                    // some events cross others
    uint64_t begun;                  // begin of the event that was read last
    XPL_VEC(struct open_event) open; // those that it is in, and itself
    uint64_t last_end;               // of the last of v, or of one around it that ends earlier
    // Of the last event whose work is known that is in no other such event.
    struct xpl_span known;
};

// Input or a copy, which count unless the thread is the main line, or a wait for input, which
// counts there, too.
struct apart_event {
    uint32_t md;
    struct xpl_span span;
};

struct line_pass {
    const struct xpl_line *line;
    uint64_t origin; // of its events' times
    bool is_input;   // a thread of tf.data
    struct xpl_input_stack stack;
    uint64_t n_launches;
    bool puts;    // into a queue
    bool runs_op; // TensorFlow's call that began last is of an op
    XPL_VEC(struct apart_event) apart;
    bool in_pool;                // a thread of a runtime's pool
    bool has_steps, is_autograd; // of PyTorch
};

struct xpl_host_reader {
    struct xpl_breaking *k;
    const struct xpl_plane *plane;
    struct xpl_intern *allocators;
    struct xpl_map
        memory_of; // allocator: position in the breakdown's memory plus 1; 0: beyond MOST
    struct name *names;
    struct name_times *times;
    struct xpl_roles roles;
    struct xpl_device_time *ops;
    struct xpl_input_work input;
    bool has_modules; // named after the data that they have
    XPL_VEC(uint64_t) compiles[XPL_COMPILE_NAMES];
    bool has_adapter; // some name is one
    // The line that starts most work, of PyTorch the one that starts most of the rest, and the one
    // that is read.  Events of threads in pools are not kept.
    struct main_pass main, aside, next;
    struct line_pass *lines;
};

// Threads of the runtimes work for others.
static bool is_pool(const struct xpl_line *line) {
    return xpl_str_starts(line->name, XPL_STR("tf_")) ||
           xpl_str_starts(line->name, XPL_STR("Host Threads/"));
}

static enum counted counted_as(enum xpl_op_layer layer, bool is_tf_op) {
    if (layer != XPL_LAYER_COMPUTE) return NOT_COUNTED;
    return is_tf_op ? OP_OF_FRAMEWORK : OP_OF_XLA;
}

static bool is_plain(const struct name *n) {
    return n->work == XPL_WORK_OTHER && n->compile == XPL_NO_COMPILE && !n->memory && !n->puts &&
           !n->runs && !n->resumes && !n->is_input && !n->input_wait && !n->framework_op &&
           !n->awaits && !n->eager && n->counts != OP_OF_FRAMEWORK;
}

static bool read_names(struct xpl_host_reader *r) {
    const struct xpl_plane *const p = r->plane;
    r->names = xpl_arena_array(r->k->scratch, p->n_event_md, sizeof *r->names);
    r->times = xpl_arena_zalloc(r->k->scratch, p->n_event_md * sizeof *r->times);
    for (uint32_t i = 0; r->names && i < p->n_event_md; i++) {
        const xpl_str_t name = p->event_md[i].name;
        const enum xpl_event_type type = p->event_md[i].type;
        const enum xpl_op_layer layer = xpl_op_layer_of(name);
        const bool is_tf_op = xpl_tf_op_parse(name).category == XPL_TF_OP_TENSORFLOW;
        const bool waits = xpl_waits_for_input(name), annotation = xpl_host_is_annotation(name);
        r->names[i] = (struct name){
            .work = (uint8_t)xpl_host_work_of(name),
            .compile = (uint8_t)xpl_compile_name_of(name),
            .input_wait = waits || (r->ops && xpl_is_torch_loader(name)),
            .is_input = xpl_is_input_event(name),
            .runs = xpl_waits_for_ops(name),
            .annotation = annotation,
            .framework_op = is_tf_op && name.ptr[name.len - 1] != ':' && !waits,
            .memory = type == XPL_EVENT_MEMORY_ALLOCATION || type == XPL_EVENT_MEMORY_DEALLOCATION,
            .layer = (uint8_t)layer,
            .takes = xpl_takes_from_queue(name),
            .puts = xpl_puts_into_queue(name),
            .program = xpl_is_program_function(name) || annotation,
            .jitted = xpl_str_starts(name, XPL_STR("PjitFunction")),
            .adapter = xpl_adapts_input(name),
            .by_module = xpl_is_of_input_module(name),
            .counts = (uint8_t)counted_as(layer, is_tf_op),
            .reads = xpl_reads_array(name),
            .awaits = xpl_str_ends(name, XPL_STR("Buffer::Await")),
            .eager = (uint8_t)xpl_eager_name_of(name),
            .allocates = r->k->is_torch && xpl_driver_allocates(name),
            .resumes = r->k->is_torch && xpl_resumes_graph(name),
        };
        struct name *const n = &r->names[i];
        if (r->k->is_torch && xpl_str_starts(name, XPL_STR("ProfilerStep#")))
            n->work = XPL_WORK_NONE;
        if (r->k->is_torch && r->ops && n->work == XPL_WORK_FETCH)
            n->work = XPL_WORK_LAUNCH; // aten::item runs on this CPU, and waits for nothing
        n->interpreter = name.len && name.ptr[0] == '$' && !n->program;
        n->plain = is_plain(n);
        r->has_adapter |= n->adapter;
        r->has_modules |= n->by_module;
    }
    return r->names && r->times && xpl_roles_init(&r->roles, p, xpl_op_layer_of, r->k->scratch);
}

// ---- on any thread ----

static bool add_layer(struct xpl_host_reader *r, enum xpl_host_layer layer, uint32_t md,
                      struct xpl_span span) {
    struct xpl_host_time *const h = &r->k->host;
    uint64_t *const ps = &r->times[md].ps[layer];
    *ps += span.end - span.begin;
    if (*ps > r->times[h->layer_md[layer]].ps[layer]) h->layer_md[layer] = md;
    return xpl_spans_add(&h->layers[layer], span, r->k->scratch);
}

static bool read_work(struct xpl_host_reader *r, uint32_t md, struct xpl_span span, bool is_main) {
    const struct name *const n = &r->names[md];
    if (n->compile != XPL_NO_COMPILE) {
        uint64_t *const slot = xpl_vec_push(r->k->scratch, &r->compiles[n->compile]);
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
static bool read_memory(struct xpl_host_reader *r, const struct xpl_event *ev) {
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
    xpl_strid_t id;
    bool is_new;
    if (!r->allocators && !(r->allocators = xpl_intern_new(r->k->scratch, xpl_hash_seed())))
        return false;
    if (!xpl_intern_put_view(r->allocators, name, &id)) return false;
    uint64_t *const at = xpl_map_put(r->k->scratch, &r->memory_of, id.v, 0, &is_new);
    if (!at) return false;
    if (is_new && b->memory.n < MOST) {
        struct xpl_time_memory *const one = xpl_vec_push(r->k->result, &b->memory);
        if (!one) return false;
        *one = (struct xpl_time_memory){0};
        if (!xpl_arena_str(r->k->result, name, &one->name)) return false;
        *at = b->memory.n;
    }
    if (!*at) return true;
    struct xpl_time_memory *const m = &b->memory.v[*at - 1];
    if (peak > m->peak_bytes) m->peak_bytes = peak;
    if (used + left > m->capacity_bytes) m->capacity_bytes = used + left;
    return true;
}

static bool read_launch(struct xpl_host_reader *r, const struct xpl_event *ev, uint64_t begin) {
    struct xpl_stat s;
    bool is_new;
    if (!xpl_stats_get(ev->stats, XPL_STAT_CORRELATION_ID, &s)) return true;
    uint64_t *const slot =
        xpl_map_put(r->k->scratch, &r->k->host.launches, xpl_stat_int_or_uint(&s), 0, &is_new);
    if (!slot) return false;
    if (is_new || begin + 1 < *slot) *slot = begin + 1;
    return true;
}

static bool is_tf_data_context(const struct xpl_host_reader *r, const struct xpl_event *ev) {
    struct xpl_stat t, i;
    return r->input.contexts.n && xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_TYPE, &t) &&
           xpl_stats_get(ev->stats, XPL_STAT_CONSUMER_ID, &i) &&
           xpl_map_get(&r->input.contexts, xpl_stat_int_or_uint(&t), xpl_stat_int_or_uint(&i));
}

// An op of a CPU that counts as a device: docs/cpu-as-device.md.
static bool read_op(struct xpl_host_reader *r, const struct xpl_read_event *e, struct xpl_span span,
                    struct xpl_input_stack *stack, bool *ret_is_op) {
    const struct name *const n = &r->names[e->ev.md];
    enum xpl_op_layer layer = xpl_roles_judge(&r->roles, e);
    bool input = false;
    *ret_is_op = false;
    if (r->input.any) {
        const struct xpl_timespan at = {span.begin, span.end - span.begin};
        const bool is_context = (e->roles & XPL_ROLE_CONSUMER) && is_tf_data_context(r, &e->ev);
        if (!xpl_input_stack_next(stack, at, n->is_input || is_context, r->k->scratch, &input))
            return false;
    }
    if (layer == XPL_LAYERS && n->framework_op) layer = (enum xpl_op_layer)n->layer;
    if (layer == XPL_LAYERS || input) return true;
    *ret_is_op = true;
    r->ops->n_ops++;
    return xpl_spans_add(&r->ops->layers[layer], span, r->k->scratch);
}

// TensorFlow has no event for an op that the program starts by itself: its call runs it.
static bool read_eager(struct xpl_host_reader *r, struct line_pass *l, enum xpl_eager_name eager,
                       struct xpl_span span) {
    if (eager == XPL_EAGER_OP || eager == XPL_EAGER_FUNCTION) l->runs_op = eager == XPL_EAGER_OP;
    if (!r->ops || eager != XPL_EAGER_RUN || !l->runs_op) return true;
    r->ops->n_ops++;
    return xpl_spans_add(&r->ops->layers[XPL_LAYER_CONTAINER], span, r->k->scratch);
}

static bool count_work(const struct xpl_host_reader *r, const struct xpl_read_event *e,
                       struct xpl_span span) {
    const enum counted as = (enum counted)r->names[e->ev.md].counts;
    struct xpl_stat s;
    const bool is_op = as == OP_OF_FRAMEWORK || (as == OP_OF_XLA && (e->roles & XPL_ROLE_HLO_OP) &&
                                                 xpl_stats_get(e->ev.stats, XPL_STAT_HLO_OP, &s));
    return !is_op || xpl_work_add(r->k->host.work, e->ev.md, xpl_roles_program(e), span);
}

// Runtimes have short events with such names, too, in starting work: "Wait for usage holds" of JAX,
// "convert_to_tensor" of TensorFlow.
static const uint64_t kOwnWork = 100000000; // ps: 100 us

// Each event counts where one comes late, or crosses one that was left out and may end it.
static bool note_place(struct xpl_host_reader *r, struct xpl_span span) {
    struct main_pass *const m = &r->next;
    if (m->whole) return true;
    while (m->open.n && m->open.v[m->open.n - 1].end <= span.begin)
        m->open.n--;
    struct open_event new = {span.end, false};
    const struct open_event *const outer = m->open.n ? &m->open.v[m->open.n - 1] : NULL;
    const bool crosses = outer && outer->end < span.end;
    if (crosses) new.end = outer->end;
    m->crosses |= crosses;
    m->whole = span.begin < m->begun || (crosses && (outer->left_out || span.begin == m->begun));
    m->begun = span.begin;
    struct open_event *const slot = xpl_vec_push(r->k->scratch, &m->open);
    if (slot) *slot = new;
    return slot != NULL;
}

static void leave_out(struct main_pass *m) {
    m->left_out = m->lacks = true;
    if (m->open.n) m->open.v[m->open.n - 1].left_out = true;
}

static bool is_within(struct xpl_span s, struct xpl_span outer) {
    return s.begin >= outer.begin && s.end <= outer.end;
}

// Whether an event adds nothing to one around it: to one whose work is known, or, as a function of
// the interpreter, to a function of the program, which names it.
XPL_INLINE bool is_told(const struct xpl_host_reader *r, const struct name *n,
                        struct xpl_span span) {
    const struct main_pass *const m = &r->next;
    if (m->whole) return false;
    if (is_within(span, m->known)) return !r->has_adapter;
    if (!n->interpreter || !m->v.n) return false;
    const struct main_event *const last = &m->v.v[m->v.n - 1];
    const struct name *const outer = &r->names[last->md];
    return last->work == XPL_WORK_OTHER && outer->program &&
           is_within(span, (struct xpl_span){last->span.begin, m->last_end}) &&
           (!outer->annotation || span.end - span.begin < kOwnWork);
}

// Other work matters only in the time that is broken down, except what may be own work between
// launches.
static bool is_outside(const struct xpl_host_reader *r, const struct main_pass *m,
                       const struct main_event *e) {
    const struct name *const n = &r->names[e->md];
    const bool may_be_own = n->annotation || n->interpreter; // named by an annotation around it
    return !m->whole && e->work == XPL_WORK_OTHER && !n->awaits &&
           (!may_be_own || e->span.end - e->span.begin < kOwnWork) &&
           (e->span.end <= r->k->from || e->span.begin >= r->k->until);
}

static bool is_step(const struct xpl_read_event *e) {
    struct xpl_stat s;
    return (e->roles & XPL_ROLE_STEP_NUM) && xpl_stats_get(e->ev.stats, XPL_STAT_STEP_NUM, &s);
}

static bool add_main_event(struct xpl_host_reader *r, const struct xpl_read_event *e,
                           struct xpl_span span) {
    struct main_pass *const m = &r->next;
    const struct name *const n = &r->names[e->ev.md];
    struct main_event new = {.span = span,
                             .md = e->ev.md,
                             .own = e->ev.md,
                             .work = n->work,
                             .takes = n->takes,
                             .follows = !m->left_out};
    const struct main_event *const last = m->v.n ? &m->v.v[m->v.n - 1] : NULL;
    m->left_out = false;
    if (is_outside(r, m, &new)) {
        leave_out(m);
        return true;
    }
    m->last_end = m->open.n ? m->open.v[m->open.n - 1].end : span.end;
    if (new.work > XPL_WORK_OTHER && !n->by_module && !is_within(span, m->known))
        m->known = (struct xpl_span){span.begin, m->last_end};
    if (new.work == XPL_WORK_OTHER && is_step(e)) new.work = XPL_WORK_NONE;
    if (r->ops && n->reads) new.work = XPL_WORK_READY; // nothing is copied
    m->unordered |= last && (span.begin < last->span.begin ||
                             (span.begin == last->span.begin && span.end > last->span.end));
    struct main_event *const slot = xpl_vec_push(r->k->scratch, &m->v);
    if (slot) *slot = new;
    return slot != NULL;
}

static bool is_apart(const struct name *n) {
    return n->work == XPL_WORK_COPY || n->work == XPL_WORK_INPUT;
}

// Of tf.data's own threads only what a step waits for counts: Keras' steps ask for their input
// there.
static bool add_apart(struct xpl_host_reader *r, struct line_pass *l, uint32_t md,
                      struct xpl_span span) {
    if (l->is_input && !r->names[md].input_wait) return true;
    struct apart_event *const slot = xpl_vec_push(r->k->scratch, &l->apart);
    if (slot) *slot = (struct apart_event){md, span};
    return slot != NULL;
}

// An event that says more than that its thread is at something.
static bool read_special(struct xpl_host_reader *r, struct line_pass *l,
                         const struct xpl_read_event *e, struct xpl_span span) {
    const struct name *const n = &r->names[e->ev.md];
    bool is_op = false;
    const bool is_function = n->program && !n->annotation; // of Python, which are many
    l->n_launches += n->work == XPL_WORK_LAUNCH && !is_function;
    l->puts |= n->puts;
    r->k->b->n_graph_breaks += n->resumes;
    if (r->k->host.work && !l->is_input && !count_work(r, e, span)) return false;
    if (r->ops && !l->is_input && !read_op(r, e, span, &l->stack, &is_op)) return false;
    if (n->eager && !read_eager(r, l, (enum xpl_eager_name)n->eager, span)) return false;
    if (r->ops && n->runs && !add_layer(r, XPL_HOST_RUNS, e->ev.md, span)) return false;
    if ((e->roles & XPL_ROLE_CORRELATION) && !is_op && !read_launch(r, &e->ev, span.begin))
        return false;
    if ((is_apart(n) || n->input_wait) && !add_apart(r, l, e->ev.md, span)) return false;
    // The main line's work is read later.
    return is_op || n->work == XPL_WORK_INPUT || n->work <= XPL_WORK_COPY ||
           read_work(r, e->ev.md, span, false);
}

// An event that says no more ends input all the same.
static bool leave_input(struct xpl_host_reader *r, struct line_pass *l, struct xpl_span span) {
    const struct xpl_timespan at = {span.begin, span.end - span.begin};
    bool input;
    return !l->stack.v.n || xpl_input_stack_next(&l->stack, at, false, r->k->scratch, &input);
}

// All ops of PyTorch start work, whatever words are in their names: CheckpointFunction.
static void note_op(struct xpl_host_reader *r, struct line_pass *l, const struct xpl_event *ev) {
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
    n->plain = is_plain(n);
}

static bool read_event(struct xpl_host_reader *r, struct line_pass *l,
                       const struct xpl_read_event *e) {
    const struct name *const n = &r->names[e->ev.md];
    if (XPL_UNLIKELY(r->k->is_torch)) note_op(r, l, &e->ev);
    if (XPL_UNLIKELY(n->memory) && !read_memory(r, &e->ev)) return false;
    const struct xpl_span span = xpl_breaking_span(l->origin, &e->ev);
    if (XPL_UNLIKELY(span.begin >= span.end)) {
        xpl_breaking_count_impossible(r->k, span, &e->ev);
        return true;
    }
    const bool plain = n->plain && !e->roles;
    if (plain ? !leave_input(r, l, span) : !read_special(r, l, e, span)) return false;
    if (l->in_pool) return true;
    if (!note_place(r, span)) return false;
    if (!plain || !is_told(r, n, span)) return add_main_event(r, e, span);
    leave_out(&r->next);
    return true;
}

typedef bool (*event_fn)(struct xpl_host_reader *, struct line_pass *,
                         const struct xpl_read_event *);

XPL_INLINE xpl_status_t walk(struct xpl_host_reader *r, struct line_pass *l, event_fn fn,
                             struct xpl_error *err) {
    struct xpl_event_cursor cur;
    struct xpl_read_event e;
    enum xpl_wire_result got;
    xpl_events_begin(&cur, l->line);
    while ((got = xpl_roles_next(&r->roles, &cur, &e)) == XPL_WIRE_FIELD) {
        if (e.ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->k->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "time breakdown: cancelled");
        if (!fn(r, l, &e)) XPL_RETURN_OOM(err, "time breakdown");
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

static xpl_status_t read_line(struct xpl_host_reader *r, struct line_pass *l,
                              struct xpl_error *err) {
    return walk(r, l, read_event, err);
}

// ---- input and copies of other threads ----

// Where the loop of such a thread began before the profile, no function of the program may be in
// it, but what the interpreter does for it, or nothing but putting.
static uint8_t names_feeder(const struct name *n, xpl_str_t name) {
    return n->puts ? 0 : xpl_is_program_function(name) ? 2 : n->interpreter ? 1 : 0;
}

// What a thread that puts into a queue is at, in the end by the most time.
static bool add_feeder(struct xpl_host_reader *r, struct line_pass *l,
                       const struct xpl_read_event *e) {
    struct xpl_host_time *const h = &r->k->host;
    const struct name *const n = &r->names[e->ev.md];
    uint64_t *const ps = &r->times[e->ev.md].fed_ps;
    const struct xpl_span span = xpl_breaking_span(l->origin, &e->ev);
    const uint8_t rank = names_feeder(n, r->plane->event_md[e->ev.md].name);
    if (!rank && !n->puts) return true;
    *ps += span.end - span.begin;
    if (!h->has_feeder || rank > h->feeder_rank ||
        (rank == h->feeder_rank && *ps > r->times[h->feeder_md].fed_ps)) {
        h->feeder_md = e->ev.md;
        h->feeder_rank = rank;
    }
    h->has_feeder = true;
    return true;
}

static xpl_status_t read_apart(struct xpl_host_reader *r, struct line_pass *l,
                               struct xpl_error *err) {
    for (size_t i = 0; i < l->apart.n; i++)
        if (is_apart(&r->names[l->apart.v[i].md]) &&
            !read_work(r, l->apart.v[i].md, l->apart.v[i].span, false))
            XPL_RETURN_OOM(err, "time breakdown");
    return l->puts ? walk(r, l, add_feeder, err) : XPL_OK;
}

// ---- the main line ----

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

struct launch_run {
    struct xpl_span span; // from the first to the last
    uint64_t n, longest;
    uint32_t md;                  // of the longest
    uint64_t last;                // begin of the last one
    XPL_VEC(struct xpl_span) own; // work of the program since the first; by time, apart
};

static bool add_launch_run(struct xpl_host_reader *r, const struct launch_run *run) {
    struct xpl_span part = run->span;
    for (size_t i = 0; i < run->own.n && run->own.v[i].begin < run->span.end; i++) {
        part.end = run->own.v[i].begin;
        if (part.begin < part.end && !add_layer(r, XPL_HOST_DISPATCH, run->md, part)) return false;
        part.begin = run->own.v[i].end;
    }
    part.end = run->span.end;
    return part.begin >= part.end || add_layer(r, XPL_HOST_DISPATCH, run->md, part);
}

static bool end_launch_run(struct xpl_host_reader *r, struct launch_run *run) {
    const bool ok = run->n < MANY_LAUNCHES || add_launch_run(r, run);
    run->n = run->longest = run->own.n = 0;
    return ok;
}

// Notes an event of the main line that ends: between two launches it may be what the device waits
// for. One that contains launches is their parent.
static bool add_own_work(struct xpl_host_reader *r, struct launch_run *run,
                         const struct main_event *e) {
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
static bool add_to_launch_run(struct xpl_host_reader *r, struct launch_run *run,
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

static bool is_slow(const struct xpl_host_reader *r, const struct main_event *e, uint64_t ps) {
    return r->k->is_torch && e->work == XPL_WORK_LAUNCH &&
           (ps >= kSlowLaunch || r->names[e->own].allocates);
}

static bool write_main(struct xpl_host_reader *r, struct main_stack *s, uint64_t until) {
    const struct main_event *const top = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    const uint64_t from = s->at;
    if (until <= from) return true;
    s->at = until;
    if (!top || top->work == XPL_WORK_NONE) return true;
    struct xpl_main_span *const last = s->to->n ? &s->to->v[s->to->n - 1] : NULL;
    const bool slow = is_slow(r, top, until - from);
    const struct xpl_main_span span = {.begin = from,
                                       .end = until,
                                       .work = (enum xpl_host_work)top->work,
                                       .md = slow ? top->own : top->md,
                                       .takes = top->takes,
                                       .slow = slow};
    if (last && last->end == from && last->md == span.md && last->work == span.work &&
        last->slow == slow) {
        last->end = until;
        return true;
    }
    struct xpl_main_span *const slot = xpl_vec_push(r->k->scratch, s->to);
    if (slot) *slot = span;
    return slot != NULL;
}

static bool close_until(struct xpl_host_reader *r, struct main_stack *s, uint64_t until) {
    while (s->v.n && s->v.v[s->v.n - 1].span.end <= until) {
        const struct main_event *const e = &s->v.v[s->v.n - 1];
        if (!write_main(r, s, e->span.end) || !add_own_work(r, &s->launches, e)) return false;
        s->v.n--;
    }
    return write_main(r, s, until);
}

// Functions of the interpreter, and what merely waits, are named by the program's function or
// annotation that calls them.
static bool has_no_name(const struct xpl_host_reader *r, const struct main_event *e) {
    return e->work == XPL_WORK_WAIT || (e->work == XPL_WORK_OTHER && r->names[e->md].interpreter);
}

// A copy to the device is one, also where the program prepares its batches.
static bool is_copy_of_input(const struct main_event *outer, const struct main_event *e) {
    return outer->work == XPL_WORK_INPUT && e->work == XPL_WORK_COPY;
}

// An event inside another: who is to name what the thread is at.
static void put_inside(const struct xpl_host_reader *r, const struct main_event *outer,
                       struct main_event *e) {
    if (e->span.end > outer->span.end) e->span.end = outer->span.end;
    if (is_copy_of_input(outer, e)) return;
    if (e->work == XPL_WORK_COMPILE && outer->work == XPL_WORK_LAUNCH)
        e->md = outer->md; // the function that is compiled
    else if (e->work < outer->work || (e->work == outer->work && e->work != XPL_WORK_OTHER)) {
        const bool called = r->names[outer->md].adapter && !r->names[e->md].adapter &&
                            xpl_is_program_function(r->plane->event_md[e->md].name);
        e->work = outer->work;
        if (!called) e->md = outer->md;
        e->takes = outer->takes;
    } else if (outer->work == XPL_WORK_OTHER && has_no_name(r, e) && r->names[outer->md].program)
        e->md = outer->md;
}

// Preparing a function for its first run takes TensorFlow longer than that.
static const uint64_t kPrepares = 1000000000; // ps: 1 ms

static bool prepares(const struct name *n) {
    return n->eager == XPL_EAGER_FUNCTION;
}

// An event that may have a part, with times of the events in it.  An event that is in several is
// noted in the innermost one, which gives the times on when it ends: each event is read once.
struct open_part {
    size_t event;
    uint64_t compiled, awaited; // where the last one ends that compiles, or that awaits a result
    uint64_t kernel;            // where the last kernel begins
};
typedef XPL_VEC(struct open_part) open_parts;

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void note_inside(const struct xpl_host_reader *r, struct open_part *outer,
                        const struct main_event *e) {
    const struct name *const n = &r->names[e->md];
    if (e->work == XPL_WORK_COMPILE)
        outer->compiled = later(outer->compiled, e->span.end);
    else if (n->awaits)
        outer->awaited = later(outer->awaited, e->span.end);
    else if (n->eager == XPL_EAGER_KERNEL)
        outer->kernel = later(outer->kernel, e->span.begin);
}

// Until when an event does something else than its name says; 0: not known.
static uint64_t part_end_of(const struct xpl_host_reader *r, const struct main_event *e,
                            const struct open_part *p) {
    const struct name *const n = &r->names[e->md];
    if (!prepares(n)) return n->jitted ? p->compiled : p->awaited;
    const bool prepared = p->kernel && p->kernel - e->span.begin >= kPrepares;
    return later(p->compiled, prepared ? p->kernel : 0);
}

static void close_part(const struct xpl_host_reader *r, struct main_pass *m, open_parts *open) {
    const struct open_part p = open->v[--open->n];
    struct open_part *const outer = open->n ? &open->v[open->n - 1] : NULL;
    m->v.v[p.event].part_end = part_end_of(r, &m->v.v[p.event], &p);
    if (!outer) return;
    outer->compiled = later(outer->compiled, p.compiled);
    outer->awaited = later(outer->awaited, p.awaited);
    outer->kernel = later(outer->kernel, p.kernel);
}

static bool may_have_part(const struct xpl_host_reader *r, const struct main_event *e) {
    return r->names[e->md].jitted || prepares(&r->names[e->md]) || e->work == XPL_WORK_FETCH;
}

// A call of a jitted function that compiles it traces and lowers it first, in Python: all of that
// is compiling.  A fetch waits for the device until the runtime says that the result is there.  A
// module named after its data may have all of the program, which starts its work within.
static bool find_parts(struct xpl_host_reader *r, struct main_pass *m) {
    open_parts open = {0};
    size_t told = 0; // of the open ones: they contain a launch
    for (size_t i = 0; i < m->v.n; i++) {
        const struct main_event *const e = &m->v.v[i];
        while (open.n && m->v.v[open.v[open.n - 1].event].span.end <= e->span.begin)
            close_part(r, m, &open);
        if (told > open.n) told = open.n;
        const bool launches = r->has_modules && e->work == XPL_WORK_LAUNCH;
        for (size_t k = open.n; launches && k > told; k--) {
            struct main_event *const outer = &m->v.v[open.v[k - 1].event];
            if (r->names[outer->md].by_module) outer->work = XPL_WORK_OTHER;
        }
        if (launches) told = open.n;
        if (open.n) note_inside(r, &open.v[open.n - 1], e);
        if (!may_have_part(r, e) && !r->names[e->md].by_module) continue;
        struct open_part *const slot = xpl_vec_push(r->k->scratch, &open);
        if (!slot) return false;
        *slot = (struct open_part){.event = i};
    }
    while (open.n)
        close_part(r, m, &open);
    return true;
}

static bool push_event(struct xpl_host_reader *r, struct main_stack *s, struct main_event e) {
    struct main_event *const slot = xpl_vec_push(r->k->scratch, &s->v);
    if (slot) *slot = e;
    return slot != NULL;
}

// Waiting for the device is two short events of the runtime, where it begins and where it ends; an
// array's method that waits is not a Python function, so no other event shows it.
static bool add_await(struct xpl_host_reader *r, struct main_stack *s,
                      const struct main_event *first, const struct main_event *last) {
    if (!last->follows || !r->names[first->md].awaits || !r->names[last->md].awaits) return true;
    if (!close_until(r, s, first->span.end)) return false;
    const struct main_event *const outer = s->v.n ? &s->v.v[s->v.n - 1] : NULL;
    struct main_event e = {.span = {first->span.end, last->span.begin},
                           .md = first->md,
                           .own = first->md,
                           .work = XPL_WORK_READY};
    if (e.span.begin >= e.span.end || (outer && outer->span.end <= last->span.begin)) return true;
    if (outer) put_inside(r, outer, &e);
    return push_event(r, s, e);
}

static bool flatten(struct xpl_host_reader *r, struct main_pass *m, struct xpl_main_spans *to) {
    struct main_stack s = {.to = to};
    if (m->unordered) xpl_sort(m->v.v, m->v.n, sizeof *m->v.v, outer_first);
    if (!find_parts(r, m)) return false;
    for (size_t i = 0; i < m->v.n; i++) {
        struct main_event e = m->v.v[i];
        if (!m->crosses && is_outside(r, m, &e)) continue;
        if (i && !add_await(r, &s, &m->v.v[i - 1], &e)) return false;
        if (!close_until(r, &s, e.span.begin)) return false;
        const struct main_event *const outer = s.v.n ? &s.v.v[s.v.n - 1] : NULL;
        if (e.work == XPL_WORK_LAUNCH && (!outer || outer->work < XPL_WORK_LAUNCH) &&
            !add_to_launch_run(r, &s.launches, &e))
            return false;
        if (outer) put_inside(r, outer, &e);
        if (!push_event(r, &s, e)) return false;
        const struct name *const n = &r->names[m->v.v[i].md];
        const bool compiles = n->jitted || prepares(n);
        if (!e.part_end || (!compiles && e.work != XPL_WORK_FETCH)) continue;
        if (e.part_end < e.span.end) e.span.end = e.part_end;
        e.work = compiles ? XPL_WORK_COMPILE : XPL_WORK_READY;
        if (!push_event(r, &s, e)) return false;
    }
    return end_launch_run(r, &s.launches) && close_until(r, &s, UINT64_MAX >> 1);
}

static bool add_to_main(struct xpl_host_reader *r, struct line_pass *l,
                        const struct xpl_read_event *e) {
    const struct xpl_span span = xpl_breaking_span(l->origin, &e->ev);
    return span.begin >= span.end || add_main_event(r, e, span);
}

// What counts of a main line as of any other.
static xpl_status_t read_waits(struct xpl_host_reader *r, const struct line_pass *l,
                               struct xpl_error *err) {
    for (size_t i = 0; i < l->apart.n; i++)
        if (r->names[l->apart.v[i].md].input_wait &&
            !read_work(r, l->apart.v[i].md, l->apart.v[i].span, true))
            XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}

static int by_time(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool finish(struct xpl_host_reader *r) {
    struct xpl_host_time *const h = &r->k->host;
    for (size_t i = 0; i < XPL_HOST_LAYERS; i++)
        if (!xpl_spans_finish(&h->layers[i], r->k->scratch)) return false;
    size_t kind = XPL_COMPILE_OUTER;
    while (kind > XPL_COMPILE_TRACED && !r->compiles[kind].n)
        kind--;
    h->compiles.v = r->compiles[kind].v;
    h->compiles.n = r->compiles[kind].n;
    xpl_sort(h->compiles.v, h->compiles.n, sizeof *h->compiles.v, by_time);
    return true;
}

static void swap(struct main_pass *a, struct main_pass *b) {
    const struct main_pass kept = *a;
    *a = *b;
    *b = kept;
}

// By launches, those of threads that are in no pool in front, and that of PyTorch's steps first.
static uint64_t weight_of(const struct line_pass *l) {
    if (!l || !l->n_launches) return 0;
    if (l->has_steps) return l->n_launches + (UINT64_MAX >> 2) * 3;
    return l->in_pool || l->is_autograd ? l->n_launches : l->n_launches + (UINT64_MAX >> 1);
}

// Keeps the events that were read last, if their line starts more work than others, in the place of
// those of another line.  The one aside is autograd's.
static void choose(struct xpl_host_reader *r) {
    const uint64_t weight = weight_of(r->next.line);
    const bool torch = r->k->is_torch;
    if (weight > weight_of(r->main.line)) {
        if (torch) swap(&r->aside, &r->main);
        swap(&r->main, &r->next);
    } else if (torch && weight > weight_of(r->aside.line)) {
        swap(&r->aside, &r->next);
    }
}

static void begin_main(struct xpl_host_reader *r, struct line_pass *l) {
    r->next.line = l;
    r->next.v.n = 0;
    r->next.open.n = 0;
    r->next.begun = 0;
    r->next.unordered = r->next.left_out = r->next.lacks = r->next.crosses = false;
    r->next.whole = r->k->is_torch;
    r->next.known = (struct xpl_span){UINT64_MAX, 0};
}

static xpl_status_t read_lines(struct xpl_host_reader *r, struct xpl_error *err) {
    for (uint32_t i = 0; i < r->plane->n_lines; i++) {
        const struct xpl_line *const line = &r->plane->lines[i];
        struct line_pass *const l = &r->lines[i];
        *l = (struct line_pass){.line = line,
                                .origin = xpl_breaking_origin(r->k, line),
                                .is_input = xpl_is_input_line(line),
                                .in_pool = is_pool(line)};
        begin_main(r, l);
        XPL_TRY(read_line(r, l, err));
        choose(r);
    }
    return XPL_OK;
}

xpl_status_t xpl_breaking_read_host(struct xpl_breaking *k, struct xpl_device_time *ops,
                                    struct xpl_error *err) {
    const struct xpl_plane *const plane = k->host.plane;
    if (!plane) return XPL_OK;
    struct xpl_host_reader *const r = xpl_arena_zalloc(k->scratch, sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "time breakdown");
    *r = (struct xpl_host_reader){.k = k, .plane = plane, .ops = ops};
    r->lines = xpl_arena_array(k->scratch, plane->n_lines, sizeof *r->lines);
    if (!r->lines || !read_names(r)) XPL_RETURN_OOM(err, "time breakdown");
    if (ops && !xpl_work_begin(k, &k->host.work)) XPL_RETURN_OOM(err, "time breakdown");
    if (ops) XPL_TRY(xpl_input_work_find(plane, k->exec, k->scratch, &r->input, err));
    XPL_TRY(read_lines(r, err));
    for (uint32_t i = 0; i < plane->n_lines; i++) {
        struct line_pass *const l = &r->lines[i];
        if (l == r->main.line || l == r->aside.line) XPL_TRY(read_waits(r, l, err));
        if (l != r->main.line) XPL_TRY(read_apart(r, l, err));
    }
    if (!finish(r)) XPL_RETURN_OOM(err, "time breakdown");
    k->host.reader = r;
    return XPL_OK;
}

static xpl_status_t divide(struct xpl_host_reader *r, struct main_pass *m,
                           struct xpl_main_spans *to, struct xpl_error *err) {
    if (!m->line) return XPL_OK;
    if (m->line->in_pool || (m->whole && m->lacks)) {
        begin_main(r, m->line);
        r->next.whole = true;
        XPL_TRY(walk(r, m->line, add_to_main, err));
        swap(m, &r->next);
    }
    if (!flatten(r, m, to)) XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}

xpl_status_t xpl_breaking_read_main(struct xpl_breaking *k, struct xpl_error *err) {
    struct xpl_host_time *const h = &k->host;
    struct xpl_host_reader *const r = h->reader;
    if (!r) return XPL_OK;
    // In the order of lines: of two names with the same time the first one counts.
    const bool aside_first = r->aside.line && r->aside.line < r->main.line;
    if (aside_first) XPL_TRY(divide(r, &r->aside, &h->aside, err));
    XPL_TRY(divide(r, &r->main, &h->main, err));
    if (!aside_first) XPL_TRY(divide(r, &r->aside, &h->aside, err));
    if (!xpl_spans_finish(&h->layers[XPL_HOST_DISPATCH], k->scratch))
        XPL_RETURN_OOM(err, "time breakdown");
    return XPL_OK;
}
