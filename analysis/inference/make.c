// SPDX-License-Identifier: Apache-2.0

#include "analysis/inference/impl.h"
#include "base/cleanup.h"
#include "base/vec.h"

static int by_duration(uint64_t x, uint64_t y, uint64_t x_begin, uint64_t y_begin, int64_t x_id,
                       int64_t y_id) {
    if (x != y) return x < y ? -1 : 1;
    if (x_begin != y_begin) return x_begin < y_begin ? -1 : 1;
    return (x_id > y_id) - (x_id < y_id);
}

static int request_order(const void *a, const void *b) {
    const struct xpl_infer_request *const x = a, *const y = b;
    return by_duration(x->end_ps - x->begin_ps, y->end_ps - y->begin_ps, x->begin_ps, y->begin_ps,
                       x->id, y->id);
}

static int batch_order(const void *a, const void *b) {
    const struct xpl_infer_batch *const x = a, *const y = b;
    return by_duration(x->end_ps - x->begin_ps, y->end_ps - y->begin_ps, x->begin_ps, y->begin_ps,
                       x->id, y->id);
}

static bool list_batches(struct xpl_inferring *k, const struct xpl_infer_group *g,
                         struct xpl_infer_request *r) {
    if (k->out->batch_ids.n + g->n_children > UINT32_MAX) return false;
    r->first_batch = (uint32_t)k->out->batch_ids.n;
    for (uint32_t i = 0; i < g->n_children; i++) {
        const struct xpl_infer_group *const c = &k->v.v[k->children[g->first_child + i]];
        int64_t *const slot = xpl_vec_push(k->result, &k->out->batch_ids);
        if (!slot) return false;
        *slot = c->id;
        r->n_batches++;
    }
    return true;
}

static bool list_programs(struct xpl_inferring *k, const struct xpl_infer_group *g,
                          struct xpl_infer_batch *b) {
    b->first_program = (uint32_t)k->out->programs.n;
    for (uint32_t i = g->programs; i; i = k->programs.v[i - 1].next) {
        uint64_t *const slot = xpl_vec_push(k->result, &k->out->programs);
        if (!slot) return false;
        *slot = k->programs.v[i - 1].id;
        b->n_programs++;
    }
    return true;
}

// Requests that took no time are left out.
static bool finish(struct xpl_inferring *k) {
    struct xpl_inference *const v = k->out;
    for (size_t i = 0; i < k->v.n; i++) {
        const struct xpl_infer_group *const g = &k->v.v[i];
        if (g->request && !list_batches(k, g, &v->requests.v[g->request - 1])) return false;
        if (g->batch && !list_programs(k, g, &v->batches.v[g->batch - 1])) return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < v->requests.n; i++)
        if (v->requests.v[i].begin_ps != v->requests.v[i].end_ps)
            v->requests.v[n++] = v->requests.v[i];
    v->requests.n = n;
    xpl_sort(v->requests.v, n, sizeof *v->requests.v, request_order);
    xpl_sort(v->batches.v, v->batches.n, sizeof *v->batches.v, batch_order);
    return true;
}

static xpl_status_t run_stages(struct xpl_inferring *k, struct xpl_error *err) {
    k->models = xpl_intern_new(k->scratch, xpl_hash_seed());
    k->model_ids = xpl_intern_new(k->scratch, xpl_hash_seed());
    k->patterns = xpl_intern_new(k->scratch, xpl_hash_seed());
    if (!k->models || !k->model_ids || !k->patterns) XPL_RETURN_OOM(err, "inference");
    const struct xpl_group_options related = {.relations = &k->relations};
    XPL_TRY(xpl_groups_build_with(k->xs, &related, k->scratch, k->exec, &k->groups, err));
    XPL_TRY(xpl_infer_collect(k, err));
    if (!xpl_infer_relate(k) || !xpl_infer_find_requests(k) || !xpl_infer_find_batches(k))
        XPL_RETURN_OOM(err, "inference");
    if (k->out->requests.n || k->out->batches.n) {
        XPL_TRY(xpl_infer_read_devices(k, err));
        xpl_infer_delays(k);
        XPL_TRY(xpl_infer_break_down(k, err));
    }
    if (!xpl_infer_read_tensors(k) || !xpl_infer_read_params(k) || !finish(k))
        XPL_RETURN_OOM(err, "inference");
    return XPL_OK;
}

xpl_status_t xpl_inference_make(const struct xpl_xspace *xs, struct xpl_exec *exec,
                                struct xpl_arena *arena, size_t limit, struct xpl_inference **ret,
                                struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena scratch = xpl_arena_of(limit);
    struct xpl_inference *const v = xpl_arena_zalloc(arena, sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "inference");
    struct xpl_inferring k = {.xs = xs,
                              .exec = exec,
                              .scratch = &scratch,
                              .result = arena,
                              .limit = limit,
                              .relations = {.arena = &scratch},
                              .out = v};
    k.host = xpl_xspace_plane(xs, XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
    if (k.host) XPL_TRY(run_stages(&k, err));
    *ret = v;
    return XPL_OK;
}
