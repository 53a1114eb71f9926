// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/runs.h"

#include <ctype.h>

#include "base/arena.h"
#include "base/vec.h"

bool xpl_is_host_launch(xpl_str_t name) {
    return xpl_str_has(name, XPL_STR("Executable::ExecuteHelper")) ||
           xpl_str_has(name, XPL_STR("LoadedExecutable::Execute ("));
}

static bool is_kept(unsigned char c) {
    return c >= 0x80 || isalnum(c) || c == '.' || c == '-';
}

// JAX names the module of a function `f` "jit_f".  It keeps letters, digits, '.' and '-'; each
// other character becomes '_'.  Some releases drop such characters at the end: the module of
// `<lambda>` is "jit__lambda" then.
static uint64_t hash_of(const char *p, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); // FNV-1a
    while (n && !is_kept((unsigned char)p[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)p[i];
        h = (h ^ (is_kept(c) ? c : '_')) * UINT64_C(0x100000001b3);
    }
    return h ? h : 1;
}

uint64_t xpl_host_function_called(xpl_str_t name) {
    const xpl_str_t call = XPL_STR("PjitFunction(");
    if (!xpl_str_starts(name, call) || name.ptr[name.len - 1] != ')') return 0;
    return hash_of(name.ptr + call.len, name.len - call.len - 1);
}

uint64_t xpl_host_function_of_module(xpl_str_t module) {
    const size_t prefix = xpl_str_starts(module, XPL_STR("jit_")) ? 4 : 0;
    const xpl_str_t function = xpl_str_sub(module, prefix, SIZE_MAX); // an op may have no module
    return hash_of(function.ptr, function.len);
}

static bool is_same(const struct xpl_host_run *a, const struct xpl_host_run *b) {
    return a->id == b->id && a->function == b->function;
}

bool xpl_host_runs_add_op(struct xpl_host_runs *r, const struct xpl_host_run *op,
                          struct xpl_arena *arena) {
    struct xpl_host_run *run = r->runs.n ? &r->runs.v[r->runs.n - 1] : NULL;
    if (run && is_same(run, op)) {
        xpl_host_run_extend(run, op->begin_ps, op->end_ps, op->n_ops);
        return true;
    }
    if (!(run = xpl_vec_push(arena, &r->runs))) return false;
    *run = *op;
    return true;
}

bool xpl_host_runs_join(const struct xpl_host_runs *src, struct xpl_host_runs *dst,
                        struct xpl_arena *arena) {
    if (!xpl_vec_reserve(arena, &dst->runs, src->runs.n) ||
        !xpl_vec_reserve(arena, &dst->launches, src->launches.n) ||
        !xpl_vec_reserve(arena, &dst->calls, src->calls.n))
        return false;
    for (size_t i = 0; i < src->runs.n; i++)
        dst->runs.v[dst->runs.n++] = src->runs.v[i];
    for (size_t i = 0; i < src->launches.n; i++)
        dst->launches.v[dst->launches.n++] = src->launches.v[i];
    for (size_t i = 0; i < src->calls.n; i++)
        dst->calls.v[dst->calls.n++] = src->calls.v[i];
    return true;
}

// ---- orders ----

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_id(const void *pa, const void *pb) {
    const struct xpl_host_run *const a = pa, *const b = pb;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return compare(a->function, b->function);
}

static int by_time(const void *pa, const void *pb) {
    const struct xpl_host_run *const a = pa, *const b = pb;
    return a->begin_ps != b->begin_ps ? compare(a->begin_ps, b->begin_ps) : by_id(pa, pb);
}

static int by_function(const void *pa, const void *pb) {
    const struct xpl_host_run *const a = pa, *const b = pb;
    return a->function != b->function ? compare(a->function, b->function) : by_time(pa, pb);
}

static int by_caller(const void *pa, const void *pb) {
    const struct xpl_host_run *const a = pa, *const b = pb;
    return a->caller != b->caller ? compare(a->caller, b->caller) : by_time(pa, pb);
}

// Of those at the same time the one with an id encloses the others.
static int launches_by_time(const void *pa, const void *pb) {
    const struct xpl_host_launch *const a = pa, *const b = pb;
    if (a->begin_ps != b->begin_ps) return compare(a->begin_ps, b->begin_ps);
    if (a->end_ps != b->end_ps) return compare(b->end_ps, a->end_ps);
    if (a->has_id != b->has_id) return a->has_id ? -1 : 1;
    return (a->group > b->group) - (a->group < b->group);
}

// Outer ones first.
static int calls_by_time(const void *pa, const void *pb) {
    const struct xpl_host_call *const a = pa, *const b = pb;
    if (a->begin_ps != b->begin_ps) return compare(a->begin_ps, b->begin_ps);
    return a->end_ps != b->end_ps ? compare(b->end_ps, a->end_ps)
                                  : compare(a->function, b->function);
}

// Those with an id first, by id; the others by function and time.
static int launches_by_function(const void *pa, const void *pb) {
    const struct xpl_host_launch *const a = pa, *const b = pb;
    if (a->has_id != b->has_id) return a->has_id ? -1 : 1;
    if (a->has_id && a->id != b->id) return a->id < b->id ? -1 : 1;
    const int f = a->has_id ? 0 : compare(a->function, b->function);
    return f ? f : launches_by_time(pa, pb);
}

// ---- matching ----

void xpl_host_runs_name_launches(struct xpl_host_runs *r, size_t first) {
    struct xpl_host_call *const c = r->calls.v;
    struct xpl_host_launch *const v = r->launches.v;
    const size_t n = r->launches.n - first;
    if (r->calls.n && n) {
        xpl_sort(c, r->calls.n, sizeof *c, calls_by_time);
        xpl_sort(v + first, n, sizeof *v, launches_by_time);
    }
    size_t next = 0, open = 0; // the innermost call that has not ended, plus one
    for (size_t i = first; i < r->launches.n; i++) {
        while (next < r->calls.n && c[next].begin_ps <= v[i].begin_ps) {
            while (open && c[open - 1].end_ps < c[next].end_ps)
                open = c[open - 1].outer;
            c[next].outer = open;
            open = ++next;
        }
        while (open && c[open - 1].end_ps < v[i].end_ps)
            open = c[open - 1].outer;
        if (open) v[i].function = c[open - 1].function;
    }
    r->calls.n = 0;
}

static void join_equal_runs(struct xpl_host_runs *r) {
    size_t n = 0;
    xpl_sort(r->runs.v, r->runs.n, sizeof *r->runs.v, by_id);
    for (size_t i = 0; i < r->runs.n; i++) {
        struct xpl_host_run run = r->runs.v[i];
        run.group = -1;
        if (n && is_same(&r->runs.v[n - 1], &run))
            xpl_host_run_extend(&r->runs.v[n - 1], run.begin_ps, run.end_ps, run.n_ops);
        else
            r->runs.v[n++] = run;
    }
    r->runs.n = n;
}

// A launch with an id encloses those of its devices, which have none.
static void drop_inner_launches(struct xpl_host_runs *r) {
    size_t n = 0;
    uint64_t covered = 0;
    xpl_sort(r->launches.v, r->launches.n, sizeof *r->launches.v, launches_by_time);
    for (size_t i = 0; i < r->launches.n; i++) {
        const struct xpl_host_launch l = r->launches.v[i];
        if (!l.has_id && l.end_ps <= covered) continue;
        if (l.has_id && l.end_ps > covered) covered = l.end_ps;
        r->launches.v[n++] = l;
    }
    r->launches.n = n;
}

// Both are sorted by id.
static void match_ids(struct xpl_host_runs *r, size_t n_ids) {
    for (size_t i = 0, k = 0; i < r->runs.n; i++) {
        while (k < n_ids && r->launches.v[k].id < r->runs.v[i].id)
            k++;
        if (k < n_ids && r->launches.v[k].id == r->runs.v[i].id)
            r->runs.v[i].group = r->launches.v[k].group;
    }
}

static void match_sequence(struct xpl_host_run *runs, size_t n_runs,
                           const struct xpl_host_launch *launches, size_t n_launches) {
    int64_t shift = n_runs > n_launches ? (int64_t)n_launches - (int64_t)n_runs : 0;
    for (size_t i = 0, begun = 0; i < n_runs; i++) {
        while (begun < n_launches && launches[begun].begin_ps <= runs[i].begin_ps)
            begun++;
        if (runs[i].is_early) begun = 0;
        if ((int64_t)begun - 1 - (int64_t)i < shift) shift = (int64_t)begun - 1 - (int64_t)i;
    }
    for (size_t i = 0; i < n_runs; i++) {
        const int64_t at = (int64_t)i + shift;
        if (at < 0 || at >= (int64_t)n_launches || runs[i].group >= 0) continue;
        runs[i].group = launches[at].group;
    }
}

// Whatever no launch or no execution has the name of loses it, for matching.  Both are sorted by
// function, launches from `first` on.
static void set_callers(struct xpl_host_runs *r, size_t first) {
    size_t i = first, k = 0;
    while (i < r->launches.n || k < r->runs.n) {
        const uint64_t launched = i < r->launches.n ? r->launches.v[i].function : UINT64_MAX;
        const uint64_t run = k < r->runs.n ? r->runs.v[k].function : UINT64_MAX;
        const uint64_t function = launched < run ? launched : run;
        const uint64_t name = launched == run ? function : 0;
        for (; i < r->launches.n && r->launches.v[i].function == function; i++)
            r->launches.v[i].function = name;
        for (; k < r->runs.n && r->runs.v[k].function == function; k++)
            r->runs.v[k].caller = name;
    }
}

static void match_functions(struct xpl_host_runs *r, size_t first) {
    const size_t n = r->launches.n;
    if (!r->runs.n || n == first) return;
    xpl_sort(r->runs.v, r->runs.n, sizeof *r->runs.v, by_function);
    set_callers(r, first);
    xpl_sort(r->runs.v, r->runs.n, sizeof *r->runs.v, by_caller);
    xpl_sort(r->launches.v + first, n - first, sizeof *r->launches.v, launches_by_function);
    for (size_t i = first, k = 0, end, last; i < n && k < r->runs.n; i = end, k = last) {
        const uint64_t function = r->launches.v[i].function;
        for (end = i; end < n && r->launches.v[end].function == function;)
            end++;
        while (k < r->runs.n && r->runs.v[k].caller < function)
            k++;
        for (last = k; last < r->runs.n && r->runs.v[last].caller == function;)
            last++;
        match_sequence(&r->runs.v[k], last - k, &r->launches.v[i], end - i);
    }
}

bool xpl_host_runs_cut(const struct xpl_host_runs *r, bool at_end, size_t *ret) {
    size_t first = 0, last = 0, others = 0;
    uint64_t n_ops = 0; // of each of the others
    for (size_t i = 1; i < r->runs.n; i++) {
        if (r->runs.v[i].begin_ps < r->runs.v[first].begin_ps) first = i;
        if (r->runs.v[i].begin_ps > r->runs.v[last].begin_ps) last = i;
    }
    *ret = at_end ? last : first;
    for (size_t i = 0; i < r->runs.n; i++) {
        // The other end may be cut, too.
        if (i == first || i == last || r->runs.v[i].function != r->runs.v[*ret].function) continue;
        if (r->runs.v[i].n_ops <= r->runs.v[*ret].n_ops) return false;
        if (others++ && r->runs.v[i].n_ops != n_ops) return false; // loops of different lengths
        n_ops = r->runs.v[i].n_ops;
    }
    return others > 1;
}

void xpl_host_runs_match(struct xpl_host_runs *r) {
    size_t n_ids = 0, first;
    join_equal_runs(r);
    if (xpl_host_runs_cut(r, false, &first)) r->runs.v[first].is_early = true;
    drop_inner_launches(r);
    xpl_sort(r->launches.v, r->launches.n, sizeof *r->launches.v, launches_by_function);
    while (n_ids < r->launches.n && r->launches.v[n_ids].has_id)
        n_ids++;
    match_ids(r, n_ids);
    match_functions(r, n_ids);
}
