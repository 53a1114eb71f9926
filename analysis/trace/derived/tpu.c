// SPDX-License-Identifier: Apache-2.0
// Lines that are derived for a TensorCore: name scopes, framework ops and source code from the
// statistics of its events (or of their metadata); host offloading is offload.c's.
// Rules: DeriveLinesFromStats (XProf utils/derived_timeline.cc).
#include <string.h>

#include "analysis/trace/derived/impl.h"
#include "base/std_sort.h"

enum { CANCEL_EVERY = 4096 };
enum { ID_SCOPES = 2, ID_OPS = 3, ID_SOURCE = 7 };

static xpl_status_t no_memory(struct xpl_dplane *p) {
    XPL_RETURN_OOM(&p->err, "derived lines");
}

// ---- statistics of metadata, read once per entry ----

enum { TPU_SEEN = 1, TPU_ASYNC = 2, TPU_OFFLOAD = 4, TPU_GROUP = 8 };

struct tpu_md {
    uint32_t tf_op, source; // numbers of texts, 0: none
    uint32_t flags;
    int64_t group;
};

// An event with an op or a source, or of host offloading.
struct tpu_event {
    uint64_t begin, duration, order;
    uint32_t md, tf_op, source;
    bool offload, has_group;
    int64_t group;
};
struct timed { // any event
    uint64_t begin, duration, order;
};

struct tpu {
    struct xpl_dplane *p;
    struct tpu_md *mds;
    bool own; // events themselves may have such statistics
    XPL_VEC(struct tpu_event) events;
    uint64_t n_all; // events of the plane
    struct xpl_offload offload;
    struct xpl_dline *scopes, *ops, *source;
};

static bool read_stat(struct tpu *t, const struct xpl_stat *s, struct tpu_md *m) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (s->md->type) { // most types play no part
        case XPL_STAT_TF_OP: return xpl_dplane_text(t->p, s, &m->tf_op);
        case XPL_STAT_SOURCE_INFO: return xpl_dplane_text(t->p, s, &m->source);
        case XPL_STAT_GROUP_ID:
            m->flags |= TPU_GROUP;
            m->group = (int64_t)xpl_stat_int_or_uint(s);
            break;
        case XPL_STAT_IS_ASYNC:
            m->flags &= ~(uint32_t)TPU_ASYNC;
            if (xpl_stat_int_or_uint(s)) m->flags |= TPU_ASYNC;
            break;
        default: break;
    }
#pragma GCC diagnostic pop
    return true;
}

static bool read_stats(struct tpu *t, struct xpl_stats stats, struct tpu_md *m) {
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (!read_stat(t, &s, m)) return false;
    return true;
}

// [IsHostOffloadOpName] S(5) marks a tensor in the host's memory.
static bool is_offload(xpl_str_t display, xpl_str_t name) {
    static const char *const words[] = {"copy-start",
                                        "copy-done",
                                        "dynamic-slice-start",
                                        "dynamic-slice-done",
                                        "dynamic-update-slice-start",
                                        "dynamic-update-slice-done"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (xpl_str_has(display, xpl_str_from(words[i]))) return xpl_str_has(name, XPL_STR("S(5)"));
    return false;
}

static bool read_metadata(struct tpu *t, uint32_t md) {
    const struct xpl_event_md *const e = &t->p->plane->event_md[md];
    struct tpu_md *const m = &t->mds[md];
    m->flags = TPU_SEEN | (is_offload(e->display_name, e->name) ? TPU_OFFLOAD : 0);
    return !e->has_stats || read_stats(t, xpl_event_md_stats(t->p->plane, e), m);
}

// ---- collecting ----

static bool collect_event(struct tpu *t, uint32_t md, struct xpl_stats stats, uint64_t begin,
                          uint64_t duration, bool has_group, int64_t group) {
    if (!t->mds[md].flags && !read_metadata(t, md)) return false;
    struct tpu_md m = t->mds[md];
    if (t->own && stats.p != stats.end && !read_stats(t, stats, &m)) return false;
    const uint64_t order = t->n_all++;
    if ((m.flags & TPU_ASYNC) || (!m.tf_op && !m.source && !(m.flags & TPU_OFFLOAD))) return true;
    struct tpu_event *const e = xpl_vec_push(&t->p->temp, &t->events);
    if (!e) return false;
    *e = (struct tpu_event){.begin = begin,
                            .duration = duration,
                            .order = order,
                            .md = md,
                            .tf_op = m.tf_op,
                            .source = m.source,
                            .offload = m.flags & TPU_OFFLOAD,
                            .has_group = has_group || (m.flags & TPU_GROUP),
                            .group = has_group ? group : m.group};
    return true;
}

// Whether the file's order is that of upstream's lines: begin, the longer first.
static bool in_order(uint64_t begin, uint64_t duration, uint64_t last_begin,
                     uint64_t last_duration) {
    return begin > last_begin || (begin == last_begin && duration <= last_duration);
}

static xpl_status_t collect_line(struct tpu *t, const struct xpl_line *line) {
    struct xpl_dplane *const p = t->p;
    struct xpl_event_cursor c;
    struct xpl_group_cursor *groups;
    struct xpl_event ev;
    enum xpl_wire_result r;
    uint64_t last = 0, last_duration = UINT64_MAX;
    XPL_TRY(xpl_group_cursor_new(p->space->groups, line, &p->temp, &groups, &p->err));
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        if ((c.index & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(p->exec))
            XPL_RETURN_ERROR(&p->err, XPL_CANCELLED, "cancelled");
        xpl_group_cursor_next(groups, &ev, &eg);
        const uint64_t offset = (uint64_t)ev.offset_ps, duration = (uint64_t)ev.duration_ps;
        p->out_of_order[line->index] |= !in_order(offset, duration, last, last_duration);
        last = offset, last_duration = duration;
        if (!collect_event(t, ev.md, ev.stats, (uint64_t)xpl_event_begin_ps(line, &ev), duration,
                           eg.has_group, eg.shown_group_id))
            return no_memory(p);
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, &p->err);
    return xpl_group_cursor_ok(groups) ? XPL_OK : no_memory(p);
}

// The steps that replace the plane's step line, if any do.
static const struct xpl_step_event *merged_steps(const struct tpu *t, size_t *ret_n) {
    *ret_n = 0;
    if (xpl_groups_steps_are_recorded(t->p->space->groups, t->p->plane)) return NULL;
    return xpl_groups_steps(t->p->space->groups, t->p->plane, ret_n);
}

static xpl_status_t collect_steps(struct tpu *t) {
    size_t n;
    const struct xpl_step_event *const v = merged_steps(t, &n);
    for (size_t i = 0; i < n; i++)
        if (!collect_event(t, v[i].ev.md, v[i].ev.stats, (uint64_t)v[i].begin_ps,
                           (uint64_t)v[i].duration_ps, v[i].has_group, v[i].group_id))
            return no_memory(t->p);
    return XPL_OK;
}

static xpl_status_t collect_all(struct tpu *t) {
    const struct xpl_plane *const plane = t->p->plane;
    size_t n_steps;
    (void)merged_steps(t, &n_steps);
    t->events.n = 0;
    t->n_all = 0;
    for (uint32_t i = 0; i < plane->n_lines; i++)
        if (n_steps && xpl_groups_replaces_line(t->p->space->groups, &plane->lines[i]))
            XPL_TRY(collect_steps(t));
        else
            XPL_TRY(collect_line(t, &plane->lines[i]));
    return XPL_OK;
}

// ---- the order of time [GetSortedEvents] ----

static bool event_less(const void *ctx, const void *pa, const void *pb) {
    const struct tpu_event *const a = pa, *const b = pb;
    (void)ctx;
    if (a->begin != b->begin) return a->begin < b->begin;
    return a->duration != b->duration ? a->duration < b->duration : a->order < b->order;
}
static bool timed_less(const void *ctx, const void *pa, const void *pb) {
    const struct timed *const a = pa, *const b = pb;
    (void)ctx;
    return a->begin != b->begin ? a->begin < b->begin : a->duration < b->duration;
}
static bool order_less(const void *ctx, const void *pa, const void *pb) {
    (void)ctx;
    return ((const struct tpu_event *)pa)->order < ((const struct tpu_event *)pb)->order;
}

static uint64_t put_times(const struct xpl_line *line, struct timed *to, uint64_t order) {
    struct xpl_event_cursor c = xpl_events_of(line);
    struct xpl_event ev;
    uint64_t n = 0;
    while (xpl_events_next(&c, &ev) == XPL_WIRE_FIELD) {
        to[n] = (struct timed){(uint64_t)xpl_event_begin_ps(line, &ev), (uint64_t)ev.duration_ps,
                               order + n};
        n++;
    }
    return n;
}

// Times of all events of the plane; false when their number has changed since.
static bool all_times(const struct tpu *t, struct timed *v) {
    const struct xpl_groups *const g = t->p->space->groups;
    const struct xpl_plane *const plane = t->p->plane;
    uint64_t at = 0;
    size_t n_steps;
    const struct xpl_step_event *const steps = merged_steps(t, &n_steps);
    for (uint32_t i = 0; i < plane->n_lines; i++) {
        const struct xpl_line *const line = &plane->lines[i];
        const bool replaced = n_steps && xpl_groups_replaces_line(g, line);
        if ((replaced ? n_steps : line->n_events) > t->n_all - at) return false;
        for (size_t k = 0; replaced && k < n_steps; k++)
            v[at + k] =
                (struct timed){(uint64_t)steps[k].begin_ps, (uint64_t)steps[k].duration_ps, at + k};
        at += replaced ? n_steps : put_times(line, v + at, at);
    }
    return at == t->n_all;
}

// Sorts when relevant events tie: they get the order in which XProf's sort of all events leaves
// them.
static xpl_status_t sort_ties(struct tpu *t) {
    struct xpl_dplane *const p = t->p;
    struct xpl_arena scratch = xpl_arena_of(p->temp.limit);
    struct timed *const v = xpl_arena_array(&scratch, t->n_all, sizeof *v);
    struct tpu_event *const sorted = xpl_arena_array(&scratch, t->events.n, sizeof *sorted);
    const bool ok = v && sorted;
    if (ok && all_times(t, v)) {
        size_t n = 0;
        xpl_std_sort(v, t->n_all, sizeof *v, timed_less, NULL);
        xpl_std_sort(t->events.v, t->events.n, sizeof *t->events.v, order_less, NULL);
        for (uint64_t i = 0; i < t->n_all; i++) {
            size_t lo = 0, hi = t->events.n;
            while (lo < hi) {
                const size_t mid = lo + (hi - lo) / 2;
                if (t->events.v[mid].order < v[i].order)
                    lo = mid + 1;
                else
                    hi = mid;
            }
            if (lo < t->events.n && t->events.v[lo].order == v[i].order && n < t->events.n)
                sorted[n++] = t->events.v[lo];
        }
        if (n == t->events.n && n) memcpy(t->events.v, sorted, n * sizeof *sorted);
    }
    xpl_arena_fini(&scratch);
    return ok ? XPL_OK : no_memory(p);
}

static xpl_status_t sort_events(struct tpu *t) {
    bool ties = false;
    xpl_std_sort(t->events.v, t->events.n, sizeof *t->events.v, event_less, NULL);
    for (size_t i = 1; i < t->events.n && !ties; i++)
        ties = t->events.v[i].begin == t->events.v[i - 1].begin &&
               t->events.v[i].duration == t->events.v[i - 1].duration;
    return ties ? sort_ties(t) : XPL_OK;
}

// ---- all ----

static bool put_event(struct tpu *t, const struct tpu_event *e) {
    static const struct xpl_dscope none = {0};
    const struct xpl_dspan span = {e->begin, e->duration, e->has_group, e->group};
    uint32_t op;
    if (e->tf_op &&
        (!xpl_dplane_op(t->p, e->tf_op, &op) || !xpl_dline_put_op(t->scopes, t->ops, op, &span)))
        return false;
    if (e->source) {
        const uint32_t md = xpl_dplane_md_of_text(t->p, e->source);
        if (!md || !xpl_dline_put(t->source, 0, md, &span, none)) return false;
    }
    return !e->offload || xpl_offload_put(&t->offload, e->md, e->begin, e->duration);
}

static bool init_lines(struct tpu *t) {
    struct xpl_dplane *const p = t->p;
    for (uint32_t i = 1; i < p->plane->n_stat_md; i++) {
        const enum xpl_stat_type type = p->plane->stat_md[i].type;
        t->own |=
            type == XPL_STAT_TF_OP || type == XPL_STAT_SOURCE_INFO || type == XPL_STAT_IS_ASYNC;
    }
    t->mds = xpl_arena_zalloc(&p->temp, p->plane->n_event_md * sizeof *t->mds);
    t->ops = xpl_dline_new(p, XPL_LINE_ID_STEPS + ID_OPS, XPL_STR(XPL_LINE_FRAMEWORK_OPS));
    t->scopes = xpl_dline_new(p, XPL_LINE_ID_STEPS + ID_SCOPES, XPL_STR(XPL_LINE_NAME_SCOPE));
    t->source = xpl_dline_new(p, XPL_LINE_ID_STEPS + ID_SOURCE, XPL_STR(XPL_LINE_SOURCE));
    if (!t->mds || !t->ops || !t->scopes || !t->source) return false;
    t->scopes->dependents[t->scopes->n_dependents++] = t->ops;
    return true;
}

xpl_status_t xpl_derive_tpu(struct xpl_dplane *p) {
    struct tpu t = {.p = p, .offload.p = p};
    p->remove_empty = true;
    p->out_of_order = xpl_arena_zalloc(&p->temp, p->plane->n_lines * sizeof *p->out_of_order);
    if (!p->out_of_order || !init_lines(&t)) return no_memory(p);
    XPL_TRY(collect_all(&t));
    XPL_TRY(sort_events(&t));
    for (size_t i = 0; i < t.events.n; i++) {
        if ((i & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(p->exec))
            XPL_RETURN_ERROR(&p->err, XPL_CANCELLED, "cancelled");
        if (!put_event(&t, &t.events.v[i])) return no_memory(p);
    }
    xpl_dline_close(t.scopes, 0);
    return XPL_OK;
}
