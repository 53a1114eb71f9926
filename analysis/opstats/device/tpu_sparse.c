// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/tpu_plane.h"

#include "analysis/opstats/metrics/op_metrics.h"
#include "base/map.h"
#include "base/vec.h"

struct module_span { // a program that a TensorCore started here
    struct xpl_timespan span;
    uint64_t core_id, start_id;
    size_t order;
};
typedef struct module_spans {
    XPL_VEC(struct module_span) list;
} module_spans_t;

static int by_span(const void *pa, const void *pb) {
    const struct module_span *const a = pa, *const b = pb;
    if (a->span.begin_ps != b->span.begin_ps) return a->span.begin_ps < b->span.begin_ps ? -1 : 1;
    if (a->span.duration_ps != b->span.duration_ps)
        return a->span.duration_ps > b->span.duration_ps ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static xpl_status_t read_modules(struct tpu_plane *t, const struct xpl_line *line,
                                 module_spans_t *m) {
    struct xpl_event_cursor cursor = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct tpu_event_facts f;
        xpl_tpu_read_facts(t, line, &ev, &f);
        if (!f.has_core_id || !f.has_start_id) continue;
        struct module_span *const s = xpl_vec_push(&t->arena, &m->list);
        if (!s) return xpl_tpu_out_of_memory(t);
        *s = (struct module_span){f.span, f.core_id, xpl_stat_uint(&f.start_id), m->list.n};
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

// In order of time, each span once.
static void sort_modules(module_spans_t *m) {
    xpl_sort(m->list.v, m->list.n, sizeof *m->list.v, by_span);
    size_t kept = 0;
    for (size_t i = 0; i < m->list.n; i++) {
        const struct xpl_timespan a = m->list.v[i].span;
        if (kept && m->list.v[kept - 1].span.begin_ps == a.begin_ps &&
            m->list.v[kept - 1].span.duration_ps == a.duration_ps)
            continue;
        m->list.v[kept++] = m->list.v[i];
    }
    m->list.n = kept;
}

static bool pop_offloaded(struct offload_builder *b) {
    const struct tpu_frame *const f = &b->stack.v[--b->stack.n];
    const struct xpl_tpu_run run = frame_run(f);
    return xpl_tpu_ops_add_run(&b->ops, &run);
}

static bool push_offloaded(struct tpu_plane *t, struct xpl_map *index,
                           const struct module_span *module, const struct xpl_event *ev,
                           const struct tpu_event_facts *f) {
    bool is_new;
    uint64_t *const at = xpl_map_put(&t->arena, index, module->core_id, module->start_id, &is_new);
    if (!at) return false;
    if (is_new) {
        struct offload_builder *const b = xpl_vec_push(&t->arena, &t->builders);
        if (!b) return false;
        *b = (struct offload_builder){.core_id = module->core_id, .start_id = module->start_id};
        xpl_tpu_ops_begin(&b->ops, &t->tp, XPL_TPU_OPS_SPARSE, &t->arena);
        *at = t->builders.n - 1;
    }
    struct offload_builder *const b = &t->builders.v[*at];
    while (b->stack.n && !xpl_timespan_includes(b->stack.v[b->stack.n - 1].span, f->span))
        if (!pop_offloaded(b)) return false;
    if (b->stack.n) b->stack.v[b->stack.n - 1].children_ps += f->span.duration_ps;
    struct tpu_frame *const frame = xpl_vec_push(&t->arena, &b->stack);
    if (frame) fill_frame(frame, ev, f);
    return frame != NULL;
}

static xpl_status_t read_offloaded_ops(struct tpu_plane *t, const struct xpl_line *line,
                                       const module_spans_t *m, struct xpl_map *index) {
    struct xpl_event_cursor cursor = xpl_events_of(line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    size_t at = 0;
    while (at < m->list.n && (r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct tpu_event_facts f;
        xpl_tpu_read_facts(t, line, &ev, &f);
        while (at < m->list.n && xpl_timespan_end(m->list.v[at].span) < f.span.begin_ps)
            at++;
        if (at < m->list.n && xpl_timespan_includes(m->list.v[at].span, f.span) &&
            !push_offloaded(t, index, &m->list.v[at], &ev, &f))
            return xpl_tpu_out_of_memory(t);
        XPL_TRY(xpl_tpu_check_cancelled(t, &ev));
    }
    if (m->list.n && at < m->list.n && r == XPL_WIRE_MALFORMED)
        return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

static xpl_status_t finish_offload(struct tpu_plane *t, struct offload_builder *b) {
    while (b->stack.n)
        if (!pop_offloaded(b)) return xpl_tpu_out_of_memory(t);
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(&t->arena, sizeof *db);
    struct offload *const o = xpl_vec_push(&t->arena, &t->results);
    if (!db || !o || !xpl_tpu_ops_finish(&b->ops, &t->arena, db)) return xpl_tpu_out_of_memory(t);
    xpl_op_metrics_set_total_time(db, b->total_ps);
    if (!xpl_op_metrics_add_idle(db, &t->arena)) return xpl_tpu_out_of_memory(t);
    *o = (struct offload){b->core_id, b->start_id, db};
    return xpl_tpu_add_fusion_children(t->c->hlo, &t->arena, db, &t->piece.error);
}

xpl_status_t xpl_tpu_walk_sparse_core(struct tpu_plane *t) {
    XPL_TRY(xpl_tpu_walk_lines(t)); // the duty cycle
    module_spans_t modules = {0};
    struct xpl_map index = {0};
    for (uint32_t i = 0; i < t->plane->n_lines; i++)
        if (line_is(&t->plane->lines[i], XPL_STR(XPL_LINE_SPARSE_CORE_MODULES)))
            XPL_TRY(read_modules(t, &t->plane->lines[i], &modules));
    sort_modules(&modules);
    for (uint32_t i = 0; i < t->plane->n_lines; i++)
        if (line_is(&t->plane->lines[i], XPL_STR(XPL_LINE_SPARSE_CORE_OPS)))
            XPL_TRY(read_offloaded_ops(t, &t->plane->lines[i], &modules, &index));
    for (size_t i = 0; i < modules.list.n; i++) {
        const struct module_span *const m = &modules.list.v[i];
        const uint64_t *const at = xpl_map_get(&index, m->core_id, m->start_id);
        if (at) t->builders.v[*at].total_ps += m->span.duration_ps;
    }
    for (size_t i = 0; i < t->builders.n; i++)
        XPL_TRY(finish_offload(t, &t->builders.v[i]));
    return XPL_OK;
}
