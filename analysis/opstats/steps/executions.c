// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/executions.h"

#include "analysis/opstats/steps/step_number.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192 };

bool xpl_execution_name(xpl_str_t program, size_t index, struct xpl_arena *arena, xpl_str_t *ret) {
    return xpl_arena_printf(arena, ret, XPL_STEP_EXECUTION "%.*s %zu", (int)program.len,
                            program.ptr, index);
}

bool xpl_execution_at(const struct xpl_executions *e, uint64_t time_ps, size_t *ret) {
    size_t lo = 0, hi = e->n; // the first one that begins later
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (xpl_time_is_before(time_ps, e->v[mid].begin_ps))
            hi = mid;
        else
            lo = mid + 1;
    }
    if (!lo || (lo == e->n && !xpl_time_is_before(time_ps, xpl_timespan_end(e->v[lo - 1]))))
        return false;
    *ret = lo - 1;
    return true;
}

// ---- programs ----

// One execution, or an op of one.
struct run {
    uint64_t begin_ps, end_ps;
    uint32_t program, op; // interned; op: 0 for an execution
};
struct finding {
    const struct xpl_convert *c;
    struct xpl_arena *arena;
    struct xpl_intern *names;
    uint32_t *of_event; // by position of the metadata: interned names; 0: not yet
    XPL_VEC(struct run) runs;
};

static int by_time(const void *pa, const void *pb) {
    const struct run *const a = pa, *const b = pb;
    if (a->begin_ps != b->begin_ps) return xpl_time_is_before(a->begin_ps, b->begin_ps) ? -1 : 1;
    return (a->end_ps < b->end_ps) - (a->end_ps > b->end_ps);
}

static void sort(struct finding *f) {
    xpl_sort(f->runs.v, f->runs.n, sizeof *f->runs.v, by_time);
}

struct total {
    uint64_t ps;
    size_t n;
};

// The program that takes most time, of those that run at least twice; 0: none.
static bool greatest(const struct finding *f, uint32_t *ret) {
    uint32_t most = 0;
    for (size_t i = 0; i < f->runs.n; i++)
        if (f->runs.v[i].program > most) most = f->runs.v[i].program;
    struct total *const t = xpl_arena_zalloc(f->arena, (most + 1) * sizeof *t);
    if (!t) return false;
    *ret = 0;
    for (size_t i = 0; i < f->runs.n; i++) {
        const struct run *const r = &f->runs.v[i];
        t[r->program].ps += r->end_ps - r->begin_ps;
        t[r->program].n++;
    }
    for (uint32_t i = 1; i <= most; i++)
        if (t[i].n > 1 && (!*ret || t[i].ps > t[*ret].ps)) *ret = i;
    return true;
}

// Ops become executions: one ends where another program runs, or where its first op runs again.
static void join_ops(struct finding *f) {
    size_t n = 0;
    uint32_t first = 0, last = 0;
    sort(f);
    for (size_t i = 0; i < f->runs.n; i++) {
        const struct run op = f->runs.v[i];
        struct run *const open = n ? &f->runs.v[n - 1] : NULL;
        if (!open || open->program != op.program || (op.op == first && last != first)) {
            f->runs.v[n++] = (struct run){op.begin_ps, op.end_ps, op.program, 0};
            first = op.op;
        } else if (xpl_time_is_before(open->end_ps, op.end_ps)) {
            open->end_ps = op.end_ps;
        }
        last = op.op;
    }
    f->runs.n = n;
}

// "jit_f(17)" is an execution of jit_f.
static xpl_str_t program_of_module(xpl_str_t name) {
    size_t n = name.len;
    while (n && name.ptr[n - 1] != '(')
        n--;
    return n > 1 ? xpl_str_sub(name, 0, n - 1) : name;
}

// Names are the profile's.
static bool intern(struct finding *f, xpl_str_t name, uint32_t *ret) {
    xpl_strid_t id;
    if (!xpl_intern_put_view(f->names, name, &id)) return false;
    *ret = id.v;
    return true;
}

static bool add_run(struct finding *f, const struct xpl_line *line, const struct xpl_event *ev,
                    uint32_t program, uint32_t op) {
    const uint64_t begin = (uint64_t)xpl_event_begin_ps(line, ev);
    if (!program) return true;
    struct run *const r = xpl_vec_push(f->arena, &f->runs);
    if (!r) return false;
    *r = (struct run){begin, begin + (uint64_t)ev->duration_ps, program, op};
    return true;
}

static bool add_module(struct finding *f, const struct xpl_line *line, const struct xpl_event *ev) {
    uint32_t *const id = &f->of_event[ev->md];
    if (!*id && !intern(f, program_of_module(line->plane->event_md[ev->md].name), id)) return false;
    return add_run(f, line, ev, *id, 0);
}

static bool add_op(struct finding *f, const struct xpl_line *line, const struct xpl_event *ev) {
    struct xpl_stat module, op;
    uint32_t program, op_id = 0;
    if (!xpl_stats_get(ev->stats, XPL_STAT_HLO_MODULE, &module)) return true;
    if (!intern(f, xpl_stat_str(&module), &program)) return false;
    if (xpl_stats_get(ev->stats, XPL_STAT_HLO_OP, &op) && !intern(f, xpl_stat_str(&op), &op_id))
        return false;
    return add_run(f, line, ev, program, op_id);
}

static xpl_status_t read_line(struct finding *f, const struct xpl_line *line, bool modules,
                              struct xpl_error *err) {
    struct xpl_event_cursor cur = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cur, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(f->c->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "executions: cancelled");
        if (!xpl_convert_is_possible(f->c, &ev) || !ev.duration_ps) continue;
        if (!(modules ? add_module(f, line, &ev) : add_op(f, line, &ev)))
            XPL_RETURN_OOM(err, "executions");
    }
    return r == XPL_WIRE_MALFORMED ? xpl_events_error(&cur, err) : XPL_OK;
}

static xpl_status_t read_plane(struct finding *f, const struct xpl_plane *p,
                               struct xpl_error *err) {
    const bool modules = p->kind != XPL_PLANE_GPU;
    f->of_event = xpl_arena_zalloc(f->arena, p->n_event_md * sizeof *f->of_event);
    if (!f->of_event) XPL_RETURN_OOM(err, "executions");
    for (uint32_t i = 0; i < p->n_lines; i++) {
        const struct xpl_line *const l = &p->lines[i];
        if (xpl_is_derived_line_id(l->id) && !modules) continue;
        if (modules && !xpl_str_eq(l->name, XPL_STR(XPL_LINE_XLA_MODULES))) continue;
        XPL_TRY(read_line(f, l, modules, err));
    }
    if (modules)
        sort(f);
    else
        join_ops(f);
    return XPL_OK;
}

xpl_status_t xpl_executions_find(const struct xpl_convert *c, const struct xpl_plane *plane,
                                 xpl_str_t program, struct xpl_arena *arena,
                                 struct xpl_executions *ret, struct xpl_error *err) {
    struct finding f = {.c = c, .arena = arena, .names = xpl_intern_new(arena, xpl_hash_seed())};
    xpl_strid_t id = {0};
    *ret = (struct xpl_executions){.program = XPL_STR("")};
    if (!f.names) XPL_RETURN_OOM(err, "executions");
    XPL_TRY(read_plane(&f, plane, err));
    if (!(program.len ? xpl_intern_put(f.names, program, &id) : greatest(&f, &id.v)))
        XPL_RETURN_OOM(err, "executions");
    ret->v = xpl_arena_array(arena, f.runs.n, sizeof *ret->v);
    if (!ret->v) XPL_RETURN_OOM(err, "executions");
    for (size_t i = 0; id.v && i < f.runs.n; i++) {
        const struct run *const r = &f.runs.v[i];
        if (r->program == id.v)
            ret->v[ret->n++] = (struct xpl_timespan){r->begin_ps, r->end_ps - r->begin_ps};
    }
    if (ret->n) ret->program = xpl_intern_get(f.names, id);
    return XPL_OK;
}

// ---- hosts ----

static int runs_by_function(const void *pa, const void *pb) {
    const struct xpl_host_run *const a = pa, *const b = pb;
    if (a->function != b->function) return a->function < b->function ? -1 : 1;
    return (a->begin_ps > b->begin_ps) - (a->begin_ps < b->begin_ps);
}

bool xpl_steps_add_runs(struct xpl_steps *steps, const struct xpl_host_runs *runs,
                        struct xpl_arena *scratch) {
    size_t best = 0, n_best = 0;
    uint64_t most = 0;
    int64_t id = 0; // none that another group has
    for (size_t i = 0; i < steps->v.n; i++) {
        if (steps->v.v[i].host_marker.duration_ps) return true;
        if (steps->v.v[i].id >= id && steps->v.v[i].id < INT32_MAX) id = steps->v.v[i].id + 1;
    }
    struct xpl_host_run *const v = xpl_arena_array(scratch, runs->runs.n, sizeof *v);
    size_t n = 0, first, last;
    if (!v) return false;
    const bool no_first = xpl_host_runs_cut(runs, false, &first),
               no_last = xpl_host_runs_cut(runs, true, &last);
    for (size_t i = 0; i < runs->runs.n; i++)
        if (!(no_first && i == first) && !(no_last && i == last)) v[n++] = runs->runs.v[i];
    xpl_sort(v, n, sizeof *v, runs_by_function);
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t ps = 0;
        for (end = i; end < n && v[end].function == v[i].function; end++)
            ps += v[end].end_ps - v[end].begin_ps;
        if (end - i > 1 && v[i].module.len && ps > most) best = i, n_best = end - i, most = ps;
    }
    for (size_t i = 0; i < n_best; i++) {
        const struct xpl_host_run *const r = &v[best + i];
        struct xpl_step *const st = xpl_steps_put(steps, id + (int64_t)i);
        if (!st || !xpl_execution_name(r->module, i, steps->arena, &st->name)) return false;
        st->host_marker = (struct xpl_timespan){r->begin_ps, r->end_ps - r->begin_ps};
        xpl_step_add_work(st, st->host_marker);
    }
    return true;
}
