// SPDX-License-Identifier: Apache-2.0
// The result of grouping for one event after the other.  A cursor repeats the nesting of the scan,
// with only the nodes on its stack, so that no data is stored per event.
#include "analysis/grouping/cursor.h"

#include <stdatomic.h>

#include "analysis/grouping/graph/relations.h"
#include "analysis/grouping/graph/result.h"
#include "analysis/grouping/plan/event_links.h"
#include "analysis/grouping/plan/event_stats.h"
#include "analysis/grouping/plan/regions.h"
#include "analysis/xplane/line_index.h"
#include "base/vec.h"

struct frame {
    struct span span;
    uint32_t label; // of an event inside it: LABEL_* | group
};

struct xpl_group_cursor {
    const struct xpl_groups *g;
    const struct plane_groups *pg;
    const struct line_groups *lg; // NULL: the line has no nodes
    const struct xpl_line *line;
    enum nesting_kind kind;
    bool fill; // groups that come from neighbours: runs of a GPU, steps of a TPU
    bool failed;
    bool relates;            // collects the relations of events that are not nodes
    bool consumers, kernels; // possible kinds of the line's events
    uint32_t node, end_node; // next node, and the end of the line's
    uint32_t label_hint;
    XPL_VEC(struct frame) stack;
    struct region_list regions;
    XPL_VEC(struct xpl_region_event) added;
    size_t run; // GPU: the run last used
    // Overlap [GroupQueue, XEventContextTracker].
    size_t span; // current event of the grouping line + 1
    bool cached;
    struct xpl_arena *arena;
    struct xpl_group_quick quick;
};

// lg: the line's, or NULL when it was not scanned.
static enum nesting_kind kind_of(const struct xpl_groups *g, const struct plane_groups *pg,
                                 const struct line_groups *lg) {
    if (!g->computed) return LINE_NONE;
    if (lg) return lg->kind;
    if (pg->plan.tpu || !(pg->plan.consumes || pg->plan.kernels)) return LINE_NONE;
    // Without nodes, events can still be linked to other lines.
    return g->n_labels || g->launch_scopes || g->launches.n ? LINE_NESTED : LINE_NONE;
}

bool xpl_groups_can_start_at_chunk(const struct xpl_groups *g, const struct xpl_line *line) {
    const struct plane_groups *const pg = &g->planes[line->plane->index];
    const struct line_groups *const lg = xpl_grp_find_line(pg, line);
    const enum nesting_kind kind = kind_of(g, pg, lg);
    if (line->n_chunks > 1 && pg->n_spans) return false; // overlaps depend on earlier events
    return line->n_chunks < 2 || kind == LINE_NONE || kind == LINE_EXPLICIT ||
           (kind == LINE_NESTED && lg);
}

static void push_frame(struct xpl_group_cursor *c, struct span span, uint32_t label) {
    struct frame *const f = xpl_vec_push(c->arena, &c->stack);
    if (f)
        *f = (struct frame){span, label};
    else
        c->failed = true;
}

// First node of the line that stands at `at` or after it.
static uint32_t first_node_at(const struct xpl_groups *g, const struct line_groups *lg,
                              uint64_t at) {
    uint32_t lo = lg->first_node, hi = lg->first_node + lg->n_nodes;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (node_at(&g->nodes[mid]) < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// Rebuilds the stack from the innermost node open before a chunk.
static bool restore_stack(struct xpl_group_cursor *c, uint32_t top) {
    uint32_t depth = 0;
    for (uint32_t i = top; i; i = c->g->nodes[i - 1].parent)
        depth++;
    if (!xpl_vec_reserve(c->arena, &c->stack, depth)) return false;
    c->stack.n = depth;
    for (uint32_t i = top; i; i = c->g->nodes[i - 1].parent) {
        const struct line_groups *lg;
        struct xpl_raw_event raw = {0};
        (void)xpl_grp_node_event(c->g, i - 1, &lg, &raw);
        c->stack.v[--depth] =
            (struct frame){plan_span(&c->pg->plan, c->line, raw.offset_ps, raw.duration_ps),
                           xpl_grp_node_label(&c->g->nodes[i - 1])};
    }
    return true;
}

static void begin_quick(struct xpl_group_cursor *c) {
    const struct plan *const plan = &c->pg->plan;
    const bool own = plan->own_groups || plan->own_step_names || plan->own_eager;
    const bool alone = !c->pg->n_runs && !c->pg->n_spans;
    const bool nested = c->kind == LINE_NESTED && c->lg && plan->linked;
    c->quick = (struct xpl_group_quick){.on = alone && !own && (nested || c->kind == LINE_NONE),
                                        .stateless = alone && c->kind == LINE_NONE,
                                        .next_at = UINT64_MAX,
                                        .end = UINT64_MAX,
                                        .special = nested ? plan->linked : NULL};
}

// Inside of the innermost node all that is plain has its label.
static void set_quick(struct xpl_group_cursor *c) {
    struct xpl_group_quick *const q = &c->quick;
    const struct frame *const top = c->stack.n ? &c->stack.v[c->stack.n - 1] : NULL;
    q->next_at = c->node == c->end_node ? UINT64_MAX : node_at(&c->g->nodes[c->node]);
    q->begin = top ? top->span.begin : 0;
    q->end = top ? top->span.end : UINT64_MAX;
    q->group_id = top ? top->label & LABEL_GROUP : LABEL_NO_GROUP;
    q->has_group = q->group_id != LABEL_NO_GROUP;
}

const struct xpl_group_quick *xpl_group_cursor_quick(const struct xpl_group_cursor *c) {
    return &c->quick;
}

xpl_status_t xpl_group_cursor_new_at(const struct xpl_groups *g, const struct xpl_line *line,
                                     uint32_t chunk, struct xpl_arena *arena,
                                     struct xpl_group_cursor **ret, struct xpl_error *err) {
    const struct plane_groups *const pg = &g->planes[line->plane->index];
    struct xpl_group_cursor *const c = xpl_arena_zalloc(arena, sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "event groups");
    c->g = g, c->pg = pg, c->line = line, c->arena = arena;
    c->lg = xpl_grp_find_line(pg, line);
    c->kind = kind_of(g, pg, c->lg);
    c->fill = true;
    c->kernels = pg->plan.kernels && (g->launch_scopes || g->launches.n);
    c->consumers = g->n_labels && pg->plan.consumes;
    uint64_t at = 0;
    if (chunk > 0 && chunk < line->n_chunks)
        at = (uint64_t)(line->chunks[chunk].p - line->message.ptr);
    if (c->lg) {
        c->node = first_node_at(g, c->lg, at);
        c->end_node = c->lg->first_node + c->lg->n_nodes;
    }
    if (at && c->kind == LINE_NESTED && c->lg->chunk_tops &&
        !restore_stack(c, c->lg->chunk_tops[chunk]))
        XPL_RETURN_OOM(err, "event groups");
    begin_quick(c);
    if (c->kind == LINE_NESTED) set_quick(c);
    *ret = c;
    return XPL_OK;
}

xpl_status_t xpl_group_cursor_new(const struct xpl_groups *g, const struct xpl_line *line,
                                  struct xpl_arena *arena, struct xpl_group_cursor **ret,
                                  struct xpl_error *err) {
    return xpl_group_cursor_new_at(g, line, 0, arena, ret, err);
}

void xpl_grp_cursor_no_fill(struct xpl_group_cursor *c) {
    c->fill = false;
}

void xpl_group_cursor_relate(struct xpl_group_cursor *c) {
    c->relates = c->g->relations != NULL;
}

bool xpl_group_cursor_ok(const struct xpl_group_cursor *c) {
    return !c->failed;
}

const struct xpl_region_event *xpl_group_cursor_regions(const struct xpl_group_cursor *c,
                                                        size_t *ret_n) {
    *ret_n = c->added.n;
    return c->added.v;
}

// ---- nesting ----

static void pop_until_includes(struct xpl_group_cursor *c, struct span span) {
    while (c->stack.n && !span_includes(c->stack.v[c->stack.n - 1].span, span))
        c->stack.n--;
}

static uint32_t top_label(const struct xpl_group_cursor *c) {
    return c->stack.n ? c->stack.v[c->stack.n - 1].label : LABEL_NO_GROUP;
}

// The node of the event + 1, 0 when it is none.
static uint32_t match_node(struct xpl_group_cursor *c, uint64_t at) {
    if (XPL_LIKELY(c->node == c->end_node) || XPL_LIKELY(node_at(&c->g->nodes[c->node]) != at))
        return 0;
    return ++c->node;
}

static void add_region(struct xpl_group_cursor *c, const struct region *r, uint32_t label) {
    if ((label & LABEL_GROUP) == LABEL_NO_GROUP) return;
    struct xpl_region_event *const out = xpl_vec_push(c->arena, &c->added);
    if (!out) {
        c->failed = true;
        return;
    }
    *out = (struct xpl_region_event){.begin_ps =
                                         (int64_t)span_of(c->line, r->offset, r->duration).begin,
                                     .duration_ps = (int64_t)r->duration,
                                     .group_id = label & LABEL_GROUP};
}

// The regions that begin with a StartRegion close the events that do not contain them.
static void open_regions(struct xpl_group_cursor *c, const struct xpl_event *ev) {
    struct xpl_raw_event raw;
    if (!xpl_raw_event_at(c->line, ev->at, &raw) ||
        !xpl_grp_region_starts(&c->pg->plan, c->line, &raw))
        return;
    c->regions.v.n = 0;
    if (!xpl_grp_regions_at(&c->pg->plan, c->line, ev->at, c->arena, &c->regions)) {
        c->failed = true;
        return;
    }
    for (size_t i = 0; i < c->regions.v.n; i++) {
        const struct region *const r = &c->regions.v.v[i];
        if (i == 0) pop_until_includes(c, span_of(c->line, r->offset, r->duration));
        add_region(c, r, top_label(c));
    }
}

static uint32_t least_group(uint32_t label, uint32_t other) {
    const uint32_t a = label & LABEL_GROUP, b = other & LABEL_GROUP;
    return (label & ~LABEL_GROUP) | (a < b ? a : b);
}

// Adds the label of a parent on another line.
static uint32_t join_label(uint32_t label, uint32_t other) {
    const uint32_t flags = label & LABEL_IN_EAGER ? label : other;
    return least_group((flags & ~LABEL_GROUP) | (label & LABEL_GROUP), other);
}

// The event's group is the least of `label`, which has all of its parents', and of the key's.
static void relate(struct xpl_group_cursor *c, uint32_t outer, uint32_t label, uint64_t key) {
    const struct link *v;
    const size_t n = xpl_grp_key_groups(c->g, key, &v);
    bool ok = xpl_grp_relate(c->g->relations, outer & LABEL_GROUP, label & LABEL_GROUP);
    for (size_t i = 0; i < n && ok; i++)
        ok = xpl_grp_relate(c->g->relations, v[i].end, label & LABEL_GROUP);
    if (!ok) c->failed = true;
}

// As linked_label, of an event that may be linked.
static uint32_t read_label(struct xpl_group_cursor *c, const struct xpl_event *ev,
                           const struct xpl_raw_event *raw, uint32_t label) {
    const struct plan *const plan = &c->pg->plan;
    const uint32_t role = plan->role_of[ev->md];
    struct scan_stats ss;
    struct event_links links;
    if (!xpl_grp_read_stats(plan, raw, &ss)) return label;
    const bool kernel = c->kernels && !(role & ROLE_KNOWN) && (ss.mask & SC_BIT(SC_CORRELATION));
    if (kernel) { // its launch is nearer than the source of the enclosing kernel
        const uint32_t launch = xpl_grp_launch_scope(c->g, ss.u[SC_CORRELATION]);
        if (launch) label = join_label(xpl_grp_node_label(&c->g->nodes[launch - 1]), label);
    }
    xpl_grp_event_links(plan, c->line, &ss, role, &links);
    if (links.consumer) {
        const uint32_t outer = label;
        label = join_label(label, xpl_grp_label(c->g, links.consumer_key, &c->label_hint));
        if (c->relates) relate(c, outer, label, links.consumer_key);
    }
    return label;
}

// The label from the parents of an event that is not a node, in a scope of that label.
XPL_INLINE uint32_t linked_label(struct xpl_group_cursor *c, const struct xpl_event *ev,
                                 uint32_t mask, const struct xpl_raw_event *raw, uint32_t label) {
    const uint32_t role = c->pg->plan.role_of[ev->md];
    const bool kernel = c->kernels && !(role & ROLE_KNOWN) && (mask & SC_BIT(SC_CORRELATION));
    if (!kernel && (!c->consumers || !xpl_grp_may_consume(mask, role))) return label;
    return read_label(c, ev, raw, label);
}

struct found {
    uint32_t label;
    uint32_t node; // + 1
    bool kernel;   // known to be one
};

// (Inline: through memory, the members of the result would be read before they are written.)
XPL_INLINE struct found next_nested(struct xpl_group_cursor *c, const struct xpl_event *ev) {
    const struct plan *const plan = &c->pg->plan;
    const uint32_t role = plan->role_of[ev->md];
    const struct span span =
        plan_span(plan, c->line, (uint64_t)ev->offset_ps, (uint64_t)ev->duration_ps);
    const struct xpl_raw_event raw = {.stats = ev->stats.p, .end = ev->stats.end};
    const uint32_t node = match_node(c, ev->at);
    uint32_t mask = 0;
    c->added.n = 0;
    if (node && (c->g->nodes[node - 1].flags & NODE_ASYNC))
        return (struct found){xpl_grp_node_label(&c->g->nodes[node - 1]), node, false};
    if ((c->consumers || c->kernels || (plan->classes & SC_BIT(SC_IS_ASYNC))) &&
        (!plan->linked || atomic_load_explicit(&plan->linked[ev->md], memory_order_relaxed)) &&
        !xpl_grp_quick_mask(plan, &raw, &mask) && !xpl_grp_stats_mask(plan, &raw, &mask))
        mask = 0;
    if (XPL_UNLIKELY(mask & SC_BIT(SC_IS_ASYNC)) && !node && xpl_grp_is_async(plan, &raw)) {
        const uint32_t label = linked_label(c, ev, mask, &raw, LABEL_NO_GROUP);
        return (struct found){label, 0, false};
    }
    if (XPL_UNLIKELY(role & ROLE_START_REGION) && c->stack.n) open_regions(c, ev);
    pop_until_includes(c, span);
    const bool kernel = c->kernels && !(role & ROLE_KNOWN) && (mask & SC_BIT(SC_CORRELATION));
    if (node) {
        const uint32_t label = xpl_grp_node_label(&c->g->nodes[node - 1]);
        push_frame(c, span, label);
        return (struct found){label, node, kernel};
    }
    const uint32_t outer = top_label(c);
    const uint32_t label = linked_label(c, ev, mask, &raw, outer);
    if (XPL_UNLIKELY(role & ROLE_EAGER)) { // it decides how its contents run
        const uint32_t flags =
            LABEL_IN_EAGER | (xpl_grp_runs_eagerly(ev->stats) ? LABEL_IS_EAGER : 0);
        push_frame(c, span, (label & LABEL_GROUP) | flags);
    } else if (label != outer) {
        push_frame(c, span, label);
    }
    return (struct found){label, 0, kernel};
}

static struct found next_explicit(struct xpl_group_cursor *c, const struct xpl_event *ev) {
    const uint32_t scope = c->lg->explicit_scope[ev->index];
    c->added.n = 0;
    if (ev->index == 0)
        for (size_t i = 0; i < c->lg->n_regions; i++) {
            const struct explicit_region *const r = &c->lg->regions[i];
            if (r->scope) add_region(c, &r->region, xpl_grp_node_label(&c->g->nodes[r->scope - 1]));
        }
    if (!scope) return (struct found){LABEL_NO_GROUP, 0, false};
    const bool self = node_at(&c->g->nodes[scope - 1]) == ev->at;
    return (struct found){xpl_grp_node_label(&c->g->nodes[scope - 1]), self ? scope : 0, false};
}

// ---- GPU ----

// True when an event comes before the first event of a run, in the order of time.
static bool before_run(const struct xpl_group_cursor *c, const struct xpl_event *ev,
                       const struct run *r) {
    const uint64_t begin = (uint64_t)xpl_event_begin_ps(c->line, ev);
    if (begin != r->begin) return begin < r->begin;
    if ((uint64_t)ev->duration_ps != r->duration) return (uint64_t)ev->duration_ps < r->duration;
    return c->line->index < r->order;
}

static const struct run *run_before(struct xpl_group_cursor *c, const struct xpl_event *ev) {
    const struct run *const v = c->pg->runs;
    size_t lo = 0, hi = c->pg->n_runs; // runs [0, lo) begin before the event
    if (c->run < hi && !before_run(c, ev, &v[c->run])) {
        lo = c->run + 1;
        if (lo == hi || before_run(c, ev, &v[lo])) return &v[c->run];
    }
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (before_run(c, ev, &v[mid]))
            hi = mid;
        else
            lo = mid + 1;
    }
    if (lo == 0) return NULL;
    c->run = lo - 1;
    return &v[lo - 1];
}

// ---- TPU: the event of the grouping line that overlaps ----

// [XEventContextTracker::GetOverlappingEvent]: current event + 1, 0 for none.
static size_t find_overlap(struct xpl_group_cursor *c, struct span span) {
    const struct group_span *const v = c->pg->spans;
    if (c->span && span_overlaps(v[c->span - 1].span, span)) return c->span;
    const size_t i = xpl_grp_next_span(c->pg, c->span, span);
    if (i == c->pg->n_spans || v[i].span.begin > span.end) return 0;
    c->span = i + 1;
    return span_overlaps(v[i].span, span) ? c->span : 0;
}

// One more group; the first stays the event's.
static void add_group(struct xpl_event_group *ret, int64_t group) {
    if (!ret->has_group) ret->group_id = group;
    ret->has_group = true;
    ret->shown_group_id = group;
}

static void next_overlap(struct xpl_group_cursor *c, const struct xpl_event *ev,
                         struct xpl_event_group *ret) {
    const struct span span = span_of(c->line, (uint64_t)ev->offset_ps, (uint64_t)ev->duration_ps);
    if (!c->cached || !span_overlaps(c->pg->spans[c->span - 1].span, span))
        c->cached = find_overlap(c, span) != 0;
    if (!c->cached) return;
    const struct group_span *const s = &c->pg->spans[c->span - 1];
    const bool after = c->pg->span_line && c->line->index > c->pg->span_line->index;
    if (after ? s->has_after : s->has_group) add_group(ret, after ? s->after : s->group);
}

// ---- all ----

static void own_stats(const struct xpl_group_cursor *c, const struct xpl_event *ev,
                      struct xpl_event_group *ret) {
    const struct plan *const plan = &c->pg->plan;
    enum { STEP_NAME, EAGER, N };
    enum xpl_stat_type types[N];
    uint8_t what[N];
    unsigned n = 0;
    struct xpl_stat s[N];
    if (!ret->has_step_name && plan->own_step_names)
        what[n] = STEP_NAME, types[n++] = XPL_STAT_STEP_NAME;
    if (!ret->has_is_eager && plan->own_eager) what[n] = EAGER, types[n++] = XPL_STAT_IS_EAGER;
    const unsigned found = xpl_stats_find(ev->stats, types, n, s);
    for (unsigned i = 0; i < n; i++) {
        if (!(found & 1u << i)) continue;
        switch (what[i]) {
            case STEP_NAME:
                ret->has_step_name = true;
                ret->step_name = xpl_stat_str(&s[i]);
                break;
            default:
                ret->has_is_eager = true;
                ret->is_eager = xpl_stat_int(&s[i]) != 0;
                break;
        }
    }
}

// Of several groups among an event's own stats the first counts, and the last is shown.
static void own_groups(const struct xpl_group_cursor *c, const struct xpl_event *ev,
                       struct xpl_event_group *ret) {
    struct xpl_stats it = ev->stats;
    struct xpl_stat stat;
    bool replaced = ret->has_group; // the first, by grouping
    while (xpl_stats_next_type(&it, XPL_STAT_GROUP_ID, &stat) == XPL_WIRE_FIELD) {
        if (!replaced) ret->shown_group_id = xpl_stat_int(&stat);
        replaced = false;
        if (!ret->has_group) ret->group_id = ret->shown_group_id;
        ret->has_group = true;
        if (!c->fill) return; // shown_group_id is not used
    }
}

// Grouping replaces the first of an event's own groups; those that follow stay.
int64_t xpl_groups_shown(const struct xpl_event *ev, int64_t group) {
    struct xpl_stats it = ev->stats;
    struct xpl_stat stat;
    unsigned n = 0;
    while (xpl_stats_next_type(&it, XPL_STAT_GROUP_ID, &stat) == XPL_WIRE_FIELD)
        if (n++) group = xpl_stat_int(&stat);
    return group;
}

// Whether grouping sets is_eager, whatever the event's own value [MarkEagerlyExecutedGpuKernels]:
// it does so for all kernels that it visits.
static bool is_kernel(const struct xpl_group_cursor *c, const struct xpl_event *ev, bool node) {
    const struct plan *const plan = &c->pg->plan;
    const struct xpl_raw_event raw = {.stats = ev->stats.p, .end = ev->stats.end};
    uint32_t mask;
    return plan->kernels && !(plan->role_of[ev->md] & ROLE_KNOWN) && (node || !plan->tpu) &&
           (xpl_grp_quick_mask(plan, &raw, &mask) || xpl_grp_stats_mask(plan, &raw, &mask)) &&
           (mask & SC_BIT(SC_CORRELATION));
}

static void set_found(const struct xpl_group_cursor *c, const struct xpl_event *ev, struct found f,
                      struct xpl_event_group *ret) {
    const struct xpl_groups *const g = c->g;
    const uint32_t group = f.label & LABEL_GROUP;
    if (group != LABEL_NO_GROUP) {
        ret->has_group = true;
        ret->group_id = group;
    }
    if (f.node && (g->nodes[f.node - 1].flags & NODE_NAMED)) {
        ret->has_step_name = true;
        ret->step_name = xpl_groups_name(g, group);
    }
    if (c->line->plane->event_md[ev->md].type == XPL_EVENT_TF_OP_RUN || f.kernel ||
        (c->pg->plan.own_eager && is_kernel(c, ev, f.node != 0))) {
        ret->has_is_eager = true;
        ret->is_eager = f.label & LABEL_IS_EAGER;
    }
}

void xpl_group_cursor_next(struct xpl_group_cursor *c, const struct xpl_event *ev,
                           struct xpl_event_group *ret) {
    *ret = (struct xpl_event_group){.step_name = {"", 0}};
    struct found f = {.label = LABEL_NO_GROUP};
    switch (c->kind) {
        case LINE_NESTED:
            f = next_nested(c, ev);
            if (c->quick.on) set_quick(c);
            break;
        case LINE_EXPLICIT: f = next_explicit(c, ev); break;
        case LINE_NODES:
            f.node = match_node(c, ev->at);
            if (f.node) f.label = xpl_grp_node_label(&c->g->nodes[f.node - 1]);
            break;
        case LINE_NONE: break;
    }
    if (c->g->computed) set_found(c, ev, f, ret);
    ret->shown_group_id = ret->group_id;
    if (c->pg->plan.own_groups) own_groups(c, ev, ret);
    if (c->pg->plan.own_step_names || c->pg->plan.own_eager) own_stats(c, ev, ret);
    if (!c->fill) return;
    if (!ret->has_group && c->pg->n_runs && !xpl_is_derived_line_id(c->line->id)) {
        const struct run *const r = run_before(c, ev);
        if (r) add_group(ret, r->group);
    }
    if (!c->pg->n_spans || c->line == c->pg->step_line) return;
    if (c->line != c->pg->span_line) {
        next_overlap(c, ev, ret);
    } else if (ev->index < c->pg->n_spans && c->pg->spans[ev->index].has_shown) {
        add_group(ret, c->pg->spans[ev->index].shown);
    }
}
