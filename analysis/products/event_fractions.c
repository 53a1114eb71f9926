// SPDX-License-Identifier: Apache-2.0
#include "analysis/products/event_fractions.h"

#include "analysis/grouping/groups.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 8192, NO_WAIT_PS = 1250 };

// What the events of one step took on planes of one name.
struct share {
    int64_t step;
    uint32_t plane; // the name, interned
    double sum;     // of parts of the step
};

struct reader {
    const struct xpl_xspace *xs;
    xpl_str_t word;
    bool barriers; // the word is the one whose events may be no wait
    struct xpl_exec *exec;
    struct xpl_arena scratch;
    struct xpl_groups *groups;
    struct xpl_intern *planes; // their names
    struct xpl_map last;       // position of the last plane of a name
    XPL_VEC(struct share) shares;
    struct xpl_map by_step_and_plane;
    struct xpl_map durations; // of steps, as the last plane with such an event has them
    struct xpl_map own;       // durations of steps, by step and name of the plane
    struct xpl_map n_own;     // how many of these a name has
    // Of the current plane:
    uint8_t *wanted; // by event metadata: its name has the word
    xpl_strid_t name;
    uint64_t n_events; // read so far, of all planes
};

// ---- events ----

static bool add(struct reader *r, int64_t step, uint64_t duration_ps) {
    const uint64_t *const whole = xpl_map_get(&r->own, (uint64_t)step, r->name.v);
    bool is_new;
    if (r->barriers && (duration_ps == 0 || duration_ps == NO_WAIT_PS)) return true;
    if (!whole || !*whole) return true;
    uint64_t *const at =
        xpl_map_put(&r->scratch, &r->by_step_and_plane, (uint64_t)step, r->name.v, &is_new);
    if (!at) return false;
    if (is_new) {
        struct share *const s = xpl_vec_push(&r->scratch, &r->shares);
        if (!s) return false;
        *s = (struct share){.step = step, .plane = r->name.v};
        *at = r->shares.n - 1;
    }
    r->shares.v[*at].sum += (double)(float)((double)duration_ps / (double)*whole);
    uint64_t *const duration = xpl_map_put(&r->scratch, &r->durations, (uint64_t)step, 0, &is_new);
    if (duration) *duration = *whole;
    return duration != NULL;
}

// An event that counts, of a known group.
static bool add_event(struct reader *r, const struct xpl_event *ev, int64_t group) {
    struct xpl_stat s;
    if (!xpl_stats_get(ev->stats, XPL_STAT_DEVICE_DURATION_PS, &s)) return true;
    return add(r, group, xpl_stat_uint(&s));
}

// The first of neighbours with one group represents all.
static bool add_step(struct reader *r, const struct xpl_step_event *s) {
    return s->is_merged && s->has_device_time ? add(r, s->group_id, (uint64_t)s->device_duration_ps)
                                              : add_event(r, &s->ev, s->group_id);
}

static xpl_status_t read_line(struct reader *r, const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_event_cursor c;
    struct xpl_event ev;
    struct xpl_group_cursor *groups;
    enum xpl_wire_result got;
    XPL_TRY(xpl_group_cursor_new(r->groups, l, &r->scratch, &groups, err));
    xpl_events_begin(&c, l);
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group group;
        if (r->n_events++ % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "parts of steps: cancelled");
        xpl_group_cursor_next(groups, &ev, &group);
        if (group.has_group && r->wanted[ev.md] && !add_event(r, &ev, group.group_id))
            XPL_RETURN_OOM(err, "parts of steps");
    }
    if (got != XPL_WIRE_END) return xpl_events_error(&c, err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(err, "parts of steps");
    return XPL_OK;
}

// ---- planes ----

static bool has_steps(const struct xpl_plane *p) {
    return p->kind == XPL_PLANE_TPU_CORE || p->kind == XPL_PLANE_SPARSE_CORE ||
           p->kind == XPL_PLANE_GPU;
}

static bool mentions(const struct xpl_plane *p, xpl_str_t word) {
    for (uint32_t i = 0; i < p->n_event_md; i++)
        if (xpl_str_has(p->event_md[i].name, word)) return true;
    return false;
}

static bool begin_plane(struct reader *r, const struct xpl_plane *p) {
    r->wanted = xpl_arena_array(&r->scratch, p->n_event_md, sizeof *r->wanted);
    if (!r->wanted) return false;
    for (uint32_t i = 0; i < p->n_event_md; i++)
        r->wanted[i] = xpl_str_has(p->event_md[i].name, r->word);
    return xpl_intern_put(r->planes, p->name, &r->name);
}

// Each kind of core has a separate line; that of a GPU is derived, also where it was recorded.
static bool counts(const struct xpl_plane *p, const struct xpl_step_event *s) {
    if (p->kind == XPL_PLANE_GPU)
        return s->has_group && (!s->line || s->line->id == XPL_LINE_ID_STEPS);
    return s->has_group && s->line &&
           xpl_str_eq(s->line->name, p->kind == XPL_PLANE_SPARSE_CORE
                                         ? XPL_STR(XPL_LINE_SPARSE_CORE_STEPS)
                                         : XPL_STR(XPL_LINE_STEPS));
}

// Of steps of one group the longest counts.  Once for all planes of a name; *ret_n: how many.
static bool read_durations(struct reader *r, const struct xpl_plane *p, uint64_t *ret_n) {
    size_t n;
    bool is_new;
    uint64_t *const n_own = xpl_map_put(&r->scratch, &r->n_own, r->name.v, 0, &is_new);
    if (!n_own) return false;
    const struct xpl_step_event *const v = xpl_groups_steps(r->groups, p, &n);
    for (size_t i = 0; is_new && i < n; i++) {
        if (!counts(p, &v[i])) continue;
        uint64_t *const own =
            xpl_map_put(&r->scratch, &r->own, (uint64_t)v[i].group_id, r->name.v, NULL);
        if (!own) return false;
        ++*n_own;
        const int64_t ps = v[i].has_device_time ? v[i].device_duration_ps : v[i].duration_ps;
        if ((uint64_t)ps > *own) *own = (uint64_t)ps;
    }
    *ret_n = *n_own;
    return true;
}

// Steps are events, too: one whose name has the word is a part of itself, and one on the line of
// the other kind of core a part of the step that a plane of the same name has.
static bool read_steps(struct reader *r, const struct xpl_plane *p) {
    size_t n;
    const struct xpl_step_event *const v = xpl_groups_steps(r->groups, p, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i].line && v[i].has_group && xpl_groups_replaces_line(r->groups, v[i].line) &&
            r->wanted[v[i].ev.md] && !add_step(r, &v[i]))
            return false;
    return true;
}

// Of planes with one name the last says how long steps are, for all.
static xpl_status_t read_plane(struct reader *r, const struct xpl_plane *p, struct xpl_error *err) {
    if (!has_steps(p) || !mentions(p, r->word)) return XPL_OK;
    if (!begin_plane(r, p)) XPL_RETURN_OOM(err, "parts of steps");
    // Without one the name was rewritten meanwhile.
    const uint64_t *const last = xpl_map_get(&r->last, r->name.v, 0);
    uint64_t n;
    if (!read_durations(r, last ? &r->xs->planes[*last] : p, &n) || !read_steps(r, p))
        XPL_RETURN_OOM(err, "parts of steps");
    if (!n) return XPL_OK;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (!xpl_groups_replaces_line(r->groups, &p->lines[i]))
            XPL_TRY(read_line(r, &p->lines[i], err));
    return XPL_OK;
}

static bool name_planes(struct reader *r) {
    if (!(r->planes = xpl_intern_new(&r->scratch, xpl_hash_seed()))) return false;
    for (uint32_t i = 0; i < r->xs->n_planes; i++) {
        xpl_strid_t name;
        bool is_new;
        if (!has_steps(&r->xs->planes[i])) continue;
        if (!xpl_intern_put(r->planes, r->xs->planes[i].name, &name)) return false;
        uint64_t *const last = xpl_map_put(&r->scratch, &r->last, name.v, 0, &is_new);
        if (!last) return false;
        *last = i;
    }
    return true;
}

// ---- steps that count ----

static int by_step(const void *a, const void *b) {
    const struct share *const x = a, *const y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return (x->plane > y->plane) - (x->plane < y->plane);
}

static double duration_of(const struct reader *r, int64_t step) {
    const uint64_t *const d = xpl_map_get(&r->durations, (uint64_t)step, 0);
    return d ? (double)*d : 0;
}

// Leaves out shares of the steps that may have been recorded in part.
static void drop_edges(const struct reader *r, struct share **v, size_t *n) {
    size_t steps = 0, first = 0, last = *n;
    for (size_t i = 0; i < *n; i++)
        steps += i == 0 || (*v)[i].step != (*v)[i - 1].step;
    while (first < *n && (*v)[first].step == (*v)[0].step)
        first++;
    while (last && (*v)[last - 1].step == (*v)[*n - 1].step)
        last--;
    if (steps < 2) return;
    const double a = duration_of(r, (*v)[0].step), b = duration_of(r, (*v)[*n - 1].step);
    if (steps > 2 || b < a * 0.01) *n = last;
    if (steps > 2 || a < b * 0.01) {
        *v += first;
        *n -= first;
    }
}

// ---- results ----

static int by_plane(const void *a, const void *b) {
    const struct share *const x = a, *const y = b;
    if (x->plane != y->plane) return x->plane < y->plane ? -1 : 1;
    return by_step(a, b);
}

// `v` is sorted by plane.
static bool put_planes(const struct reader *r, const struct share *v, size_t n,
                       struct xpl_arena *arena, struct xpl_event_fractions *ret) {
    size_t n_planes = 0;
    for (size_t i = 0; i < n; i++)
        n_planes += i == 0 || v[i].plane != v[i - 1].plane;
    ret->planes = xpl_arena_array(arena, n_planes, sizeof *ret->planes);
    float *to = xpl_arena_array(arena, n, sizeof *to);
    if (!ret->planes || !to) return false;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || v[i].plane != v[i - 1].plane) {
            struct xpl_plane_fractions *const p = &ret->planes[ret->n_planes++];
            *p = (struct xpl_plane_fractions){.v = to};
            if (!xpl_arena_str(arena, xpl_intern_get(r->planes, (xpl_strid_t){v[i].plane}),
                               &p->name))
                return false;
        }
        *to++ = (float)v[i].sum;
        ret->planes[ret->n_planes - 1].n++;
    }
    return true;
}

// A host's part of a step is the mean of those of its planes that have one.  `v` is sorted by step.
static bool put_host(const struct share *v, size_t n, struct xpl_arena *arena,
                     struct xpl_event_fractions *ret) {
    ret->host = xpl_arena_array(arena, n, sizeof *ret->host);
    if (!ret->host) return false;
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0;
        for (end = i; end < n && v[end].step == v[i].step; end++)
            sum += v[end].sum;
        ret->host[ret->n_host++] = (float)(sum / (double)(end - i));
    }
    return true;
}

static bool put_results(const struct reader *r, struct xpl_arena *arena,
                        struct xpl_event_fractions *ret) {
    struct share *v = r->shares.v;
    size_t n = r->shares.n;
    if (!n) return true;
    xpl_sort(v, n, sizeof *v, by_step);
    drop_edges(r, &v, &n);
    if (!put_host(v, n, arena, ret)) return false;
    xpl_sort(v, n, sizeof *v, by_plane);
    return put_planes(r, v, n, arena, ret);
}

static xpl_status_t read_all(struct reader *r, struct xpl_arena *arena,
                             struct xpl_event_fractions *ret, struct xpl_error *err) {
    const struct xpl_xspace *const xs = r->xs;
    bool any = false;
    if (xs->n_hostnames && !xpl_arena_str(arena, xs->hostnames[0], &ret->hostname))
        XPL_RETURN_OOM(err, "parts of steps");
    for (uint32_t i = 0; i < xs->n_planes && !any; i++)
        any = has_steps(&xs->planes[i]) && mentions(&xs->planes[i], r->word);
    if (!any) return XPL_OK;
    if (!name_planes(r)) XPL_RETURN_OOM(err, "parts of steps");
    XPL_TRY(xpl_groups_build(xs, &r->scratch, r->exec, &r->groups, err));
    for (uint32_t i = 0; i < xs->n_planes; i++)
        XPL_TRY(read_plane(r, &xs->planes[i], err));
    if (!put_results(r, arena, ret)) XPL_RETURN_OOM(err, "parts of steps");
    return XPL_OK;
}

xpl_status_t xpl_event_fractions_make(const struct xpl_xspace *xs, xpl_str_t word,
                                      struct xpl_exec *exec, struct xpl_arena *arena, size_t limit,
                                      struct xpl_event_fractions *ret, struct xpl_error *err) {
    struct reader r = {.xs = xs,
                       .word = word,
                       .barriers = xpl_str_eq(word, XPL_STR("barrier-cores")),
                       .exec = exec};
    *ret = (struct xpl_event_fractions){0};
    xpl_arena_init(&r.scratch, limit);
    const xpl_status_t st = read_all(&r, arena, ret, err);
    xpl_arena_fini(&r.scratch);
    return st;
}
