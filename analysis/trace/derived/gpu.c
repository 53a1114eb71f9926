// SPDX-License-Identifier: Apache-2.0
// Lines that are derived for each stream of a GPU: name scopes, framework ops, XLA modules and ops,
// source code and command buffers, from the statistics of its kernels.
// Rules: DeriveEventsFromAnnotations (XProf utils/derived_timeline.cc), utils/gpu_event_stats.cc.
// Only the release has command buffers; tests against it found their rules.
#include <inttypes.h>
#include <stdio.h>

#include "analysis/trace/derived/impl.h"
#include "base/std_sort.h"

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

// ---- one stream ----

struct stream {
    struct xpl_dplane *p;
    const struct xpl_scope_tree *tree;
    struct xpl_dline *scopes, *ops, *modules, *xla_ops, *source, *buffers;
    uint64_t begin, duration; // of the event before
    bool any, unordered;
    XPL_VEC(int64_t) ids; // of an event's scope ranges
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

// ---- statistics of an event ----

static bool read_stat(struct xpl_dplane *p, const struct xpl_stat *s, struct xpl_gpu_event *e) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
    switch (s->md->type) { // most types play no part
        case XPL_STAT_TF_OP: return xpl_dplane_text(p, s, &e->tf_op);
        case XPL_STAT_HLO_OP:
            e->path = XPL_GPU_NO_PATH;
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

static bool read_event(struct xpl_dplane *p, struct xpl_stats stats, struct xpl_gpu_event *e) {
    struct xpl_stat st;
    *e = (struct xpl_gpu_event){.path = XPL_GPU_NO_PATH};
    while (xpl_stats_next(&stats, &st) == XPL_WIRE_FIELD)
        if (!read_stat(p, &st, e)) return false;
    return true;
}

// ---- one event ----

static void set_graph(struct xpl_extra *x, const struct xpl_gpu_event *e) {
    x->has_second = true;
    x->graph = e->graph;
    if (!e->has_correlation) return;
    x->has_first = true;
    x->correlation = e->correlation;
}

static xpl_status_t put_xla(struct stream *s, const struct xpl_gpu_event *e,
                            const struct xpl_dspan *span, const struct xpl_scope_chain *scope) {
    static const struct xpl_dscope none = {0};
    struct xpl_dplane *const p = s->p;
    struct xpl_dxla x = {0};
    XPL_TRY(xpl_gpu_find_xla(p, e, &x));
    const bool scoped = scope->depth == x.n_levels;
    if (scoped) {
        s->ids.n = 0;
        if (!xpl_vec_reserve(&p->temp, &s->ids, scope->depth)) return no_memory(p);
        xpl_scope_chain_ids(s->tree, scope, s->ids.v);
    }
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

static xpl_status_t put_buffer(struct stream *s, const struct xpl_gpu_event *e,
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
    struct xpl_gpu_event e;
    if (!read_event(p, stats, &e)) return no_memory(p);
    if (!e.kernel && !e.execution) return XPL_OK;
    const struct xpl_scope_chain scope =
        e.has_scope ? xpl_scope_chain_of(s->tree, e.scope) : (struct xpl_scope_chain){.depth = 0};
    if (e.module) {
        const uint32_t md = xpl_gpu_module_md(p, &e);
        const struct xpl_dscope root = {scope.depth > 0, scope.root};
        if (!md || !xpl_dline_put(s->modules, 0, md, span, root)) return no_memory(p);
    }
    if (e.has_graph) XPL_TRY(put_buffer(s, &e, span));
    if (e.path != XPL_GPU_NO_PATH) return put_xla(s, &e, span, &scope);
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
    struct xpl_arena scratch = xpl_arena_of(s->p->temp.limit);
    xpl_status_t status = XPL_OK;
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

static xpl_status_t derive_streams(struct xpl_dplane *p, const struct xpl_scope_tree *tree,
                                   const struct candidate *v, size_t n) {
    int64_t first = XPL_LINE_ID_STEPS + FIRST_BLOCK;
    for (size_t i = 0; i < n && first + BLOCK <= XPL_LINE_ID_STEPS + LAST_ID; i++, first += BLOCK) {
        const int64_t id = v[i].line->id;
        struct stream s = {.p = p, .tree = tree};
        if (!begin_stream(&s, first, id) || !order_block(p, first, id)) return no_memory(p);
        XPL_TRY(walk_stream(&s, v[i].line));
    }
    return XPL_OK;
}

xpl_status_t xpl_derive_gpu(struct xpl_dplane *p, const struct xpl_scope_tree *scopes) {
    size_t n = 0;
    p->remove_empty = true;
    struct candidate *const v = xpl_arena_array(&p->temp, p->plane->n_lines, sizeof *v);
    if (!v) return no_memory(p);
    for (uint32_t i = 0; i < p->plane->n_lines; i++) {
        const struct xpl_line *const line = &p->plane->lines[i];
        if (!xpl_is_derived_line_id(line->id))
            v[n++] = (struct candidate){line, xpl_str_has(line->name, XPL_STR("Compute"))};
    }
    xpl_std_sort(v, n, sizeof *v, candidate_less, NULL);
    return derive_streams(p, scopes, v, n);
}
