// SPDX-License-Identifier: Apache-2.0
// How long the host took to launch kernels on each GPU, step by step.
// Rules: DeriveEventsFromHostTrace (XProf utils/derived_timeline.cc).

#include "analysis/trace/derived/impl.h"
#include "base/std_sort.h"

enum { CANCEL_EVERY = 4096 };

struct group_launches {
    uint64_t begin, end;
    uint64_t count, sum, most; // durations in ps
    int64_t group;
    uint32_t gpu;
};

struct search {
    const struct xpl_derived *d;
    uint32_t n_gpus;
    struct xpl_arena *arena;
    struct xpl_exec *exec;
    struct xpl_map index; // by GPU and group
    XPL_VEC(struct group_launches) found;
    struct xpl_error *err;
};

static bool add_launch(struct search *s, uint32_t gpu, int64_t group, uint64_t begin,
                       uint64_t duration) {
    bool is_new;
    const uint64_t end = begin + duration;
    uint64_t *const slot = xpl_map_put(s->arena, &s->index, gpu, (uint64_t)group, &is_new);
    if (!slot) return false;
    if (is_new) {
        struct group_launches *const g = xpl_vec_push(s->arena, &s->found);
        if (!g) return false;
        *g = (struct group_launches){.begin = begin, .end = end, .group = group, .gpu = gpu};
        *slot = s->found.n - 1;
    }
    struct group_launches *const g = &s->found.v[*slot];
    if (begin < g->begin) g->begin = begin;
    if (end > g->end) g->end = end;
    g->count++;
    g->sum += duration;
    if (duration > g->most) g->most = duration;
    return true;
}

static bool on_event(struct search *s, const struct xpl_line *line, const struct xpl_event *ev,
                     int64_t group) {
    struct xpl_stats stats = ev->stats;
    struct xpl_stat st;
    int64_t device = -1;
    bool has_device = false, has_correlation = false;
    while (xpl_stats_next(&stats, &st) == XPL_WIRE_FIELD) {
        if (st.md->type == XPL_STAT_CORRELATION_ID) has_correlation = true;
        if (st.md->type != XPL_STAT_DEVICE_ID) continue;
        has_device = true;
        device = (int64_t)xpl_stat_int_or_uint(&st);
    }
    if (!has_device || !has_correlation || device < 0 || device >= (int64_t)s->n_gpus) return true;
    return add_launch(s, (uint32_t)device, group, (uint64_t)xpl_event_begin_ps(line, ev),
                      (uint64_t)ev->duration_ps);
}

static xpl_status_t search_line(struct search *s, const struct xpl_line *line) {
    struct xpl_event_cursor c;
    struct xpl_group_cursor *groups;
    struct xpl_event ev;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(s->d->groups, line, s->arena, &groups, s->err));
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        if ((c.index & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(s->exec))
            XPL_RETURN_ERROR(s->err, XPL_CANCELLED, "cancelled");
        xpl_group_cursor_next(groups, &ev, &eg);
        if (!eg.has_group || ev.stats.p == ev.stats.end ||
            xpl_str_starts(xpl_event_get_md(line, &ev)->name, XPL_STR("cu")))
            continue;
        if (!on_event(s, line, &ev, eg.group_id)) XPL_RETURN_OOM(s->err, "kernel launches");
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, s->err);
    if (!xpl_group_cursor_ok(groups)) XPL_RETURN_OOM(s->err, "kernel launches");
    return XPL_OK;
}

static bool has_stat(const struct xpl_plane *p, enum xpl_stat_type type) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == type) return true;
    return false;
}

static bool by_group(const void *ctx, const void *pa, const void *pb) {
    const struct group_launches *const a = pa, *const b = pb;
    (void)ctx;
    return a->gpu != b->gpu ? a->gpu < b->gpu : a->group < b->group;
}

static bool put_launches(struct xpl_dplane *p, const struct group_launches *g) {
    xpl_str_t name;
    const xpl_str_t group = xpl_groups_name(p->space->groups, g->group);
    if (group.len == 0) return true; // not one of the space's groups
    if (group.len > INT32_MAX ||
        !xpl_arena_printf(&p->temp, &name, "Launch Stats for %.*s", XPL_STR_FMT(group)))
        return false;
    const uint32_t md = xpl_dplane_md(p, name);
    const uint32_t extra = md ? xpl_dplane_extra(p, XPL_EXTRA_LAUNCHES) : 0;
    struct xpl_added *const e = extra ? xpl_vec_push(&p->temp, &p->launches->events) : NULL;
    if (!e) return false;
    struct xpl_extra *const x = &p->extras.v[extra];
    x->launches = (int64_t)g->count;
    x->max_us = (double)g->most / 1e6;
    // XProf's average is cut to whole picoseconds.
    x->avg_us = (double)(uint64_t)((double)g->sum / (double)g->count) / 1e6;
    *e = (struct xpl_added){.begin = g->begin,
                            .duration = g->end < g->begin ? 0 : g->end - g->begin,
                            .group = g->group,
                            .md = md,
                            .extra = extra << 1 | 1};
    return true;
}

static bool begin_line(struct xpl_dplane *p, int64_t host_start_ns) {
    p->launches = xpl_dline_new(p, XPL_LINE_ID_STEPS + 1, XPL_STR(XPL_LINE_LAUNCH_STATS));
    if (!p->launches) return false;
    if (host_start_ns < p->launches->timestamp_ns) p->launches->timestamp_ns = host_start_ns;
    return true;
}

struct xpl_launches {
    struct group_launches *v; // by GPU, then group
    size_t n;
    int64_t start_ns; // where the host's first line begins
};

xpl_status_t xpl_find_launches(const struct xpl_derived *d, uint32_t n_gpus, struct xpl_arena *temp,
                               struct xpl_exec *exec, struct xpl_launches **ret,
                               struct xpl_error *err) {
    const struct xpl_plane *const host =
        xpl_xspace_plane(d->xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    struct search s = {.d = d, .n_gpus = n_gpus, .arena = temp, .exec = exec, .err = err};
    struct xpl_launches *const l = xpl_arena_zalloc(temp, sizeof *l);
    if (!l) XPL_RETURN_OOM(err, "kernel launches");
    *ret = l;
    if (!host || n_gpus == 0 || xpl_groups_arrived_grouped(d->groups) ||
        xpl_groups_empty(d->groups) || !has_stat(host, XPL_STAT_DEVICE_ID) ||
        !has_stat(host, XPL_STAT_CORRELATION_ID))
        return XPL_OK;
    for (uint32_t i = 0; i < host->n_lines; i++)
        if (!xpl_is_derived_line_id(host->lines[i].id)) XPL_TRY(search_line(&s, &host->lines[i]));
    xpl_std_sort(s.found.v, s.found.n, sizeof *s.found.v, by_group, NULL);
    l->v = s.found.v;
    l->n = s.found.n;
    l->start_ns = xpl_dplane_start_ns(host);
    return XPL_OK;
}

xpl_status_t xpl_derive_launches(struct xpl_dplane *p, const struct xpl_launches *l, uint32_t gpu) {
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (l->v[mid].gpu < gpu)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < l->n && l->v[lo].gpu == gpu; lo++)
        if ((!p->launches && !begin_line(p, l->start_ns)) || !put_launches(p, &l->v[lo]))
            XPL_RETURN_OOM(&p->err, "kernel launches");
    return XPL_OK;
}
