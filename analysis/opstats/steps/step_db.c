// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/steps/step_db.h"

#include <string.h>

#include "analysis/opstats/device/tpu_ops.h"
#include "analysis/opstats/metrics/op_metrics.h"
#include "analysis/opstats/steps/span_sums.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"

// XProf puts all devices of a GPU host, and the threads of a CPU-only one, under one core.
enum { GENERIC_CORE_ID = 1 };
// More steps than this, and the first and the last are left out.
enum { DROP_INCOMPLETE_ABOVE = 5 };

// Sums per category of one core, by interned name; emptied through `touched` after each.
struct categories {
    struct xpl_intern *names;
    XPL_VEC(uint64_t) ps;
    XPL_VEC(uint32_t) touched;
};

struct writer {
    const struct xpl_steps *steps;
    const struct xpl_step_db_rules *rules;
    struct xpl_exec *exec;
    size_t scratch_limit;
    struct xpl_arena *result, *scratch;
    struct categories cats;
    struct xpl_step_db *db;
    struct xpl_span_index *loose;
};

// ---- steps made of spans ----

// A handful of steps whose spans are summed in parallel before they are written in order.
enum { BATCH = 64 };
struct batch {
    const struct writer *w;
    struct xpl_step **steps;
    struct xpl_span_sums sums[BATCH];
    bool failed[BATCH];
};

static void sum_one(void *ctx, size_t i) {
    struct batch *b = ctx;
    const struct xpl_timespan within = xpl_step_time(b->steps[i]);
    if (!b->w->rules->remove_overlaps) {
        xpl_step_sum_overlapped(b->steps[i], within, &b->sums[i]);
        return;
    }
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(b->w->scratch_limit);
    b->failed[i] =
        b->w->rules->cpu_device
            ? !xpl_step_sum_spans_cpu(b->steps[i], b->w->loose, within, &scratch, &b->sums[i])
            : !xpl_step_sum_spans(b->steps[i], within, &scratch, &b->sums[i]);
}

// Adds what no span accounts for as unknown time; false when the step does not count.
static bool well_formed(const struct writer *w, const struct xpl_step *st,
                        struct xpl_span_sums *sums) {
    uint64_t known = 0;
    for (int t = 0; t < XPL_SPAN_TYPES; t++)
        known += sums->ps[t];
    const uint64_t duration = xpl_step_time(st).duration_ps;
    if (known < duration) {
        sums->ps[0] += duration - known;
        sums->present |= 1;
    }
    const uint32_t device =
        1u << (XPL_SPAN_DEVICE_COMPUTE_16 / 10) | 1u << (XPL_SPAN_DEVICE_COMPUTE_32 / 10);
    const uint32_t host = 1u << (XPL_SPAN_HOST_COMPUTE / 10);
    const uint32_t needed = w->rules->has_device ? device : host;
    return duration > 0 && (w->rules->all_count || (sums->present & needed) != 0);
}

static bool write_collectives(const struct writer *w, const struct xpl_step *st,
                              struct xpl_per_core_step_info *out);

// There are many steps, with a few elements each: their arrays have the size that is used.

static bool write_type_times(const struct writer *w, const struct xpl_span_sums *sums,
                             struct xpl_step_info *info) {
    const size_t n = (size_t)__builtin_popcount(sums->present);
    info->type_ps.v = xpl_arena_array(w->result, n, sizeof *info->type_ps.v);
    info->type_ps.cap = n;
    if (!info->type_ps.v) return false;
    for (uint32_t t = 0; t < XPL_SPAN_TYPES; t++)
        if (sums->present >> t & 1)
            info->type_ps.v[info->type_ps.n++] = (struct xpl_type_ps){(int32_t)t * 10, sums->ps[t]};
    return true;
}

static bool write_transfers(const struct writer *w, const struct xpl_step *st,
                            struct xpl_per_core_step_info *out) {
    struct xpl_device_memory_transfer *const v =
        xpl_arena_zalloc(w->result, XPL_STEP_TRANSFERS * sizeof *v);
    if (!v) return false;
    if (st->transfers) memcpy(v, st->transfers, XPL_STEP_TRANSFERS * sizeof *v);
    out->device_memory_transfers.v = v;
    out->device_memory_transfers.n = out->device_memory_transfers.cap = XPL_STEP_TRANSFERS;
    return true;
}

static bool write_generic(const struct writer *w, const struct xpl_step *st,
                          const struct xpl_span_sums *sums, struct xpl_per_core_step_info *out) {
    struct xpl_step_info *const info = xpl_arena_alloc(w->result, sizeof *info);
    if (!info) return false;
    out->step_info_per_core.v = info;
    out->step_info_per_core.n = out->step_info_per_core.cap = 1;
    const struct xpl_timespan time = xpl_step_time(st);
    *info = (struct xpl_step_info){.core_id = GENERIC_CORE_ID,
                                   .step_num = (uint32_t)st->id,
                                   .begin_ps = time.begin_ps,
                                   .duration_ps = time.duration_ps,
                                   .breakdown = XPL_BREAKDOWN_GENERIC};
    if (!xpl_arena_str(w->result, st->name, &info->step_name)) return false;
    return write_type_times(w, sums, info) && write_transfers(w, st, out) &&
           write_collectives(w, st, out);
}

// ---- steps made of op metrics ----

static int by_category(const void *pa, const void *pb) {
    const struct xpl_category_ps *a = pa, *b = pb;
    return xpl_str_cmp(a->category, b->category);
}

// Self time per category of one core's ops.
static bool write_categories(struct writer *w, const struct xpl_op_metrics_db *ops,
                             struct xpl_step_info *info) {
    struct categories *c = &w->cats;
    for (size_t i = 0; i < ops->metrics_db.n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put_view(c->names, ops->metrics_db.v[i].category, &id)) return false;
        while (c->ps.n <= id.v) {
            uint64_t *ps = xpl_vec_push(w->scratch, &c->ps);
            if (!ps) return false;
            *ps = UINT64_MAX; // not touched yet
        }
        if (c->ps.v[id.v] == UINT64_MAX) {
            uint32_t *t = xpl_vec_push(w->scratch, &c->touched);
            if (!t) return false;
            *t = id.v;
            c->ps.v[id.v] = 0;
        }
        c->ps.v[id.v] += ops->metrics_db.v[i].self_time_ps;
    }
    if (!xpl_vec_reserve(w->result, &info->category_ps, c->touched.n)) return false;
    for (size_t i = 0; i < c->touched.n; i++) {
        const uint32_t id = c->touched.v[i];
        struct xpl_category_ps *slot = &info->category_ps.v[info->category_ps.n++];
        slot->ps = c->ps.v[id];
        c->ps.v[id] = UINT64_MAX;
        if (!xpl_arena_str(w->result, xpl_intern_get(c->names, (xpl_strid_t){id}), &slot->category))
            return false;
    }
    c->touched.n = 0;
    xpl_sort(info->category_ps.v, info->category_ps.n, sizeof *info->category_ps.v, by_category);
    return true;
}

static struct xpl_step_info *put_info(const struct writer *w, const struct xpl_step *st,
                                      uint32_t core_id, struct xpl_timespan time,
                                      struct xpl_per_core_step_info *out) {
    struct xpl_step_info *info = xpl_vec_push(w->result, &out->step_info_per_core);
    if (!info) return NULL;
    *info = (struct xpl_step_info){.core_id = core_id,
                                   .step_num = (uint32_t)st->id,
                                   .begin_ps = time.begin_ps,
                                   .duration_ps = time.duration_ps,
                                   .breakdown = XPL_BREAKDOWN_GENERIC};
    return xpl_arena_str(w->result, st->name, &info->step_name) ? info : NULL;
}

static bool write_tensor_core(struct writer *w, const struct xpl_step *st,
                              struct xpl_core_ops *core, struct xpl_op_metrics_builder *all,
                              struct xpl_per_core_step_info *out) {
    const struct xpl_timespan time = xpl_step_time(st);
    xpl_op_metrics_set_total_time(&core->db, time.duration_ps);
    if (!xpl_op_metrics_add_idle(&core->db, w->result) ||
        !xpl_op_metrics_combine(all, &core->db, true))
        return false;
    struct xpl_step_info *info = put_info(w, st, core->core_id, time, out);
    return info && write_categories(w, &core->db, info);
}

// ---- SparseCores ----

static const struct xpl_sparse_core *sparse_core(const struct writer *w, uint32_t core_id) {
    for (size_t i = 0; i < w->rules->n_sparse; i++)
        if (w->rules->sparse[i].core_id == core_id && w->rules->sparse[i].any)
            return &w->rules->sparse[i];
    return NULL;
}

static bool add_op(struct xpl_op_metrics_db *db, xpl_str_t category, uint64_t self_ps,
                   struct xpl_arena *arena) {
    struct xpl_op_metrics *m = xpl_vec_push(arena, &db->metrics_db);
    if (!m) return false;
    *m = (struct xpl_op_metrics){.name = category, .category = category, .self_time_ps = self_ps};
    return true;
}

// Leaves out the ops during which the core did not work, except feeds; then makes up for the work
// that no op accounts for, and for the rest of the step.
static bool finish_sparse_ops(struct xpl_op_metrics_db *db, uint64_t duration_ps, uint64_t busy_ps,
                              struct xpl_arena *arena) {
    uint64_t on = 0, feeds = 0;
    size_t n = 0;
    for (size_t i = 0; i < db->metrics_db.n; i++) {
        const struct xpl_op_metrics *m = &db->metrics_db.v[i];
        const bool feed = xpl_str_eq(m->category, XPL_STR("infeed")) ||
                          xpl_str_eq(m->category, XPL_STR("outfeed"));
        if (!feed &&
            (xpl_tpu_category_is_off_duty(m->category) || xpl_str_eq(m->category, XPL_IDLE_OP)))
            continue;
        *(feed ? &feeds : &on) += m->self_time_ps;
        db->metrics_db.v[n++] = *m;
    }
    db->metrics_db.n = n;
    if (busy_ps > on && !add_op(db, XPL_STR(XPL_LINE_SPARSE_CORE_OPS), busy_ps - on, arena))
        return false;
    const uint64_t known = busy_ps + feeds;
    return add_op(db, XPL_IDLE_OP, duration_ps > known ? duration_ps - known : 0, arena);
}

static bool write_sparse_core(struct writer *w, const struct xpl_step *st, uint32_t core_id,
                              struct xpl_op_metrics_db *db, struct xpl_per_core_step_info *out) {
    const struct xpl_timespan time = xpl_step_time_on_core(st, core_id);
    const struct xpl_sparse_core *core = sparse_core(w, core_id);
    const uint64_t busy = core ? core->busy_ps[st - w->steps->v.v] : 0;
    if (!finish_sparse_ops(db, time.duration_ps, busy, w->scratch)) return false;
    struct xpl_step_info *info = put_info(w, st, core_id, time, out);
    return info && write_categories(w, db, info);
}

// A core that was at work, and says nothing of steps.
static bool write_unmarked_core(struct writer *w, const struct xpl_step *st,
                                const struct xpl_sparse_core *core,
                                struct xpl_per_core_step_info *out) {
    const struct xpl_timespan time = xpl_step_time(st);
    const uint64_t busy = core->busy_ps[st - w->steps->v.v];
    struct xpl_step_info *info = put_info(w, st, core->core_id, time, out);
    if (!info) return false;
    info->breakdown = XPL_BREAKDOWN_SPARSE_CORE;
    info->sparse = xpl_arena_zalloc(w->result, sizeof *info->sparse);
    if (!info->sparse) return false;
    info->sparse->sc_compute_ps = info->sparse->sc_busy_ps = busy;
    info->sparse->sc_idle_ps = time.duration_ps > busy ? time.duration_ps - busy : 0;
    return true;
}

static bool has_ops(const struct xpl_step *st, uint32_t core_id) {
    const struct xpl_core_ops *o = st->ops;
    while (o && o->core_id != core_id)
        o = o->next;
    return o != NULL;
}

static bool has_tensor_core(const struct xpl_step *st) {
    const struct xpl_core_ops *o = st->ops;
    while (o && o->core_id >= XPL_SPARSE_CORE_INDEX_START)
        o = o->next;
    return o != NULL;
}

// The cores that no op of the step is known of.
static bool write_other_sparse(struct writer *w, const struct xpl_step *st,
                               struct xpl_per_core_step_info *out) {
    for (const struct xpl_core_marker *m = st->core_markers; m; m = m->next) {
        struct xpl_op_metrics_db none = {0};
        if (m->core_id < XPL_SPARSE_CORE_INDEX_START || has_ops(st, m->core_id)) continue;
        if (!write_sparse_core(w, st, m->core_id, &none, out)) return false;
    }
    if (!has_tensor_core(st)) return true;
    for (size_t i = 0; i < w->rules->n_sparse; i++) {
        const struct xpl_sparse_core *core = &w->rules->sparse[i];
        if (!core->any || has_ops(st, core->core_id) || xpl_step_has_marker(st, core->core_id))
            continue;
        if (!write_unmarked_core(w, st, core, out)) return false;
    }
    return true;
}

static int by_core_info(const void *pa, const void *pb) {
    const struct xpl_step_info *a = pa, *b = pb;
    return (a->core_id > b->core_id) - (a->core_id < b->core_id);
}

static struct xpl_core_ops *sorted_ops(struct xpl_core_ops *list) {
    struct xpl_core_ops *sorted = NULL;
    for (struct xpl_core_ops *o = list, *next; o; o = next) {
        next = o->next;
        struct xpl_core_ops **at = &sorted;
        while (*at && (*at)->core_id < o->core_id)
            at = &(*at)->next;
        o->next = *at;
        *at = o;
    }
    return sorted;
}

static bool write_per_core(struct writer *w, struct xpl_step *st,
                           struct xpl_per_core_step_info *out) {
    out->hlo_metrics_db = xpl_arena_zalloc(w->result, sizeof *out->hlo_metrics_db);
    if (!out->hlo_metrics_db) return false;
    if (xpl_step_time(st).duration_ps == 0) return true; // no marker: the step stays, empty
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(w->scratch_limit);
    struct xpl_op_metrics_builder all;
    xpl_op_metrics_begin(&all, out->hlo_metrics_db, XPL_OP_METRICS_SHARE, w->result, &scratch);
    st->ops = sorted_ops(st->ops);
    for (struct xpl_core_ops *o = st->ops; o; o = o->next)
        if (!(o->core_id >= XPL_SPARSE_CORE_INDEX_START
                  ? write_sparse_core(w, st, o->core_id, &o->db, out)
                  : write_tensor_core(w, st, o, &all, out)))
            return false;
    if (!write_other_sparse(w, st, out)) return false;
    xpl_sort(out->step_info_per_core.v, out->step_info_per_core.n,
             sizeof *out->step_info_per_core.v, by_core_info);
    return write_collectives(w, st, out);
}

static int by_core(const void *pa, const void *pb) {
    const struct xpl_all_reduce_db *a = pa, *b = pb;
    return (a->core_id > b->core_id) - (a->core_id < b->core_id);
}

static bool write_collectives(const struct writer *w, const struct xpl_step *st,
                              struct xpl_per_core_step_info *out) {
    for (const struct xpl_core_collectives *c = st->collectives; c; c = c->next) {
        struct xpl_all_reduce_db *db = xpl_vec_push(w->result, &out->all_reduce_db_per_core);
        if (!db) return false;
        *db = (struct xpl_all_reduce_db){.core_id = c->core_id};
        if (!xpl_vec_reserve(w->result, &db->all_reduce_info, c->v.n)) return false;
        memcpy(db->all_reduce_info.v, c->v.v, c->v.n * sizeof *c->v.v);
        db->all_reduce_info.n = c->v.n;
    }
    xpl_sort(out->all_reduce_db_per_core.v, out->all_reduce_db_per_core.n,
             sizeof *out->all_reduce_db_per_core.v, by_core);
    return true;
}

// ---- all of them ----

static int by_id(const void *pa, const void *pb) {
    const struct xpl_step *a = *(struct xpl_step *const *)pa, *b = *(struct xpl_step *const *)pb;
    return (a->id > b->id) - (a->id < b->id);
}

static bool write_step(struct writer *w, struct xpl_step *st, struct xpl_span_sums *sums) {
    struct xpl_per_core_step_info out = {.step_num = (uint32_t)st->id};
    if (st->ops) {
        if (!write_per_core(w, st, &out)) return false;
    } else {
        if (!well_formed(w, st, sums)) return true;
        if (!write_generic(w, st, sums, &out)) return false;
    }
    struct xpl_per_core_step_info *slot = xpl_vec_push(w->result, &w->db->step_sequence);
    if (!slot) return false;
    *slot = out;
    return true;
}

static xpl_status_t write_all(struct writer *w, struct xpl_step **v, size_t n,
                              struct xpl_precision_ps *precision, struct xpl_error *err) {
    struct batch *b = xpl_arena_alloc(w->scratch, sizeof *b);
    if (!b) XPL_RETURN_OOM(err, "steps");
    b->w = w;
    for (size_t from = 0; from < n; from += BATCH) {
        const size_t m = n - from < BATCH ? n - from : BATCH;
        if (xpl_exec_cancelled(w->exec)) XPL_RETURN_ERROR(err, XPL_CANCELLED, "steps: cancelled");
        b->steps = v + from;
        memset(b->failed, 0, sizeof b->failed);
        xpl_exec_run(w->exec, m, sum_one, b);
        for (size_t i = 0; i < m; i++) {
            precision->compute_16bit_ps += b->sums[i].total[XPL_SPAN_DEVICE_COMPUTE_16 / 10];
            precision->compute_32bit_ps += b->sums[i].total[XPL_SPAN_DEVICE_COMPUTE_32 / 10];
            if (b->failed[i] || !write_step(w, v[from + i], &b->sums[i]))
                XPL_RETURN_OOM(err, "step database");
        }
    }
    return XPL_OK;
}

xpl_status_t xpl_steps_to_db(const struct xpl_convert *c, struct xpl_steps *steps,
                             const struct xpl_step_db_rules *rules, struct xpl_step_db *ret,
                             struct xpl_precision_ps *ret_precision, struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(c->scratch_limit);
    struct xpl_step_db db = {0};
    struct xpl_precision_ps precision = {0};
    struct writer w = {.steps = steps,
                       .rules = rules,
                       .exec = c->exec,
                       .scratch_limit = c->scratch_limit,
                       .result = c->result,
                       .scratch = &scratch,
                       .db = &db};
    const size_t n = steps->v.n;
    struct xpl_step **v = xpl_arena_array(&scratch, n, sizeof *v);
    w.cats.names = xpl_intern_new(&scratch, xpl_hash_seed());
    if (!v || !w.cats.names) XPL_RETURN_OOM(err, "steps");
    if (rules->loose && !xpl_span_index_make(rules->loose, &scratch, &w.loose))
        XPL_RETURN_OOM(err, "steps");
    for (size_t i = 0; i < n; i++)
        v[i] = &steps->v.v[i];
    xpl_sort(v, n, sizeof *v, by_id);
    XPL_TRY(write_all(&w, v, n, &precision, err));
    db.has_all_steps = true;
    db.all_steps = db.step_sequence.v;
    db.n_all_steps = db.step_sequence.n;
    if (rules->drop_incomplete && db.step_sequence.n > DROP_INCOMPLETE_ABOVE) {
        db.step_sequence.v++, db.step_sequence.cap--;
        db.step_sequence.n -= 2;
    }
    *ret = db;
    *ret_precision = precision;
    return XPL_OK;
}

// ---- the slowest core ----

bool xpl_steps_slowest_core(const struct xpl_step_db *db, struct xpl_arena *scratch,
                            uint32_t *ret) {
    struct xpl_map sums = {0};
    uint64_t most = 0;
    *ret = UINT32_MAX;
    for (size_t i = 0; i < db->step_sequence.n; i++) {
        const struct xpl_per_core_step_info *const step = &db->step_sequence.v[i];
        for (size_t c = 0; c < step->step_info_per_core.n; c++) {
            const struct xpl_step_info *const info = &step->step_info_per_core.v[c];
            bool is_new;
            if (info->core_id >= XPL_SPARSE_CORE_INDEX_START) continue;
            uint64_t *const sum = xpl_map_put(scratch, &sums, info->core_id, 0, &is_new);
            if (!sum) return false;
            *sum += info->duration_ps < UINT64_MAX - *sum ? info->duration_ps : UINT64_MAX - *sum;
            if (*sum > most) most = *sum, *ret = info->core_id;
        }
    }
    return true;
}

uint64_t xpl_step_ps_on(const struct xpl_per_core_step_info *step, uint32_t slowest_core) {
    uint64_t longest = 0;
    for (size_t c = 0; c < step->step_info_per_core.n; c++) {
        const struct xpl_step_info *const info = &step->step_info_per_core.v[c];
        if (info->core_id == slowest_core) return info->duration_ps;
        if (info->core_id < XPL_SPARSE_CORE_INDEX_START && info->duration_ps > longest)
            longest = info->duration_ps;
    }
    return longest;
}
