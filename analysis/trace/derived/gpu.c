// Lines that are derived for each stream of a GPU: name scopes, framework ops, XLA modules and ops,
// source code and command buffers, from what its kernels say.
// Rules: DeriveEventsFromAnnotations (XProf utils/derived_timeline.cc), utils/gpu_event_stats.cc.
// Command buffers are in the release alone; asking it showed how.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/trace/derived/impl.h"
#include "base/std_sort.h"

#define NONE UINT32_MAX
enum { CANCEL_EVERY = 4096 };

// Ids of lines, from the first of a stream's block.
enum {
    LINE_SCOPES = 0,
    LINE_OPS = 1,
    LINE_MODULES = 2,
    LINE_XLA_OPS = 3,
    LINE_SOURCE = 5,
    LINE_COMMAND_BUFFERS = 6,
    BLOCK = 7,
    FIRST_BLOCK = 290, // from the id of the Steps line
    LAST_ID = 405,
};

// ---- scope ranges ----

struct scope_node {
    int64_t parent;
    uint32_t parent_node; // + 1; 0: not a child of anything
};
struct xpl_scope_tree {
    struct xpl_map index; // id to node
    XPL_VEC(struct scope_node) nodes;
};

// A statistic of the plane with the tree: metadata id and value, which names nothing.
static bool read_edge(xpl_bytes_t message, int64_t *child, int64_t *parent) {
    enum { STAT_MD_ID = 1, STAT_INT = 4 };
    struct xpl_wire w = xpl_wire_begin(message);
    struct xpl_field f;
    enum xpl_wire_result r;
    *child = *parent = 0;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.type == XPL_WIRE_VARINT && f.num == STAT_MD_ID) *child = (int64_t)f.u;
        if (f.type == XPL_WIRE_VARINT && f.num == STAT_INT) *parent = (int64_t)f.u;
    }
    return r == XPL_WIRE_END;
}

static bool add_edge(struct xpl_scope_tree *t, struct xpl_arena *a, int64_t child, int64_t parent) {
    bool fresh;
    uint64_t *const slot = xpl_map_put(a, &t->index, (uint64_t)child, 0, &fresh);
    if (!slot) return false;
    if (!fresh) return true;
    struct scope_node *const n = xpl_vec_push(a, &t->nodes);
    if (!n || t->nodes.n >= UINT32_MAX) return false;
    *n = (struct scope_node){.parent = parent};
    *slot = t->nodes.n - 1;
    return true;
}

xpl_status_t xpl_scope_tree_new(const struct xpl_xspace *xs, struct xpl_arena *arena,
                                struct xpl_scope_tree **ret, struct xpl_error *err) {
    const struct xpl_plane *const p = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_SCOPE_RANGE_ID));
    struct xpl_scope_tree *const t = xpl_arena_zalloc(arena, sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "scope ranges");
    *ret = t;
    if (!p) return XPL_OK;
    struct xpl_wire w = {p->stats.p, p->stats.end};
    struct xpl_field f;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        int64_t child, parent;
        if (f.num != p->stats.field || f.type != XPL_WIRE_LEN) continue;
        if (!read_edge(f.len, &child, &parent)) break;
        if (!add_edge(t, arena, child, parent)) XPL_RETURN_OOM(err, "scope ranges");
    }
    for (size_t i = 0; i < t->nodes.n; i++) {
        const uint64_t *const slot = xpl_map_get(&t->index, (uint64_t)t->nodes.v[i].parent, 0);
        t->nodes.v[i].parent_node = slot ? (uint32_t)*slot + 1 : 0;
    }
    return XPL_OK;
}

// A plane's own marks on the tree, which planes share.
struct scope_mark {
    uint32_t depth; // ids on the way up, its own included; 0: not walked yet
    uint32_t stamp; // of the walk that came by
    bool in_cycle;
    int64_t last;   // the last id on the way up
    int64_t before; // in a cycle: the id that leads here
};
struct scope_walks {
    const struct xpl_scope_tree *tree;
    struct scope_mark *marks;
    uint32_t walk;
};

// ---- one stream ----

struct stream {
    struct xpl_dplane *p;
    struct scope_walks *walks;
    struct xpl_dline *scopes, *ops, *modules, *xla_ops, *source, *buffers;
    uint64_t begin, duration; // of the event before
    bool any, unordered;
    XPL_VEC(int64_t) ids; // of an event's scope ranges
};

// What one event says [GpuEventStats].
struct gpu_event {
    uint32_t tf_op, path, module; // numbers of texts; path: NONE without one
    bool kernel, execution, has_program, has_graph, has_correlation, has_scope;
    uint64_t program, graph;
    int64_t correlation, scope;
};

struct timed { // when a line is not in order
    uint64_t begin, duration, at;
    int64_t group;
    uint32_t line;
    bool has_group;
};

static xpl_status_t no_memory(struct xpl_dplane *p) {
    XPL_RETURN_OOM(&p->err, "derived lines");
}

// The walk up from a scope marks all that it comes by, so that each is walked once.  A cycle ends
// where it closes: its ids count once, that of the scope where the walk began twice.
static void walk_scopes(struct scope_walks *w, uint32_t from) {
    const struct scope_node *const nodes = w->tree->nodes.v;
    uint32_t length = 1, last = from; // scopes on the way that are not marked
    w->walk++;
    w->marks[from].stamp = w->walk;
    for (uint32_t next; (next = nodes[last].parent_node) != 0; last = next - 1, length++) {
        if (w->marks[next - 1].depth || w->marks[next - 1].stamp == w->walk) break;
        w->marks[next - 1].stamp = w->walk;
    }
    const uint32_t end = nodes[last].parent_node; // + 1; 0: nothing above
    struct scope_mark top = {.depth = 1, .last = nodes[last].parent};
    uint32_t cycle = 0, at = from;
    if (end && w->marks[end - 1].depth) {
        top = w->marks[end - 1];
        if (top.in_cycle) {
            top.depth--;
            top.last = top.before;
        }
    } else if (end) { // closes on this way
        uint32_t before = last;
        for (uint32_t i = end - 1;; i = nodes[i].parent_node - 1) {
            cycle++;
            if (i == last) break;
            before = i;
        }
        // The id of a scope is what the one below it names.
        top = (struct scope_mark){.depth = cycle,
                                  .last = cycle > 1 ? nodes[before].parent : nodes[last].parent};
    }
    int64_t id = nodes[last].parent, before = top.last; // of the first scope in the cycle
    for (uint32_t left = length; left > 0; left--, at = nodes[at].parent_node - 1) {
        struct scope_mark *const m = &w->marks[at];
        if (left > cycle) {
            m->depth = left - cycle + top.depth;
            m->last = top.last;
            continue;
        }
        *m =
            (struct scope_mark){.depth = cycle + 1, .in_cycle = true, .last = id, .before = before};
        before = id;
        id = nodes[at].parent;
    }
}

struct chain {            // ids of an event's scope ranges, innermost first
    uint32_t depth, node; // node + 1 of the innermost, 0: it has no parent
    int64_t innermost, root;
};

static struct chain chain_of(struct stream *s, const struct gpu_event *e) {
    struct chain c = {.depth = 0};
    if (!e->has_scope) return c;
    c = (struct chain){.depth = 1, .innermost = e->scope, .root = e->scope};
    const uint64_t *const slot = xpl_map_get(&s->walks->tree->index, (uint64_t)e->scope, 0);
    if (!slot) return c;
    c.node = (uint32_t)*slot + 1;
    struct scope_mark *const m = &s->walks->marks[c.node - 1];
    if (m->depth == 0) walk_scopes(s->walks, c.node - 1);
    c.depth = m->depth;
    c.root = m->last;
    return c;
}

// All ids of the chain into s->ids, outermost first.
static bool list_chain(struct stream *s, const struct chain *c) {
    int64_t id = c->innermost;
    uint32_t node = c->node;
    s->ids.n = 0;
    if (!xpl_vec_reserve(&s->p->temp, &s->ids, c->depth)) return false;
    s->ids.n = c->depth;
    for (uint32_t i = c->depth; i-- > 0;) {
        s->ids.v[i] = id;
        if (node == 0) continue;
        id = s->walks->tree->nodes.v[node - 1].parent;
        node = s->walks->tree->nodes.v[node - 1].parent_node;
    }
    return true;
}

// ---- what an event says ----

static bool read_stat(struct xpl_dplane *p, const struct xpl_stat *s, struct gpu_event *e) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (s->md->type) { // most types play no part
        case XPL_STAT_TF_OP: return xpl_dplane_text(p, s, &e->tf_op);
        case XPL_STAT_HLO_OP:
            e->path = NONE;
            return (s->kind != XPL_VALUE_STR && s->kind != XPL_VALUE_REF) ||
                   xpl_dplane_text(p, s, &e->path);
        case XPL_STAT_HLO_MODULE: return xpl_dplane_text(p, s, &e->module);
        case XPL_STAT_PROGRAM_ID:
            e->has_program = true;
            e->program = xpl_stat_int_or_uint(s);
            break;
        case XPL_STAT_KERNEL_DETAILS: e->kernel = xpl_stat_str(s).len > 0; break;
        case XPL_STAT_CORRELATION_ID:
            e->has_correlation = true;
            e->correlation = (int64_t)xpl_stat_int_or_uint(s);
            break;
        case XPL_STAT_CUDA_GRAPH_EXEC_ID: e->execution = true; break;
        case XPL_STAT_CUDA_GRAPH_ID:
            e->has_graph = xpl_stat_uint(s) != 0;
            e->graph = xpl_stat_uint(s);
            break;
        case XPL_STAT_SCOPE_RANGE_ID:
            e->has_scope = true;
            e->scope = xpl_stat_int(s);
            break;
        default: break;
    }
#pragma GCC diagnostic pop
    return true;
}

static bool read_event(struct xpl_dplane *p, struct xpl_stats stats, struct gpu_event *e) {
    struct xpl_stat st;
    *e = (struct gpu_event){.path = NONE};
    while (xpl_stats_next(&stats, &st) == XPL_WIRE_FIELD)
        if (!read_stat(p, &st, e)) return false;
    return true;
}

// ---- modules and ops ----

static xpl_str_t text_of(const struct xpl_dplane *p, uint32_t text) {
    return p->texts ? xpl_intern_get(p->texts, (xpl_strid_t){text}) : (xpl_str_t){"", 0};
}

// "module(program)" or the module's name alone.
static uint32_t module_md(struct xpl_dplane *p, const struct gpu_event *e) {
    bool fresh;
    const uint64_t key = (uint64_t)e->module << 1 | e->has_program;
    uint64_t *const slot = xpl_map_put(&p->temp, &p->module_index, key, e->program, &fresh);
    const xpl_str_t name = text_of(p, e->module);
    xpl_str_t full = name;
    if (!slot) return 0;
    if (!fresh) return (uint32_t)*slot;
    if (e->has_program &&
        !xpl_arena_printf(&p->temp, &full, "%.*s(%" PRIu64 ")", XPL_STR_FMT(name), e->program))
        return 0;
    const uint32_t md = xpl_dplane_md(p, full);
    *slot = md;
    return md;
}

// Metadata of one part of a path; "program/part" or "module/part" keeps programs apart.
static bool add_level(struct xpl_dplane *p, const struct gpu_event *e, xpl_str_t part) {
    xpl_str_t name;
    const xpl_str_t module = text_of(p, e->module);
    if (part.len > INT32_MAX || module.len > INT32_MAX) return false;
    if (!(e->has_program
              ? xpl_arena_printf(&p->temp, &name, "%" PRIu64 "/%.*s", e->program, XPL_STR_FMT(part))
              : xpl_arena_printf(&p->temp, &name, "%.*s/%.*s", XPL_STR_FMT(module),
                                 XPL_STR_FMT(part))))
        return false;
    const uint32_t md = xpl_dplane_md(p, name);
    uint32_t *const slot = md ? xpl_vec_push(&p->temp, &p->lists) : NULL;
    if (!slot || !xpl_dplane_set_display(p, md, part)) return false;
    *slot = md;
    return true;
}

static xpl_str_t base_name(xpl_str_t path) {
    const char *const slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? xpl_str_sub(path, (size_t)(slash - path.ptr) + 1, SIZE_MAX) : path;
}

// What the program says of the instruction: framework op and place in the source.
static xpl_status_t look_up(struct xpl_dplane *p, const struct gpu_event *e, xpl_str_t innermost,
                            struct xpl_dxla *x) {
    struct xpl_hlo_instruction in;
    xpl_str_t full, place;
    bool found;
    uint32_t op;
    XPL_TRY(xpl_hlo_map_find(p->hlo, e->program, innermost, &in, &found, &p->err));
    if (!found) return XPL_OK;
    if (!xpl_hlo_op_full_name(&in, &p->temp, &full)) return no_memory(p);
    if (full.len) {
        uint32_t text;
        const struct xpl_stat s = {.kind = XPL_VALUE_STR, .str = full};
        if (!xpl_dplane_text(p, &s, &text) || !xpl_dplane_op(p, text, &op)) return no_memory(p);
        x->op = op + 1;
    }
    if (in.source_file.len == 0) return XPL_OK;
    const xpl_str_t file = base_name(in.source_file);
    if (file.len > INT32_MAX ||
        !xpl_arena_printf(&p->temp, &place, "%.*s:%" PRId32, XPL_STR_FMT(file), in.source_line) ||
        (x->source = xpl_dplane_md(p, place)) == 0)
        return no_memory(p);
    return XPL_OK;
}

static xpl_status_t new_xla(struct xpl_dplane *p, const struct gpu_event *e, struct xpl_dxla *x) {
    const xpl_str_t path = text_of(p, e->path);
    xpl_str_t part = path;
    *x = (struct xpl_dxla){.first_level = (uint32_t)p->lists.n};
    for (size_t from = 0, next; from != SIZE_MAX; from = next) {
        const size_t end = xpl_str_find(path, XPL_STR("::"), from);
        part = xpl_str_sub(path, from, end == SIZE_MAX ? SIZE_MAX : end - from);
        next = end == SIZE_MAX ? SIZE_MAX : end + 2;
        if (p->lists.n >= UINT32_MAX || !add_level(p, e, part)) return no_memory(p);
        x->n_levels++;
    }
    return e->has_program ? look_up(p, e, part, x) : XPL_OK;
}

static xpl_status_t find_xla(struct xpl_dplane *p, const struct gpu_event *e,
                             struct xpl_dxla *ret) {
    bool fresh;
    const uint64_t key = (uint64_t)e->path << 1 | e->has_program;
    const uint64_t owner = e->has_program ? e->program : e->module;
    uint64_t *const slot = xpl_map_put(&p->temp, &p->xla_index, key, owner, &fresh);
    if (!slot) return no_memory(p);
    if (fresh) {
        struct xpl_dxla x;
        *slot = 0;
        XPL_TRY(new_xla(p, e, &x));
        struct xpl_dxla *const entry = xpl_vec_push(&p->temp, &p->xla);
        if (!entry) return no_memory(p);
        *entry = x;
        *slot = p->xla.n;
    }
    *ret = p->xla.v[*slot - 1];
    return XPL_OK;
}

// ---- one event ----

static void set_graph(struct xpl_extra *x, const struct gpu_event *e) {
    x->has_second = true;
    x->graph = e->graph;
    if (!e->has_correlation) return;
    x->has_first = true;
    x->correlation = e->correlation;
}

static xpl_status_t put_xla(struct stream *s, const struct gpu_event *e,
                            const struct xpl_dspan *span, const struct chain *scope) {
    static const struct xpl_dscope none = {0};
    struct xpl_dplane *const p = s->p;
    struct xpl_dxla x = {0};
    XPL_TRY(find_xla(p, e, &x));
    const bool scoped = scope->depth == x.n_levels;
    if (scoped && !list_chain(s, scope)) return no_memory(p);
    for (uint32_t i = 0; i < x.n_levels; i++) {
        const struct xpl_dscope id = {scoped, scoped ? s->ids.v[i] : 0};
        if (!xpl_dline_put(s->xla_ops, i, p->lists.v[x.first_level + i], span, id))
            return no_memory(p);
    }
    xpl_dline_close(s->xla_ops, x.n_levels);
    if (e->has_graph) {
        struct xpl_extra *const extra =
            xpl_dline_extra(s->xla_ops, x.n_levels - 1, XPL_EXTRA_GRAPH);
        if (!extra) return no_memory(p);
        set_graph(extra, e);
    }
    if (x.op && !xpl_dline_put_op(s->scopes, s->ops, x.op - 1, span)) return no_memory(p);
    if (x.source && !xpl_dline_put(s->source, 0, x.source, span, none)) return no_memory(p);
    return XPL_OK;
}

static xpl_status_t put_buffer(struct stream *s, const struct gpu_event *e,
                               const struct xpl_dspan *span) {
    char name[48];
    const int n = snprintf(name, sizeof name, "Command Buffer %" PRIu64, e->graph);
    const uint32_t md = xpl_dplane_md(s->p, (xpl_str_t){name, (size_t)n});
    const struct xpl_dscope launch = {e->has_correlation, e->correlation};
    if (!md || !xpl_dline_put(s->buffers, 0, md, span, launch)) return no_memory(s->p);
    struct xpl_extra *const extra = xpl_dline_extra(s->buffers, 0, XPL_EXTRA_GRAPH);
    if (!extra) return no_memory(s->p);
    set_graph(extra, e);
    return XPL_OK;
}

static xpl_status_t put_event(struct stream *s, struct xpl_stats stats,
                              const struct xpl_dspan *span) {
    struct xpl_dplane *const p = s->p;
    struct gpu_event e;
    if (!read_event(p, stats, &e)) return no_memory(p);
    if (!e.kernel && !e.execution) return XPL_OK;
    const struct chain scope = chain_of(s, &e);
    if (e.module) {
        const uint32_t md = module_md(p, &e);
        const struct xpl_dscope root = {scope.depth > 0, scope.root};
        if (!md || !xpl_dline_put(s->modules, 0, md, span, root)) return no_memory(p);
    }
    if (e.has_graph) XPL_TRY(put_buffer(s, &e, span));
    if (e.path != NONE) return put_xla(s, &e, span, &scope);
    uint32_t op;
    if (e.tf_op &&
        (!xpl_dplane_op(p, e.tf_op, &op) || !xpl_dline_put_op(s->scopes, s->ops, op, span)))
        return no_memory(p);
    return XPL_OK;
}

// ---- all events of a stream ----

static bool timed_less(const void *ctx, const void *pa, const void *pb) {
    const struct timed *const a = pa, *const b = pb;
    (void)ctx;
    return a->begin != b->begin ? a->begin < b->begin : a->duration < b->duration;
}

// One pass over a recorded line: into `to`, or on to the derived lines until it is out of order.
static xpl_status_t read_line(struct stream *s, const struct xpl_line *line,
                              struct xpl_arena *scratch, struct timed *to) {
    struct xpl_dplane *const p = s->p;
    struct xpl_event_cursor c;
    struct xpl_group_cursor *groups;
    struct xpl_event ev;
    enum xpl_wire_result r;
    XPL_TRY(xpl_group_cursor_new(p->space->groups, line, scratch, &groups, &p->err));
    xpl_events_begin(&c, line);
    while ((r = xpl_events_next(&c, &ev)) == XPL_WIRE_FIELD) {
        struct xpl_event_group eg;
        if ((c.index & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(p->exec))
            XPL_RETURN_ERROR(&p->err, XPL_CANCELLED, "cancelled");
        xpl_group_cursor_next(groups, &ev, &eg);
        const struct xpl_dspan span = {(uint64_t)xpl_event_begin_ps(line, &ev),
                                       (uint64_t)ev.duration_ps, eg.has_group, eg.group_id};
        if (to) {
            *to++ = (struct timed){span.begin, span.duration, ev.at,
                                   span.group, line->index,   span.has_group};
            continue;
        }
        s->unordered = s->any && (span.begin < s->begin ||
                                  (span.begin == s->begin && span.duration <= s->duration));
        if (s->unordered) return XPL_OK;
        s->begin = span.begin, s->duration = span.duration, s->any = true;
        XPL_TRY(put_event(s, ev.stats, &span));
    }
    if (r == XPL_WIRE_MALFORMED || c.index != c.stop) return xpl_events_error(&c, &p->err);
    return xpl_group_cursor_ok(groups) ? XPL_OK : no_memory(p);
}

// The events of all lines of that id in the order of time, ties as XProf's sort leaves them.
static xpl_status_t sort_lines(struct stream *s, int64_t id, struct xpl_arena *scratch) {
    const struct xpl_plane *const plane = s->p->plane;
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < plane->n_lines; i++)
        if (plane->lines[i].id == id) n += plane->lines[i].n_events;
    struct timed *const v = xpl_arena_array(scratch, n, sizeof *v);
    if (!v) return no_memory(s->p);
    for (uint32_t i = 0; i < plane->n_lines; i++) {
        if (plane->lines[i].id != id) continue;
        XPL_TRY(read_line(s, &plane->lines[i], scratch, v + at));
        at += plane->lines[i].n_events;
    }
    xpl_std_sort(v, n, sizeof *v, timed_less, NULL);
    for (size_t i = 0; i < n; i++) {
        struct xpl_event ev;
        const struct xpl_dspan span = {v[i].begin, v[i].duration, v[i].has_group, v[i].group};
        if ((i & (CANCEL_EVERY - 1)) == 0 && xpl_exec_cancelled(s->p->exec))
            XPL_RETURN_ERROR(&s->p->err, XPL_CANCELLED, "cancelled");
        XPL_TRY(xpl_event_at(&plane->lines[v[i].line], v[i].at, &ev, &s->p->err));
        XPL_TRY(put_event(s, ev.stats, &span));
    }
    return XPL_OK;
}

static bool is_only_one(const struct xpl_line *line) {
    const struct xpl_plane *const p = line->plane;
    for (uint32_t i = 0; i < p->n_lines; i++)
        if (i != line->index && p->lines[i].id == line->id) return false;
    return true;
}

static xpl_status_t walk_stream(struct stream *s, const struct xpl_line *line) {
    struct xpl_arena scratch;
    xpl_status_t status = XPL_OK;
    xpl_arena_init(&scratch, s->p->temp.limit);
    s->unordered = !is_only_one(line);
    if (!s->unordered) status = read_line(s, line, &scratch, NULL);
    if (status == XPL_OK && s->unordered) {
        struct xpl_dline *const lines[] = {s->scopes,  s->ops,    s->modules,
                                           s->xla_ops, s->source, s->buffers};
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            lines[i]->events.n = lines[i]->open.n = 0;
        status = sort_lines(s, line->id, &scratch);
    }
    xpl_arena_fini(&scratch);
    return status;
}

static struct xpl_dline *named_line(struct xpl_dplane *p, int64_t id, const char *name,
                                    int64_t stream) {
    xpl_str_t full;
    if (!xpl_arena_printf(&p->temp, &full, "%s - from #%" PRId64, name, stream)) return NULL;
    return xpl_dline_new(p, id, full);
}

static bool begin_stream(struct stream *s, int64_t first, int64_t stream) {
    struct xpl_dplane *const p = s->p;
    s->ops = named_line(p, first + LINE_OPS, XPL_LINE_FRAMEWORK_OPS, stream);
    s->scopes = named_line(p, first + LINE_SCOPES, XPL_LINE_NAME_SCOPE, stream);
    s->xla_ops = named_line(p, first + LINE_XLA_OPS, XPL_LINE_XLA_OPS, stream);
    s->buffers = named_line(p, first + LINE_COMMAND_BUFFERS, "Command Buffers", stream);
    s->modules = named_line(p, first + LINE_MODULES, XPL_LINE_XLA_MODULES, stream);
    s->source = named_line(p, first + LINE_SOURCE, XPL_LINE_SOURCE, stream);
    if (!s->ops || !s->scopes || !s->xla_ops || !s->buffers || !s->modules || !s->source)
        return false;
    s->scopes->dependents[s->scopes->n_dependents++] = s->ops;
    s->modules->dependents[s->modules->n_dependents++] = s->scopes;
    s->modules->dependents[s->modules->n_dependents++] = s->xla_ops;
    s->modules->dependents[s->modules->n_dependents++] = s->buffers;
    return true;
}

static bool order_block(struct xpl_dplane *p, int64_t first, int64_t stream) {
    static const int64_t used[] = {LINE_SCOPES,  LINE_OPS,    LINE_MODULES,
                                   LINE_XLA_OPS, LINE_SOURCE, LINE_COMMAND_BUFFERS};
    for (size_t i = 0; i <= sizeof used / sizeof *used; i++) {
        int64_t *const slot = xpl_vec_push(&p->temp, &p->display_order);
        if (!slot) return false;
        *slot = i == 0 ? stream : first + used[i - 1];
    }
    return true;
}

// ---- a plane ----

struct candidate {
    const struct xpl_line *line;
    bool compute;
};

static bool candidate_less(const void *ctx, const void *pa, const void *pb) {
    const struct candidate *const a = pa, *const b = pb;
    (void)ctx;
    return a->compute == b->compute ? a->line->n_events > b->line->n_events : a->compute;
}

static xpl_status_t derive_streams(struct xpl_dplane *p, struct scope_walks *walks,
                                   const struct candidate *v, size_t n) {
    int64_t first = XPL_LINE_ID_STEPS + FIRST_BLOCK;
    for (size_t i = 0; i < n && first + BLOCK <= XPL_LINE_ID_STEPS + LAST_ID; i++, first += BLOCK) {
        const int64_t id = v[i].line->id;
        struct stream s = {.p = p, .walks = walks};
        if (!begin_stream(&s, first, id) || !order_block(p, first, id)) return no_memory(p);
        XPL_TRY(walk_stream(&s, v[i].line));
    }
    return XPL_OK;
}

xpl_status_t xpl_derive_gpu(struct xpl_dplane *p, const struct xpl_scope_tree *scopes) {
    struct scope_walks walks = {.tree = scopes};
    size_t n = 0;
    p->remove_empty = true;
    struct candidate *const v = xpl_arena_array(&p->temp, p->plane->n_lines, sizeof *v);
    walks.marks = xpl_arena_zalloc(&p->temp, scopes->nodes.n * sizeof *walks.marks);
    if (!v || !walks.marks) return no_memory(p);
    for (uint32_t i = 0; i < p->plane->n_lines; i++) {
        const struct xpl_line *const line = &p->plane->lines[i];
        if (!xpl_is_derived_line_id(line->id))
            v[n++] = (struct candidate){line, xpl_str_has(line->name, XPL_STR("Compute"))};
    }
    xpl_std_sort(v, n, sizeof *v, candidate_less, NULL);
    return derive_streams(p, &walks, v, n);
}
