// SPDX-License-Identifier: Apache-2.0
// Our rules: line by line, then what lines have of each name together.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/events/line.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text/regex.h"
#include "base/vec.h"

struct summing {
    const struct xpl_timings_rules *rules;
    struct xpl_exec *exec;
    struct xpl_timings_line *lines;
    size_t n;
    size_t limit;
};

static void read_one(void *ctx, size_t i) {
    struct summing *const s = ctx;
    xpl_timings_line_read(&s->lines[i], s->rules, UINT64_MAX, s->exec, s->limit);
}

// With a maximum of each profile, what a line may have depends on those before it.
static void read_in_order(struct summing *s, bool *ret_cut) {
    const struct xpl_xspace *space = NULL;
    uint64_t left = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct xpl_timings_line *const l = &s->lines[i];
        if (l->line->plane->space != space) left = s->rules->max_events;
        space = l->line->plane->space;
        xpl_timings_line_read(l, s->rules, left, s->exec, s->limit);
        left -= l->n_events;
        *ret_cut |= l->is_cut;
        if (l->status != XPL_OK) return;
    }
}

static xpl_status_t list_lines(struct summing *s, const struct xpl_plane *const *planes, size_t n,
                               struct xpl_arena *arena, struct xpl_error *err) {
    for (size_t p = 0; p < n; p++)
        s->n += planes[p]->n_lines;
    s->lines = xpl_arena_zalloc(arena, (s->n + 1) * sizeof *s->lines);
    if (!s->lines) XPL_RETURN_OOM(err, "lines");
    size_t at = 0;
    for (size_t p = 0; p < n; p++)
        for (uint32_t i = 0; i < planes[p]->n_lines; i++)
            s->lines[at++].line = &planes[p]->lines[i];
    return XPL_OK;
}

// ---- one name ----

struct part {
    const struct xpl_timings_group *group;
    size_t next; // 1 + its index; 0: none
};
struct name {
    size_t first, last; // 1 + indexes of its parts
    uint64_t total, self, n;
};

struct merging {
    struct xpl_intern *names;
    XPL_VEC(struct name) v;
    XPL_VEC(struct part) parts;
    uint64_t *times, *scratch; // room for the name with the most occurrences
};

static bool add_part(struct merging *m, const struct xpl_timings_group *g,
                     struct xpl_arena *arena) {
    xpl_strid_t id;
    if (!xpl_intern_put(m->names, g->name, &id)) return false;
    while (m->v.n <= id.v) {
        struct name *const slot = xpl_vec_push(arena, &m->v);
        if (!slot) return false;
        *slot = (struct name){0};
    }
    struct part *const part = xpl_vec_push(arena, &m->parts);
    if (!part) return false;
    *part = (struct part){.group = g};
    struct name *const name = &m->v.v[id.v];
    if (name->last)
        m->parts.v[name->last - 1].next = m->parts.n;
    else
        name->first = m->parts.n;
    name->last = m->parts.n;
    name->total += g->total_ps, name->self += g->self_ps, name->n += g->n;
    return true;
}

// The least number that p percent of all are not greater than.
static size_t rank_of(uint64_t n, unsigned p) {
    const uint64_t r = n / 100 * p + (n % 100 * p + 99) / 100;
    return (size_t)(r ? r - 1 : 0);
}

static void measure(const struct merging *m, const struct name *name, struct xpl_timings_row *row) {
    const uint64_t *v = m->parts.v[name->first - 1].group->times;
    size_t n = 0;
    if (m->parts.v[name->first - 1].next) {
        for (size_t p = name->first; p; p = m->parts.v[p - 1].next) {
            const struct xpl_timings_group *const g = m->parts.v[p - 1].group;
            if (g->n) memcpy(m->times + n, g->times, g->n * sizeof *v);
            n += g->n;
        }
        v = m->times;
    }
    double sum = 0, squares = 0;
    n = (size_t)name->n;
    row->min_ps = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        sum += (double)v[i];
        if (v[i] < row->min_ps) row->min_ps = v[i];
    }
    row->mean_ps = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)v[i] - row->mean_ps) * ((double)v[i] - row->mean_ps);
    row->std_ps = sqrt(squares / (double)n);
    row->p50_ps = xpl_timings_nth(v, n, rank_of(n, 50), m->scratch);
    row->p99_ps = xpl_timings_nth(v, n, rank_of(n, 99), m->scratch);
}

// ---- all names ----

static int greater_first(const void *a, const void *b) {
    const struct xpl_timings_row *const x = a, *const y = b;
    if (x->total_ps != y->total_ps) return x->total_ps > y->total_ps ? -1 : 1;
    return xpl_str_cmp(x->name, y->name);
}

static xpl_status_t is_wanted(const struct xpl_timings_rules *rules, xpl_str_t name, bool *ret,
                              struct xpl_error *err) {
    *ret = xpl_str_starts(name, rules->prefix);
    return *ret && rules->match ? xpl_regex_search(rules->match, name, ret, err) : XPL_OK;
}

static xpl_status_t merge(const struct summing *s, struct merging *m, struct xpl_arena *scratch,
                          struct xpl_error *err) {
    m->names = xpl_intern_new(scratch, xpl_hash_seed());
    if (!m->names) XPL_RETURN_OOM(err, "names of events");
    for (size_t i = 0; i < s->n; i++)
        for (size_t g = 0; g < s->lines[i].n_groups; g++)
            if (s->lines[i].groups[g].n && !add_part(m, &s->lines[i].groups[g], scratch))
                XPL_RETURN_OOM(err, "names of events");
    uint64_t most = 0;
    for (size_t i = 0; i < m->v.n; i++)
        if (m->v.v[i].n > most) most = m->v.v[i].n;
    m->times = xpl_arena_array(scratch, (size_t)most, sizeof *m->times);
    m->scratch = xpl_arena_array(scratch, (size_t)most, sizeof *m->scratch);
    if (!m->times || !m->scratch) XPL_RETURN_OOM(err, "times of events");
    return XPL_OK;
}

static xpl_status_t make_rows(const struct summing *s, struct xpl_arena *arena,
                              struct xpl_timings_rows *ret, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch;
    xpl_arena_init(&scratch, s->limit);
    struct merging m = {0};
    XPL_TRY(merge(s, &m, &scratch, err));
    ret->v = xpl_arena_array(arena, m.v.n, sizeof *ret->v);
    if (!ret->v) XPL_RETURN_OOM(err, "rows of events");
    for (size_t i = 0; i < m.v.n; i++) {
        const struct name *const name = &m.v.v[i];
        const xpl_strid_t id = {(uint32_t)i};
        bool wanted = name->n > 0;
        if (i % 256 == 0 && xpl_exec_cancelled(s->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
        if (wanted) XPL_TRY(is_wanted(s->rules, xpl_intern_get(m.names, id), &wanted, err));
        if (!wanted) continue;
        struct xpl_timings_row *const row = &ret->v[ret->n++];
        *row = (struct xpl_timings_row){
            .count = name->n, .total_ps = name->total, .self_ps = name->self};
        if (!xpl_arena_str(arena, xpl_intern_get(m.names, id), &row->name))
            XPL_RETURN_OOM(err, "rows of events");
        measure(&m, name, row);
    }
    if (ret->n) qsort(ret->v, ret->n, sizeof *ret->v, greater_first);
    return XPL_OK;
}

static xpl_status_t name_planes(const struct xpl_plane *const *planes, size_t n,
                                struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                struct xpl_error *err) {
    XPL_VEC(xpl_str_t) list = {0};
    struct xpl_intern *const names = xpl_intern_new(arena, xpl_hash_seed());
    if (!names) XPL_RETURN_OOM(err, "planes");
    for (size_t i = 0; i < n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(names, planes[i]->name, &id)) XPL_RETURN_OOM(err, "planes");
        if (id.v != list.n + 1) continue; // known, or without a name
        xpl_str_t *const slot = xpl_vec_push(arena, &list);
        if (!slot) XPL_RETURN_OOM(err, "planes");
        *slot = xpl_intern_get(names, id);
    }
    ret->planes = list.v, ret->n_planes = list.n;
    return XPL_OK;
}

xpl_status_t xpl_timings_sum_up(const struct xpl_xspace *const *spaces, size_t n,
                                const struct xpl_timings_rules *rules, struct xpl_exec *exec,
                                struct xpl_arena *arena, struct xpl_timings_rows *ret,
                                struct xpl_error *err) {
    const struct xpl_plane **planes = NULL;
    size_t n_planes = 0;
    struct summing s = {.rules = rules, .exec = exec, .limit = arena->limit};
    *ret = (struct xpl_timings_rows){0};
    XPL_TRY(xpl_timings_planes(spaces, n, rules->plane, arena, &planes, &n_planes, err));
    XPL_TRY(name_planes(planes, n_planes, arena, ret, err));
    XPL_TRY(list_lines(&s, planes, n_planes, arena, err));
    if (rules->max_events == UINT64_MAX)
        xpl_exec_run(exec, s.n, read_one, &s);
    else
        read_in_order(&s, &ret->is_cut);
    xpl_status_t st = XPL_OK;
    for (size_t i = 0; i < s.n && st == XPL_OK; i++) {
        st = s.lines[i].status;
        if (st != XPL_OK && err) *err = s.lines[i].err;
        ret->n_events += s.lines[i].n_events;
    }
    if (st == XPL_OK) st = make_rows(&s, arena, ret, err);
    for (size_t i = 0; i < s.n; i++)
        xpl_timings_line_free(&s.lines[i]);
    return st;
}
