// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/metrics/op_metrics.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/std_sort.h"

struct xpl_op_metrics_slot {
    uint32_t hash, entry; // entry: index + 1, 0 for a free slot
};

static uint32_t hash_key(uint64_t module_id, xpl_str_t name) {
    return xpl_hash_str(xpl_hash_seed() ^ module_id * 0x9e3779b97f4a7c15u, name);
}

void xpl_op_metrics_begin(struct xpl_op_metrics_builder *b, struct xpl_op_metrics_db *db,
                          enum xpl_op_metrics_strings strings, struct xpl_arena *arena,
                          struct xpl_arena *scratch) {
    *b = (struct xpl_op_metrics_builder){
        .db = db, .arena = arena, .scratch = scratch, .strings = strings};
}

static bool grow_slots(struct xpl_op_metrics_builder *b) {
    const size_t cap = b->cap ? b->cap * 2 : 64;
    struct xpl_op_metrics_slot *slots = xpl_arena_array(b->scratch, cap, sizeof *slots);
    if (!slots) return false;
    memset(slots, 0, cap * sizeof *slots);
    for (size_t i = 0; i < b->cap; i++) {
        if (!b->slots[i].entry) continue;
        size_t j = b->slots[i].hash & (cap - 1);
        while (slots[j].entry)
            j = (j + 1) & (cap - 1);
        slots[j] = b->slots[i];
    }
    b->slots = slots, b->cap = cap;
    return true;
}

struct xpl_op_metrics *xpl_op_metrics_put(struct xpl_op_metrics_builder *b, uint64_t hlo_module_id,
                                          xpl_str_t name) {
    struct xpl_op_metrics_db *db = b->db;
    if (db->metrics_db.n >= b->cap / 2 && (b->cap > UINT32_MAX / 4 || !grow_slots(b))) return NULL;
    const uint32_t hash = hash_key(hlo_module_id, name);
    size_t i = hash & (b->cap - 1);
    for (; b->slots[i].entry; i = (i + 1) & (b->cap - 1)) {
        struct xpl_op_metrics *m = &db->metrics_db.v[b->slots[i].entry - 1];
        if (b->slots[i].hash == hash && m->hlo_module_id == hlo_module_id &&
            xpl_str_eq(m->name, name))
            return m;
    }
    xpl_str_t kept = name;
    if (b->strings == XPL_OP_METRICS_COPY && !xpl_arena_str(b->arena, name, &kept)) return NULL;
    struct xpl_op_metrics *m = xpl_vec_push(b->arena, &db->metrics_db);
    if (!m) return NULL;
    *m = (struct xpl_op_metrics){.hlo_module_id = hlo_module_id, .name = kept};
    b->slots[i] = (struct xpl_op_metrics_slot){hash, (uint32_t)db->metrics_db.n};
    return m;
}

// ---- copying ----

static bool copy_str(enum xpl_op_metrics_strings how, struct xpl_arena *a, xpl_str_t s,
                     xpl_str_t *ret) {
    if (how == XPL_OP_METRICS_COPY && s.len) return xpl_arena_str(a, s, ret);
    *ret = s;
    return true;
}

static bool copy_bytes(enum xpl_op_metrics_strings how, struct xpl_arena *a, xpl_bytes_t s,
                       xpl_bytes_t *ret) {
    *ret = s;
    if (how == XPL_OP_METRICS_SHARE || s.len == 0) return true;
    uint8_t *p = xpl_arena_alloc(a, s.len);
    if (!p) return false;
    memcpy(p, s.ptr, s.len);
    ret->ptr = p;
    return true;
}

// Levels that may still be copied limit the recursion: foreign input is bounded when it is read,
// this is the second check.
static bool copy_db(const struct xpl_op_metrics_db *src, struct xpl_arena *a, unsigned levels,
                    struct xpl_op_metrics_db *ret);

static bool copy_children(const struct xpl_op_metrics_db *src, struct xpl_arena *a, unsigned levels,
                          struct xpl_op_metrics_db **ret) {
    *ret = NULL;
    if (!src || levels == 0) return true;
    struct xpl_op_metrics_db *db = xpl_arena_alloc(a, sizeof *db);
    if (!db || !copy_db(src, a, levels - 1, db)) return false;
    *ret = db;
    return true;
}

static bool copy_entry(const struct xpl_op_metrics *src, struct xpl_arena *a, unsigned levels,
                       struct xpl_op_metrics *m) {
    const enum xpl_op_metrics_strings how = XPL_OP_METRICS_COPY;
    *m = *src;
    const size_t n = src->memory_accessed_breakdown.n;
    m->memory_accessed_breakdown.v = NULL;
    m->memory_accessed_breakdown.n = m->memory_accessed_breakdown.cap = 0;
    if (n) {
        if (!xpl_vec_reserve(a, &m->memory_accessed_breakdown, n)) return false;
        memcpy(m->memory_accessed_breakdown.v, src->memory_accessed_breakdown.v,
               n * sizeof *m->memory_accessed_breakdown.v);
        m->memory_accessed_breakdown.n = n;
    }
    return copy_str(how, a, src->name, &m->name) &&
           copy_str(how, a, src->long_name, &m->long_name) &&
           copy_str(how, a, src->category, &m->category) &&
           copy_str(how, a, src->provenance, &m->provenance) &&
           copy_str(how, a, src->deduplicated_name, &m->deduplicated_name) &&
           copy_str(how, a, src->source_info.file_name, &m->source_info.file_name) &&
           copy_str(how, a, src->source_info.stack_frame, &m->source_info.stack_frame) &&
           copy_bytes(how, a, src->layout, &m->layout) &&
           copy_children(src->children, a, levels, &m->children);
}

static bool copy_db(const struct xpl_op_metrics_db *src, struct xpl_arena *a, unsigned levels,
                    struct xpl_op_metrics_db *ret) {
    *ret = *src;
    ret->metrics_db.v = NULL;
    ret->metrics_db.n = ret->metrics_db.cap = 0;
    if (src->metrics_db.n && !xpl_vec_reserve(a, &ret->metrics_db, src->metrics_db.n)) return false;
    for (size_t i = 0; i < src->metrics_db.n; i++) {
        struct xpl_op_metrics *m = xpl_vec_push(a, &ret->metrics_db);
        if (!m || !copy_entry(&src->metrics_db.v[i], a, levels, m)) return false;
    }
    return true;
}

bool xpl_op_metrics_db_copy(const struct xpl_op_metrics_db *src, struct xpl_arena *arena,
                            struct xpl_op_metrics_db *ret) {
    return copy_db(src, arena, XPL_OP_METRICS_MAX_DEPTH, ret);
}

// ---- merging ----

static bool fill_str(enum xpl_op_metrics_strings how, struct xpl_arena *a, xpl_str_t src,
                     xpl_str_t *dst) {
    return dst->len || src.len == 0 || copy_str(how, a, src, dst);
}

static bool op_metrics_copy_metadata(const struct xpl_op_metrics *src, struct xpl_op_metrics *dst,
                                     enum xpl_op_metrics_strings strings, struct xpl_arena *arena) {
    if (!fill_str(strings, arena, src->long_name, &dst->long_name) ||
        !fill_str(strings, arena, src->category, &dst->category) ||
        !fill_str(strings, arena, src->provenance, &dst->provenance) ||
        !fill_str(strings, arena, src->deduplicated_name, &dst->deduplicated_name))
        return false;
    if (!dst->fingerprint) dst->fingerprint = src->fingerprint;
    if (!dst->has_layout && src->has_layout) {
        if (!copy_bytes(strings, arena, src->layout, &dst->layout)) return false;
        dst->has_layout = true;
    }
    if (!dst->children && src->children) {
        if (strings == XPL_OP_METRICS_SHARE)
            dst->children = src->children;
        else if (!copy_children(src->children, arena, XPL_OP_METRICS_MAX_DEPTH, &dst->children))
            return false;
    }
    if (!dst->has_source_info && src->has_source_info) {
        if (!copy_str(strings, arena, src->source_info.file_name, &dst->source_info.file_name) ||
            !copy_str(strings, arena, src->source_info.stack_frame, &dst->source_info.stack_frame))
            return false;
        dst->source_info.line_number = src->source_info.line_number;
        dst->has_source_info = true;
    }
    if (dst->core_type == XPL_CORE_UNKNOWN) dst->core_type = src->core_type;
    return true;
}

// Lists are a handful of entries; the limit keeps a hostile one from being quadratic.
enum { MAX_BREAKDOWN = 256 };

bool xpl_op_metrics_add_breakdown(const struct xpl_memory_accessed *src, size_t n,
                                  struct xpl_op_metrics *dst, struct xpl_arena *arena) {
    for (size_t i = 0; i < n; i++) {
        struct xpl_memory_accessed *hit = NULL;
        for (size_t k = dst->memory_accessed_breakdown.n; k-- > 0;) {
            struct xpl_memory_accessed *d = &dst->memory_accessed_breakdown.v[k];
            if (d->memory_space == src[i].memory_space &&
                d->operation_type == src[i].operation_type) {
                hit = d;
                break;
            }
        }
        if (hit) {
            hit->bytes_accessed += src[i].bytes_accessed;
            continue;
        }
        if (dst->memory_accessed_breakdown.n >= MAX_BREAKDOWN) continue;
        struct xpl_memory_accessed *d = xpl_vec_push(arena, &dst->memory_accessed_breakdown);
        if (!d) return false;
        *d = src[i];
    }
    return true;
}

static bool op_metrics_add(const struct xpl_op_metrics *src, struct xpl_op_metrics *dst,
                           bool update_num_cores, struct xpl_arena *arena) {
    if (dst->occurrences == 0 || src->min_time_ps < dst->min_time_ps)
        dst->min_time_ps = src->min_time_ps;
    dst->is_eager |= src->is_eager;
    dst->occurrences += src->occurrences;
    dst->framework_runs += src->framework_runs;
    dst->time_ps += src->time_ps;
    dst->self_time_ps += src->self_time_ps;
    dst->normalized_time_ps += src->normalized_time_ps;
    dst->flops += src->flops;
    dst->model_flops += src->model_flops;
    dst->flops_v2 += src->flops_v2;
    dst->model_flops_v2 += src->model_flops_v2;
    dst->bytes_accessed += src->bytes_accessed;
    dst->autotuned |= src->autotuned;
    if (update_num_cores) dst->num_cores += src->num_cores;
    dst->dma_stall_ps += src->dma_stall_ps;
    if (src->has_vdd_energy_j || dst->has_vdd_energy_j) {
        dst->vdd_energy_j += src->vdd_energy_j;
        dst->has_vdd_energy_j = true;
    }
    return xpl_op_metrics_add_breakdown(src->memory_accessed_breakdown.v,
                                        src->memory_accessed_breakdown.n, dst, arena);
}

bool xpl_op_metrics_combine(struct xpl_op_metrics_builder *b, const struct xpl_op_metrics_db *src,
                            bool update_num_cores) {
    struct xpl_op_metrics_db *dst = b->db;
    dst->total_host_infeed_enq_duration_ps += src->total_host_infeed_enq_duration_ps;
    dst->total_host_infeed_enq_start_timestamp_ps_diff +=
        src->total_host_infeed_enq_start_timestamp_ps_diff;
    dst->total_time_ps += src->total_time_ps;
    dst->total_op_time_ps += src->total_op_time_ps;
    dst->idle_time_ps += src->idle_time_ps;
    dst->busy_time_ps += src->busy_time_ps;
    dst->idle_time_high_confidence_ps += src->idle_time_high_confidence_ps;
    dst->busy_time_high_confidence_ps += src->busy_time_high_confidence_ps;
    dst->normalized_total_op_time_ps += src->normalized_total_op_time_ps;
    dst->compute_16bit_ps += src->compute_16bit_ps;
    dst->compute_32bit_ps += src->compute_32bit_ps;
    dst->has_precision_stats = true;
    for (size_t i = 0; i < src->metrics_db.n; i++) {
        const struct xpl_op_metrics *s = &src->metrics_db.v[i];
        struct xpl_op_metrics *d = xpl_op_metrics_put(b, s->hlo_module_id, s->name);
        if (!d || !op_metrics_copy_metadata(s, d, b->strings, b->arena) ||
            !op_metrics_add(s, d, update_num_cores, b->arena))
            return false;
    }
    return true;
}

// ---- totals and idle time ----

void xpl_op_metrics_set_total_time(struct xpl_op_metrics_db *db, uint64_t total_time_ps) {
    db->total_time_ps = total_time_ps > db->total_op_time_ps ? total_time_ps : db->total_op_time_ps;
}

bool xpl_op_metrics_add_idle(struct xpl_op_metrics_db *db, struct xpl_arena *arena) {
    struct xpl_op_metrics *m = xpl_vec_push(arena, &db->metrics_db);
    if (!m) return false;
    const uint64_t idle = xpl_op_metrics_idle_time(db);
    *m = (struct xpl_op_metrics){
        .name = XPL_IDLE_OP, .category = XPL_IDLE_OP, .time_ps = idle, .self_time_ps = idle};
    return true;
}

// tsl::profiler::SafeDivide: 0 for a divisor next to 0.
static double safe_divide(double a, double b) {
    return b < 1e-10 && b > -1e-10 ? 0.0 : a / b;
}

double xpl_op_metrics_idle_ratio(const struct xpl_op_metrics_db *db) {
    return 1.0 - safe_divide((double)db->total_op_time_ps, (double)db->total_time_ps);
}

bool xpl_op_metrics_infeed_ratio(const struct xpl_op_metrics_db *db, double *ret) {
    if (db->total_host_infeed_enq_start_timestamp_ps_diff == 0) return false;
    *ret = safe_divide((double)db->total_host_infeed_enq_duration_ps,
                       (double)db->total_host_infeed_enq_start_timestamp_ps_diff);
    return true;
}

// ---- order ----

static bool is_before(const void *ctx, const void *pa, const void *pb) {
    (void)ctx;
    const struct xpl_op_metrics *a = *(const struct xpl_op_metrics *const *)pa;
    const struct xpl_op_metrics *b = *(const struct xpl_op_metrics *const *)pb;
    if (a->self_time_ps != b->self_time_ps) return a->self_time_ps > b->self_time_ps;
    return xpl_str_cmp(a->name, b->name) < 0;
}

bool xpl_op_metrics_sorted(const struct xpl_op_metrics_db *db, size_t max,
                           struct xpl_arena *scratch, const struct xpl_op_metrics ***ret,
                           size_t *ret_n) {
    const size_t n = db->metrics_db.n;
    const struct xpl_op_metrics **v = xpl_arena_array(scratch, n, sizeof *v);
    if (!v) return false;
    for (size_t i = 0; i < n; i++)
        v[i] = &db->metrics_db.v[i];
    if (n > max)
        xpl_std_partial_sort(v, max, n, sizeof *v, is_before, NULL);
    else
        xpl_std_sort(v, n, sizeof *v, is_before, NULL);
    *ret = v;
    *ret_n = n < max ? n : max;
    return true;
}
