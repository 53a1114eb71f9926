// SPDX-License-Identifier: Apache-2.0
// Tracks of MegaScale's work on the host: one for each graph, which its key names.

#include "analysis/tools/megascale/names.h"
#include "analysis/tools/megascale/trace.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 4096 };

struct graph {
    int64_t device; // as the key says
    struct xpl_mgtrace_place place;
    size_t order;
    struct xpl_mgtrace_track track;
};

struct reader {
    struct xpl_mgtrace *trace;
    struct xpl_intern *keys; // of the current plane
    struct xpl_map by_key;   // position in `graphs`
    XPL_VEC(struct graph) graphs;
};

// The event's last graph_key; empty: none.
static xpl_str_t key_of(const struct xpl_event *ev) {
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    xpl_str_t key = {0};
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (xpl_str_eq(s.md->name, XPL_STR("graph_key"))) key = xpl_stat_str(&s);
    return key;
}

// The form that XProf gives the names of most graphs: "NAME_1 (200005)".
static bool name_track(struct xpl_mgtrace *t, struct graph *g) {
    const xpl_str_t name = g->track.name;
    struct xpl_mgtrace_graph parts;
    unsigned long long device = 0;
    if (!xpl_mgtrace_is_graph(name, &parts)) return true;
    for (size_t i = 0; i < parts.device.len; i++)
        if (__builtin_mul_overflow(device, 10, &device) ||
            __builtin_add_overflow(device, (unsigned)(parts.device.ptr[i] - '0'), &device))
            return true;
    return xpl_arena_printf(t->arena, &g->track.name, "%.*s (%llu)", XPL_STR_FMT(parts.rendezvous),
                            device);
}

// A track may be called like a line of a TPU, and has then the title of that.
static xpl_str_t title(xpl_str_t name) {
    static const char *const titles[] = {"1. Steps", "2. XLA Modules", "3. XLA Ops",
                                         "4. XLA TraceMe"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (xpl_str_eq(name, xpl_str_from(titles[i] + 3))) return xpl_str_from(titles[i]);
    return name;
}

static xpl_status_t new_graph(struct reader *r, xpl_str_t key, int64_t device,
                              const struct xpl_mgtrace_event *first, struct xpl_error *err) {
    struct xpl_stat s;
    bool said;
    XPL_TRY(xpl_mgtrace_find(first, XPL_STR("graph_key"), XPL_VALUE_STR, &s, &said, err));
    struct graph *const g = xpl_vec_push(r->trace->arena, &r->graphs);
    if (!g) XPL_RETURN_OOM(err, "megascale");
    *g = (struct graph){
        .device = device,
        .place = xpl_mgtrace_key_place(said ? s.str : XPL_STR("")),
        .order = r->graphs.n,
        .track = {.kind = XPL_MGTRACE_HOST,
                  .name = title(xpl_str_sub(key, 0, xpl_str_find(key, XPL_STR("$"), 0)))}};
    return XPL_OK;
}

static xpl_status_t visit(struct reader *r, const struct xpl_line *l, const struct xpl_event *ev,
                          struct xpl_error *err) {
    const xpl_str_t key = key_of(ev);
    xpl_strid_t id;
    int64_t device;
    bool is_new;
    if (!key.len || !xpl_mgtrace_key_device(key, &device)) return XPL_OK;
    if (!xpl_intern_put_view(r->keys, key, &id)) XPL_RETURN_OOM(err, "megascale");
    uint64_t *const at = xpl_map_put(r->trace->arena, &r->by_key, id.v, 0, &is_new);
    if (!at) XPL_RETURN_OOM(err, "megascale");
    if (is_new) {
        const struct xpl_mgtrace_event first = {.line = l, .at = ev->at, .md = ev->md};
        *at = r->graphs.n;
        XPL_TRY(new_graph(r, xpl_intern_get(r->keys, id), device, &first, err));
    }
    if (!xpl_mgtrace_add(r->trace, &r->graphs.v[*at].track, l, ev))
        XPL_RETURN_OOM(err, "megascale");
    return XPL_OK;
}

static xpl_status_t read_plane(struct reader *r, const struct xpl_plane *p, struct xpl_error *err) {
    r->by_key = (struct xpl_map){0};
    if (!(r->keys = xpl_intern_new(r->trace->arena, xpl_hash_seed())))
        XPL_RETURN_OOM(err, "megascale");
    for (uint32_t i = 0; i < p->n_lines; i++) {
        struct xpl_event_cursor c = xpl_events_of(&p->lines[i]);
        struct xpl_event ev;
        enum xpl_wire_result got;
        while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
            if (ev.index % CANCEL_EVERY == 0) XPL_TRY(xpl_mgtrace_cancelled(r->trace, err));
            XPL_TRY(visit(r, &p->lines[i], &ev, err));
        }
        if (got != XPL_WIRE_END) return xpl_events_error(&c, err);
    }
    return XPL_OK;
}

static int by_place(const void *a, const void *b) {
    const struct graph *const x = a, *const y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    const int c = xpl_str_cmp(x->place.name, y->place.name);
    if (c) return c;
    if (x->place.device != y->place.device) return x->place.device < y->place.device ? -1 : 1;
    if (x->place.iteration != y->place.iteration)
        return x->place.iteration < y->place.iteration ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

// Gives the graphs to the devices.
static xpl_status_t deal(struct reader *r, struct xpl_error *err) {
    struct xpl_mgtrace *const t = r->trace;
    struct xpl_mgtrace_device *d = t->devices.v;
    for (size_t i = 0, end, n = 0; i < r->graphs.n && n < t->numbers.n; i = end, n++) {
        while (d->number != t->numbers.v[n])
            d++;
        for (end = i; end < r->graphs.n && r->graphs.v[end].device == r->graphs.v[i].device;
             end++) {
            struct xpl_mgtrace_track *const to = xpl_vec_push(t->arena, &d->host_tracks);
            if (!to || !name_track(t, &r->graphs.v[end])) XPL_RETURN_OOM(err, "megascale");
            *to = r->graphs.v[end].track;
            xpl_mgtrace_sort(to);
        }
    }
    return XPL_OK;
}

xpl_status_t xpl_mgtrace_read_host(struct xpl_mgtrace *t, const struct xpl_xspace *xs,
                                   struct xpl_error *err) {
    struct reader r = {.trace = t};
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (xpl_str_eq(xs->planes[i].name, XPL_STR("/device:CUSTOM:Megascale Trace")))
            XPL_TRY(read_plane(&r, &xs->planes[i], err));
    xpl_sort(r.graphs.v, r.graphs.n, sizeof *r.graphs.v, by_place);
    return deal(&r, err);
}
