// SPDX-License-Identifier: Apache-2.0
#include "analysis/products/megascale_host.h"

#include "analysis/xplane/xspace.h"
#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

enum { CANCEL_EVERY = 4096 };

// A time in which a graph, the one of that key, was executed or acted.
struct span {
    uint32_t graph;
    size_t transfer; // of an execution
    int64_t begin_ps, end_ps;
    uint64_t before_ps; // of joined actions: what the graph's earlier ones take together
};
struct spans {
    XPL_VEC(struct span) v;
};

struct reader {
    struct xpl_exec *exec;
    struct xpl_arena scratch;
    struct xpl_intern *texts; // rendezvous and keys of graphs
    struct xpl_map transfers; // by name: number + 1
    struct xpl_map started;   // by graph and copy: begin
    struct spans executions, actions;
};

// Times are any 64 bits: their difference may only fit without a sign.
static uint64_t between(int64_t from_ps, int64_t to_ps) {
    return (uint64_t)to_ps - (uint64_t)from_ps;
}

// What an event says of itself.
struct action {
    xpl_str_t graph;
    int64_t index;   // action_index
    int64_t took_ps; // of END events; 0: unknown
};

// ---- events ----

static int64_t scaled(const struct xpl_stat *s, int64_t by) {
    const uint64_t v = xpl_stat_int_or_uint(s);
    return v < (uint64_t)(INT64_MAX / by) ? (int64_t)v * by : 0;
}

static struct action read_action(const struct xpl_event *ev) {
    struct action a = {0};
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        const xpl_str_t name = s.md->name;
        if (xpl_str_eq(name, XPL_STR("graph_key"))) a.graph = xpl_stat_str(&s);
        if (xpl_str_eq(name, XPL_STR("action_index"))) a.index = (int64_t)xpl_stat_int_or_uint(&s);
        if (xpl_str_eq(name, XPL_STR("action_duration_ns"))) a.took_ps = scaled(&s, 1000);
        if (xpl_str_eq(name, XPL_STR("network_transport_latency_us")))
            a.took_ps = scaled(&s, 1000000);
    }
    return a;
}

static bool add(struct reader *r, struct spans *to, struct span s) {
    if (s.end_ps <= s.begin_ps) return true;
    struct span *const slot = xpl_vec_push(&r->scratch, &to->v);
    if (slot) *slot = s;
    return slot != NULL;
}

// "device_200005_gid_NAME": *ret is NAME.
static bool rendezvous_of(xpl_str_t name, xpl_str_t *ret) {
    static const char infix[] = "_gid_";
    size_t at = sizeof "device_" - 1;
    if (!xpl_str_starts(name, XPL_STR("device_"))) return false;
    while (at < name.len && name.ptr[at] >= '0' && name.ptr[at] <= '9')
        at++;
    *ret = xpl_str_sub(name, at + sizeof infix - 1, SIZE_MAX);
    return at > sizeof "device_" - 1 &&
           xpl_str_starts(xpl_str_sub(name, at, SIZE_MAX), XPL_STR("_gid_"));
}

static bool add_execution(struct reader *r, xpl_str_t rendezvous, uint32_t graph, int64_t begin,
                          int64_t end) {
    xpl_strid_t name;
    if (!xpl_intern_put_view(r->texts, rendezvous, &name)) return false;
    const uint64_t *const at = xpl_map_get(&r->transfers, name.v, 0);
    if (!at) return true;
    return add(r, &r->executions, (struct span){graph, (size_t)*at, begin, end, 0});
}

static bool add_copy(struct reader *r, bool starts, uint64_t copy, uint32_t graph, int64_t begin,
                     int64_t end) {
    bool is_new;
    if (!starts) {
        const uint64_t *const at = xpl_map_get(&r->started, graph, copy);
        return !at || add(r, &r->actions, (struct span){graph, 0, (int64_t)*at, end, 0});
    }
    uint64_t *const at = xpl_map_put(&r->scratch, &r->started, graph, copy, &is_new);
    if (at) *at = (uint64_t)begin;
    return at != NULL;
}

static bool visit(struct reader *r, const struct xpl_line *l, const struct xpl_event *ev) {
    const xpl_str_t name = xpl_event_get_md(l, ev)->name;
    const int64_t begin = xpl_event_begin_ps(l, ev), end = xpl_event_end_ps(l, ev);
    const bool down = xpl_str_starts(name, XPL_STR("DeviceToHost "));
    const struct action a = read_action(ev);
    xpl_strid_t graph;
    xpl_str_t rendezvous;
    int64_t from;
    if (!a.graph.len) return true;
    if (!xpl_intern_put_view(r->texts, a.graph, &graph)) return false;
    if (rendezvous_of(name, &rendezvous)) return add_execution(r, rendezvous, graph.v, begin, end);
    if (down || xpl_str_starts(name, XPL_STR("HostToDevice ")))
        return add_copy(r, xpl_str_ends(name, XPL_STR(" START")), (uint64_t)a.index * 2 + down,
                        graph.v, begin, end);
    if ((xpl_str_eq(name, XPL_STR("NetworkSend END")) ||
         xpl_str_eq(name, XPL_STR("NetworkReceive END"))) &&
        !__builtin_sub_overflow(end, a.took_ps, &from))
        return add(r, &r->actions, (struct span){graph.v, 0, from, end, 0});
    return true;
}

static xpl_status_t read_line(struct reader *r, const struct xpl_line *l, struct xpl_error *err) {
    struct xpl_event_cursor c = xpl_events_of(l);
    struct xpl_event ev;
    enum xpl_wire_result got;
    while ((got = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        if (ev.index % CANCEL_EVERY == 0 && xpl_exec_cancelled(r->exec))
            XPL_RETURN_ERROR(err, XPL_CANCELLED, "megascale cancelled");
        if (!visit(r, l, &ev)) XPL_RETURN_OOM(err, "megascale");
    }
    return got == XPL_WIRE_END ? XPL_OK : xpl_events_error(&c, err);
}

// ---- unfinished executions ----

static int by_graph(const void *a, const void *b) {
    const struct span *const x = a, *const y = b;
    if (x->graph != y->graph) return x->graph < y->graph ? -1 : 1;
    return (x->begin_ps > y->begin_ps) - (x->begin_ps < y->begin_ps);
}

// Sorts actions, and makes one of those of a graph that overlap.
static void join_actions(struct spans *s) {
    size_t n = 0;
    xpl_sort(s->v.v, s->v.n, sizeof *s->v.v, by_graph);
    for (size_t i = 0; i < s->v.n; i++) {
        const struct span x = s->v.v[i];
        struct span *const last = n ? &s->v.v[n - 1] : NULL;
        if (last && last->graph == x.graph && x.begin_ps <= last->end_ps) {
            if (x.end_ps > last->end_ps) last->end_ps = x.end_ps;
            continue;
        }
        s->v.v[n] = x;
        s->v.v[n++].before_ps = last && last->graph == x.graph
                                    ? last->before_ps + between(last->begin_ps, last->end_ps)
                                    : 0;
    }
    s->v.n = n;
}

// What actions of a graph take before a time.
static uint64_t acted_before(const struct spans *s, uint32_t graph, int64_t ps) {
    const struct span key = {.graph = graph, .begin_ps = ps};
    size_t low = 0, high = s->v.n; // the first that does not begin before is in [low, high]
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (by_graph(&s->v.v[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || s->v.v[low - 1].graph != graph) return 0;
    const struct span *const x = &s->v.v[low - 1];
    return x->before_ps + between(x->begin_ps, ps < x->end_ps ? ps : x->end_ps);
}

static void sum_up(const struct reader *r, struct xpl_megascale_transfer *v) {
    for (size_t i = 0; i < r->executions.v.n; i++) {
        const struct span *const x = &r->executions.v.v[i];
        struct xpl_megascale_transfer *const t = &v[x->transfer];
        const uint64_t acted = acted_before(&r->actions, x->graph, x->end_ps) -
                               acted_before(&r->actions, x->graph, x->begin_ps);
        t->executions++;
        t->host_stall_ps += (double)(between(x->begin_ps, x->end_ps) - acted);
    }
}

// ---- all ----

static bool name_transfers(struct reader *r, const struct xpl_megascale_transfer *v, size_t n) {
    if (!(r->texts = xpl_intern_new(&r->scratch, xpl_hash_seed()))) return false;
    for (size_t i = 0; i < n; i++) {
        xpl_strid_t name;
        bool is_new;
        if (!xpl_intern_put(r->texts, v[i].rendezvous, &name)) return false;
        uint64_t *const at = xpl_map_put(&r->scratch, &r->transfers, name.v, 0, &is_new);
        if (!at) return false;
        *at = i;
    }
    return true;
}

static xpl_status_t read_all(struct reader *r, const struct xpl_plane *p,
                             struct xpl_megascale_transfer *v, size_t n, struct xpl_error *err) {
    if (!name_transfers(r, v, n)) XPL_RETURN_OOM(err, "megascale");
    for (uint32_t i = 0; i < p->n_lines; i++)
        XPL_TRY(read_line(r, &p->lines[i], err));
    join_actions(&r->actions);
    sum_up(r, v);
    return XPL_OK;
}

xpl_status_t xpl_megascale_read_host(const struct xpl_xspace *xs, struct xpl_exec *exec,
                                     size_t limit, struct xpl_megascale_transfer *v, size_t n,
                                     struct xpl_error *err) {
    const struct xpl_plane *const p =
        xpl_xspace_plane(xs, XPL_STR("/device:CUSTOM:Megascale Trace"));
    if (!p || !n) return XPL_OK;
    struct reader r = {.exec = exec};
    xpl_arena_init(&r.scratch, limit);
    const xpl_status_t st = read_all(&r, p, v, n, err);
    xpl_arena_fini(&r.scratch);
    return st;
}
