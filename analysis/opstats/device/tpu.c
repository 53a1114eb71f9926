// Op metrics and duty cycle of TPU planes.
// Rules: XProf's convert/xplane_to_op_metrics_db.cc
// (ConvertTensorCoreDeviceTraceXPlaneToOpMetricsDb and its SparseCore sister) and
// xplane_to_op_stats.cc.
//
// A line is walked once: a stack of the ops that enclose each other yields self times, and feeds
// the duty cycle on the way.  XProf sorts the events of TensorCore planes beforehand; writers do so
// too, and a line that turns out not to be in order is walked again in order.
#include <stdlib.h>
#include <string.h>

#include "analysis/hlo/hlo_map.h"
#include "analysis/opstats/device/device.h"
#include "analysis/opstats/device/duty.h"
#include "analysis/opstats/device/tpu_ops.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/event_span.h"
#include "base/map.h"

enum { CANCEL_EVERY = 4096 };

// ---- what SparseCores did, by the op of a TensorCore that started it ----

struct offload {
    uint64_t core_id, start_id;
    struct xpl_op_metrics_db *db;
};
struct offloads {
    struct xpl_map index; // (core_id, start_id) to position
    XPL_VEC(struct offload) v;
};

static struct xpl_op_metrics_db *find_offload(const struct offloads *o, uint64_t core_id,
                                              uint64_t start_id) {
    const uint64_t *const at = xpl_map_get(&o->index, core_id, start_id);
    return at ? o->v.v[*at].db : NULL;
}

// A later one replaces an earlier one of the same op.
static bool put_offload(struct offloads *o, struct xpl_arena *a, struct offload v) {
    bool fresh;
    uint64_t *const at = xpl_map_put(a, &o->index, v.core_id, v.start_id, &fresh);
    if (!at) return false;
    if (fresh) {
        if (!xpl_vec_push(a, &o->v)) return false;
        *at = o->v.n - 1;
    }
    o->v.v[*at] = v;
    return true;
}

// ---- one plane ----

struct frame { // an op that is running
    uint32_t md;
    int64_t num_occurrences;
    uint64_t event_duration_ps;
    struct xpl_tpu_values values;
    struct xpl_timespan span; // on the device's clock
    uint64_t children_ps;
    struct xpl_op_metrics_db *offloaded;
};

struct builder { // SparseCore: ops of one offload
    uint64_t core_id, start_id, total_ps;
    struct xpl_tpu_ops ops;
    XPL_VEC(struct frame) stack;
};

// What an event's statistics say beyond its numbers, decoded together.
struct event_facts {
    struct xpl_timespan span;
    bool has_tf_op, is_async;
    bool has_core_id, has_start_id;
    uint64_t core_id;
    struct xpl_stat start_id;
    struct xpl_tpu_values values;
};

enum { MD_READY = 1, MD_TF_OP = 2, MD_ASYNC = 4 };

struct tpu_plane {
    const struct xpl_convert *c;
    const struct xpl_plane *plane;
    struct xpl_arena arena;
    struct xpl_piece piece;
    struct xpl_tpu_plane tp;
    struct xpl_duty_plane duty;
    const struct offloads *offloads; // TensorCore: input
    bool is_sparse;
    bool sorted;        // XProf sorts this plane's lines, and adds a line of framework ops
    bool framework_ops; // it adds that line, and some event may stand on it
    uint8_t *md_flags;  // by event metadata, MD_*

    // TensorCore
    struct xpl_tpu_ops ops;
    XPL_VEC(struct frame) stack;
    uint64_t first_ps, last_ps;
    struct xpl_op_metrics_db db;
    // SparseCore
    XPL_VEC(struct builder) builders;
    XPL_VEC(struct offload) results;
};

static xpl_status_t out_of_memory(struct tpu_plane *t) {
    XPL_RETURN_OOM(&t->piece.error, "TPU op metrics");
}

static xpl_status_t check_cancelled(struct tpu_plane *t, const struct xpl_event *ev) {
    if (ev->index % CANCEL_EVERY == 0 && xpl_exec_cancelled(t->c->exec))
        XPL_RETURN_ERROR(&t->piece.error, XPL_CANCELLED, "conversion cancelled");
    return XPL_OK;
}

static bool line_is(const struct xpl_line *l, xpl_str_t name) {
    return xpl_str_eq(l->name, name);
}
static bool is_op_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_FRAMEWORK_OPS)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static bool is_duty_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_OPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_OPS));
}
static bool is_module_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_XLA_MODULES)) ||
           line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_MODULES));
}
static bool is_step_line(const struct xpl_line *l) {
    return line_is(l, XPL_STR(XPL_LINE_STEPS)) || line_is(l, XPL_STR(XPL_LINE_SPARSE_CORE_STEPS));
}

// ---- statistics of events ----

static uint8_t md_flags(struct tpu_plane *t, uint32_t md) {
    uint8_t *const flags = &t->md_flags[md];
    if (*flags & MD_READY) return *flags;
    *flags = MD_READY;
    struct xpl_stats stats = xpl_event_md_stats(t->plane, &t->plane->event_md[md]);
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        if (s.md->type == XPL_STAT_TF_OP)
            *flags = (uint8_t)((*flags & ~MD_TF_OP) | (xpl_stat_str(&s).len ? MD_TF_OP : 0));
        if (s.md->type == XPL_STAT_IS_ASYNC)
            *flags = (uint8_t)((*flags & ~MD_ASYNC) | (xpl_stat_int_or_uint(&s) ? MD_ASYNC : 0));
    }
    return *flags;
}

static void read_facts(struct tpu_plane *t, const struct xpl_line *line, const struct xpl_event *ev,
                       struct event_facts *ret) {
    const uint8_t flags = md_flags(t, ev->md);
    *ret = (struct event_facts){
        .span = {(uint64_t)xpl_event_begin_ps(line, ev), (uint64_t)ev->duration_ps},
        .has_tf_op = flags & MD_TF_OP,
        .is_async = flags & MD_ASYNC,
        .values = xpl_tpu_values_of(ev),
    };
    struct xpl_timespan device = {0};
    bool has_offset = false, has_duration = false;
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        switch ((int)s.md->type) { // of equal ones GetStat takes the first, a loop the last
            case XPL_STAT_DEVICE_OFFSET_PS:
                if (!has_offset) device.begin_ps = xpl_stat_int_or_uint(&s);
                has_offset = true;
                break;
            case XPL_STAT_DEVICE_DURATION_PS:
                if (!has_duration) device.duration_ps = xpl_stat_int_or_uint(&s);
                has_duration = true;
                break;
            case XPL_STAT_OFFLOAD_CORE_ID:
                if (!ret->has_core_id) ret->core_id = xpl_stat_uint(&s);
                ret->has_core_id = true;
                break;
            case XPL_STAT_TC_OFFLOAD_START_ID:
                if (!ret->has_start_id) ret->start_id = s;
                ret->has_start_id = true;
                break;
            case XPL_STAT_TF_OP: ret->has_tf_op = xpl_stat_str(&s).len > 0; break;
            case XPL_STAT_IS_ASYNC: ret->is_async = xpl_stat_int_or_uint(&s) != 0; break;
            default: xpl_tpu_values_note(&t->tp, &s, &ret->values); break;
        }
    }
    if (has_offset && has_duration) ret->span = device;
}

static void track(struct tpu_plane *t, struct xpl_timespan span) {
    const uint64_t end_ps = xpl_timespan_end(span);
    if (span.begin_ps < t->first_ps) t->first_ps = span.begin_ps;
    if (end_ps > t->last_ps) t->last_ps = end_ps;
}

// XProf derives a line of framework ops from events with a framework op, on the host's clock, and
// that line counts towards the time of the profile.
static void track_framework_op(struct tpu_plane *t, const struct xpl_line *line,
                               const struct xpl_event *ev, const struct event_facts *f) {
    if (t->framework_ops && f->has_tf_op && !f->is_async)
        track(t, (struct xpl_timespan){(uint64_t)xpl_event_begin_ps(line, ev),
                                       (uint64_t)ev->duration_ps});
}

// ---- TensorCores ----

// (Member by member: a copy would be read in wider pieces than it has just been written in.)
static void fill_frame(struct frame *frame, const struct xpl_event *ev,
                       const struct event_facts *f) {
    frame->md = ev->md;
    frame->num_occurrences = ev->num_occurrences;
    frame->event_duration_ps = (uint64_t)ev->duration_ps;
    frame->values.min_ps = f->values.min_ps;
    frame->values.dma_stall_ps = f->values.dma_stall_ps;
    frame->values.vdd_energy_j = f->values.vdd_energy_j;
    frame->values.time_scale = f->values.time_scale;
    frame->values.has_vdd_energy_j = f->values.has_vdd_energy_j;
    frame->values.has_time_scale = f->values.has_time_scale;
    frame->span.begin_ps = f->span.begin_ps;
    frame->span.duration_ps = f->span.duration_ps;
    frame->children_ps = 0;
    frame->offloaded = NULL;
}

static bool pop(struct tpu_plane *t) {
    const struct frame *const f = &t->stack.v[--t->stack.n];
    return xpl_tpu_ops_add_values(&t->ops, f->md, f->event_duration_ps, f->num_occurrences,
                                  &f->values, f->span.duration_ps, f->children_ps, f->offloaded);
}

static bool push(struct tpu_plane *t, const struct xpl_event *ev, const struct event_facts *f) {
    while (t->stack.n && !xpl_timespan_includes(t->stack.v[t->stack.n - 1].span, f->span))
        if (!pop(t)) return false;
    if (t->stack.n) t->stack.v[t->stack.n - 1].children_ps += f->span.duration_ps;
    struct frame *const frame = xpl_vec_push(&t->arena, &t->stack);
    if (!frame) return false;
    fill_frame(frame, ev, f);
    if (f->has_core_id && f->has_start_id)
        frame->offloaded =
            find_offload(t->offloads, f->core_id, (uint64_t)xpl_stat_int(&f->start_id));
    return true;
}

struct line_walk {
    struct tpu_plane *t;
    const struct xpl_line *line;
    bool is_ops, is_duty, is_sparse, ordered;
    uint64_t last_offset, last_duration;
    struct xpl_duty_line duty;
};

static bool walk_event(struct line_walk *w, const struct xpl_event *ev) {
    struct tpu_plane *const t = w->t;
    const uint64_t offset = (uint64_t)ev->offset_ps, duration = (uint64_t)ev->duration_ps;
    if (offset < w->last_offset ||
        (offset == w->last_offset && duration > w->last_duration && ev->index > 0))
        w->ordered = false;
    w->last_offset = offset;
    w->last_duration = duration;
    if (w->is_duty) {
        struct xpl_duty_op op;
        xpl_duty_classify(&t->tp, w->line, ev, w->is_sparse, &op);
        if (!xpl_duty_line_add(&w->duty, &op)) return false;
    }
    if (t->is_sparse) return true;
    struct event_facts f;
    read_facts(t, w->line, ev, &f);
    track_framework_op(t, w->line, ev, &f);
    if (!w->is_ops) return true;
    track(t, f.span);
    return push(t, ev, &f);
}

static bool end_walk(struct line_walk *w) {
    while (w->t->stack.n)
        if (!pop(w->t)) return false;
    return !w->is_duty || xpl_duty_line_end(&w->duty);
}

// In file order.
static xpl_status_t walk_as_it_stands(struct line_walk *w) {
    struct tpu_plane *const t = w->t;
    struct xpl_event_cursor cursor;
    xpl_events_begin(&cursor, w->line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        if (!walk_event(w, &ev)) return out_of_memory(t);
        XPL_TRY(check_cancelled(t, &ev));
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return end_walk(w) ? XPL_OK : out_of_memory(t);
}

struct place { // where an event stands
    uint64_t offset, duration, index;
    const uint8_t *p;
};

static int by_offset(const void *pa, const void *pb) {
    const struct place *const a = pa, *const b = pb;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    if (a->duration != b->duration) return a->duration > b->duration ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

// By begin, longer ones first.  The index of a line's events is kept only while this runs.
static xpl_status_t walk_in_order(struct line_walk *w) {
    struct tpu_plane *const t = w->t;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = {0};
    xpl_arena_init(&arena, t->c->scratch_limit);
    struct place *const v = xpl_arena_array(&arena, w->line->n_events, sizeof *v);
    if (!v) return out_of_memory(t);
    struct xpl_event_cursor cursor;
    xpl_events_begin(&cursor, w->line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    size_t n = 0;
    const uint8_t *at = cursor.p;
    for (; n < w->line->n_events && (r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD;
         at = cursor.p)
        v[n++] = (struct place){(uint64_t)ev.offset_ps, (uint64_t)ev.duration_ps, ev.index, at};
    if (n) qsort(v, n, sizeof *v, by_offset);
    for (size_t i = 0; i < n; i++) {
        cursor.p = v[i].p;
        cursor.index = v[i].index;
        if (xpl_events_next(&cursor, &ev) != XPL_WIRE_FIELD)
            return xpl_events_error(&cursor, &t->piece.error);
        if (!walk_event(w, &ev)) return out_of_memory(t);
        XPL_TRY(check_cancelled(t, &(struct xpl_event){.index = i}));
    }
    return end_walk(w) ? XPL_OK : out_of_memory(t);
}

// What a walk changes, to undo it.
struct undo {
    struct xpl_tpu_op_sums *sums;
    size_t n_sums;
    struct xpl_duty_plane duty;
};

static bool remember(const struct tpu_plane *t, struct xpl_arena *a, struct undo *ret) {
    *ret = (struct undo){.n_sums = t->ops.sums.n, .duty = t->duty};
    if (ret->n_sums == 0) return true;
    ret->sums = xpl_arena_array(a, ret->n_sums, sizeof *ret->sums);
    if (ret->sums) memcpy(ret->sums, t->ops.sums.v, ret->n_sums * sizeof *ret->sums);
    return ret->sums != NULL;
}

// Sums that appeared since stay, emptied: the second walk meets the same ops.
static void undo(struct tpu_plane *t, const struct undo *u) {
    if (u->n_sums) memcpy(t->ops.sums.v, u->sums, u->n_sums * sizeof *u->sums);
    for (size_t i = u->n_sums; i < t->ops.sums.n; i++)
        t->ops.sums.v[i] = (struct xpl_tpu_op_sums){.md = t->ops.sums.v[i].md};
    t->duty = u->duty;
}

static void begin_walk(struct line_walk *w, struct tpu_plane *t, const struct xpl_line *line) {
    *w = (struct line_walk){
        .t = t,
        .line = line,
        .is_ops = !t->is_sparse && is_op_line(line),
        .is_duty = is_duty_line(line),
        .is_sparse = line_is(line, XPL_STR(XPL_LINE_SPARSE_CORE_OPS)),
        .ordered = true,
    };
    xpl_duty_line_begin(&w->duty, &t->duty, &t->arena);
}

static bool has_gaps(const struct xpl_duty_set *s) {
    return !s->arena && s->disordered;
}

static xpl_status_t walk_op_line(struct tpu_plane *t, const struct xpl_line *line) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena before = {0};
    xpl_arena_init(&before, t->c->scratch_limit);
    struct undo u;
    if (!remember(t, &before, &u)) return out_of_memory(t);
    struct line_walk w;
    begin_walk(&w, t, line);
    XPL_TRY(walk_as_it_stands(&w));
    const bool sort = t->sorted && !w.ordered;
    if (!sort && !has_gaps(&t->duty.busy) && !has_gaps(&t->duty.confident)) return XPL_OK;
    // Once more, in order where that is what was missing, and keeping intervals, which may then
    // come in any order.
    undo(t, &u);
    t->duty.busy.arena = t->duty.confident.arena = &t->arena;
    begin_walk(&w, t, line);
    return sort ? walk_in_order(&w) : walk_as_it_stands(&w);
}

static void track_steps(struct tpu_plane *t) {
    size_t n;
    const struct xpl_step_event *const v = xpl_groups_steps(t->c->groups, t->plane, &n);
    for (size_t i = 0; i < n; i++)
        track(t, v[i].has_device_time
                     ? (struct xpl_timespan){(uint64_t)v[i].device_offset_ps,
                                             (uint64_t)v[i].device_duration_ps}
                     : (struct xpl_timespan){(uint64_t)v[i].begin_ps, (uint64_t)v[i].duration_ps});
}

// Lines that are no op lines: steps and modules, and framework ops wherever they are.
static xpl_status_t walk_other_line(struct tpu_plane *t, const struct xpl_line *line) {
    const bool modules = is_module_line(line);
    const bool replaced = xpl_groups_replaces_line(t->c->groups, line);
    const bool steps = !t->is_sparse && is_step_line(line) && !replaced;
    if (!t->is_sparse && is_step_line(line) && replaced) track_steps(t);
    if (!modules && !steps && !t->framework_ops) return XPL_OK;
    struct xpl_event_cursor cursor;
    xpl_events_begin(&cursor, line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct event_facts f;
        read_facts(t, line, &ev, &f);
        track_framework_op(t, line, &ev, &f);
        if (steps) track(t, f.span);
        if (modules)
            xpl_duty_extend(&t->duty, (uint64_t)xpl_event_begin_ps(line, &ev),
                            (uint64_t)ev.duration_ps);
        XPL_TRY(check_cancelled(t, &ev));
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

// ---- instructions inside fusions ----

static bool add_fused(struct xpl_arena *a, const struct xpl_hlo_instruction *fusion, unsigned level,
                      struct xpl_op_metrics *op);

static bool add_fused_one(struct xpl_arena *a, const struct xpl_hlo_instruction *in, unsigned level,
                          struct xpl_op_metrics_db *db) {
    if (xpl_str_eq(in->opcode, XPL_STR("parameter")) || xpl_str_eq(in->opcode, XPL_STR("tuple")))
        return true;
    // Filled before it is added: its own children may be many.
    struct xpl_op_metrics m = {.occurrences = 1, .num_cores = 1};
    if (!xpl_arena_str(a, in->name, &m.name) || !xpl_arena_str(a, in->category, &m.category) ||
        !xpl_arena_str(a, in->deduplicated_name, &m.deduplicated_name) ||
        !xpl_hlo_op_full_name(in, a, &m.provenance) || !add_fused(a, in, level + 1, &m))
        return false;
    struct xpl_op_metrics *const slot = xpl_vec_push(a, &db->metrics_db);
    if (slot) *slot = m;
    return slot != NULL;
}

static bool add_fused(struct xpl_arena *a, const struct xpl_hlo_instruction *fusion, unsigned level,
                      struct xpl_op_metrics *op) {
    if (!fusion->has_children || level >= XPL_OP_METRICS_MAX_DEPTH) return true;
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(a, sizeof *db);
    if (!db) return false;
    if (op->children) { // shared with other ops of the same metadata: extend a copy
        *db = *op->children;
        db->metrics_db.v = NULL;
        db->metrics_db.n = db->metrics_db.cap = 0;
        const size_t n = op->children->metrics_db.n;
        if (n && !xpl_vec_reserve(a, &db->metrics_db, n)) return false;
        if (n) memcpy(db->metrics_db.v, op->children->metrics_db.v, n * sizeof *db->metrics_db.v);
        db->metrics_db.n = n;
    }
    struct xpl_hlo_children children;
    struct xpl_hlo_instruction in;
    xpl_hlo_children_begin(&children, fusion);
    while (xpl_hlo_children_next(&children, &in))
        if (!add_fused_one(a, &in, level, db)) return false;
    if (db->metrics_db.n) op->children = db;
    return true;
}

// UpdateOpMetricsDbFromHloModuleMap.
static xpl_status_t add_fusion_children(struct tpu_plane *t, struct xpl_op_metrics_db *db) {
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        struct xpl_op_metrics *const m = &db->metrics_db.v[i];
        struct xpl_hlo_instruction in;
        bool found;
        XPL_TRY(
            xpl_hlo_map_find(t->c->hlo, m->hlo_module_id, m->name, &in, &found, &t->piece.error));
        if (found && !add_fused(&t->arena, &in, 0, m)) return out_of_memory(t);
    }
    return XPL_OK;
}

// ---- a plane as a whole ----

static bool has_stat_type(const struct xpl_plane *p, enum xpl_stat_type type) {
    for (uint32_t i = 1; i < p->n_stat_md; i++)
        if (p->stat_md[i].type == type) return true;
    return false;
}

// IsHostPlane or IsDevicePlane.
static bool is_host_or_device(xpl_str_t name) {
    static const char *const prefixes[] = {
        XPL_PLANE_NAME_HOST_THREADS,
        XPL_PLANE_NAME_HOST_CPUS,
        XPL_PLANE_NAME_TF_STREAMZ,
        XPL_PLANE_NAME_METADATA,
        XPL_PLANE_NAME_SYSCALLS,
        XPL_PLANE_NAME_PYTHON_TRACER,
        XPL_PLANE_NAME_CUPTI_API,
        XPL_PLANE_NAME_SCOPE_RANGE_ID,
        XPL_PLANE_NAME_TPU_NON_CORE,
        "/device",
        "/custom:",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (xpl_str_starts(name, xpl_str_from(prefixes[i]))) return true;
    return false;
}

// IsXSpaceGrouped: such profiles are taken as they are.
static bool arrives_grouped(const struct xpl_xspace *xs) {
    for (uint32_t i = 0; i < xs->n_planes; i++)
        if (is_host_or_device(xs->planes[i].name) &&
            !has_stat_type(&xs->planes[i], XPL_STAT_GROUP_ID))
            return false;
    return true;
}

static bool prepare(struct tpu_plane *t) {
    t->framework_ops = t->sorted && has_stat_type(t->plane, XPL_STAT_TF_OP);
    t->first_ps = UINT64_MAX;
    t->md_flags = xpl_arena_zalloc(&t->arena, t->plane->n_event_md);
    if (!t->md_flags || !xpl_tpu_plane_init(&t->tp, t->plane, &t->arena)) return false;
    xpl_tpu_ops_begin(&t->ops, &t->tp, XPL_TPU_OPS_TENSOR, &t->arena);
    return true;
}

static xpl_status_t walk_lines(struct tpu_plane *t) {
    for (uint32_t i = 0; i < t->plane->n_lines; i++) {
        const struct xpl_line *const line = &t->plane->lines[i];
        const bool ops = is_duty_line(line) || (!t->is_sparse && is_op_line(line));
        XPL_TRY(ops ? walk_op_line(t, line) : walk_other_line(t, line));
    }
    return XPL_OK;
}

static xpl_status_t walk_tensor_core(struct tpu_plane *t) {
    XPL_TRY(walk_lines(t));
    if (!xpl_tpu_ops_finish(&t->ops, &t->arena, &t->db)) return out_of_memory(t);
    xpl_op_metrics_set_total_time(&t->db, t->last_ps - t->first_ps);
    if (!xpl_op_metrics_add_idle(&t->db, &t->arena)) return out_of_memory(t);
    return add_fusion_children(t, &t->db);
}

// ---- SparseCores ----

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
    struct xpl_event_cursor cursor;
    xpl_events_begin(&cursor, line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    while ((r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct event_facts f;
        read_facts(t, line, &ev, &f);
        if (!f.has_core_id || !f.has_start_id) continue;
        struct module_span *const s = xpl_vec_push(&t->arena, &m->list);
        if (!s) return out_of_memory(t);
        *s = (struct module_span){f.span, f.core_id, xpl_stat_uint(&f.start_id), m->list.n};
    }
    if (r == XPL_WIRE_MALFORMED) return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

// In order of time, each span once.
static void sort_modules(module_spans_t *m) {
    if (m->list.n) qsort(m->list.v, m->list.n, sizeof *m->list.v, by_span);
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

static bool pop_offloaded(struct builder *b) {
    const struct frame *const f = &b->stack.v[--b->stack.n];
    return xpl_tpu_ops_add_values(&b->ops, f->md, f->event_duration_ps, f->num_occurrences,
                                  &f->values, f->span.duration_ps, f->children_ps, NULL);
}

static bool push_offloaded(struct tpu_plane *t, struct xpl_map *index,
                           const struct module_span *module, const struct xpl_event *ev,
                           const struct event_facts *f) {
    bool fresh;
    uint64_t *const at = xpl_map_put(&t->arena, index, module->core_id, module->start_id, &fresh);
    if (!at) return false;
    if (fresh) {
        struct builder *const b = xpl_vec_push(&t->arena, &t->builders);
        if (!b) return false;
        *b = (struct builder){.core_id = module->core_id, .start_id = module->start_id};
        xpl_tpu_ops_begin(&b->ops, &t->tp, XPL_TPU_OPS_SPARSE, &t->arena);
        *at = t->builders.n - 1;
    }
    struct builder *const b = &t->builders.v[*at];
    while (b->stack.n && !xpl_timespan_includes(b->stack.v[b->stack.n - 1].span, f->span))
        if (!pop_offloaded(b)) return false;
    if (b->stack.n) b->stack.v[b->stack.n - 1].children_ps += f->span.duration_ps;
    struct frame *const frame = xpl_vec_push(&t->arena, &b->stack);
    if (frame) fill_frame(frame, ev, f);
    return frame != NULL;
}

static xpl_status_t read_offloaded_ops(struct tpu_plane *t, const struct xpl_line *line,
                                       const module_spans_t *m, struct xpl_map *index) {
    struct xpl_event_cursor cursor;
    xpl_events_begin(&cursor, line);
    struct xpl_event ev;
    enum xpl_wire_result r;
    size_t at = 0;
    while (at < m->list.n && (r = xpl_events_next(&cursor, &ev)) == XPL_WIRE_FIELD) {
        struct event_facts f;
        read_facts(t, line, &ev, &f);
        while (at < m->list.n && xpl_timespan_end(m->list.v[at].span) < f.span.begin_ps)
            at++;
        if (at < m->list.n && xpl_timespan_includes(m->list.v[at].span, f.span) &&
            !push_offloaded(t, index, &m->list.v[at], &ev, &f))
            return out_of_memory(t);
        XPL_TRY(check_cancelled(t, &ev));
    }
    if (m->list.n && at < m->list.n && r == XPL_WIRE_MALFORMED)
        return xpl_events_error(&cursor, &t->piece.error);
    return XPL_OK;
}

static xpl_status_t finish_offload(struct tpu_plane *t, struct builder *b) {
    while (b->stack.n)
        if (!pop_offloaded(b)) return out_of_memory(t);
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(&t->arena, sizeof *db);
    struct offload *const o = xpl_vec_push(&t->arena, &t->results);
    if (!db || !o || !xpl_tpu_ops_finish(&b->ops, &t->arena, db)) return out_of_memory(t);
    xpl_op_metrics_set_total_time(db, b->total_ps);
    if (!xpl_op_metrics_add_idle(db, &t->arena)) return out_of_memory(t);
    *o = (struct offload){b->core_id, b->start_id, db};
    return add_fusion_children(t, db);
}

static xpl_status_t walk_sparse_core(struct tpu_plane *t) {
    XPL_TRY(walk_lines(t)); // the duty cycle
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

// ---- all planes together ----

// Planes are worked on in batches, whose memory is given back in between: a profile may have a
// million of them.
enum { BATCH = 64 };

struct chip {
    struct xpl_duty_plane duty;
    size_t duty_lines;
};

struct tpu_run {
    const struct xpl_convert *c;
    const struct xpl_plane *const *planes;
    const struct xpl_plane_details *details;
    size_t n;
    struct xpl_arena *scratch;
    struct xpl_op_metrics_db *db;
    struct xpl_op_metrics_builder builder;
    struct offloads offloads;
    struct xpl_map chip_index; // local_chip_id to position
    XPL_VEC(struct chip) chips;
    bool arrives_grouped;
    struct tpu_plane batch[BATCH];
};

static void work(void *ctx, size_t i) {
    struct tpu_plane *const t = &((struct tpu_plane *)ctx)[i];
    t->piece.status = !prepare(t)    ? out_of_memory(t)
                      : t->is_sparse ? walk_sparse_core(t)
                                     : walk_tensor_core(t);
}

static void add_times(struct xpl_op_metrics_db *db, struct xpl_duty_plane *d) {
    const uint64_t span = d->has_span ? d->end_ps - d->begin_ps : 0;
    const uint64_t busy = xpl_duty_set_length(&d->busy);
    const uint64_t confident = xpl_duty_set_length(&d->confident);
    db->busy_time_ps += busy;
    db->idle_time_ps += span > busy ? span - busy : 0;
    db->busy_time_high_confidence_ps += confident;
    db->idle_time_high_confidence_ps += span > confident ? span - confident : 0;
}

static size_t count_duty_lines(const struct xpl_plane *p) {
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_lines; i++)
        n += is_duty_line(&p->lines[i]) && p->lines[i].n_events > 0;
    return n;
}

static bool index_chips(struct tpu_run *r) {
    for (size_t i = 0; i < r->n; i++) {
        if (!r->details[i].present) continue;
        bool fresh;
        uint64_t *const at =
            xpl_map_put(r->scratch, &r->chip_index, r->details[i].core.local_chip_id, 0, &fresh);
        if (!at) return false;
        if (fresh) {
            struct chip *const chip = xpl_vec_push(r->scratch, &r->chips);
            if (!chip) return false;
            *chip = (struct chip){0};
            chip->duty.busy.arena = chip->duty.confident.arena = r->scratch;
            *at = r->chips.n - 1;
        }
        r->chips.v[*at].duty_lines += count_duty_lines(r->planes[i]);
    }
    return true;
}

static struct chip *chip_of(struct tpu_run *r, size_t i) {
    if (!r->details[i].present) return NULL;
    return &r->chips.v[*xpl_map_get(&r->chip_index, r->details[i].core.local_chip_id, 0)];
}

// Intervals are kept only where several lines share a chip; one line's come in order and are added
// up as they come.
static bool keeps_intervals(struct tpu_run *r, size_t i) {
    const struct chip *const chip = chip_of(r, i);
    if ((chip ? chip->duty_lines : count_duty_lines(r->planes[i])) > 1) return true;
    for (uint32_t k = 0; k < r->planes[i]->n_lines; k++)
        if (line_is(&r->planes[i]->lines[k], XPL_STR(XPL_LINE_SPARSE_CORE_OPS))) return true;
    return false;
}

static void init_plane(struct tpu_run *r, size_t i, struct tpu_plane *t) {
    const struct xpl_plane *const p = r->planes[i];
    *t = (struct tpu_plane){
        .c = r->c,
        .plane = p,
        .offloads = &r->offloads,
        .is_sparse = p->kind == XPL_PLANE_SPARSE_CORE,
        .sorted = p->kind == XPL_PLANE_TPU_CORE && !r->arrives_grouped,
    };
    xpl_arena_init(&t->arena, r->c->scratch_limit);
}

static xpl_status_t keep(struct tpu_run *r, size_t i, struct tpu_plane *t, struct xpl_error *err) {
    if (t->piece.status != XPL_OK) {
        if (err && err->code == XPL_OK) *err = t->piece.error;
        return t->piece.status;
    }
    for (size_t k = 0; k < t->results.n; k++) {
        struct offload o = t->results.v[k];
        o.db = xpl_arena_alloc(r->scratch, sizeof *o.db);
        if (!o.db || !xpl_op_metrics_db_copy(t->results.v[k].db, r->scratch, o.db) ||
            !put_offload(&r->offloads, r->scratch, o))
            XPL_RETURN_OOM(err, "SparseCore op metrics");
    }
    if (!xpl_op_metrics_combine(&r->builder, &t->db, true)) XPL_RETURN_OOM(err, "TPU op metrics");
    struct chip *const chip = chip_of(r, i);
    if (!chip) add_times(r->db, &t->duty);
    if (chip && !xpl_duty_plane_join(&chip->duty, &t->duty)) XPL_RETURN_OOM(err, "duty cycle");
    return XPL_OK;
}

static xpl_status_t run_batch(struct tpu_run *r, const size_t *ids, size_t n,
                              struct xpl_error *err) {
    for (size_t k = 0; k < n; k++) {
        init_plane(r, ids[k], &r->batch[k]);
        if (keeps_intervals(r, ids[k]))
            r->batch[k].duty.busy.arena = r->batch[k].duty.confident.arena = &r->batch[k].arena;
    }
    xpl_exec_run(r->c->exec, n, work, r->batch);
    xpl_status_t st = XPL_OK;
    for (size_t k = 0; k < n; k++) {
        if (st == XPL_OK) st = keep(r, ids[k], &r->batch[k], err);
        xpl_arena_fini(&r->batch[k].arena);
    }
    return st;
}

// SparseCores first: ops of TensorCores take over what they had run there.
static xpl_status_t run_kind(struct tpu_run *r, bool sparse, struct xpl_error *err) {
    size_t ids[BATCH], n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if ((r->planes[i]->kind == XPL_PLANE_SPARSE_CORE) != sparse) continue;
        ids[n++] = i;
        if (n < BATCH) continue;
        XPL_TRY(run_batch(r, ids, n, err));
        n = 0;
    }
    return run_batch(r, ids, n, err);
}

xpl_status_t xpl_device_tpu(const struct xpl_convert *c, const struct xpl_plane *const *planes,
                            const struct xpl_plane_details *details, size_t n,
                            struct xpl_opstats *s, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = {0};
    xpl_arena_init(&scratch, c->scratch_limit);
    struct tpu_run *const r = xpl_arena_zalloc(&scratch, sizeof *r);
    if (!r) XPL_RETURN_OOM(err, "TPU planes");
    r->c = c, r->planes = planes, r->details = details, r->n = n, r->scratch = &scratch;
    r->db = &s->device_op_metrics_db;
    r->arrives_grouped = arrives_grouped(c->xs);
    xpl_op_metrics_begin(&r->builder, r->db, XPL_OP_METRICS_COPY, c->result, &scratch);
    if (!index_chips(r)) XPL_RETURN_OOM(err, "TPU chips");
    XPL_TRY(run_kind(r, true, err));
    XPL_TRY(run_kind(r, false, err));
    for (size_t i = 0; i < r->chips.n; i++)
        add_times(r->db, &r->chips.v[i].duty);
    return XPL_OK;
}
