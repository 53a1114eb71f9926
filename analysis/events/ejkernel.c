// SPDX-License-Identifier: Apache-2.0
// ejKernel's rules (ejkernel/ops/execution/profiler.py: get_events_from_plane).

#include "analysis/events/events.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/regex.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 1024 };

struct event {
    int64_t start, end;
    xpl_strid_t name;
    uint32_t order; // in the profile: sorting keeps it among equal starts
};

struct work {
    const struct xpl_timings_rules *rules;
    struct xpl_exec *exec;
    struct xpl_arena scratch;
    struct xpl_intern *names;
    XPL_VEC(struct event) events;
    uint8_t *matches; // by name: 0 not asked yet, 1 no, 2 yes
    bool is_cut;
};

static xpl_status_t read_event(struct work *w, const struct xpl_line *line,
                               const struct xpl_event *ev, struct xpl_buf *name,
                               struct xpl_error *err) {
    const int64_t offset = ev->has_occurrences ? 0 : ev->offset_ps;
    struct event e = {.start = offset, .order = (uint32_t)w->events.n};
    if (__builtin_add_overflow(offset, ev->duration_ps, &e.end)) e.end = INT64_MAX;
    name->n = 0;
    xpl_timings_name(line, ev, name);
    if (name->failed ||
        !xpl_intern_put(w->names, (xpl_str_t){(const char *)name->p, name->n}, &e.name))
        XPL_RETURN_OOM(err, "names of events");
    struct event *const slot = xpl_vec_push(&w->scratch, &w->events);
    if (!slot) XPL_RETURN_OOM(err, "events");
    *slot = e;
    return XPL_OK;
}

static xpl_status_t read_line(struct work *w, const struct xpl_line *line, struct xpl_buf *name,
                              struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (w->events.n >= w->rules->max_events || w->events.n == UINT32_MAX) {
            w->is_cut = true;
            return XPL_OK;
        }
        if (w->rules->min_ps > INT64_MAX || ev.duration_ps < (int64_t)w->rules->min_ps) continue;
        XPL_TRY(read_event(w, line, &ev, name, err));
    }
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&c, err) : XPL_OK;
}

static int earlier_first(const void *a, const void *b) {
    const struct event *const x = a, *const y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static xpl_status_t matches(struct work *w, xpl_strid_t name, bool *ret, struct xpl_error *err) {
    uint8_t *const known = &w->matches[name.v];
    *ret = *known == 2;
    if (*known) return XPL_OK;
    XPL_TRY(xpl_regex_search(w->rules->match, xpl_intern_get(w->names, name), ret, err));
    *known = *ret ? 2 : 1;
    return XPL_OK;
}

static size_t first_from(const struct work *w, int64_t start) {
    size_t lo = 0, hi = w->events.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (w->events.v[mid].start < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

// The union of the intervals of the children of `e` that match.  They come by their start.
static xpl_status_t sum_children(struct work *w, const struct event *e, uint64_t *ret,
                                 struct xpl_error *err) {
    int64_t from = 0, to = 0;
    bool any = false;
    *ret = 0;
    for (size_t i = first_from(w, e->start); i < w->events.n; i++) {
        const struct event *const ch = &w->events.v[i];
        bool wanted;
        if (ch->start > e->end) break;
        if (i % CANCEL_EVERY == 0 && xpl_exec_cancelled(w->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (ch->name.v == e->name.v || ch->end > e->end) continue;
        XPL_TRY(matches(w, ch->name, &wanted, err));
        if (!wanted) continue;
        if (any && ch->start <= to) {
            if (ch->end > to) to = ch->end;
            continue;
        }
        if (any) *ret += (uint64_t)to - (uint64_t)from;
        from = ch->start, to = ch->end, any = true;
    }
    if (any) *ret += (uint64_t)to - (uint64_t)from;
    return XPL_OK;
}

// Of each name the last event, in the order in which the names first come.
static xpl_status_t make_rows(struct work *w, struct xpl_arena *arena, struct xpl_timings_rows *ret,
                              struct xpl_error *err) {
    const size_t n = w->events.n + 2; // the intern knows "" beside them
    size_t *const last = xpl_arena_zalloc(&w->scratch, n * sizeof *last); // 1 + its place
    ret->v = xpl_arena_array(arena, n, sizeof *ret->v);
    w->matches = xpl_arena_zalloc(&w->scratch, n);
    if (!last || !ret->v || !w->matches) XPL_RETURN_OOM(err, "rows of events");
    for (size_t i = 0; i < w->events.n; i++)
        last[w->events.v[i].name.v] = i + 1;
    for (size_t i = 0; i < w->events.n; i++) {
        const xpl_strid_t name = w->events.v[i].name;
        if (!last[name.v] || !xpl_str_starts(xpl_intern_get(w->names, name), w->rules->prefix))
            continue;
        const struct event *const e = &w->events.v[last[name.v] - 1];
        struct xpl_timings_row *const row = &ret->v[ret->n++];
        last[name.v] = 0;
        *row =
            (struct xpl_timings_row){.count = 1, .total_ps = (uint64_t)e->end - (uint64_t)e->start};
        if (!xpl_arena_str(arena, xpl_intern_get(w->names, name), &row->name))
            XPL_RETURN_OOM(err, "rows of events");
        if (w->rules->match) XPL_TRY(sum_children(w, e, &row->total_ps, err));
    }
    return XPL_OK;
}

static xpl_status_t work_plane(struct work *w, const struct xpl_plane *plane,
                               struct xpl_arena *arena, struct xpl_timings_rows *ret,
                               struct xpl_error *err) {
    struct xpl_buf name;
    xpl_status_t st = XPL_OK;
    w->names = xpl_intern_new(&w->scratch, xpl_hash_seed());
    if (!w->names) XPL_RETURN_OOM(err, "names of events");
    xpl_buf_init(&name, 1 << 20);
    for (uint32_t i = 0; i < plane->n_lines && st == XPL_OK && !w->is_cut; i++)
        st = read_line(w, &plane->lines[i], &name, err);
    xpl_buf_fini(&name);
    XPL_TRY(st);
    xpl_sort(w->events.v, w->events.n, sizeof *w->events.v, earlier_first);
    ret->n_events = w->events.n, ret->is_cut = w->is_cut;
    return make_rows(w, arena, ret, err);
}

xpl_status_t xpl_timings_by_ejkernel(const struct xpl_xspace *space,
                                     const struct xpl_timings_rules *rules, struct xpl_exec *exec,
                                     struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                     struct xpl_error *err) {
    const struct xpl_plane **planes = NULL;
    size_t n = 0;
    *ret = (struct xpl_timings_rows){0};
    XPL_TRY(xpl_timings_planes(&space, 1, rules->plane, arena, &planes, &n, err));
    if (!n) return XPL_OK;
    xpl_str_t *const name = xpl_arena_alloc(arena, sizeof *name);
    if (!name || !xpl_arena_str(arena, planes[0]->name, name)) XPL_RETURN_OOM(err, "planes");
    ret->planes = name, ret->n_planes = 1;
    struct work w = {.rules = rules, .exec = exec};
    xpl_arena_init(&w.scratch, arena->limit);
    const xpl_status_t st = work_plane(&w, planes[0], arena, ret, err);
    xpl_arena_fini(&w.scratch);
    return st;
}
