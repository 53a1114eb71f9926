// SPDX-License-Identifier: Apache-2.0
// Steps that hosts have in common: each is open until the last host was added.
#include "analysis/opstats/combine/merge.h"
#include "base/arena.h"
#include "base/cleanup.h"

static const struct xpl_op_metrics_db *ops_of(const struct xpl_per_core_step_info *s) {
    static const struct xpl_op_metrics_db none;
    return s->hlo_metrics_db ? s->hlo_metrics_db : &none;
}

// ---- before the first host ----

static bool reserve_cores(struct xpl_merge *m, uint32_t k, struct xpl_per_core_step_info *dst) {
    size_t cores = 0, reduces = 0, replicas = 0;
    for (size_t i = 0; i < m->h->v.n; i++) {
        const struct xpl_combine_host *const c = &m->h->v.v[i];
        if (!c->has_steps) continue;
        const struct xpl_step_sizes *const n = &c->outline->sizes[c->first_step + k];
        cores += n->cores, reduces += n->all_reduces, replicas += n->replicas;
    }
    return xpl_vec_reserve(m->result, &dst->step_info_per_core, cores) &&
           xpl_vec_reserve(m->result, &dst->all_reduce_db_per_core, reduces) &&
           xpl_vec_reserve(m->result, &dst->core_id_to_replica_id_map, replicas);
}

bool xpl_merge_steps_begin(struct xpl_merge *m) {
    struct xpl_step_db *const db = &m->out->step_db;
    const enum xpl_op_metrics_strings strings =
        m->texts ? XPL_OP_METRICS_COPY : XPL_OP_METRICS_SHARE;
    const uint32_t n = m->h->n_steps;
    db->num_steps_dropped = m->h->steps_dropped;
    db->empty_intersect = m->h->empty_intersect;
    xpl_op_metrics_begin(&m->complete_ops, &m->out->hlo_metrics_db_complete_steps_only, strings,
                         m->result, m->scratch);
    m->steps = xpl_arena_array(m->scratch, n, sizeof *m->steps);
    if (!m->steps || !xpl_vec_reserve(m->result, &db->step_sequence, n)) return false;
    for (uint32_t k = 0; k < n; k++) {
        struct xpl_per_core_step_info *const s = &db->step_sequence.v[db->step_sequence.n++];
        *s = (struct xpl_per_core_step_info){.step_num = k};
        s->hlo_metrics_db = xpl_arena_zalloc(m->result, sizeof *s->hlo_metrics_db);
        if (!s->hlo_metrics_db || !reserve_cores(m, k, s)) return false;
        xpl_op_metrics_begin(&m->steps[k], s->hlo_metrics_db, strings, m->result, m->scratch);
    }
    return true;
}

// ---- a host ----

static bool add_step_info(struct xpl_merge *m, size_t host, const struct xpl_step_info *src,
                          struct xpl_per_core_step_info *dst) {
    struct xpl_step_info *const s = xpl_vec_push(m->result, &dst->step_info_per_core);
    if (!s) return false;
    *s = *src;
    s->core_id = xpl_merge_core_id(host, s->core_id);
    s->step_num = dst->step_num;
    if (!xpl_merge_text(m, &s->step_name) ||
        !xpl_merge_array(m, &s->type_ps.v, s->type_ps.n, sizeof *s->type_ps.v) ||
        !xpl_merge_array(m, &s->category_ps.v, s->category_ps.n, sizeof *s->category_ps.v) ||
        !xpl_merge_array(m, &s->tpu, 1, sizeof *s->tpu) ||
        !xpl_merge_array(m, &s->sparse, 1, sizeof *s->sparse))
        return false;
    for (size_t i = 0; m->texts && i < s->category_ps.n; i++)
        if (!xpl_merge_text(m, &s->category_ps.v[i].category)) return false;
    return true;
}

static bool add_all_reduces(struct xpl_merge *m, size_t host, const struct xpl_all_reduce_db *src,
                            struct xpl_per_core_step_info *dst) {
    struct xpl_all_reduce_db *const a = xpl_vec_push(m->result, &dst->all_reduce_db_per_core);
    if (!a) return false;
    *a = *src;
    a->core_id = xpl_merge_core_id(host, a->core_id);
    if (!xpl_merge_array(m, &a->all_reduce_info.v, a->all_reduce_info.n,
                         sizeof *a->all_reduce_info.v))
        return false;
    for (size_t i = 0; m->texts && i < a->all_reduce_info.n; i++)
        if (!xpl_merge_text(m, &a->all_reduce_info.v[i].name)) return false;
    return true;
}

static bool add_cores(struct xpl_merge *m, size_t host, const struct xpl_per_core_step_info *src,
                      struct xpl_per_core_step_info *dst) {
    for (size_t i = 0; i < src->step_info_per_core.n; i++)
        if (!add_step_info(m, host, &src->step_info_per_core.v[i], dst)) return false;
    for (size_t i = 0; i < src->all_reduce_db_per_core.n; i++)
        if (!add_all_reduces(m, host, &src->all_reduce_db_per_core.v[i], dst)) return false;
    for (size_t i = 0; i < src->core_id_to_replica_id_map.n; i++) {
        struct xpl_core_replica *const r = xpl_vec_push(m->result, &dst->core_id_to_replica_id_map);
        if (!r) return false;
        *r = src->core_id_to_replica_id_map.v[i];
        r->core_id = xpl_merge_core_id(host, r->core_id);
    }
    return true;
}

bool xpl_merge_steps_add(struct xpl_merge *m, size_t host, const struct xpl_opstats *s) {
    const struct xpl_combine_host *const c = &m->h->v.v[host];
    struct xpl_step_db *const db = &m->out->step_db;
    if (!c->has_steps) return true;
    db->use_incomplete_step |= s->step_db.use_incomplete_step;
    for (uint32_t k = 0; k < m->h->n_steps; k++) {
        const struct xpl_per_core_step_info *const src =
            &s->step_db.step_sequence.v[c->first_step + k];
        if (!add_cores(m, host, src, &db->step_sequence.v[k]) ||
            !xpl_op_metrics_combine(&m->steps[k], ops_of(src), true))
            return false;
        if (!s->step_db.use_incomplete_step &&
            !xpl_op_metrics_combine(&m->complete_ops, ops_of(src), true))
            return false;
    }
    return true;
}

// ---- after the last host ----

static bool finish_step(struct xpl_merge *m, struct xpl_per_core_step_info *s) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(m->scratch->limit);
    return xpl_merge_unique_by_core(s->step_info_per_core.v, &s->step_info_per_core.n,
                                    sizeof *s->step_info_per_core.v, &scratch) &&
           xpl_merge_unique_by_core(s->all_reduce_db_per_core.v, &s->all_reduce_db_per_core.n,
                                    sizeof *s->all_reduce_db_per_core.v, &scratch) &&
           xpl_merge_unique_by_core(s->core_id_to_replica_id_map.v, &s->core_id_to_replica_id_map.n,
                                    sizeof *s->core_id_to_replica_id_map.v, &scratch);
}

bool xpl_merge_steps_finish(struct xpl_merge *m) {
    for (size_t k = 0; k < m->out->step_db.step_sequence.n; k++)
        if (!finish_step(m, &m->out->step_db.step_sequence.v[k])) return false;
    return true;
}
