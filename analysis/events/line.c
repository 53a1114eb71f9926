// SPDX-License-Identifier: Apache-2.0
#include "analysis/events/line.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum {
    CANCEL_EVERY = 8192,
    FEW_GROUPS = 4,
    MD_AN_EVENT = 16,
    FIRST_BLOCK = 4, // durations
    MOST_OF_BLOCK = 4096
};

struct occurrence {
    int64_t begin, end;
    uint32_t group, order; // order: in the line
};

// One that has not ended yet.
struct open_event {
    int64_t end;
    uint32_t group;
};

struct reading {
    struct xpl_timings_line *l;
    const struct xpl_timings_rules *rules;
    struct xpl_exec *exec;
    struct xpl_arena *arena, *scratch;
    uint32_t *group_of;       // by metadata: group + 1; 0: none yet.  Not by id
    struct xpl_map groups_of; // the same, of a line with few events
    struct xpl_intern *names; // by id: of them; the number of a name is its group
    struct xpl_buf name;
    XPL_VEC(struct xpl_timings_group) groups;
    uint64_t max, n;      // events
    int64_t begin, end;   // of the event before
    struct occurrence *v; // NULL: events come in order
    XPL_VEC(struct open_event) open;
    int64_t now;
    struct xpl_error *err;
};

// ---- names ----

static bool add_group(struct reading *r, xpl_str_t name) {
    struct xpl_timings_group *const g = xpl_vec_push(r->arena, &r->groups);
    if (g) *g = (struct xpl_timings_group){.name = name, .least = UINT64_MAX};
    return g != NULL;
}

static bool new_group(struct reading *r, const struct xpl_event *ev, uint32_t *ret) {
    xpl_str_t name; // the profile's bytes may change
    if (!xpl_arena_str(r->arena, r->l->line->plane->event_md[ev->md].name, &name) ||
        !add_group(r, name))
        return false;
    *ret = (uint32_t)r->groups.n - 1;
    return true;
}

static bool group_by_name(struct reading *r, const struct xpl_event *ev, uint32_t *ret) {
    if (r->group_of) {
        uint32_t *const g = &r->group_of[ev->md];
        if (!*g && !new_group(r, ev, ret)) return false;
        *ret = *g ? *g - 1 : *ret;
        *g = *ret + 1;
        return true;
    }
    bool is_new;
    uint64_t *const g = xpl_map_put(r->scratch, &r->groups_of, ev->md, 0, &is_new);
    if (!g || (is_new && !new_group(r, ev, ret))) return false;
    if (is_new) *g = *ret;
    *ret = (uint32_t)*g;
    return true;
}

static bool group_by_id(struct reading *r, const struct xpl_event *ev, uint32_t *ret) {
    xpl_strid_t id;
    r->name.n = 0;
    xpl_timings_name(r->l->line, ev, &r->name);
    if (r->name.failed ||
        !xpl_intern_put(r->names, (xpl_str_t){(const char *)r->name.p, r->name.n}, &id))
        return false;
    while (r->groups.n <= id.v) {
        const xpl_strid_t next = {(uint32_t)r->groups.n};
        if (!add_group(r, xpl_intern_get(r->names, next))) return false;
    }
    *ret = id.v;
    return true;
}

// ---- time ----

// Gives the time up to `t` to the events that began last.
static void pass_time(struct reading *r, int64_t t) {
    while (r->open.n) {
        const struct open_event *const top = &r->open.v[r->open.n - 1];
        const int64_t until = top->end < t ? top->end : t;
        if (until > r->now) {
            r->groups.v[top->group].self_ps += (uint64_t)until - (uint64_t)r->now;
            r->now = until;
        }
        if (top->end > t) break;
        r->open.n--;
    }
    r->now = t;
}

// Of a line, names that come often have long blocks, and names that come once short ones.
static bool add_block(struct reading *r, struct xpl_timings_group *g) {
    const uint32_t cap = !g->last                       ? FIRST_BLOCK
                         : g->last->cap < MOST_OF_BLOCK ? 2 * g->last->cap
                                                        : g->last->cap;
    struct xpl_timings_block *const b = xpl_arena_alloc(r->arena, sizeof *b + cap * sizeof *b->v);
    if (!b) return false;
    b->next = NULL, b->n = 0, b->cap = cap;
    if (g->last)
        g->last->next = b;
    else
        g->first = b;
    g->last = b;
    return true;
}

// An event inside another of its name is not a separate occurrence.
static bool count_time(struct reading *r, struct xpl_timings_group *g, int64_t begin, int64_t end) {
    const uint64_t ps = (uint64_t)end - (uint64_t)begin;
    if (g->n && begin < g->covered) {
        if (end <= g->covered) return true;
        begin = g->covered;
    }
    if ((!g->last || g->last->n == g->last->cap) && !add_block(r, g)) return false;
    g->last->v[g->last->n++] = ps;
    g->total_ps += (uint64_t)end - (uint64_t)begin;
    g->covered = end;
    if (ps < g->least) g->least = ps;
    if (ps > g->greatest) g->greatest = ps;
    g->n++;
    return true;
}

// Events come by their begin, the outer ones first.
static bool sweep_event(struct reading *r, int64_t begin, int64_t end, uint32_t group) {
    pass_time(r, begin);
    struct open_event *const slot = xpl_vec_push(r->scratch, &r->open);
    if (!slot) return false;
    slot->end = end, slot->group = group;
    return count_time(r, &r->groups.v[group], begin, end);
}

// ---- reading ----

static int64_t end_of(int64_t begin, uint64_t duration) {
    int64_t end;
    if (duration > INT64_MAX || __builtin_add_overflow(begin, (int64_t)duration, &end))
        return INT64_MAX;
    return end;
}

// *ret_stop: no further event is wanted, or this one is out of order.
static xpl_status_t read_event(struct reading *r, const struct xpl_event *ev, uint64_t duration,
                               bool *ret_stop) {
    const int64_t begin = xpl_event_begin_ps(r->l->line, ev), end = end_of(begin, duration);
    const bool in_order = !r->n || r->begin < begin || (r->begin == begin && r->end >= end);
    uint32_t group;
    *ret_stop = r->n == r->max || (!r->v && !in_order);
    r->l->is_cut = r->n == r->max;
    if (*ret_stop) return XPL_OK;
    if (!(r->rules->by_id ? group_by_id(r, ev, &group) : group_by_name(r, ev, &group)))
        XPL_RETURN_OOM(r->err, "names of events");
    if (r->v)
        r->v[r->n] = (struct occurrence){begin, end, group, (uint32_t)r->n};
    else if (!sweep_event(r, begin, end, group))
        XPL_RETURN_OOM(r->err, "times of events");
    r->begin = begin, r->end = end;
    r->n++;
    return XPL_OK;
}

// *ret_done: all that is wanted was read; else the events are not in order.
static xpl_status_t read_events(struct reading *r, bool *ret_done) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    enum xpl_wire_result got;
    bool stop = false;
    r->n = 0;
    xpl_events_begin(&c, r->l->line);
    while (!stop && (got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(r->err, XPL_CANCELLED, "cancelled");
        const uint64_t duration = ev.duration_ps > 0 ? (uint64_t)ev.duration_ps : 0;
        if (!ev.has_occurrences && duration >= r->rules->min_ps)
            XPL_TRY(read_event(r, &ev, duration, &stop));
    }
    r->l->n_events = r->n;
    *ret_done = !stop || r->l->is_cut;
    return !stop && got == XPL_WIRE_MALFORMED ? xpl_events_error(&c, r->err) : XPL_OK;
}

// By begin, then the longest first; so an inner event follows the outer one.
static int outer_first(const void *a, const void *b) {
    const struct occurrence *const x = a, *const y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

// Drops the counts up to the event that is out of order.
static void forget(struct reading *r) {
    for (size_t i = 0; i < r->groups.n; i++)
        r->groups.v[i] =
            (struct xpl_timings_group){.name = r->groups.v[i].name, .least = UINT64_MAX};
    r->open.n = 0;
    r->now = INT64_MIN;
}

// Reads the line again, for a list that is sorted.
static xpl_status_t read_unordered(struct reading *r) {
    bool done;
    const uint64_t most = r->max < r->l->line->n_events ? r->max : r->l->line->n_events;
    if (most > UINT32_MAX || most > SIZE_MAX / sizeof *r->v) XPL_RETURN_OOM(r->err, "events");
    r->v = xpl_arena_array(r->scratch, (size_t)most, sizeof *r->v);
    if (!r->v) XPL_RETURN_OOM(r->err, "events");
    forget(r);
    XPL_TRY(read_events(r, &done));
    xpl_sort(r->v, r->n, sizeof *r->v, outer_first);
    for (size_t i = 0; i < r->n; i++)
        if (!sweep_event(r, r->v[i].begin, r->v[i].end, r->v[i].group))
            XPL_RETURN_OOM(r->err, "times of events");
    return XPL_OK;
}

// A line with few events has room for few names: there may be any number of such lines.
static void reserve_groups(struct reading *r) {
    const uint64_t most = r->l->line->n_events + 1; // "" is one by id
    if (most > FEW_GROUPS) return;
    r->groups.v = xpl_arena_array(r->arena, (size_t)most, sizeof *r->groups.v);
    if (r->groups.v) r->groups.cap = (size_t)most;
}

// A table of all metadata would cost a line of few events more than these.
static bool prepare_names(struct reading *r) {
    const struct xpl_line *const line = r->l->line;
    const size_t n_md = line->plane->n_event_md;
    if (r->rules->by_id) return (r->names = xpl_intern_new(r->arena, xpl_hash_seed())) != NULL;
    if (line->n_events < n_md / MD_AN_EVENT) return true;
    r->group_of = xpl_arena_zalloc(r->scratch, n_md * sizeof *r->group_of);
    return r->group_of != NULL;
}

static xpl_status_t read_line(struct reading *r) {
    bool done;
    reserve_groups(r);
    if (!prepare_names(r)) XPL_RETURN_OOM(r->err, "names of events");
    XPL_TRY(read_events(r, &done));
    if (!done) XPL_TRY(read_unordered(r));
    pass_time(r, INT64_MAX);
    r->l->groups = r->groups.v, r->l->n_groups = r->groups.n;
    return XPL_OK;
}

void xpl_timings_line_read(struct xpl_timings_line *l, const struct xpl_timings_rules *rules,
                           uint64_t max, struct xpl_exec *exec, struct xpl_arena *arena) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct xpl_error err = {0};
    struct reading r = {.l = l,
                        .rules = rules,
                        .exec = exec,
                        .arena = arena,
                        .scratch = &scratch,
                        .max = max,
                        .now = INT64_MIN,
                        .err = &err};
    xpl_arena_init_part(&scratch, arena->budget);
    xpl_buf_init(&r.name, 1 << 20);
    l->status = read_line(&r);
    xpl_buf_fini(&r.name);
    if (l->status == XPL_OK) return;
    struct xpl_error *const kept = xpl_arena_alloc(arena, sizeof *kept);
    if (kept)
        *kept = err;
    else
        l->status = XPL_RESOURCE_EXHAUSTED;
    l->err = kept;
}

// ---- order ----

// Byte by byte from the highest one in which they differ: those of the k-th's byte stay.
uint64_t xpl_timings_nth(const uint64_t *v, size_t n, size_t k, uint64_t *scratch) {
    uint64_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= v[i] ^ v[0];
    if (!any) return v[0];
    const uint64_t *from = v;
    for (int shift = (63 - __builtin_clzll(any)) / 8 * 8; shift >= 0; shift -= 8) {
        size_t counts[256] = {0}, byte = 0, kept = 0;
        for (size_t i = 0; i < n; i++)
            counts[from[i] >> shift & 0xff]++;
        while (k >= counts[byte])
            k -= counts[byte++];
        for (size_t i = 0; i < n; i++)
            if ((from[i] >> shift & 0xff) == byte) scratch[kept++] = from[i];
        from = scratch, n = kept;
        if (n == 1) break;
    }
    return from[0];
}
