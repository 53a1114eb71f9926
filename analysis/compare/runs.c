// SPDX-License-Identifier: Apache-2.0
// Joining equal parts of a run, and runs into a group.
#include <string.h>

#include "analysis/compare/impl.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"

// ---- orders ----

int xpl_run_row_cmp(const struct xpl_run_row *a, const struct xpl_run_row *b) {
    int c = 0;
    for (size_t i = 0; !c && i < XPL_RUN_TEXTS; i++)
        c = xpl_str_cmp(a->text[i], b->text[i]);
    return c ? c : (a->source_line > b->source_line) - (a->source_line < b->source_line);
}

static int row_order(const void *a, const void *b) {
    return xpl_run_row_cmp(a, b);
}
static int memory_order(const void *a, const void *b) {
    const struct xpl_run_memory *const x = a, *const y = b;
    return xpl_str_cmp(x->name, y->name);
}

// ---- joining ----

static void join_rows(struct xpl_run_rows *r) {
    size_t n = 0;
    xpl_sort(r->v, r->n, sizeof *r->v, row_order);
    for (size_t i = 0; i < r->n; i++) {
        struct xpl_run_row *const last = n ? &r->v[n - 1] : NULL;
        if (last && xpl_run_row_cmp(last, &r->v[i]) == 0) {
            last->ps = xpl_run_add(last->ps, r->v[i].ps);
            last->count = xpl_run_add(last->count, r->v[i].count);
        } else {
            r->v[n++] = r->v[i];
        }
    }
    r->n = n;
}

static void join_memory(struct xpl_run_summary *s) {
    size_t n = 0;
    xpl_sort(s->memory.v, s->memory.n, sizeof *s->memory.v, memory_order);
    for (size_t i = 0; i < s->memory.n; i++) {
        const struct xpl_run_memory *const m = &s->memory.v[i];
        struct xpl_run_memory *const last = n ? &s->memory.v[n - 1] : NULL;
        if (last && xpl_str_eq(last->name, m->name)) {
            if (m->peak_bytes > last->peak_bytes) last->peak_bytes = m->peak_bytes;
            if (m->capacity_bytes > last->capacity_bytes) last->capacity_bytes = m->capacity_bytes;
        } else {
            s->memory.v[n++] = *m;
        }
    }
    s->memory.n = n;
}

void xpl_run_summary_join(struct xpl_run_summary *s) {
    join_rows(&s->ops);
    join_rows(&s->kernels);
    join_memory(s);
}

// ---- groups ----

// Causes keep the order in which the first run has them, which is that of the breakdown.
static bool add_time(struct xpl_run_summary *s, const struct xpl_run_time *t,
                     struct xpl_arena *arena) {
    for (size_t i = 0; i < s->times.n; i++)
        if (xpl_str_eq(s->times.v[i].cause, t->cause)) {
            s->times.v[i].ps = xpl_run_add(s->times.v[i].ps, t->ps);
            return true;
        }
    struct xpl_run_time *const slot = xpl_vec_push(arena, &s->times);
    if (slot) *slot = *t;
    return slot;
}

// Each step may have another name.
static bool add_series(struct xpl_run_group *g, const struct xpl_run_series *l,
                       struct xpl_arena *arena) {
    struct xpl_run_summary *const s = &g->all;
    xpl_strid_t name;
    bool is_new;
    if (!g->names && !(g->names = xpl_intern_new(arena, xpl_hash_seed()))) return false;
    if (!xpl_intern_put(g->names, l->name, &name)) return false;
    uint64_t *const at = xpl_map_put(arena, &g->series_of, name.v, 0, &is_new);
    if (!at) return false;
    if (is_new) {
        struct xpl_run_series *const slot = xpl_vec_push(arena, &s->series);
        if (!slot) return false;
        *at = s->series.n - 1;
        *slot = *l;
    } else {
        s->series.v[*at].n_steps = xpl_run_add(s->series.v[*at].n_steps, l->n_steps);
        s->series.v[*at].ps = xpl_run_add(s->series.v[*at].ps, l->ps);
    }
    return true;
}

#define APPEND(arena, to, from)                                                                    \
    __extension__({                                                                                \
        const bool room = xpl_vec_reserve((arena), (to), (from)->n);                               \
        if (room && (from)->n) {                                                                   \
            memcpy((to)->v + (to)->n, (from)->v, (from)->n * sizeof *(from)->v);                   \
            (to)->n += (from)->n;                                                                  \
        }                                                                                          \
        room;                                                                                      \
    })

bool xpl_run_group_add(struct xpl_run_group *g, const struct xpl_run_summary *run,
                       struct xpl_arena *arena) {
    struct xpl_run_summary *const s = &g->all;
    const struct xpl_run_summary **const slot = xpl_vec_push(arena, &g->runs);
    if (!slot) return false;
    *slot = run;
    g->n_runs++;
    s->n_hosts = xpl_run_add(s->n_hosts, run->n_hosts);
    s->n_devices = xpl_run_add(s->n_devices, run->n_devices);
    s->units = xpl_run_add(s->units, run->units);
    for (size_t i = 0; i < run->times.n; i++)
        if (!add_time(s, &run->times.v[i], arena)) return false;
    for (size_t i = 0; i < run->series.n; i++)
        if (!add_series(g, &run->series.v[i], arena)) return false;
    return APPEND(arena, &s->steps, &run->steps) && APPEND(arena, &s->ops, &run->ops) &&
           APPEND(arena, &s->kernels, &run->kernels) && APPEND(arena, &s->memory, &run->memory);
}
