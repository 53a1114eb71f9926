// SPDX-License-Identifier: Apache-2.0
// Which groups are requests, which are batches, and of which model.
#include <inttypes.h>

#include "analysis/inference/impl.h"

// ---- models ----

// A stat as text.
static bool stat_text(const struct xpl_stat *s, struct xpl_arena *a, xpl_str_t *ret) {
    *ret = XPL_STR("");
    switch (s->kind) {
        case XPL_VALUE_NONE: return true;
        case XPL_VALUE_DOUBLE: return xpl_arena_printf(a, ret, "%g", s->d);
        case XPL_VALUE_UINT: return xpl_arena_printf(a, ret, "%" PRIu64, s->u);
        case XPL_VALUE_INT: return xpl_arena_printf(a, ret, "%" PRId64, s->i);
        case XPL_VALUE_BYTES: *ret = XPL_STR("<opaque bytes>"); return true;
        case XPL_VALUE_STR:
        case XPL_VALUE_REF: *ret = s->str; return true;
    }
    return true;
}

// The last event of a group that names a model counts.
static bool read_models(struct xpl_inferring *k) {
    static const enum xpl_infer_kind kKinds[] = {XPL_INFER_SESSION_RUN, XPL_INFER_TFRT_RUN,
                                                 XPL_INFER_SERVING_RUN, XPL_INFER_ROOT};
    for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; i++)
        for (size_t m = 0; m < k->marks[kKinds[i]].v.n; m++) {
            const struct xpl_infer_mark *const mark = &k->marks[kKinds[i]].v.v[m];
            struct xpl_stat stat;
            xpl_str_t text;
            xpl_strid_t id;
            if (!xpl_stats_get(mark->stats, XPL_STAT_MODEL_ID, &stat)) continue;
            if (!stat_text(&stat, k->scratch, &text) || !xpl_intern_put_view(k->models, text, &id))
                return false;
            xpl_infer_group_of(k, mark)->has_model = true;
            xpl_infer_group_of(k, mark)->model = id.v;
        }
    return true;
}

// The index of a model that counts from now on; -1 for none.
static bool use_model(struct xpl_inferring *k, uint32_t model, int32_t *ret) {
    const xpl_str_t name = xpl_intern_get(k->models, (xpl_strid_t){model});
    xpl_strid_t id;
    if (!xpl_intern_put_view(k->model_ids, name, &id)) return false;
    *ret = (int32_t)id.v - 1;
    if (id.v == 0 || id.v <= k->out->models.n) return true;
    struct xpl_infer_model *const m = xpl_vec_push(k->result, &k->out->models);
    if (!m) return false;
    *m = (struct xpl_infer_model){0};
    return xpl_arena_str(k->result, name, &m->name);
}

// What batches say of the request that they work for: their model, if all have the same.
static bool model_of_children(struct xpl_inferring *k, const struct xpl_infer_group *g,
                              int32_t *ret) {
    int32_t common = -1;
    bool same = true;
    for (uint32_t i = 0; i < g->n_children; i++) {
        int32_t of_child;
        if (!use_model(k, k->v.v[k->children[g->first_child + i]].model, &of_child)) return false;
        if (common == -1)
            common = of_child;
        else if (of_child != common)
            same = false;
    }
    *ret = same ? common : -1;
    return true;
}

enum request_kind { PLAIN, BATCHING, DECLARED };

// Where upstream sets no model its index is 0.
static bool find_model(struct xpl_inferring *k, const struct xpl_infer_group *g,
                       enum request_kind kind, int32_t *ret) {
    *ret = 0;
    if (!g->known) return true;
    switch (kind) {
        case PLAIN: break;
        case BATCHING:
            return !g->n_children || use_model(k, k->v.v[k->children[g->first_child]].model, ret);
        case DECLARED:
            if (!g->has_model) return !g->n_children || model_of_children(k, g, ret);
            break;
    }
    return use_model(k, g->model, ret);
}

// ---- requests ----

static bool add_request(struct xpl_inferring *k, uint32_t group, enum request_kind kind) {
    struct xpl_infer_group *const g = &k->v.v[group];
    if (g->is_batch || g->request) return true;
    struct xpl_infer_request *const r = xpl_vec_push(k->result, &k->out->requests);
    if (!r) return false;
    g->request = (uint32_t)k->out->requests.n;
    *r = (struct xpl_infer_request){
        .id = g->id, .begin_ps = g->begin, .end_ps = g->end, .pattern = -1};
    return find_model(k, g, kind, &r->model);
}

static bool add_requests(struct xpl_inferring *k, enum xpl_infer_kind of, enum request_kind kind) {
    for (size_t i = 0; i < k->marks[of].v.n; i++)
        if (!add_request(k, k->marks[of].v.v[i].group, kind)) return false;
    return true;
}

static void mark_batches(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_BATCH; kind <= XPL_INFER_ORBAX_BATCH; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++)
            xpl_infer_group_of(k, &k->marks[kind].v.v[i])->is_batch = true;
}

static void read_sizes(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_SCHEDULE_SPLIT; kind <= XPL_INFER_SCHEDULE_ASBS; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++) {
            const struct xpl_infer_mark *const m = &k->marks[kind].v.v[i];
            struct xpl_infer_group *const g = xpl_infer_group_of(k, m);
            struct xpl_stat size;
            g->at.has_schedule = true;
            g->at.schedule = (int64_t)m->begin;
            if (g->request && xpl_stats_get(m->stats, XPL_STAT_BATCHING_INPUT_TASK_SIZE, &size))
                k->out->requests.v[g->request - 1].size = (int32_t)xpl_stat_int(&size);
        }
}

bool xpl_infer_find_requests(struct xpl_inferring *k) {
    mark_batches(k);
    if (!read_models(k)) return false;
    bool ok;
    if (k->marks[XPL_INFER_BATCHING_RUN].seen)
        ok = add_requests(k, XPL_INFER_BATCHING_RUN, BATCHING);
    else if (k->marks[XPL_INFER_TFRT_RUN].seen)
        ok = add_requests(k, XPL_INFER_TFRT_RUN, PLAIN);
    else if (k->marks[XPL_INFER_SERVING_RUN].seen)
        ok = add_requests(k, XPL_INFER_SERVING_RUN, PLAIN);
    else
        ok = add_requests(k, XPL_INFER_SESSION_RUN, PLAIN) &&
             add_requests(k, XPL_INFER_RUN_GRAPH, PLAIN);
    if (!ok || !add_requests(k, XPL_INFER_ROOT, DECLARED)) return false;
    read_sizes(k);
    return true;
}

// ---- batches ----

static bool add_batch(struct xpl_inferring *k, const struct xpl_infer_mark *m) {
    struct xpl_infer_group *const g = xpl_infer_group_of(k, m);
    if (!g->known) return true;
    if (!g->batch) {
        struct xpl_infer_batch *const b = xpl_vec_push(k->result, &k->out->batches);
        if (!b) return false;
        *b = (struct xpl_infer_batch){.id = g->id, .model = -1, .pattern = -1};
        g->batch = (uint32_t)k->out->batches.n;
    }
    struct xpl_infer_batch *const b = &k->out->batches.v[g->batch - 1];
    b->begin_ps = m->begin; // the last event counts
    b->end_ps = m->end;
    return true;
}

static void read_paddings(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_CONCAT; kind <= XPL_INFER_BRAIN_RUN; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++) {
            const struct xpl_infer_mark *const m = &k->marks[kind].v.v[i];
            struct xpl_infer_group *const g = xpl_infer_group_of(k, m);
            struct xpl_stat padding, size;
            g->at.has_concat = true;
            g->at.concat = (int64_t)m->begin;
            if (!g->batch || !xpl_stats_get(m->stats, XPL_STAT_PADDING_AMOUNT, &padding) ||
                !xpl_stats_get(m->stats, XPL_STAT_BATCH_SIZE_AFTER_PADDING, &size))
                continue;
            struct xpl_infer_batch *const b = &k->out->batches.v[g->batch - 1];
            b->size = (int32_t)xpl_stat_int(&size);
            b->padding = (int32_t)xpl_stat_int(&padding);
        }
}

bool xpl_infer_find_batches(struct xpl_inferring *k) {
    for (unsigned kind = XPL_INFER_BATCH; kind <= XPL_INFER_ORBAX_BATCH; kind++)
        for (size_t i = 0; i < k->marks[kind].v.n; i++)
            if (!add_batch(k, &k->marks[kind].v.v[i])) return false;
    read_paddings(k);
    for (size_t i = 0; i < k->v.n; i++) { // all requests of a batch are of one model
        const struct xpl_infer_group *const g = &k->v.v[i];
        if (!g->batch || !g->n_parents) continue;
        const struct xpl_infer_group *const first = &k->v.v[k->parents[g->first_parent]];
        if (first->request)
            k->out->batches.v[g->batch - 1].model = k->out->requests.v[first->request - 1].model;
    }
    return true;
}

// ---- delays ----

// Upstream takes the batch of the least id for the first one, and for the last one.
static void delay_request(struct xpl_inferring *k, const struct xpl_infer_group *g) {
    struct xpl_infer_request *const r = &k->out->requests.v[g->request - 1];
    for (uint32_t i = 0; i < g->n_children; i++) {
        const struct xpl_infer_group *const c = &k->v.v[k->children[g->first_child + i]];
        if (!c->batch) continue;
        const struct xpl_infer_batch *const b = &k->out->batches.v[c->batch - 1];
        r->delay_ps = b->begin_ps - r->begin_ps;
        if (r->end_ps < b->end_ps) r->end_ps = b->end_ps > r->begin_ps ? b->end_ps : r->begin_ps;
        return;
    }
}

static void delay_batch(struct xpl_inferring *k, const struct xpl_infer_group *g) {
    struct xpl_infer_batch *const b = &k->out->batches.v[g->batch - 1];
    const struct xpl_infer_request *first = NULL;
    for (uint32_t i = 0; i < g->n_parents; i++) {
        const struct xpl_infer_group *const p = &k->v.v[k->parents[g->first_parent + i]];
        if (!p->request) continue;
        const struct xpl_infer_request *const r = &k->out->requests.v[p->request - 1];
        if (!first || first->begin_ps > r->begin_ps) first = r;
    }
    if (first) b->delay_ps = b->begin_ps - first->begin_ps;
}

void xpl_infer_delays(struct xpl_inferring *k) {
    for (size_t i = 0; i < k->v.n; i++)
        if (k->v.v[i].request) delay_request(k, &k->v.v[i]);
    for (size_t i = 0; i < k->v.n; i++)
        if (k->v.v[i].batch) delay_batch(k, &k->v.v[i]);
}
