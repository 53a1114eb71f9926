// SPDX-License-Identifier: Apache-2.0
#include "analysis/grouping/scan/line_state.h"

#include "analysis/grouping/groups.h"
#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/metadata.h"

void xpl_grp_push_link(struct line_state *st, struct seg_list *l, uint64_t key, uint32_t end) {
    struct link *const r = xpl_grp_seg_push(&st->s->links_arena, l);
    if (r)
        *r = (struct link){(uint32_t)key, (uint32_t)(key >> 32), end};
    else
        st->failed = true;
}

static void push_root(struct line_state *st, struct root root) {
    struct root *const r = xpl_grp_seg_push(&st->s->links_arena, &st->s->roots);
    if (r)
        *r = root;
    else
        st->failed = true;
}

static void push_launch(struct line_state *st, struct launch launch) {
    struct launch *const l = xpl_grp_seg_push(&st->s->links_arena, &st->s->launches);
    if (l)
        *l = launch;
    else
        st->failed = true;
}

void xpl_grp_push_pair(struct line_state *st, struct pair pair) {
    struct pair *const p = xpl_grp_seg_push(&st->s->links_arena, &st->s->pairs);
    if (p)
        *p = pair;
    else
        st->failed = true;
}

static void push_tf_data_id(struct line_state *st, int64_t id) {
    int64_t *const slot = xpl_grp_seg_push(&st->s->links_arena, &st->s->tf_data_ids);
    if (slot)
        *slot = id;
    else
        st->failed = true;
}

uint32_t xpl_grp_new_node(struct line_state *st, uint64_t at, uint32_t parent, uint32_t gap,
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
    *ret = stats_have(&e->ss, SC_BIT(SC_IS_ROOT)) ? (int32_t)stats_int(&e->ss, SC_IS_ROOT) : 1;
    return stats_have(&e->ss, SC_BIT(SC_IS_ROOT)) || (e->role & ROLE_TRACE_CONTEXT);
}

uint32_t xpl_grp_node_flags(const struct scan_stats *ss, uint32_t role) {
    uint32_t f = 0;
    if (role & ROLE_EXECUTOR) f |= NODE_EXECUTOR;
    if (role & ROLE_EAGER) f |= NODE_EAGER;
    if (role & ROLE_IMPLICIT) f |= NODE_IMPLICIT;
    if (stats_have(ss, SC_BIT(SC_GRAPH_TYPE))) f |= NODE_GRAPH_TYPE;
    if (stats_have(ss, SC_BIT(SC_ITER_NUM))) f |= NODE_ITER_NUM;
    if (stats_have(ss, SC_BIT(SC_STEP_NUM))) f |= NODE_STEP_NUM;
    return f;
}

static bool is_async(const struct event *e) {
    return stats_have(&e->ss, SC_BIT(SC_IS_ASYNC)) && stats_int(&e->ss, SC_IS_ASYNC) != 0;
}
static bool is_kernel(const struct event *e) {
    return !(e->role & ROLE_KNOWN) && stats_have(&e->ss, SC_BIT(SC_CORRELATION));
}

static uint64_t executor_key(const struct scan_stats *ss) {
    return xpl_grp_executor_key(stats_int_or_uint(ss, SC_STEP_ID),
                                stats_int_or_uint(ss, SC_ITER_NUM));
}

// Of an EagerExecute: by its own statistics.
uint32_t xpl_grp_eager_flags(const struct line_state *st, const struct xpl_raw_event *raw) {
    const struct xpl_stats stats = {st->line->plane, raw->stats, raw->end, XEVENT_STATS};
    return NODE_IN_EAGER | (xpl_grp_runs_eagerly(stats) ? NODE_IS_EAGER : 0);
}

// Makes a node of an event whose stats and links were read.  Returns node + 1.
static uint32_t make_node(struct line_state *st, const struct event *e, uint32_t parent,
                          uint32_t gap) {
    const uint32_t ids = SC_BIT(SC_STEP_ID) | SC_BIT(SC_ITER_NUM);
    uint32_t flags = xpl_grp_node_flags(&e->ss, e->role);
    int32_t level;
    const bool root = root_level(e, &level), kernel = st->kernel_device && is_kernel(e);
    const bool iterator = (e->role & ROLE_ITERATOR) && stats_have(&e->ss, ids);
    if (root) flags |= NODE_ROOT;
    if (is_async(e)) flags |= NODE_ASYNC;
    if (e->role & ROLE_EAGER) flags |= xpl_grp_eager_flags(st, e->raw);
    if (e->links.consumer || iterator || kernel) flags |= NODE_CONSUMES;
    const uint32_t self = xpl_grp_new_node(st, e->at, parent, gap, flags);
    if (root)
        push_root(st, (struct root){.node = self - 1,
                                    .level = level,
                                    .begin = e->span.begin,
                                    .step = stats_int(&e->ss, SC_STEP_ID),
                                    .has_step = stats_have(&e->ss, SC_BIT(SC_STEP_ID))});
    if (e->links.consumer)
        xpl_grp_push_link(st, &st->s->consumers, e->links.consumer_key,
                          LINK_CONSUMER | (self - 1) << LINK_NODE_SHIFT);
    if (kernel)
        xpl_grp_push_pair(
            st, (struct pair){stats_int_or_uint(&e->ss, SC_CORRELATION), self - 1, PAIR_KERNEL});
    if (iterator)
        xpl_grp_push_pair(st, (struct pair){executor_key(&e->ss), self - 1, PAIR_ITERATOR});
    if (st->s->keep_executors && (e->role & ROLE_EXECUTOR) && stats_have(&e->ss, ids))
        xpl_grp_push_link(st, &st->s->executors, executor_key(&e->ss), self - 1);
    return self;
}

static bool read_event(const struct line_state *st, const struct xpl_raw_event *raw, uint64_t at,
                       uint32_t role, struct event *e) {
    e->at = at;
    e->span = plan_span(st->plan, st->line, raw->offset_ps, raw->duration_ps);
    e->raw = raw;
    e->role = role;
    if (!xpl_grp_read_stats(st->plan, raw, &e->ss)) return false;
    xpl_grp_event_links(st->plan, st->line, &e->ss, role, &e->links);
    return true;
}

static void resolve_entry(struct line_state *st, struct open_event *entry, uint32_t parent) {
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
static uint32_t grp_resolve_pending(struct line_state *st) {
    size_t i = st->n_resolved < st->stack.n ? st->n_resolved : st->stack.n;
    uint32_t scope = i ? st->stack.v[i - 1].scope : 0;
    for (; i < st->stack.n; i++) {
        if (st->stack.v[i].pending) resolve_entry(st, &st->stack.v[i], scope);
        scope = st->stack.v[i].scope;
    }
    st->n_resolved = st->stack.n;
    return scope;
}

// ---- one event ----

// Plain events between an event that is next and the top of the stack.
static uint32_t gap_to_top(const struct line_state *st) {
    if (st->stack.n == 0) return 0;
    const size_t gap = st->plain.n - st->stack.v[st->stack.n - 1].plain;
    return gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

static void push_entry(struct line_state *st, struct open_event e) {
    if (st->stack.n == 0) st->plain.n = 0;
    if (st->n_resolved > st->stack.n) st->n_resolved = st->stack.n;
    e.plain = st->plain.n;
    struct open_event *const top = xpl_vec_push(&st->scratch, &st->stack);
    if (top)
        *top = e;
    else
        st->failed = true;
}

// The possible nature of an event, only by the kinds of its stats and its role.
struct nature {
    bool node;     // it must be a node
    bool pending;  // it may become one
    bool producer; // it may pass on a group
    bool launch;   // it launches a kernel
};

static struct nature nature_of(const struct line_state *st, uint32_t mask, uint32_t role) {
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

// Whether its stats must be read now.  Events that do not contain it were popped, unless it may be
// asynchronous.
static bool must_read(const struct line_state *st, struct nature n, uint32_t mask, uint32_t role) {
    return n.node || n.launch || (mask & SC_BIT(SC_IS_ASYNC)) ||
           (role & (ROLE_TF_DATA | ROLE_EXECUTOR)) || (n.pending && st->none_pending) ||
           (n.producer && (n.pending || st->stack.n));
}

static void note_ids(struct line_state *st, const struct event *e) {
    if (!stats_have(&e->ss, SC_BIT(SC_STEP_ID))) return;
    if (e->role & ROLE_TF_DATA) push_tf_data_id(st, stats_int(&e->ss, SC_STEP_ID));
    if ((e->role & ROLE_EXECUTOR) && stats_have(&e->ss, SC_BIT(SC_ITER_NUM)))
        st->s->has_loops |= stats_int(&e->ss, SC_ITER_NUM) != 0;
}

static void show_event(struct line_state *st, const struct xpl_raw_event *raw, uint32_t mask,
                       uint32_t role, uint64_t begin, const struct scan_stats *ss) {
    struct xpl_watched_event ev;
    ev.md_id = raw->md_id;
    ev.begin_ps = begin;
    ev.duration_ps = raw->duration_ps;
    ev.stats = (struct xpl_stats){st->line->plane, raw->stats, raw->end, XEVENT_STATS};
    ev.marked = (role & ROLE_MARKED) != 0;
    ev.produces = (mask & SC_PRODUCER) == SC_PRODUCER;
    ev.consumes = (mask & SC_CONSUMER) == SC_CONSUMER;
    ev.read = ss->mask & (SC_PRODUCER | SC_CONSUMER);
    if (ev.read && ev.produces) {
        ev.produces = stats_have(ss, SC_PRODUCER);
        ev.producer_type = ev.produces ? stats_int_or_uint(ss, SC_PRODUCER_TYPE) : 0;
        ev.producer_id = ev.produces ? stats_int_or_uint(ss, SC_PRODUCER_ID) : 0;
    }
    if (ev.read && ev.consumes) {
        ev.consumes = stats_have(ss, SC_CONSUMER);
        ev.consumer_type = ev.consumes ? stats_int_or_uint(ss, SC_CONSUMER_TYPE) : 0;
        ev.consumer_id = ev.consumes ? stats_int_or_uint(ss, SC_CONSUMER_ID) : 0;
    }
    if (!st->watch->event(st->watch->ctx, st->line, &ev)) st->failed = true;
}

static inline bool is_type_watched(const struct line_state *st, uint64_t type) {
    return type < 32 && (st->watch->types >> type & 1);
}

// Whether one of the stats `wanted`, which are types, says one that is watched; yes in doubt.
static bool may_say_type(const struct line_state *st, const struct xpl_raw_event *raw,
                         uint32_t wanted) {
    struct xpl_fast_stat s;
    for (const uint8_t *p = raw->stats; p != raw->end && wanted; p += s.len) {
        if (XPL_UNLIKELY(!xpl_fast_stat_head(p, raw->end, XPL_TAG_FIELD4_LEN, &s)) ||
            XPL_UNLIKELY(s.id >= sizeof st->plan->by_id))
            return true;
        const uint32_t bit = SC_BIT(st->plan->by_id[s.id]) & wanted;
        if (XPL_LIKELY(!bit)) continue;
        if (XPL_UNLIKELY(p + s.len - s.value != 2) || XPL_UNLIKELY(s.value[1] >= 0x80) ||
            is_type_watched(st, s.value[1]))
            return true;
        wanted &= ~bit;
    }
    return false;
}

// Whether it produces or consumes for a context of a type that is watched; yes in doubt.
static bool is_link_watched(const struct line_state *st, const struct xpl_raw_event *raw,
                            uint32_t mask, const struct scan_stats *ss) {
    const bool produces = (mask & SC_PRODUCER) == SC_PRODUCER;
    const bool consumes = (mask & SC_CONSUMER) == SC_CONSUMER;
    if (!produces && !consumes) return false;
    if (ss->mask & (SC_PRODUCER | SC_CONSUMER))
        return (produces && is_type_watched(st, stats_int_or_uint(ss, SC_PRODUCER_TYPE))) ||
               (consumes && is_type_watched(st, stats_int_or_uint(ss, SC_CONSUMER_TYPE)));
    return may_say_type(st, raw,
                        (produces ? SC_BIT(SC_PRODUCER_TYPE) : 0) |
                            (consumes ? SC_BIT(SC_CONSUMER_TYPE) : 0));
}

static inline bool is_watched(const struct line_state *st, const struct xpl_raw_event *raw,
                              uint32_t mask, uint32_t role, const struct scan_stats *ss) {
    return (role & ROLE_MARKED & ~st->plain_roles) || is_link_watched(st, raw, mask, ss);
}

// An event that is not plain.  Returns the scope it is in: itself when it becomes a node.
uint32_t xpl_grp_process_event(struct line_state *st, const struct xpl_raw_event *raw, uint64_t at,
                               uint32_t mask, uint32_t role) {
    const struct nature n = nature_of(st, mask, role);
    const struct span span = plan_span(st->plan, st->line, raw->offset_ps, raw->duration_ps);
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
    if (st->watch && is_watched(st, raw, mask, role, &e.ss))
        show_event(st, raw, mask, role, span.begin, &e.ss);
    const bool async = is_async(&e);
    if (!async && (mask & SC_BIT(SC_IS_ASYNC))) pop_until_includes(st, span);
    const bool passes = e.links.producer || n.launch;
    // (An asynchronous consumer that passes nothing on is a leaf.)
    const bool self = n.node || (n.pending && (passes || st->none_pending));
    const uint32_t gap = async ? 0 : gap_to_top(st);
    uint32_t scope = 0;
    // (Nodes are numbered in the order of the line, so open events come first in any case.)
    if (self || (passes && !async)) scope = grp_resolve_pending(st);
    if (async) scope = 0;
    if (self) scope = make_node(st, &e, scope, gap);
    if (e.links.producer && scope) {
        const uint32_t far = self ? 0 : gap < LINK_MAX_GAP ? gap + 1 : LINK_MAX_GAP;
        xpl_grp_push_link(st, &st->s->producers, e.links.producer_key,
                          (scope - 1) << LINK_NODE_SHIFT | far);
    }
    if (n.launch) push_launch(st, (struct launch){stats_int_or_uint(&e.ss, SC_CORRELATION), scope});
    if (async) return scope;
    if (self || n.pending)
        push_entry(st, (struct open_event){.span = span,
                                           .at = at,
                                           .gap = gap,
                                           .pending = !self,
                                           .scope = self ? scope : top_scope(st)});
    else if (st->stack.n)
        push_plain(st, span);
    return top_scope(st);
}

// ---- a line ----

void xpl_grp_begin_line(struct line_state *st, struct scan *s, struct line_groups *lg) {
    *st = (struct line_state){.s = s,
                              .plan = s->plan,
                              .lg = lg,
                              .line = lg->line,
                              .plain_roles = ROLE_KNOWN | ROLE_IMPLICIT | ROLE_MARKED};
    xpl_arena_init(&st->scratch, s->links_arena.limit);
    st->kernel_host = s->plan->plane->kind == XPL_PLANE_HOST_THREADS;
    st->kernel_device = !st->kernel_host && (s->plan->classes & SC_BIT(SC_CORRELATION));
}

xpl_status_t xpl_grp_begin_chunk(struct line_state *st, uint32_t chunk, struct xpl_exec *exec) {
    if (xpl_exec_cancelled(exec)) XPL_RETURN_ERROR(&st->s->err, XPL_CANCELLED, "cancelled");
    if (st->lg->chunk_tops) st->lg->chunk_tops[chunk] = grp_resolve_pending(st);
    return XPL_OK;
}
