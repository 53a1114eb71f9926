// SPDX-License-Identifier: Apache-2.0
// Tracks of TPUs, and which run of a program each event belongs to.

#include "analysis/tools/megascale/names.h"
#include "analysis/tools/megascale/trace.h"
#include "base/std_sort.h"
#include "base/vec.h"

static const struct {
    const char *line, *track;
    enum xpl_mgtrace_kind kind;
} kLines[] = {
    {"Steps", "1. Steps", XPL_MGTRACE_STEPS},
    {"XLA Modules", "2. XLA Modules", XPL_MGTRACE_MODULES},
    {"XLA Ops", "3. XLA Ops", XPL_MGTRACE_OPS},
    {"XLA TraceMe", "4. XLA TraceMe", XPL_MGTRACE_MARKS},
};
enum { LINES = sizeof kLines / sizeof *kLines, CANCEL_EVERY = 4096 };

// ---- events ----

xpl_status_t xpl_mgtrace_cancelled(const struct xpl_mgtrace *t, struct xpl_error *err) {
    if (xpl_exec_cancelled(t->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "megascale cancelled");
    return XPL_OK;
}

bool xpl_mgtrace_add(struct xpl_mgtrace *t, struct xpl_mgtrace_track *to, const struct xpl_line *l,
                     const struct xpl_event *ev) {
    struct xpl_mgtrace_event *const e = xpl_vec_push(t->arena, &to->v);
    if (e)
        *e = (struct xpl_mgtrace_event){.line = l,
                                        .begin_ps = xpl_event_begin_ps(l, ev),
                                        .duration_ps = ev->duration_ps,
                                        .run = -1,
                                        .at = ev->at,
                                        .md = ev->md};
    return e != NULL;
}

static bool comes_first(const void *ctx, const void *a, const void *b) {
    const struct xpl_mgtrace_event *const x = a, *const y = b;
    (void)ctx;
    if (x->begin_ps != y->begin_ps) return x->begin_ps < y->begin_ps;
    return x->duration_ps > y->duration_ps;
}

void xpl_mgtrace_sort(struct xpl_mgtrace_track *track) {
    if (track->v.n > 1) xpl_std_sort(track->v.v, track->v.n, sizeof *track->v.v, comes_first, NULL);
}

xpl_status_t xpl_mgtrace_find(const struct xpl_mgtrace_event *e, xpl_str_t name,
                              enum xpl_stat_kind kind, struct xpl_stat *ret, bool *ret_found,
                              struct xpl_error *err) {
    struct xpl_event ev;
    XPL_TRY(xpl_event_at(e->line, e->at, &ev, err));
    struct xpl_stats lists[] = {xpl_event_md_stats(e->line->plane, xpl_mgtrace_md(e)), ev.stats};
    for (size_t i = 0; i < 2; i++)
        while (xpl_stats_next(&lists[i], ret) == XPL_WIRE_FIELD) {
            if (!xpl_str_eq(ret->md->name, name)) continue;
            if (kind == XPL_VALUE_STR && ret->kind == XPL_VALUE_BYTES) ret->str = XPL_STR("");
            const bool text = ret->kind == XPL_VALUE_STR || ret->kind == XPL_VALUE_REF ||
                              ret->kind == XPL_VALUE_BYTES;
            *ret_found = kind == XPL_VALUE_STR ? text : ret->kind == kind;
            if (*ret_found) return XPL_OK;
        }
    *ret_found = false;
    return XPL_OK;
}

// ---- planes ----

static xpl_status_t read_line(struct xpl_mgtrace *t, struct xpl_mgtrace_track *track,
                              const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0) XPL_TRY(xpl_mgtrace_cancelled(t, err));
        if (!xpl_mgtrace_add(t, track, l, &ev)) XPL_RETURN_OOM(err, "megascale");
    }
    if (got != XPL_WIRE_END) return xpl_events_error(&c, err);
    xpl_mgtrace_sort(track);
    return XPL_OK;
}

static xpl_status_t read_plane(struct xpl_mgtrace *t, struct xpl_mgtrace_device *d,
                               const struct xpl_plane *p, struct xpl_error *err) {
    for (uint32_t i = 0; i < p->n_lines; i++)
        for (size_t k = 0; k < LINES; k++) {
            if (!xpl_str_eq(p->lines[i].name, xpl_str_from(kLines[k].line))) continue;
            struct xpl_mgtrace_track *const track = xpl_vec_push(t->arena, &d->tracks);
            if (!track) XPL_RETURN_OOM(err, "megascale");
            *track = (struct xpl_mgtrace_track){.kind = kLines[k].kind,
                                                .name = xpl_str_from(kLines[k].track)};
            XPL_TRY(read_line(t, track, &p->lines[i], err));
        }
    return XPL_OK;
}

struct plane {
    int64_t number;
    const struct xpl_plane *p;
};

static int by_number(const void *a, const void *b) {
    const struct plane *const x = a, *const y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return (x->p->index > y->p->index) - (x->p->index < y->p->index);
}

static xpl_status_t read_device(struct xpl_mgtrace *t, const struct plane *p,
                                struct xpl_error *err) {
    const bool twin = t->numbers.n && t->numbers.v[t->numbers.n - 1] == p->number;
    int64_t *const number = xpl_vec_push(t->arena, &t->numbers);
    if (!number) XPL_RETURN_OOM(err, "megascale");
    *number = p->number;
    if (!twin) {
        struct xpl_mgtrace_device *const d = xpl_vec_push(t->arena, &t->devices);
        if (!d) XPL_RETURN_OOM(err, "megascale");
        *d = (struct xpl_mgtrace_device){.number = p->number};
    }
    return read_plane(t, &t->devices.v[t->devices.n - 1], p->p, err);
}

xpl_status_t xpl_mgtrace_read_tpus(struct xpl_mgtrace *t, const struct xpl_xspace *xs,
                                   struct xpl_error *err) {
    struct plane *const v = xpl_arena_array(t->arena, xs->n_planes, sizeof *v);
    size_t n = 0;
    if (!v) XPL_RETURN_OOM(err, "megascale");
    for (uint32_t i = 0; i < xs->n_planes; i++) {
        v[n].p = &xs->planes[i];
        n += v[n].p->kind == XPL_PLANE_TPU_CORE &&
             xpl_mgtrace_tpu_number(v[n].p->name, &v[n].number);
    }
    xpl_sort(v, n, sizeof *v, by_number);
    for (size_t i = 0; i < n; i++)
        XPL_TRY(read_device(t, &v[i], err));
    return XPL_OK;
}

// ---- runs ----

// A run has the number that the profile gives it, else those are counted that have none.
static xpl_status_t number_modules(struct xpl_mgtrace *t, struct xpl_mgtrace_device *d,
                                   struct xpl_mgtrace_track *track, struct xpl_error *err) {
    int64_t next = 1;
    for (size_t i = 0; i < track->v.n; i++) {
        struct xpl_mgtrace_event *const e = &track->v.v[i];
        struct xpl_stat s;
        XPL_TRY(xpl_mgtrace_find(e, XPL_STR("run_id"), XPL_VALUE_UINT, &s, &e->own_run, err));
        e->has_run = true;
        e->run = e->own_run ? (int64_t)s.u : next++;
        struct xpl_mgtrace_run *const r = xpl_vec_push(t->arena, &d->runs);
        if (!r) XPL_RETURN_OOM(err, "megascale");
        *r = (struct xpl_mgtrace_run){e->begin_ps, e->run};
    }
    return XPL_OK;
}

// Other events belong to the module that began last before them.  Modules of several lines, which
// may be out of order, are searched as if they were in order, step by step as in XProf.
static void number_others(const struct xpl_mgtrace_device *d, struct xpl_mgtrace_track *track) {
    for (size_t i = 0; i < track->v.n; i++) {
        struct xpl_mgtrace_event *const e = &track->v.v[i];
        size_t low = 0, n = d->runs.n; // the first that begins later is in [low, low + n]
        while (n) {
            const size_t half = n / 2;
            const bool later = d->runs.v[low + half].begin_ps > e->begin_ps;
            low += later ? 0 : half + 1;
            n = later ? half : n - half - 1;
        }
        e->has_run = low > 0;
        e->run = low ? d->runs.v[low - 1].run : -1;
    }
}

xpl_status_t xpl_mgtrace_number_runs(struct xpl_mgtrace *t, struct xpl_error *err) {
    for (size_t i = 0; i < t->devices.n; i++) {
        struct xpl_mgtrace_device *const d = &t->devices.v[i];
        for (size_t k = 0; k < d->tracks.n; k++)
            if (d->tracks.v[k].kind == XPL_MGTRACE_MODULES)
                XPL_TRY(number_modules(t, d, &d->tracks.v[k], err));
        for (size_t k = 0; k < d->tracks.n; k++)
            if (d->tracks.v[k].kind != XPL_MGTRACE_MODULES) number_others(d, &d->tracks.v[k]);
        // A graph may have this name; then its run is unknown.
        for (size_t k = 0; k < d->host_tracks.n; k++)
            if (!xpl_str_has(d->host_tracks.v[k].name, XPL_STR("XLA Modules")))
                number_others(d, &d->host_tracks.v[k]);
    }
    return XPL_OK;
}
