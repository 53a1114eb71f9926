// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/device/tpu_ops.h"

#include <string.h>

#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/wire/wire.h"
#include "base/arena.h"
#include "base/text/parse.h"

// Descendants that one op may have: child ids may form any graph, and are written out as a tree.
enum { MAX_DESCENDANTS = 1 << 16 };

// ---- names ----

bool xpl_tpu_op_waits(xpl_str_t name) {
    static const xpl_str_t parts[] = {
        {"call-done", 9},       {"async-done", 10},     {"sync-wait", 9},
        {"host-send-done", 14}, {"host-recv-done", 14},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (xpl_str_has(name, parts[i])) return true;
    return xpl_str_starts(name, XPL_STR("Sync Wait:")) ||
           xpl_str_starts(name, XPL_STR("Barrier Wait:")) || xpl_str_eq(name, XPL_STR("SFence"));
}

bool xpl_tpu_category_is_off_duty(xpl_str_t category) {
    static const xpl_str_t off[] = {
        {"infeed", 6},    {"outfeed", 7},         {"host send", 9},   {"host send-done", 14},
        {"host recv", 9}, {"host recv-done", 14}, {"async-done", 10}, {"megacore fusion", 15},
    };
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (xpl_str_eq(category, off[i])) return true;
    return false;
}

// ---- numbers ----

// What clang's double to uint64_t gives, without its undefined cases.
static uint64_t to_u64(double d) {
    if (!(d > -0x1p63 && d < 0x1p64)) return UINT64_C(1) << 63;
    return d < 0 ? (uint64_t)(int64_t)d : (uint64_t)d;
}

// ---- metadata ----

// MemoryAccessBreakdown: OpMetrics.MemoryAccessed 1 {operation_type 1, memory_space 2, bytes 3}.
// Malformed bytes leave the op without a breakdown.
static bool read_breakdown(xpl_bytes_t bytes, struct xpl_arena *a, struct xpl_op_metrics *op) {
    const struct xpl_op_metrics before = *op;
    op->memory_accessed_breakdown.v = NULL;
    op->memory_accessed_breakdown.n = op->memory_accessed_breakdown.cap = 0;
    struct xpl_wire w = xpl_wire_begin(bytes), v;
    struct xpl_field f, g;
    enum xpl_wire_result r = XPL_WIRE_END, inner = XPL_WIRE_END;
    while (inner == XPL_WIRE_END && (r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num != 1 || f.type != XPL_WIRE_LEN) continue;
        struct xpl_memory_accessed *const m = xpl_vec_push(a, &op->memory_accessed_breakdown);
        if (!m) return false;
        *m = (struct xpl_memory_accessed){0};
        v = xpl_wire_begin(f.len);
        while ((inner = xpl_wire_next(&v, &g)) == XPL_WIRE_FIELD) {
            if (g.type != XPL_WIRE_VARINT) continue;
            if (g.num == 1) m->operation_type = (int32_t)g.u;
            if (g.num == 2) m->memory_space = g.u;
            if (g.num == 3) m->bytes_accessed = g.u;
        }
    }
    if (r == XPL_WIRE_MALFORMED || inner == XPL_WIRE_MALFORMED) *op = before;
    return true;
}

// "file:line", split at the first colon; anything else says nothing.
static bool read_source(xpl_str_t s, struct xpl_arena *a, struct xpl_op_metrics *op) {
    op->has_source_info = true;
    const size_t colon = xpl_str_find(s, XPL_STR(":"), 0);
    int32_t line;
    if (colon == SIZE_MAX || !xpl_parse_i32(xpl_str_sub(s, colon + 1, SIZE_MAX), &line))
        return true;
    op->source_info.line_number = line;
    return xpl_arena_str(a, xpl_str_sub(s, 0, colon), &op->source_info.file_name);
}

static bool read_md_stat(const struct xpl_stat *s, struct xpl_arena *a, struct xpl_op_metrics *op) {
    const uint64_t number = xpl_stat_int_or_uint(s);
    switch ((int)s->md->type) {
        case XPL_STAT_PROGRAM_ID: op->hlo_module_id = number; return true;
        case XPL_STAT_HLO_CATEGORY: return xpl_arena_str(a, xpl_stat_str(s), &op->category);
        case XPL_STAT_TF_OP: return xpl_arena_str(a, xpl_stat_str(s), &op->provenance);
        case XPL_STAT_FLOPS:
            op->flops = number;
            op->flops_v2 = (double)number;
            return true;
        case XPL_STAT_MODEL_FLOPS:
            op->model_flops = number;
            op->model_flops_v2 = (double)number;
            return true;
        case XPL_STAT_BYTES_ACCESSED: op->bytes_accessed = number; return true;
        case XPL_STAT_MEMORY_ACCESS_BREAKDOWN:
            return read_breakdown(s->kind == XPL_VALUE_BYTES
                                      ? (xpl_bytes_t){(const uint8_t *)s->str.ptr, s->str.len}
                                      : (xpl_bytes_t){0},
                                  a, op);
        case XPL_STAT_DEDUPLICATED_NAME:
            return xpl_arena_str(a, xpl_stat_str(s), &op->deduplicated_name);
        case XPL_STAT_SOURCE_INFO: return read_source(xpl_stat_str(s), a, op);
        case XPL_STAT_SOURCE_STACK:
            op->has_source_info = true;
            return xpl_arena_str(a, xpl_stat_str(s), &op->source_info.stack_frame);
        default: return true;
    }
}

// What metadata says, read once, as many ops may name one that is long as their child.
struct xpl_tpu_md_op {
    struct xpl_op_metrics op; // without children
    XPL_VEC(uint32_t) children;
    struct xpl_tpu_plane *tp;
    bool failed;
};

static void note_child(void *ctx, const struct xpl_event_md *child) {
    struct xpl_tpu_md_op *const decoded = ctx;
    if (decoded->failed || decoded->children.n == MAX_DESCENDANTS) return;
    uint32_t *const slot = xpl_vec_push(decoded->tp->arena, &decoded->children);
    if (slot) *slot = (uint32_t)(child - decoded->tp->plane->event_md);
    decoded->failed = !slot;
}

// SetOpMetadataFromHloEventMetadata.
static bool read_md(struct xpl_tpu_plane *tp, const struct xpl_event_md *md,
                    struct xpl_tpu_md_op *decoded) {
    struct xpl_op_metrics *const op = &decoded->op;
    const bool named = md->display_name.len > 0;
    if (!xpl_arena_str(tp->arena, named ? md->display_name : md->name, &op->name)) return false;
    if (named && !xpl_arena_str(tp->arena, md->name, &op->long_name)) return false;
    struct xpl_stats stats = xpl_event_md_stats(tp->plane, md);
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        if (!read_md_stat(&s, tp->arena, op)) return false;
    decoded->tp = tp;
    xpl_event_md_children(tp->plane, md, note_child, decoded);
    return !decoded->failed;
}

// NULL at the arena's limit.
static const struct xpl_tpu_md_op *get_md_op(struct xpl_tpu_plane *tp, uint32_t md) {
    struct xpl_tpu_md *const m = &tp->md[md];
    if (m->decoded) return m->decoded;
    struct xpl_tpu_md_op *const decoded = xpl_arena_zalloc(tp->arena, sizeof *decoded);
    if (!decoded || !read_md(tp, &tp->plane->event_md[md], decoded)) return NULL;
    return m->decoded = decoded;
}

// Fills in an op with its descendants, of which there are at most *budget.
static bool fill_op(struct xpl_tpu_plane *tp, uint32_t md, unsigned level, uint32_t *budget,
                    struct xpl_op_metrics *op) {
    const struct xpl_tpu_md_op *const decoded = get_md_op(tp, md);
    if (!decoded) return false;
    *op = decoded->op;
    if (level >= XPL_OP_METRICS_MAX_DEPTH || !decoded->children.n || !*budget) return true;
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(tp->arena, sizeof *db);
    if (!db) return false;
    op->children = db;
    for (size_t i = 0; i < decoded->children.n && *budget; i++) {
        // Filling in the child moves nothing of ours: its own children go to a separate database.
        struct xpl_op_metrics *const child = xpl_vec_push(tp->arena, &db->metrics_db);
        --*budget;
        if (!child || !fill_op(tp, decoded->children.v[i], level + 1, budget, child)) return false;
        child->occurrences = 1;
    }
    return true;
}

static bool get_op(struct xpl_tpu_plane *tp, uint32_t md, struct xpl_op_metrics **ret) {
    struct xpl_tpu_md *const m = &tp->md[md];
    if (!m->op) {
        struct xpl_op_metrics *const op = xpl_arena_alloc(tp->arena, sizeof *op);
        uint32_t budget = MAX_DESCENDANTS;
        if (!op || !fill_op(tp, md, 0, &budget, op)) return false;
        m->op = op;
    }
    *ret = m->op;
    return true;
}

bool xpl_tpu_plane_init(struct xpl_tpu_plane *tp, const struct xpl_plane *plane,
                        struct xpl_arena *arena) {
    *tp = (struct xpl_tpu_plane){.plane = plane, .arena = arena};
    tp->md = xpl_arena_array(arena, plane->n_event_md, sizeof *tp->md);
    if (!tp->md) return false;
    memset(tp->md, 0, plane->n_event_md * sizeof *tp->md);
    for (uint32_t i = 1; i < plane->n_stat_md && !tp->vdd; i++)
        if (xpl_str_eq(plane->stat_md[i].name, XPL_STR("vdd_energy_j")))
            tp->vdd = &plane->stat_md[i];
    return true;
}

const enum xpl_stat_type xpl_tpu_work_stats[XPL_TPU_WORKS] = {XPL_STAT_FLOPS, XPL_STAT_MODEL_FLOPS,
                                                              XPL_STAT_USES_ICI};

// Once for all events, as metadata may be long.
static void read_work(const struct xpl_tpu_plane *tp, const struct xpl_event_md *from,
                      struct xpl_tpu_md *m) {
    struct xpl_stat s[XPL_TPU_WORKS];
    const unsigned found =
        xpl_stats_find(xpl_event_md_stats(tp->plane, from), xpl_tpu_work_stats, XPL_TPU_WORKS, s);
    for (unsigned i = 0; i < XPL_TPU_WORKS; i++)
        m->positive[i] = found & 1u << i && (int32_t)xpl_stat_int_or_uint(&s[i]) > 0;
}

const struct xpl_tpu_md *xpl_tpu_md_get(struct xpl_tpu_plane *tp, uint32_t md) {
    struct xpl_tpu_md *const m = &tp->md[md];
    if (m->ready) return m;
    const struct xpl_event_md *const from = &tp->plane->event_md[md];
    bool has_program = false, has_symbol = false;
    struct xpl_stats stats = xpl_event_md_stats(tp->plane, from);
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD) {
        switch ((int)s.md->type) {
            case XPL_STAT_PROGRAM_ID:
                m->program_id = xpl_stat_int_or_uint(&s);
                has_program = true;
                break;
            case XPL_STAT_SYMBOL_ID:
                m->symbol_id = xpl_stat_int_or_uint(&s);
                has_symbol = true;
                break;
            case XPL_STAT_HLO_CATEGORY:
                m->has_category = true;
                m->custom_call = xpl_str_eq(xpl_stat_str(&s), XPL_STR("custom-call"));
                m->off_duty = xpl_tpu_category_is_off_duty(xpl_stat_str(&s));
                break;
            default: break;
        }
    }
    read_work(tp, from, m);
    m->has_key = has_program && has_symbol && m->symbol_id != 0;
    m->waits = xpl_tpu_op_waits(from->display_name.len ? from->display_name : from->name);
    m->ready = true;
    return m;
}

// ---- events ----

void xpl_tpu_values_note(const struct xpl_tpu_plane *tp, const struct xpl_stat *s,
                         struct xpl_tpu_values *v) {
    switch ((int)s->md->type) {
        case XPL_STAT_MIN_DURATION_PS: v->min_ps = (uint64_t)xpl_stat_int(s); break;
        case XPL_STAT_DMA_STALL_DURATION_PS: v->dma_stall_ps = (uint64_t)xpl_stat_int(s); break;
        case XPL_STAT_TIME_SCALE_MULTIPLIER:
            if (!v->has_time_scale) v->time_scale = xpl_stat_double(s);
            v->has_time_scale = true;
            break;
        default:
            if (s->md == tp->vdd) {
                v->vdd_energy_j += xpl_stat_double(s);
                v->has_vdd_energy_j = true;
            }
    }
}

// ---- building ----

void xpl_tpu_ops_begin(struct xpl_tpu_ops *b, struct xpl_tpu_plane *plane,
                       enum xpl_tpu_ops_kind kind, struct xpl_arena *arena) {
    *b = (struct xpl_tpu_ops){.plane = plane, .arena = arena, .kind = kind};
}

static uint64_t normalized_time(const struct xpl_tpu_ops *b, uint64_t event_duration_ps,
                                const struct xpl_tpu_values *v, uint64_t time_ps) {
    if (b->kind == XPL_TPU_OPS_TENSOR)
        return to_u64((double)time_ps * (v->has_time_scale ? v->time_scale : 1.0));
    return v->has_time_scale ? to_u64((double)event_duration_ps * v->time_scale) : 0;
}

// True when the ops of `md` are called "async-done" whatever their metadata says.
static bool relabelled(const struct xpl_tpu_ops *b, uint32_t md) {
    return b->kind == XPL_TPU_OPS_STEP && b->plane->md[md].waits && !b->plane->md[md].off_duty;
}

static struct xpl_tpu_op_sums *put_sums(struct xpl_tpu_ops *b, const struct xpl_tpu_md *md) {
    bool is_new;
    uint64_t *const at = xpl_map_put(b->arena, &b->index, md->program_id, md->symbol_id, &is_new);
    if (!at) return NULL;
    if (!is_new) return &b->sums.v[*at];
    *at = b->sums.n;
    struct xpl_tpu_op_sums *const s = xpl_vec_push(b->arena, &b->sums);
    if (s) *s = (struct xpl_tpu_op_sums){0};
    return s;
}

// Of a whole device, metadata remembers its sums; steps are too many for a table each.
static struct xpl_tpu_op_sums *sums_of(struct xpl_tpu_ops *b, uint32_t md) {
    if (b->kind != XPL_TPU_OPS_TENSOR) return put_sums(b, &b->plane->md[md]);
    if (!b->sum_of_md) {
        const size_t size = b->plane->plane->n_event_md * sizeof *b->sum_of_md;
        b->sum_of_md = xpl_arena_zalloc(b->arena, size);
        if (!b->sum_of_md) return NULL;
    }
    if (b->sum_of_md[md]) return &b->sums.v[b->sum_of_md[md] - 1];
    struct xpl_tpu_op_sums *const s = put_sums(b, &b->plane->md[md]);
    if (s) b->sum_of_md[md] = (uint32_t)(s - b->sums.v) + 1;
    return s;
}

bool xpl_tpu_ops_add(struct xpl_tpu_ops *b, const struct xpl_event *ev, uint64_t time_ps,
                     uint64_t children_ps, struct xpl_op_metrics_db *offloaded) {
    if (!xpl_tpu_md_get(b->plane, ev->md)->has_key) return true;
    struct xpl_tpu_values v = xpl_tpu_values_of(ev);
    struct xpl_stats stats = ev->stats;
    struct xpl_stat s;
    while (xpl_stats_next(&stats, &s) == XPL_WIRE_FIELD)
        xpl_tpu_values_note(b->plane, &s, &v);
    return xpl_tpu_ops_add_run(b, &(struct xpl_tpu_run){ev->md, ev->num_occurrences,
                                                        (uint64_t)ev->duration_ps, &v, time_ps,
                                                        children_ps, offloaded});
}

bool xpl_tpu_ops_add_run(struct xpl_tpu_ops *b, const struct xpl_tpu_run *run) {
    const struct xpl_tpu_values *const v = run->values;
    if (!xpl_tpu_md_get(b->plane, run->md)->has_key) return true;
    struct xpl_tpu_op_sums *const s = sums_of(b, run->md);
    if (!s) return false;
    // The first event decides what the op is called; occurrences wrap to 32 bits, so that upstream
    // may take an event for the first again.
    if (s->occurrences == 0)
        *s = (struct xpl_tpu_op_sums){
            .md = run->md, .min_time_ps = v->min_ps, .offloaded = run->offloaded};
    else if (v->min_ps < s->min_time_ps)
        s->min_time_ps = v->min_ps;
    s->occurrences += (uint32_t)(run->num_occurrences > 1 ? run->num_occurrences : 1);
    s->time_ps += run->time_ps;
    s->self_time_ps += run->time_ps - run->children_ps;
    s->normalized_time_ps += normalized_time(b, run->event_duration_ps, v, run->time_ps);
    s->dma_stall_ps += v->dma_stall_ps;
    s->vdd_energy_j += v->vdd_energy_j;
    s->has_vdd_energy_j |= v->has_vdd_energy_j;
    return true;
}

// AdjustFlopsAndBytesAccessed: what metadata says holds for one run.  (The public source makes an
// exception of custom calls; release 2.24.2 does not.)
static void set_costs(uint64_t n, struct xpl_op_metrics *m) {
    m->flops *= n;
    m->flops_v2 *= (double)n;
    if (m->model_flops > 0) {
        m->model_flops *= n;
        m->model_flops_v2 *= (double)n;
    } else {
        m->model_flops = m->flops;
        m->model_flops_v2 = m->flops_v2;
    }
    m->bytes_accessed *= n;
    for (size_t i = 0; i < m->memory_accessed_breakdown.n; i++)
        m->memory_accessed_breakdown.v[i].bytes_accessed *= n;
}

static bool copy_breakdown(const struct xpl_op_metrics *op, struct xpl_arena *a,
                           struct xpl_op_metrics *m) {
    m->memory_accessed_breakdown.v = NULL;
    m->memory_accessed_breakdown.n = m->memory_accessed_breakdown.cap = 0;
    const size_t n = op->memory_accessed_breakdown.n;
    if (n == 0) return true;
    if (!xpl_vec_reserve(a, &m->memory_accessed_breakdown, n)) return false;
    memcpy(m->memory_accessed_breakdown.v, op->memory_accessed_breakdown.v,
           n * sizeof *m->memory_accessed_breakdown.v);
    m->memory_accessed_breakdown.n = n;
    return true;
}

// The children that metadata names, then what SparseCores ran for the op.
static bool set_children(const struct xpl_op_metrics *op, struct xpl_op_metrics_db *offloaded,
                         struct xpl_arena *a, struct xpl_op_metrics *m) {
    m->children = op->children;
    if (!offloaded) return true;
    struct xpl_op_metrics_db *const db = xpl_arena_zalloc(a, sizeof *db);
    if (!db) return false;
    struct xpl_op_metrics_builder b;
    struct xpl_arena table = xpl_arena_of(a->limit);
    xpl_op_metrics_begin(&b, db, XPL_OP_METRICS_SHARE, a, &table);
    bool ok = xpl_op_metrics_combine(&b, offloaded, false);
    xpl_arena_fini(&table);
    const struct xpl_op_metrics_db *const own = op->children;
    if (ok && own && own->metrics_db.n) {
        const size_t n = db->metrics_db.n, more = own->metrics_db.n;
        ok = xpl_vec_reserve(a, &db->metrics_db, more);
        if (ok) {
            memmove(db->metrics_db.v + more, db->metrics_db.v, n * sizeof *db->metrics_db.v);
            memcpy(db->metrics_db.v, own->metrics_db.v, more * sizeof *db->metrics_db.v);
            db->metrics_db.n = n + more;
        }
    }
    m->children = db;
    return ok;
}

static bool finish_one(struct xpl_tpu_ops *b, const struct xpl_tpu_op_sums *s, struct xpl_arena *a,
                       struct xpl_op_metrics *m) {
    struct xpl_op_metrics *op;
    if (!get_op(b->plane, s->md, &op)) return false;
    *m = *op;
    if (!copy_breakdown(op, a, m) || !set_children(op, s->offloaded, a, m)) return false;
    m->occurrences = s->occurrences;
    m->time_ps = s->time_ps;
    m->self_time_ps = s->self_time_ps;
    m->min_time_ps = s->min_time_ps;
    m->normalized_time_ps = s->normalized_time_ps;
    m->dma_stall_ps = s->dma_stall_ps;
    m->vdd_energy_j = s->vdd_energy_j;
    m->has_vdd_energy_j = s->has_vdd_energy_j;
    m->num_cores = 1;
    set_costs(s->occurrences, m);
    if (b->kind == XPL_TPU_OPS_TENSOR) m->core_type = XPL_CORE_TENSOR;
    if (b->kind == XPL_TPU_OPS_SPARSE) m->core_type = XPL_CORE_SPARSE;
    if (relabelled(b, s->md)) m->category = XPL_STR("async-done");
    return true;
}

bool xpl_tpu_ops_finish(struct xpl_tpu_ops *b, struct xpl_arena *arena,
                        struct xpl_op_metrics_db *ret) {
    *ret = (struct xpl_op_metrics_db){0};
    // One more: most callers append an idle op.
    if (!xpl_vec_reserve(arena, &ret->metrics_db, b->sums.n + 1)) return false;
    for (size_t i = 0; i < b->sums.n; i++) {
        struct xpl_op_metrics *const m = xpl_vec_push(arena, &ret->metrics_db);
        if (!m || !finish_one(b, &b->sums.v[i], arena, m)) return false;
        ret->total_op_time_ps += m->self_time_ps;
        const double share =
            m->time_ps ? (double)m->normalized_time_ps * 1.0 / (double)m->time_ps : 0.0;
        ret->normalized_total_op_time_ps =
            to_u64((double)ret->normalized_total_op_time_ps + (double)m->self_time_ps * share);
    }
    return true;
}
