// SPDX-License-Identifier: Apache-2.0
#include "analysis/inference/combine.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// A host's numbers in those of all.
struct numbers {
    uint32_t *models, *patterns;
};
struct combining {
    struct xpl_inferences *all;
    struct xpl_arena *arena;
    struct xpl_intern *names, *patterns;
    struct numbers *at; // by host
    bool exact, nameless;
};

// ---- numbers ----

static bool number_models(struct combining *c, const struct xpl_inference *v, uint32_t *at) {
    for (size_t i = 0; i < v->models.n; i++) {
        const struct xpl_infer_model *const from = &v->models.v[i];
        xpl_strid_t id;
        if (!xpl_intern_put(c->names, from->name, &id)) return false;
        if (id.v > c->all->models.n) {
            struct xpl_infer_model_stats *const m = xpl_vec_push(c->arena, &c->all->models);
            if (!m) return false;
            *m = (struct xpl_infer_model_stats){.name = from->name};
        }
        at[i] = id.v - 1;
        struct xpl_infer_model_stats *const m = &c->all->models.v[at[i]];
        if (!m->params && from->has_params) m->params = from;
    }
    return true;
}

static bool number_patterns(struct combining *c, const struct xpl_inference *v, uint32_t *at) {
    for (size_t i = 0; i < v->patterns.n; i++) {
        xpl_strid_t id;
        if (!xpl_intern_put(c->patterns, v->patterns.v[i], &id)) return false;
        at[i] = id.v ? id.v - 1 : 0;
        if (id.v <= c->all->patterns.n) continue;
        xpl_str_t *const slot = xpl_vec_push(c->arena, &c->all->patterns);
        if (!slot) return false;
        *slot = v->patterns.v[i];
    }
    return true;
}

static bool number_host(struct combining *c, size_t host) {
    const struct xpl_inference *const v = c->all->hosts[host];
    struct numbers *const at = &c->at[host];
    if (!v) return true;
    at->models = xpl_arena_array(c->arena, v->models.n + 1, sizeof *at->models);
    at->patterns = xpl_arena_array(c->arena, v->patterns.n + 1, sizeof *at->patterns);
    return at->models && at->patterns && number_models(c, v, at->models) &&
           number_patterns(c, v, at->patterns);
}

// ---- members ----

// NULL where it has no model and others have.
static struct xpl_infer_model_stats *model_of(struct combining *c, size_t host, int32_t model) {
    struct xpl_inferences *const all = c->all;
    if (c->nameless) return all->models.v;
    if (model < 0) return NULL;
    if ((size_t)model < all->hosts[host]->models.n)
        return &all->models.v[c->at[host].models[model]];
    return (size_t)model < all->models.n ? &all->models.v[model] : NULL;
}

static bool add_time(struct combining *c, struct xpl_infer_model_stats *m, size_t host,
                     int32_t pattern, uint64_t ps) {
    if (pattern < 0) return true;
    struct xpl_infer_time *const slot = xpl_vec_push(c->arena, &m->times);
    if (slot) *slot = (struct xpl_infer_time){c->at[host].patterns[pattern], ps};
    return slot;
}

static bool add_host(struct combining *c, size_t host) {
    const struct xpl_inference *const v = c->all->hosts[host];
    for (size_t i = 0; v && i < v->requests.n; i++) {
        const struct xpl_infer_request *const r = &v->requests.v[i];
        struct xpl_infer_model_stats *const m = model_of(c, host, r->model);
        if (!m) continue;
        struct xpl_infer_request_at *const slot = xpl_vec_push(c->arena, &m->requests);
        if (!slot || !add_time(c, m, host, r->pattern, r->tensor_ps)) return false;
        *slot = (struct xpl_infer_request_at){r, host};
    }
    for (size_t i = 0; v && i < v->batches.n; i++) {
        const struct xpl_infer_batch *const b = &v->batches.v[i];
        struct xpl_infer_model_stats *const m = model_of(c, host, b->model);
        if (!m) continue;
        struct xpl_infer_batch_at *const slot = xpl_vec_push(c->arena, &m->batches);
        if (!slot || !add_time(c, m, host, b->pattern, b->tensor_ps)) return false;
        *slot = (struct xpl_infer_batch_at){b, host};
        c->all->has_batches = true;
    }
    return true;
}

// ---- order ----

static int compare(uint64_t x, uint64_t y) {
    return (x > y) - (x < y);
}

static int request_order(const void *a, const void *b) {
    const struct xpl_infer_request_at *const x = a, *const y = b;
    int c = compare(x->r->end_ps - x->r->begin_ps, y->r->end_ps - y->r->begin_ps);
    if (!c) c = compare(x->r->begin_ps, y->r->begin_ps);
    if (!c) c = compare(x->host, y->host);
    return c ? c : (x->r->id > y->r->id) - (x->r->id < y->r->id);
}

static int batch_order(const void *a, const void *b) {
    const struct xpl_infer_batch_at *const x = a, *const y = b;
    int c = compare(x->b->end_ps - x->b->begin_ps, y->b->end_ps - y->b->begin_ps);
    if (!c) c = compare(x->b->begin_ps, y->b->begin_ps);
    if (!c) c = compare(x->host, y->host);
    return c ? c : (x->b->id > y->b->id) - (x->b->id < y->b->id);
}

static int time_order(const void *a, const void *b) {
    const struct xpl_infer_time *const x = a, *const y = b;
    const int c = compare(x->pattern, y->pattern);
    return c ? c : compare(x->ps, y->ps);
}

static void sort_members(struct xpl_infer_model_stats *m) {
    xpl_sort(m->requests.v, m->requests.n, sizeof *m->requests.v, request_order);
    xpl_sort(m->batches.v, m->batches.n, sizeof *m->batches.v, batch_order);
    xpl_sort(m->times.v, m->times.n, sizeof *m->times.v, time_order);
}

// ---- rates ----

struct rate {
    uint64_t n, first, last, total;
};

static void add_span(struct rate *r, uint64_t begin, uint64_t end) {
    if (!r->n || begin < r->first) r->first = begin;
    if (!r->n || end > r->last) r->last = end;
    r->total += end - begin;
    r->n++;
}

static void end_rate(const struct rate *r, double *ret_throughput, double *ret_latency_us) {
    *ret_throughput = *ret_latency_us = 0;
    if (!r->n) return;
    *ret_throughput = (double)r->n / ((double)(r->last - r->first) / 1e12);
    *ret_latency_us = (double)r->total / 1e6 / (double)r->n;
}

static void rate_model(struct xpl_infer_model_stats *m) {
    struct rate requests = {0}, batches = {0};
    for (size_t i = 0; i < m->requests.n; i++)
        add_span(&requests, m->requests.v[i].r->begin_ps, m->requests.v[i].r->end_ps);
    for (size_t i = 0; i < m->batches.n; i++)
        add_span(&batches, m->batches.v[i].b->begin_ps, m->batches.v[i].b->end_ps);
    end_rate(&requests, &m->request_throughput, &m->request_latency_us);
    end_rate(&batches, &m->batch_throughput, &m->batch_latency_us);
}

// ---- means ----

struct totals {
    struct xpl_infer_summary s; // sums, at first
    double idle;
    struct xpl_map programs;
};

static int32_t add32(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static void add_request(struct totals *t, const struct xpl_infer_request *r) {
    struct xpl_infer_request *const s = &t->s.request;
    s->end_ps += r->end_ps - r->begin_ps;
    s->device_ps += r->device_ps;
    s->d2h_ps += r->d2h_ps;
    s->h2d_ps += r->h2d_ps;
    s->delay_ps += r->delay_ps;
    s->size = add32(s->size, r->size);
    s->preprocess_ps += r->preprocess_ps;
    s->formation_ps += r->formation_ps;
    s->runtime_ps += r->runtime_ps;
    s->postprocess_ps += r->postprocess_ps;
    t->idle += (double)r->idle_ps;
    t->s.n_requests++;
}

static bool add_batch(struct totals *t, const struct xpl_inference *v,
                      const struct xpl_infer_batch *b, struct xpl_arena *arena) {
    struct xpl_infer_batch *const s = &t->s.batch;
    s->end_ps += b->end_ps - b->begin_ps;
    s->delay_ps += b->delay_ps;
    s->padding = add32(s->padding, b->padding);
    s->size = add32(s->size, b->size);
    s->device_ps += b->device_ps;
    t->s.n_batches++;
    for (uint32_t i = 0; i < b->n_programs; i++) {
        const uint64_t program = v->programs.v[b->first_program + i];
        bool is_new;
        if (!xpl_map_put(arena, &t->programs, program, 0, &is_new)) return false;
        if (!is_new) continue;
        uint64_t *const slot = xpl_vec_push(arena, &t->s.programs);
        if (!slot) return false;
        *slot = program;
    }
    return true;
}

static uint64_t whole(double v) {
    return v < 18446744073709551616.0 ? (uint64_t)v : UINT64_MAX;
}

static int32_t divide32(int32_t v, uint64_t n) {
    return (int32_t)((int64_t)v / (int64_t)n);
}

// The sums become means.
static void end_totals(struct totals *t) {
    struct xpl_infer_request *const r = &t->s.request;
    struct xpl_infer_batch *const b = &t->s.batch;
    const uint64_t n = t->s.n_requests ? t->s.n_requests : 1;
    const uint64_t m = t->s.n_batches ? t->s.n_batches : 1;
    r->end_ps /= n, r->device_ps /= n, r->d2h_ps /= n, r->h2d_ps /= n, r->delay_ps /= n;
    r->preprocess_ps /= n, r->formation_ps /= n, r->runtime_ps /= n, r->postprocess_ps /= n;
    r->idle_ps = whole(t->idle / (double)n);
    r->size = divide32(r->size, n);
    t->s.efficiency = xpl_infer_efficiency(b->size, b->padding);
    b->end_ps /= m, b->delay_ps /= m, b->device_ps /= m;
    b->padding = divide32(b->padding, m);
    b->size = divide32(b->size, m);
}

double xpl_infer_efficiency(int32_t size, int32_t padding) {
    const int32_t used = (int32_t)((uint32_t)size - (uint32_t)padding);
    return size ? (double)used / (double)size : 0;
}

// ---- by size ----

struct sizes {
    struct combining *c;
    struct xpl_infer_model_stats *m;
    XPL_VEC(struct totals) v;
    XPL_VEC(int32_t) size;
    struct xpl_map known;   // size to index
    struct xpl_map batches; // host and id of a batch to its size
};

static struct totals *put_size(struct sizes *s, int32_t size) {
    bool is_new;
    uint64_t *const slot =
        xpl_map_put(s->c->arena, &s->known, (uint64_t)(uint32_t)size, 0, &is_new);
    if (!slot) return NULL;
    if (is_new) {
        *slot = s->v.n;
        struct totals *const t = xpl_vec_push(s->c->arena, &s->v);
        int32_t *const own = xpl_vec_push(s->c->arena, &s->size);
        if (!t || !own) return NULL;
        *t = (struct totals){0};
        *own = size;
    }
    return &s->v.v[*slot];
}

// Upstream takes batches of all hosts that have the same id for one, the longest.
static uint64_t host_key(const struct sizes *s, size_t host) {
    return s->c->exact ? 0 : host;
}

static bool add_sizes_of_batches(struct sizes *s) {
    for (size_t i = 0; i < s->m->batches.n; i++) {
        const struct xpl_infer_batch_at *const at = &s->m->batches.v[i];
        uint64_t *const slot =
            xpl_map_put(s->c->arena, &s->batches, (uint64_t)at->b->id, host_key(s, at->host), NULL);
        struct totals *const t = put_size(s, at->b->size);
        if (!slot || !t || !add_batch(t, s->c->all->hosts[at->host], at->b, s->c->arena))
            return false;
        *slot = (uint32_t)at->b->size;
    }
    return true;
}

static bool add_sizes_of_requests(struct sizes *s) {
    for (size_t i = 0; i < s->m->requests.n; i++) {
        const struct xpl_infer_request_at *const at = &s->m->requests.v[i];
        const int64_t *const ids = s->c->all->hosts[at->host]->batch_ids.v;
        for (uint32_t k = 0; k < at->r->n_batches; k++) {
            const uint64_t *const size = xpl_map_get(
                &s->batches, (uint64_t)ids[at->r->first_batch + k], host_key(s, at->host));
            if (!size) continue;
            struct totals *const t = put_size(s, (int32_t)(uint32_t)*size);
            if (!t) return false;
            add_request(t, at->r);
        }
    }
    return true;
}

static int by_size(const void *a, const void *b) {
    const struct xpl_infer_by_size *const x = a, *const y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static bool summarize(struct combining *c, struct xpl_infer_model_stats *m) {
    struct sizes s = {.c = c, .m = m};
    struct totals all = {0};
    for (size_t i = 0; i < m->requests.n; i++)
        add_request(&all, m->requests.v[i].r);
    for (size_t i = 0; i < m->batches.n; i++)
        if (!add_batch(&all, c->all->hosts[m->batches.v[i].host], m->batches.v[i].b, c->arena))
            return false;
    end_totals(&all);
    m->all = all.s;
    if (!add_sizes_of_batches(&s) || !add_sizes_of_requests(&s)) return false;
    for (size_t i = 0; i < s.v.n; i++) {
        struct xpl_infer_by_size *const slot = xpl_vec_push(c->arena, &m->sizes);
        if (!slot) return false;
        end_totals(&s.v.v[i]);
        *slot = (struct xpl_infer_by_size){s.size.v[i], s.v.v[i].s};
    }
    xpl_sort(m->sizes.v, m->sizes.n, sizeof *m->sizes.v, by_size);
    return true;
}

// ---- all ----

static bool combine(struct combining *c) {
    struct xpl_inferences *const all = c->all;
    c->names = xpl_intern_new(c->arena, xpl_hash_seed());
    c->patterns = xpl_intern_new(c->arena, xpl_hash_seed());
    c->at = xpl_arena_zalloc(c->arena, (all->n_hosts + 1) * sizeof *c->at);
    if (!c->names || !c->patterns || !c->at) return false;
    for (size_t i = 0; i < all->n_hosts; i++)
        if (!number_host(c, i)) return false;
    c->nameless = !all->models.n;
    if (c->nameless) {
        struct xpl_infer_model_stats *const m = xpl_vec_push(c->arena, &all->models);
        if (!m) return false;
        *m = (struct xpl_infer_model_stats){.name = XPL_STR("ALL")};
    }
    for (size_t i = 0; i < all->n_hosts; i++)
        if (!add_host(c, i)) return false;
    for (size_t i = 0; i < all->models.n; i++) {
        sort_members(&all->models.v[i]);
        rate_model(&all->models.v[i]);
        if (!summarize(c, &all->models.v[i])) return false;
    }
    return true;
}

xpl_status_t xpl_inferences_combine(const struct xpl_inference *const *hosts, size_t n, bool exact,
                                    struct xpl_arena *arena, struct xpl_inferences **ret,
                                    struct xpl_error *err) {
    struct xpl_inferences *const all = xpl_arena_zalloc(arena, sizeof *all);
    struct combining c = {.all = all, .arena = arena, .exact = exact};
    if (!all) XPL_RETURN_OOM(err, "inference");
    all->hosts = hosts;
    all->n_hosts = n;
    if (!combine(&c)) XPL_RETURN_OOM(err, "inference");
    *ret = all;
    return XPL_OK;
}
