// Scans lines for nodes: events that can start, join or carry a group across lines.  Counterpart of
// EventForest::ConnectIntraThread in xla/tsl/profiler/utils/group_events.cc.
#include <stdatomic.h>
#include <string.h>

#include "analysis/grouping/impl.h"

// ---- segment lists ----

void *xpl_grp_seg_push(struct xpl_arena *a, struct seg_list *l) {
    struct seg *s = l->last;
    if (!s || s->n == s->cap) {
        uint32_t cap = s ? s->cap * 2 : 16; // many scans find little
        if (cap * l->elem > 1u << 16) cap = (1u << 16) / l->elem;
        struct seg *const fresh = xpl_arena_alloc(a, sizeof *fresh + (size_t)cap * l->elem);
        if (!fresh) return NULL;
        *fresh = (struct seg){.cap = cap};
        if (s)
            s->next = fresh;
        else
            l->first = fresh;
        l->last = s = fresh;
    }
    l->n++;
    return (uint8_t *)seg_at(s) + (size_t)s->n++ * l->elem;
}

void xpl_grp_seg_copy(const struct seg_list *l, void *to) {
    uint8_t *p = to;
    for (struct seg *s = l->first; s; s = s->next) {
        memcpy(p, seg_at(s), (size_t)s->n * l->elem);
        p += (size_t)s->n * l->elem;
    }
}

void xpl_grp_scan_fini(struct scan *s) {
    xpl_arena_fini(&s->nodes_arena);
    xpl_arena_fini(&s->links_arena);
}

// ---- state of one scan ----

// The stack holds the events that may matter.  One that only could join a group, or that only
// holds what a group's name is made of, is pending: it becomes a node when something inside it
// starts or passes on a group.  Cursors look at the others again when they come by, so most events
// that are linked to another line are never stored: they are leaves, and have the group of their
// producer.
struct entry {
    struct span span;
    uint64_t at;
    size_t plain;   // how many plain events were open below it
    uint32_t scope; // node + 1; while pending, of what encloses it
    uint32_t gap;   // plain events between it and the entry below
    bool pending;
};

struct state {
    struct scan *s;
    const struct plan *plan;
    struct line_groups *lg;
    const struct xpl_line *line; // lg->line
    struct xpl_arena scratch;
    XPL_VEC(struct entry) stack;
    XPL_VEC(struct span) plain; // open plain events inside of entries: they count as distance
    bool kernel_host, kernel_device;
    bool settle_all; // nothing stays pending
    bool failed;     // out of memory, or the bytes changed
};

static void init_lists(struct scan *s) {
    s->nodes = (struct seg_list){.elem = sizeof(struct node)};
    s->producers = s->consumers = s->executors = (struct seg_list){.elem = sizeof(struct link)};
    s->roots = (struct seg_list){.elem = sizeof(struct root)};
    s->launches = (struct seg_list){.elem = sizeof(struct launch)};
    s->pairs = (struct seg_list){.elem = sizeof(struct pair)};
    s->tf_data_ids = (struct seg_list){.elem = sizeof(int64_t)};
    s->has_loops = false;
}

#define PUSH(st, list, T, ...)                                                                     \
    do {                                                                                           \
        T *const push_ = xpl_grp_seg_push(&(st)->s->links_arena, &(st)->s->list);                  \
        if (push_)                                                                                 \
            *push_ = (T)__VA_ARGS__;                                                               \
        else                                                                                       \
            (st)->failed = true;                                                                   \
    } while (0)

static void push_link(struct state *st, struct seg_list *l, uint64_t key, uint32_t end) {
    struct link *const r = xpl_grp_seg_push(&st->s->links_arena, l);
    if (r)
        *r = (struct link){(uint32_t)key, (uint32_t)(key >> 32), end};
    else
        st->failed = true;
}

static uint32_t new_node(struct state *st, uint64_t at, uint32_t parent, uint32_t gap,
                         uint32_t flags) {
    struct node *const n = xpl_grp_seg_push(&st->s->nodes_arena, &st->s->nodes);
    if (!n || st->s->nodes.n >= MAX_NODES) {
        st->failed = true;
        return 1;
    }
    *n = (struct node){.at_lo = (uint32_t)at,
                       .at_hi = (uint8_t)(at >> 32),
                       .gap = (uint8_t)(gap < UINT8_MAX ? gap : UINT8_MAX),
                       .flags = (uint16_t)flags,
                       .parent = parent,
                       .group = NO_GROUP};
    return (uint32_t)st->s->nodes.n;
}

// ---- nodes ----

static int64_t int_value(const struct scan_stats *ss, enum stat_class c) {
    return ss->kind[c] == XPL_VALUE_INT ? (int64_t)ss->u[c] : 0;
}
static uint64_t any_value(const struct scan_stats *ss, enum stat_class c) {
    return ss->kind[c] == XPL_VALUE_UINT || ss->kind[c] == XPL_VALUE_INT ? ss->u[c] : 0;
}
static bool has(const struct scan_stats *ss, uint32_t bits) {
    return (ss->mask & bits) == bits;
}

struct event {
    uint64_t at;
    struct span span;
    const struct xpl_raw_event *raw;
    uint32_t role;
    struct scan_stats ss;
    struct event_links links;
};

static bool root_level(const struct event *e, int32_t *ret) {
    if (e->role & (ROLE_ROOT_1 | ROLE_ROOT_2)) {
        *ret = e->role & ROLE_ROOT_1 ? 1 : 2;
        return true;
    }
    *ret = has(&e->ss, SC_BIT(SC_IS_ROOT)) ? (int32_t)int_value(&e->ss, SC_IS_ROOT) : 1;
    return has(&e->ss, SC_BIT(SC_IS_ROOT)) || (e->role & ROLE_TRACE_CONTEXT);
}

static uint32_t node_flags(const struct scan_stats *ss, uint32_t role) {
    uint32_t f = 0;
    if (role & ROLE_EXECUTOR) f |= NODE_EXECUTOR;
    if (role & ROLE_EAGER) f |= NODE_EAGER;
    if (role & ROLE_IMPLICIT) f |= NODE_IMPLICIT;
    if (has(ss, SC_BIT(SC_GRAPH_TYPE))) f |= NODE_GRAPH_TYPE;
    if (has(ss, SC_BIT(SC_ITER_NUM))) f |= NODE_ITER_NUM;
    if (has(ss, SC_BIT(SC_STEP_NUM))) f |= NODE_STEP_NUM;
    return f;
}

static bool is_async(const struct event *e) {
    return has(&e->ss, SC_BIT(SC_IS_ASYNC)) && int_value(&e->ss, SC_IS_ASYNC) != 0;
}
static bool is_kernel(const struct event *e) {
    return !(e->role & ROLE_KNOWN) && has(&e->ss, SC_BIT(SC_CORRELATION));
}

static uint64_t executor_key(const struct scan_stats *ss) {
    return xpl_grp_executor_key(any_value(ss, SC_STEP_ID), any_value(ss, SC_ITER_NUM));
}

// Of an EagerExecute: what it says itself.
static uint32_t eager_flags(const struct state *st, const struct xpl_raw_event *raw) {
    const uint32_t label = xpl_grp_event_eager(
        (struct xpl_stats){st->line->plane, raw->stats, raw->end, XEVENT_STATS});
    return NODE_IN_EAGER | (label & LABEL_IS_EAGER ? NODE_IS_EAGER : 0);
}

// Makes a node of an event whose stats and links were read.  Returns node + 1.
static uint32_t make_node(struct state *st, const struct event *e, uint32_t parent, uint32_t gap) {
    const uint32_t ids = SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM);
    uint32_t flags = node_flags(&e->ss, e->role);
    int32_t level;
    const bool root = root_level(e, &level), kernel = st->kernel_device && is_kernel(e);
    const bool iterator = (e->role & ROLE_ITERATOR) && has(&e->ss, ids);
    if (root) flags |= NODE_ROOT;
    if (is_async(e)) flags |= NODE_ASYNC;
    if (e->role & ROLE_EAGER) flags |= eager_flags(st, e->raw);
    if (e->links.consumer || iterator || kernel) flags |= NODE_CONSUMES;
    const uint32_t self = new_node(st, e->at, parent, gap, flags);
    if (root)
        PUSH(st, roots, struct root,
             {.node = self - 1,
              .level = level,
              .begin = e->span.begin,
              .step = int_value(&e->ss, SC_STEP_ID),
              .has_step = has(&e->ss, SC_BIT(SC_STEP_ID))});
    if (e->links.consumer)
        push_link(st, &st->s->consumers, e->links.consumer_key,
                  LINK_CONSUMER | (self - 1) << LINK_NODE_SHIFT);
    if (kernel)
        PUSH(st, pairs, struct pair, {any_value(&e->ss, SC_CORRELATION), self - 1, PAIR_KERNEL});
    if (iterator) PUSH(st, pairs, struct pair, {executor_key(&e->ss), self - 1, PAIR_ITERATOR});
    if (st->s->keep_executors && (e->role & ROLE_EXECUTOR) && has(&e->ss, ids))
        push_link(st, &st->s->executors, executor_key(&e->ss), self - 1);
    return self;
}

static bool read_event(const struct state *st, const struct xpl_raw_event *raw, uint64_t at,
                       uint32_t role, struct event *e) {
    e->at = at;
    e->span = span_of(st->line, raw->offset_ps, raw->duration_ps);
    e->raw = raw;
    e->role = role;
    if (!xpl_grp_read_stats(st->plan, raw, &e->ss)) return false;
    xpl_grp_event_links(st->plan, st->line, &e->ss, role, &e->links);
    return true;
}

static void settle_entry(struct state *st, struct entry *entry, uint32_t parent) {
    struct xpl_raw_event raw;
    struct event e;
    if (!xpl_raw_event_at(st->line, entry->at, &raw)) {
        st->failed = true;
        return;
    }
    const uint32_t role = st->plan->role_of[xpl_event_md_at(st->plan->plane, raw.md_id)];
    if (!read_event(st, &raw, entry->at, role, &e)) {
        st->failed = true;
        return;
    }
    entry->scope = make_node(st, &e, parent, entry->gap);
    entry->pending = false;
}

// Makes nodes of all that is pending; returns the innermost (+ 1), 0 when nothing encloses.
static uint32_t settle(struct state *st) {
    uint32_t scope = 0;
    for (size_t i = 0; i < st->stack.n; i++) {
        if (st->stack.v[i].pending) settle_entry(st, &st->stack.v[i], scope);
        scope = st->stack.v[i].scope;
    }
    return scope;
}

// ---- one event ----

// Closes what the span does not lie in.
static void pop_until_includes(struct state *st, struct span span) {
    while (st->stack.n) {
        const struct entry *const top = &st->stack.v[st->stack.n - 1];
        while (st->plain.n > top->plain && !span_includes(st->plain.v[st->plain.n - 1], span))
            st->plain.n--;
        if (st->plain.n > top->plain || span_includes(top->span, span)) return;
        st->stack.n--;
    }
}

// Plain events between an event that is next and the top of the stack.
static uint32_t gap_to_top(const struct state *st) {
    if (st->stack.n == 0) return 0;
    const size_t gap = st->plain.n - st->stack.v[st->stack.n - 1].plain;
    return gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

static void push_plain(struct state *st, struct span span) {
    struct span *const top = xpl_vec_push(&st->scratch, &st->plain);
    if (top)
        *top = span;
    else
        st->failed = true;
}

static void push_entry(struct state *st, struct entry e) {
    if (st->stack.n == 0) st->plain.n = 0;
    e.plain = st->plain.n;
    struct entry *const top = xpl_vec_push(&st->scratch, &st->stack);
    if (top)
        *top = e;
    else
        st->failed = true;
}

static uint32_t top_scope(const struct state *st) {
    return st->stack.n ? st->stack.v[st->stack.n - 1].scope : 0;
}

// What an event may be, by the kinds of its stats and its role alone.
struct nature {
    bool node;     // it must be a node
    bool pending;  // it may become one
    bool producer; // it may pass on a group
    bool launch;   // it launches a kernel
};

static struct nature nature_of(const struct state *st, uint32_t mask, uint32_t role) {
    const bool kernel = !(role & ROLE_KNOWN) && (mask & SC_BIT(SC_CORRELATION));
    return (struct nature){
        .node = (mask & SC_BIT(SC_IS_ROOT)) ||
                (role & (ROLE_TRACE_CONTEXT | ROLE_ROOT_1 | ROLE_ROOT_2 | ROLE_ITERATOR)) ||
                ((role & ROLE_EXECUTOR) && st->s->keep_executors),
        .pending = (mask & SC_CONSUMER) == SC_CONSUMER || (mask & SC_CONTEXT) ||
                   (role & (ROLE_EAGER | ROLE_QUEUE_OUT | ROLE_LAUNCHED | ROLE_TPU_EXECUTE)) ||
                   (kernel && st->kernel_device),
        .producer = (mask & SC_PRODUCER) == SC_PRODUCER ||
                    (role & (ROLE_QUEUE_IN | ROLE_LAUNCH | ROLE_EXECUTOR)),
        .launch = kernel && st->kernel_host,
    };
}

// Whether its stats must be read now; what it is not inside of was popped, unless it may be
// asynchronous.
static bool must_read(const struct state *st, struct nature n, uint32_t mask, uint32_t role) {
    return n.node || n.launch || (mask & SC_BIT(SC_IS_ASYNC)) ||
           (role & (ROLE_TF_DATA | ROLE_EXECUTOR)) || (n.pending && st->settle_all) ||
           (n.producer && (n.pending || st->stack.n));
}

static void note_ids(struct state *st, const struct event *e) {
    if (!has(&e->ss, SC_BIT(SC_STEP_ID))) return;
    if (e->role & ROLE_TF_DATA) PUSH(st, tf_data_ids, int64_t, {int_value(&e->ss, SC_STEP_ID)});
    if ((e->role & ROLE_EXECUTOR) && has(&e->ss, SC_BIT(SC_ITER_NUM)))
        st->s->has_loops |= int_value(&e->ss, SC_ITER_NUM) != 0;
}

// An event that is not plain.  Returns the scope it is in: itself when it becomes a node.
static uint32_t process_event(struct state *st, const struct xpl_raw_event *raw, uint64_t at,
                              uint32_t mask, uint32_t role) {
    const struct nature n = nature_of(st, mask, role);
    const struct span span = span_of(st->line, raw->offset_ps, raw->duration_ps);
    struct event e;
    e.ss.mask = 0;
    e.links.producer = false;
    if (!(mask & SC_BIT(SC_IS_ASYNC))) pop_until_includes(st, span);
    if (must_read(st, n, mask, role)) {
        if (!read_event(st, raw, at, role, &e)) {
            st->failed = true;
            return 0;
        }
        note_ids(st, &e);
    }
    const bool async = is_async(&e);
    if (!async && (mask & SC_BIT(SC_IS_ASYNC))) pop_until_includes(st, span);
    const bool passes = e.links.producer || n.launch;
    // (An asynchronous consumer that passes nothing on is a leaf.)
    const bool self = n.node || (n.pending && (passes || st->settle_all));
    const uint32_t gap = async ? 0 : gap_to_top(st);
    uint32_t scope = 0;
    // (Nodes are numbered in the order of the line, so what is open comes first in any case.)
    if (self || (passes && !async)) scope = settle(st);
    if (async) scope = 0;
    if (self) scope = make_node(st, &e, scope, gap);
    if (e.links.producer && scope) {
        const uint32_t far = self ? 0 : gap < LINK_MAX_GAP ? gap + 1 : LINK_MAX_GAP;
        push_link(st, &st->s->producers, e.links.producer_key,
                  (scope - 1) << LINK_NODE_SHIFT | far);
    }
    if (n.launch) PUSH(st, launches, struct launch, {any_value(&e.ss, SC_CORRELATION), scope});
    if (async) return scope;
    if (self || n.pending)
        push_entry(st, (struct entry){.span = span,
                                      .at = at,
                                      .gap = gap,
                                      .pending = !self,
                                      .scope = self ? scope : top_scope(st)});
    else if (st->stack.n)
        push_plain(st, span);
    return top_scope(st);
}

static void begin_state(struct state *st, struct scan *s, struct line_groups *lg) {
    *st = (struct state){.s = s, .plan = s->plan, .lg = lg, .line = lg->line};
    xpl_arena_init(&st->scratch, s->links_arena.limit);
    st->kernel_host = s->plan->plane->kind == XPL_PLANE_HOST_THREADS;
    st->kernel_device = !st->kernel_host && (s->plan->classes & SC_BIT(SC_CORRELATION));
}

static xpl_status_t scan_failed(struct scan *s, const struct xpl_event_cursor *c) {
    if (c) return xpl_events_error(c, &s->err);
    XPL_RETURN_OOM(&s->err, "event groups");
}

// One event: keeps it, or only closes what it is not inside of.  Returns its scope.
static inline uint32_t visit(struct state *st, const struct xpl_raw_event *raw, uint64_t at,
                             uint32_t mask, uint32_t role) {
    if (XPL_UNLIKELY(mask != 0) || (role & ~(uint32_t)(ROLE_KNOWN | ROLE_IMPLICIT)))
        return process_event(st, raw, at, mask, role);
    if (st->stack.n) {
        const struct span span = span_of(st->line, raw->offset_ps, raw->duration_ps);
        pop_until_includes(st, span);
        if (st->stack.n) push_plain(st, span);
    }
    return top_scope(st);
}

static bool read_next(const struct plan *plan, struct xpl_event_cursor *c,
                      struct xpl_raw_event *raw, uint32_t *mask) {
    xpl_bytes_t message;
    const uint8_t *p = c->p;
    if (XPL_UNLIKELY(xpl_next_message(&p, c->end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD) ||
        XPL_UNLIKELY(!xpl_raw_event_head(message, c->end, raw)))
        return false;
    if (XPL_UNLIKELY(!xpl_grp_quick_mask(plan, raw, mask)) &&
        (!xpl_raw_event_read(message, c->end, raw) || !xpl_grp_stats_mask(plan, raw, mask)))
        return false;
    c->p = p;
    return true;
}

// ---- a line in file order ----

// Upstream sorts a line that has regions; when that changes anything, the line is scanned again in
// the order that makes.
struct order_check {
    uint64_t offset, duration;
    bool unsorted, open, has_regions;
};

static void check_order(struct order_check *o, const struct xpl_raw_event *raw) {
    o->unsorted |= raw->offset_ps < o->offset ||
                   (raw->offset_ps == o->offset && raw->duration_ps > o->duration);
    o->offset = raw->offset_ps;
    o->duration = raw->duration_ps;
}

// The markers of regions: what a region does not lie in is closed before its StartRegion.
static void pass_marker(struct state *st, struct order_check *o, const struct xpl_raw_event *raw,
                        uint64_t at, uint32_t role, uint64_t previous_offset) {
    struct region longest;
    if (role & ROLE_STOP_REGION) {
        o->has_regions |= o->open;
        return;
    }
    o->open = xpl_grp_region_starts(st->plan, st->line, raw);
    if (!o->open || st->stack.n == 0) return;
    // A region comes before shorter events that begin with it.
    o->unsorted |= raw->offset_ps == previous_offset;
    if (xpl_grp_longest_region(st->plan, st->line, at, &longest))
        pop_until_includes(st, span_of(st->line, longest.offset, longest.duration));
}

// Many threads may do so at once; looking first keeps the cache line shared.
static inline void note_linked(const struct plan *plan, uint32_t md) {
    if (plan->linked && !atomic_load_explicit(&plan->linked[md], memory_order_relaxed))
        atomic_store_explicit(&plan->linked[md], 1, memory_order_relaxed);
}

// One event of a line in file order.
struct seen {
    struct xpl_raw_event raw;
    uint64_t at;
    uint32_t mask, role;
};

static inline bool see_next(const struct plan *plan, const struct xpl_line *line,
                            struct xpl_event_cursor *c, struct seen *e) {
    c->p = xpl_find_message(c->p, c->end, XLINE_EVENTS);
    e->at = (uint64_t)(c->p - line->message.ptr);
    if (XPL_UNLIKELY(!read_next(plan, c, &e->raw, &e->mask))) return false;
    const uint32_t md = xpl_event_md_at(plan->plane, e->raw.md_id);
    e->role = plan->role_of[md];
    if (XPL_UNLIKELY(e->mask & SC_LINKED) || (e->role & ROLE_LINKED)) note_linked(plan, md);
    return true;
}

static xpl_status_t begin_chunk(struct state *st, uint32_t chunk, struct xpl_exec *exec) {
    if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(&st->s->err, XPL_CANCELLED, "cancelled");
    if (st->lg->chunk_tops) st->lg->chunk_tops[chunk] = settle(st);
    return XPL_OK;
}

// *ret_unsorted: the line must be scanned in another order, and nothing of this counts.
static xpl_status_t scan_in_order(struct state *st, struct xpl_exec *exec, bool *ret_unsorted) {
    struct scan *const s = st->s;
    struct order_check order = {.duration = UINT64_MAX, .offset = 0};
    struct xpl_event_cursor c;
    uint32_t chunk = 0;
    uint64_t next_chunk = 0;
    xpl_events_begin(&c, st->line);
    for (; c.index != c.stop; c.index++) {
        struct seen e;
        if (XPL_UNLIKELY(c.index == next_chunk)) {
            XPL_TRY(begin_chunk(st, chunk, exec));
            next_chunk = xpl_line_chunk_first(st->line, ++chunk);
        }
        if (XPL_UNLIKELY(!see_next(st->plan, st->line, &c, &e))) return scan_failed(s, &c);
        if (st->plan->has_regions) {
            const uint64_t previous = order.offset;
            check_order(&order, &e.raw);
            if (XPL_UNLIKELY(e.role & (ROLE_START_REGION | ROLE_STOP_REGION)))
                pass_marker(st, &order, &e.raw, e.at, e.role, previous);
        }
        visit(st, &e.raw, e.at, e.mask, e.role);
        if (XPL_UNLIKELY(st->failed)) return scan_failed(s, NULL);
    }
    *ret_unsorted = order.has_regions && order.unsorted;
    return XPL_OK;
}

// ---- a long line, on many threads ----

// Most events are plain: all that they do is to close what they do not lie in, and to stand between
// what is open and what comes later.  So chunks are read at once, each down to its other events and
// to what the plain ones before each of those amount to; then, chunk by chunk and in order, those
// go through the same state as if the line had been read alone.

struct quiet {           // a run of plain events
    uint64_t begin, end; // the least begin and the greatest end
    uint32_t n_open;     // spans that are still open at its end; 0: no events
};
struct heard { // an event that is not plain
    struct quiet before;
    uint32_t mask; // and HEARD_*
    uint32_t role;
    uint64_t at, offset, duration;
    const uint8_t *stats, *end;
};
#define HEARD_TIES  0x80000000u // begins where the event before it does
#define HEARD_FIRST 0x40000000u // of its chunk

struct piece {
    const struct plan *plan;
    const struct xpl_line *line;
    uint32_t chunk;
    struct xpl_arena arena;
    XPL_VEC(struct heard) events;
    XPL_VEC(struct span) open; // of all runs, one after the other
    struct quiet last;
    uint64_t first_offset, first_duration;
    struct order_check order;
    bool failed;
    struct xpl_event_cursor broken; // where a malformed event is; line is NULL when there is none
};

static void add_plain(struct piece *p, struct quiet *q, struct span span) {
    if (q->n_open == 0 || span.begin < q->begin) q->begin = span.begin;
    if (q->n_open == 0 || span.end > q->end) q->end = span.end;
    while (q->n_open && !span_includes(p->open.v[p->open.n - 1], span))
        p->open.n--, q->n_open--;
    struct span *const top = xpl_vec_push(&p->arena, &p->open);
    if (top)
        *top = span, q->n_open++;
    else
        p->failed = true;
}

static void read_chunk(struct piece *p) {
    struct xpl_event_cursor c;
    struct quiet q = {0};
    bool first = true;
    p->events.n = p->open.n = 0;
    p->order = (struct order_check){.duration = UINT64_MAX, .offset = 0};
    p->broken.line = NULL;
    xpl_events_begin_chunk(&c, p->line, p->chunk);
    for (; c.index != c.stop && !p->failed; c.index++, first = false) {
        struct seen e;
        if (XPL_UNLIKELY(!see_next(p->plan, p->line, &c, &e))) {
            p->broken = c;
            break;
        }
        if (first) p->first_offset = e.raw.offset_ps, p->first_duration = e.raw.duration_ps;
        const bool ties = e.raw.offset_ps == p->order.offset;
        if (p->plan->has_regions) check_order(&p->order, &e.raw);
        if (XPL_LIKELY(e.mask == 0) && !(e.role & ~(uint32_t)(ROLE_KNOWN | ROLE_IMPLICIT))) {
            add_plain(p, &q, span_of(p->line, e.raw.offset_ps, e.raw.duration_ps));
            continue;
        }
        struct heard *const h = xpl_vec_push(&p->arena, &p->events);
        if (h)
            *h =
                (struct heard){.before = q,
                               .mask = e.mask | (ties ? HEARD_TIES : 0) | (first ? HEARD_FIRST : 0),
                               .role = e.role,
                               .at = e.at,
                               .offset = e.raw.offset_ps,
                               .duration = e.raw.duration_ps,
                               .stats = e.raw.stats,
                               .end = e.raw.end};
        else
            p->failed = true;
        q = (struct quiet){0};
    }
    p->last = q;
}

// *open: where its open spans begin; moves behind them.
static void pass_quiet(struct state *st, const struct quiet *q, const struct piece *p,
                       size_t *open) {
    if (q->n_open == 0) return;
    pop_until_includes(st, (struct span){q->begin, q->end});
    for (uint32_t i = 0; st->stack.n && i < q->n_open; i++)
        push_plain(st, p->open.v[*open + i]);
    *open += q->n_open;
}

static xpl_status_t take_event(struct state *st, struct order_check *order, uint64_t previous,
                               const struct heard *h) {
    const struct xpl_raw_event raw = {
        .offset_ps = h->offset, .duration_ps = h->duration, .stats = h->stats, .end = h->end};
    if (st->plan->has_regions && (h->role & (ROLE_START_REGION | ROLE_STOP_REGION))) {
        const bool ties = h->mask & HEARD_FIRST ? h->offset == previous : h->mask & HEARD_TIES;
        pass_marker(st, order, &raw, h->at, h->role, ties ? h->offset : ~h->offset);
    }
    process_event(st, &raw, h->at, h->mask & ~(HEARD_TIES | HEARD_FIRST), h->role);
    return st->failed ? scan_failed(st->s, NULL) : XPL_OK;
}

static xpl_status_t take_chunk(struct state *st, struct order_check *order, const struct piece *p,
                               struct xpl_exec *exec) {
    size_t open = 0;
    const uint64_t previous = order->offset;
    if (p->failed) return scan_failed(st->s, NULL);
    XPL_TRY(begin_chunk(st, p->chunk, exec));
    check_order(order, &(struct xpl_raw_event){.offset_ps = p->first_offset,
                                               .duration_ps = p->first_duration});
    for (size_t i = 0; i < p->events.n; i++) {
        const struct heard *const h = &p->events.v[i];
        pass_quiet(st, &h->before, p, &open);
        XPL_TRY(take_event(st, order, previous, h));
    }
    pass_quiet(st, &p->last, p, &open);
    order->unsorted |= p->order.unsorted;
    order->offset = p->order.offset;
    order->duration = p->order.duration;
    if (p->broken.line) return scan_failed(st->s, &p->broken);
    return st->failed ? scan_failed(st->s, NULL) : XPL_OK;
}

enum { MAX_WAVE = 16 };
struct wide {
    struct state *st;
    struct xpl_exec *exec;
    struct order_check order;
    struct piece *read, *take; // chunks that are read now, and those that were before
    uint32_t n_read, n_take;
    xpl_status_t status;
};

static void run_wide(void *ctx, size_t i) {
    struct wide *const w = ctx;
    if (i > 0) {
        read_chunk(&w->read[i - 1]);
        return;
    }
    for (uint32_t k = 0; k < w->n_take && w->status == XPL_OK; k++)
        w->status = take_chunk(w->st, &w->order, &w->take[k], w->exec);
}

// As scan_in_order, and finds the same.
static xpl_status_t scan_wide(struct state *st, struct xpl_exec *exec, bool *ret_unsorted) {
    const uint32_t width = exec->width < MAX_WAVE ? exec->width : MAX_WAVE;
    struct piece *const pieces = xpl_arena_zalloc(&st->scratch, 2 * width * sizeof *pieces);
    if (!pieces) return scan_failed(st->s, NULL);
    struct wide w = {st, exec, {.duration = UINT64_MAX}, pieces, pieces + width, 0, 0, XPL_OK};
    for (uint32_t i = 0; i < 2 * width; i++) {
        pieces[i].plan = st->plan, pieces[i].line = st->line;
        xpl_arena_init(&pieces[i].arena, st->scratch.limit);
    }
    for (uint32_t chunk = 0; w.status == XPL_OK;) {
        for (w.n_read = 0; w.n_read < width && chunk < st->line->n_chunks; w.n_read++)
            w.read[w.n_read].chunk = chunk++;
        if (w.n_read + w.n_take == 0) break;
        xpl_exec_run(exec, 1 + w.n_read, run_wide, &w);
        struct piece *const done = w.read;
        w.read = w.take, w.take = done;
        w.n_take = w.n_read;
    }
    for (uint32_t i = 0; i < 2 * width; i++)
        xpl_arena_fini(&pieces[i].arena);
    *ret_unsorted = w.order.has_regions && w.order.unsorted;
    return w.status;
}

// ---- a line out of order ----

static void visit_region(struct state *st, const struct placed *r) {
    pop_until_includes(st, span_of(st->line, r->offset, r->duration));
    st->lg->regions[st->lg->n_regions++] =
        (struct explicit_region){{r->offset, r->duration}, top_scope(st)};
}

static xpl_status_t scan_sorted(struct state *st) {
    struct scan *const s = st->s;
    struct placed_list list;
    uint32_t *const scope = xpl_arena_array(&s->nodes_arena, st->line->n_events, sizeof *scope);
    if (!scope) return scan_failed(s, NULL);
    XPL_TRY(xpl_grp_place_events(st->plan, st->line, &st->scratch, &list, &s->err));
    st->lg->n_regions = 0;
    st->lg->regions = xpl_arena_array(&s->nodes_arena, list.n_regions, sizeof *st->lg->regions);
    if (!st->lg->regions) return scan_failed(s, NULL);
    st->lg->explicit_scope = scope;
    st->settle_all = true; // cursors go in file order and cannot repeat this nesting
    for (size_t i = 0; i < list.v.n; i++) {
        const struct placed *const e = &list.v.v[i];
        struct xpl_raw_event raw;
        uint32_t mask;
        if (e->index == PLACED_REGION) {
            visit_region(st, e);
            continue;
        }
        if (!xpl_raw_event_at(st->line, e->at, &raw) || !xpl_grp_stats_mask(st->plan, &raw, &mask))
            return scan_failed(s, NULL);
        const uint32_t role = st->plan->role_of[xpl_event_md_at(st->plan->plane, raw.md_id)];
        scope[e->index] = visit(st, &raw, e->at, mask, role);
        if (st->failed) return scan_failed(s, NULL);
    }
    return XPL_OK;
}

// One line; *ret_unsorted as for scan_in_order.
static xpl_status_t scan_line(struct scan *s, struct line_groups *lg, struct xpl_exec *exec,
                              bool *ret_unsorted) {
    struct state st;
    xpl_status_t status = XPL_OK;
    begin_state(&st, s, lg);
    lg->first_node = (uint32_t)s->nodes.n;
    lg->chunk_tops = NULL;
    *ret_unsorted = false;
    if (lg->kind == LINE_EXPLICIT) {
        status = scan_sorted(&st);
    } else {
        if (lg->line->n_chunks > 1) {
            lg->chunk_tops =
                xpl_arena_array(&s->nodes_arena, lg->line->n_chunks, sizeof *lg->chunk_tops);
            if (!lg->chunk_tops) status = scan_failed(s, NULL);
        }
        const bool wide = s->wide && lg->line->n_chunks > 1;
        if (status == XPL_OK) status = (wide ? scan_wide : scan_in_order)(&st, exec, ret_unsorted);
    }
    lg->n_nodes = (uint32_t)s->nodes.n - lg->first_node;
    xpl_arena_fini(&st.scratch);
    return status;
}

// Lines out of order show only when they were scanned; then all is scanned once more.
void xpl_grp_scan_lines(struct scan *s, struct xpl_exec *exec) {
    const size_t limit = s->links_arena.limit;
    for (bool again = true; again && s->status == XPL_OK;) {
        again = false;
        xpl_grp_scan_fini(s);
        xpl_arena_init(&s->nodes_arena, limit);
        xpl_arena_init(&s->links_arena, limit);
        init_lists(s);
        for (uint32_t i = 0; i < s->n_lines && s->status == XPL_OK; i++) {
            bool unsorted;
            s->status = scan_line(s, &s->lines[i], exec, &unsorted);
            if (unsorted) s->lines[i].kind = LINE_EXPLICIT;
            again |= unsorted;
        }
    }
}

void xpl_grp_count_key(const struct key_counts *k, uint64_t key) {
    size_t lo = 0, hi = k->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (k->keys[mid] == key) {
            atomic_fetch_add_explicit(&k->counts[mid], 1, memory_order_relaxed);
            return;
        }
        if (k->keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
}

static void count_line(const struct scan *s, const struct xpl_line *line,
                       const struct key_counts *k) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    xpl_events_begin(&c, line);
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        const struct xpl_raw_event raw = {.stats = ev.stats.p, .end = ev.stats.end};
        struct scan_stats ss;
        struct event_links links;
        if (!xpl_grp_read_stats(s->plan, &raw, &ss)) return;
        xpl_grp_event_links(s->plan, line, &ss, s->plan->role_of[ev.md], &links);
        if (links.consumer) xpl_grp_count_key(k, links.consumer_key);
    }
}

void xpl_grp_count_consumers(const struct scan *s, const struct key_counts *k) {
    for (uint32_t i = 0; i < s->n_lines; i++)
        count_line(s, s->lines[i].line, k);
}

// ---- a TPU plane [ConnectIntraThreadTPU] ----

const struct xpl_line *xpl_grp_tpu_line(const struct xpl_plane *p,
                                        const struct xpl_line **ret_steps) {
    const struct xpl_line *steps = NULL, *modules = NULL;
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const xpl_str_t name = p->lines[i].name;
        if (xpl_str_eq(name, XPL_STR(XPL_LINE_STEPS)) ||
            xpl_str_eq(name, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS)))
            steps = &p->lines[i];
        else if (xpl_str_eq(name, XPL_STR(XPL_LINE_XLA_MODULES)) ||
                 xpl_str_eq(name, XPL_STR(XPL_LINE_SPARSE_CORE_MODULES)))
            modules = &p->lines[i];
    }
    if (ret_steps) *ret_steps = steps;
    if (steps && steps->n_events) return steps;
    return modules && modules->n_events ? modules : NULL;
}

static void tpu_links(struct state *st, const struct xpl_line *line, const struct scan_stats *ss,
                      uint32_t role, uint32_t node) {
    struct event_links links;
    xpl_grp_event_links(st->plan, line, ss, role, &links);
    if (links.producer) push_link(st, &st->s->producers, links.producer_key, node);
    if (links.consumer)
        push_link(st, &st->s->consumers, links.consumer_key,
                  LINK_CONSUMER | node << LINK_NODE_SHIFT);
}

static xpl_status_t tpu_nodes(struct state *st, struct span *spans) {
    struct scan *const s = st->s;
    struct xpl_event_cursor c;
    xpl_events_begin(&c, st->line);
    for (; c.index != c.stop; c.index++) {
        xpl_bytes_t message;
        struct xpl_raw_event raw;
        struct scan_stats ss;
        c.p = xpl_find_message(c.p, c.end, XLINE_EVENTS);
        const uint8_t *p = c.p;
        if (xpl_next_message(&p, c.end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
            !xpl_raw_event_read(message, c.end, &raw) || !xpl_grp_read_stats(s->plan, &raw, &ss))
            return scan_failed(s, &c);
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        uint32_t flags = node_flags(&ss, role) | NODE_CONSUMES | NODE_IMPLICIT;
        if (role & ROLE_EAGER) flags |= eager_flags(st, &raw);
        const uint32_t self = new_node(st, (uint64_t)(c.p - st->line->message.ptr), 0, 0, flags);
        if (st->failed) return scan_failed(s, NULL);
        spans[c.index] = span_of(st->line, raw.offset_ps, raw.duration_ps);
        tpu_links(st, st->line, &ss, role, self - 1);
        if (!(role & ROLE_KNOWN) && (ss.mask & SC_BIT(SC_CORRELATION)))
            PUSH(st, pairs, struct pair, {any_value(&ss, SC_CORRELATION), self - 1, PAIR_KERNEL});
        c.p = p;
    }
    return st->failed ? scan_failed(s, NULL) : XPL_OK;
}

// Links of the other lines go to the grouping event that encloses them.
static xpl_status_t tpu_credit(struct state *st, const struct xpl_line *line,
                               const struct span *spans, struct xpl_exec *exec) {
    struct scan *const s = st->s;
    const uint64_t n = st->line->n_events;
    struct xpl_event_cursor c;
    uint64_t parent = 0;
    xpl_events_begin(&c, line);
    for (; c.index != c.stop; c.index++) {
        xpl_bytes_t message;
        struct xpl_raw_event raw;
        struct scan_stats ss;
        if ((c.index & 4095) == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(&s->err, XPL_CANCELLED, "cancelled");
        c.p = xpl_find_message(c.p, c.end, XLINE_EVENTS);
        const uint8_t *p = c.p;
        if (xpl_next_message(&p, c.end, XLINE_EVENTS, &message) != XPL_WIRE_FIELD ||
            !xpl_raw_event_read(message, c.end, &raw) || !xpl_grp_read_stats(s->plan, &raw, &ss))
            return scan_failed(s, &c);
        const struct span span = span_of(line, raw.offset_ps, raw.duration_ps);
        while (parent < n && spans[parent].end <= span.begin)
            parent++;
        if (parent == n) break;
        const uint32_t role = s->plan->role_of[xpl_event_md_at(s->plan->plane, raw.md_id)];
        if ((ss.mask || role) && span_includes(spans[parent], span))
            tpu_links(st, line, &ss, role, (uint32_t)parent);
        if (st->failed) return scan_failed(s, NULL);
        c.p = p;
    }
    return XPL_OK;
}

static bool has_tpu_links(const struct plan *p) {
    return (p->classes & (SC_PRODUCER | SC_CONSUMER | SC_BIT(SC_RUN_ID) | SC_BIT(SC_REQUEST_ID))) ||
           (p->roles & (ROLE_EXECUTOR | ROLE_TPU_EXECUTE));
}

void xpl_grp_scan_tpu(struct scan *s, struct xpl_exec *exec) {
    struct state st;
    const struct xpl_plane *const plane = s->plan->plane;
    begin_state(&st, s, &s->lines[0]);
    init_lists(s);
    struct span *const spans = xpl_arena_array(&st.scratch, st.line->n_events, sizeof *spans);
    s->status = spans ? tpu_nodes(&st, spans) : scan_failed(s, NULL);
    for (uint32_t i = 0; s->status == XPL_OK && i < plane->n_lines; i++)
        if (&plane->lines[i] != st.line && has_tpu_links(s->plan))
            s->status = tpu_credit(&st, &plane->lines[i], spans, exec);
    s->lines[0].first_node = 0;
    s->lines[0].n_nodes = (uint32_t)s->nodes.n;
    xpl_arena_fini(&st.scratch);
}
