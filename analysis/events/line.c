// SPDX-License-Identifier: Apache-2.0
#include "analysis/events/line.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

struct occurrence {
    int64_t begin, end;
    uint32_t group, order; // order: in the line
};

// What a group needs while its line is read.
struct state {
    int64_t covered; // where its occurrences so far end
    uint64_t total, self;
    size_t n, at; // occurrences; where the next one's duration goes
};

struct reading {
    struct xpl_timings_line *l;
    const struct xpl_timings_rules *rules;
    uint32_t *group_of;       // by metadata: group + 1; 0: none yet.  Not by id
    struct xpl_intern *names; // by id: of them; the number of a name is its group
    struct xpl_buf name;
    XPL_VEC(xpl_str_t) groups;
    struct occurrence *v;
    size_t n;
    bool sorted;
    struct state *states;
    struct xpl_error *err;
};

// ---- names ----

static bool add_group(struct reading *r, xpl_str_t name) {
    xpl_str_t *const slot = xpl_vec_push(&r->l->arena, &r->groups);
    if (slot) *slot = name;
    return slot != NULL;
}

static bool group_by_name(struct reading *r, const struct xpl_event *ev, uint32_t *ret) {
    uint32_t *const g = &r->group_of[ev->md];
    if (!*g) {
        xpl_str_t name; // the profile's bytes may change
        if (!xpl_arena_str(&r->l->arena, r->l->line->plane->event_md[ev->md].name, &name) ||
            !add_group(r, name))
            return false;
        *g = (uint32_t)r->groups.n;
    }
    *ret = *g - 1;
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

// ---- reading ----

static int64_t end_of(int64_t begin, uint64_t duration) {
    int64_t end;
    if (duration > INT64_MAX || __builtin_add_overflow(begin, (int64_t)duration, &end))
        return INT64_MAX;
    return end;
}

static xpl_status_t read_events(struct reading *r, uint64_t max, struct xpl_exec *exec) {
    const struct xpl_line *const line = r->l->line;
    struct xpl_event_cursor c;
    struct xpl_event ev;
    enum xpl_wire_result got;
    xpl_events_begin(&c, line);
    r->sorted = true;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(exec))
            XPL_RETURN_ERROR(r->err, XPL_CANCELLED, "cancelled");
        const uint64_t duration = ev.duration_ps > 0 ? (uint64_t)ev.duration_ps : 0;
        if (ev.has_occurrences || duration < r->rules->min_ps) continue;
        if (r->n == max || r->n == line->n_events || r->n == UINT32_MAX - 1) {
            r->l->is_cut = true;
            break;
        }
        struct occurrence *const o = &r->v[r->n];
        o->begin = xpl_event_begin_ps(line, &ev);
        o->end = end_of(o->begin, duration);
        o->order = (uint32_t)r->n;
        if (!(r->rules->by_id ? group_by_id(r, &ev, &o->group) : group_by_name(r, &ev, &o->group)))
            XPL_RETURN_OOM(r->err, "names of events");
        if (r->n && (o[-1].begin > o->begin || (o[-1].begin == o->begin && o[-1].end < o->end)))
            r->sorted = false;
        r->n++;
    }
    r->l->n_events = r->n;
    return got == XPL_WIRE_MALFORMED ? xpl_events_error(&c, r->err) : XPL_OK;
}

// What begins first, and of these what ends last; so what lies inside another comes behind it.
static int outer_first(const void *a, const void *b) {
    const struct occurrence *const x = a, *const y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end > y->end ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

// ---- time ----

struct stack {
    XPL_VEC(const struct occurrence *) open;
    int64_t now;
};

// Gives the time up to `t` to the events that began last.
static void pass_time(struct reading *r, struct stack *s, int64_t t) {
    while (s->open.n) {
        const struct occurrence *const top = s->open.v[s->open.n - 1];
        const int64_t until = top->end < t ? top->end : t;
        if (until > s->now) {
            r->states[top->group].self += (uint64_t)until - (uint64_t)s->now;
            s->now = until;
        }
        if (top->end > t) break;
        s->open.n--;
    }
    s->now = t;
}

// Whether it is an occurrence of its own: not inside another of its name.
static bool count_time(struct state *g, const struct occurrence *o) {
    if (g->n && o->begin < g->covered && o->end <= g->covered) return false;
    const int64_t begin = g->n && o->begin < g->covered ? g->covered : o->begin;
    g->total += (uint64_t)o->end - (uint64_t)begin;
    g->covered = o->end;
    g->n++;
    return true;
}

// Occurrences inside another of their name lose their group: UINT32_MAX.
static xpl_status_t sweep(struct reading *r, struct xpl_arena *scratch) {
    struct stack s = {.now = INT64_MIN};
    for (size_t i = 0; i < r->n; i++) {
        struct occurrence *const o = &r->v[i];
        pass_time(r, &s, o->begin);
        const struct occurrence **const slot = xpl_vec_push(scratch, &s.open);
        if (!slot) XPL_RETURN_OOM(r->err, "nested events");
        *slot = o;
    }
    pass_time(r, &s, INT64_MAX);
    for (size_t i = 0; i < r->n; i++)
        if (!count_time(&r->states[r->v[i].group], &r->v[i])) r->v[i].group = UINT32_MAX;
    return XPL_OK;
}

static xpl_status_t collect(struct reading *r) {
    struct xpl_timings_line *const l = r->l;
    l->groups = xpl_arena_array(&l->arena, r->groups.n, sizeof *l->groups);
    l->times = r->n ? xpl_sys_alloc(r->n * sizeof *l->times) : NULL;
    if (!l->groups || (r->n && !l->times)) XPL_RETURN_OOM(r->err, "times of events");
    size_t at = 0;
    for (size_t g = 0; g < r->groups.n; g++) {
        struct state *const s = &r->states[g];
        l->groups[g] = (struct xpl_timings_group){.name = r->groups.v[g],
                                                  .total_ps = s->total,
                                                  .self_ps = s->self,
                                                  .times = l->times + at,
                                                  .n = s->n};
        s->at = at, at += s->n;
    }
    l->n_groups = r->groups.n;
    for (size_t i = 0; i < r->n; i++) {
        const struct occurrence *const o = &r->v[i];
        if (o->group != UINT32_MAX)
            l->times[r->states[o->group].at++] = (uint64_t)o->end - (uint64_t)o->begin;
    }
    return XPL_OK;
}

static xpl_status_t read_line(struct reading *r, uint64_t max, struct xpl_exec *exec,
                              struct xpl_arena *scratch) {
    const struct xpl_line *const line = r->l->line;
    if (r->rules->by_id)
        r->names = xpl_intern_new(&r->l->arena, xpl_hash_seed());
    else
        r->group_of = xpl_arena_zalloc(scratch, line->plane->n_event_md * sizeof *r->group_of);
    if (!r->names && !r->group_of) XPL_RETURN_OOM(r->err, "names of events");
    const uint64_t most = max < line->n_events ? max : line->n_events;
    if (most > SIZE_MAX / sizeof *r->v) XPL_RETURN_OOM(r->err, "events");
    r->v = xpl_arena_array(scratch, (size_t)most, sizeof *r->v);
    if (!r->v) XPL_RETURN_OOM(r->err, "events");
    XPL_TRY(read_events(r, max, exec));
    if (!r->sorted) qsort(r->v, r->n, sizeof *r->v, outer_first);
    r->states = xpl_arena_zalloc(scratch, (r->groups.n + 1) * sizeof *r->states);
    if (!r->states) XPL_RETURN_OOM(r->err, "names of events");
    XPL_TRY(sweep(r, scratch));
    return collect(r);
}

void xpl_timings_line_read(struct xpl_timings_line *l, const struct xpl_timings_rules *rules,
                           uint64_t max, struct xpl_exec *exec, size_t limit) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    struct reading r = {.l = l, .rules = rules, .err = &l->err};
    xpl_arena_init(&scratch, limit);
    xpl_arena_init(&l->arena, limit);
    xpl_buf_init(&r.name, 1 << 20);
    l->status = read_line(&r, max, exec, &scratch);
    xpl_buf_fini(&r.name);
}

void xpl_timings_line_free(struct xpl_timings_line *l) {
    xpl_sys_free(l->times);
    xpl_arena_fini(&l->arena);
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
