// SPDX-License-Identifier: Apache-2.0
#include "analysis/opstats/host/tf_functions.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

// plugin/xprof/protobuf/tf_function.proto
enum { MODE_INVALID, MODE_EAGER, MODE_TRACED, MODE_NOT_TRACED, MODE_CONCRETE };
enum { COMPILER_INVALID, COMPILER_OTHER, COMPILER_MIXED, COMPILER_XLA };

static void decode_mode(xpl_str_t mode, int32_t *ret_mode, int32_t *ret_compiler) {
    static const struct {
        xpl_str_t text;
        int32_t mode, compiler;
    } known[] = {
        {{"eager", 5}, MODE_EAGER, COMPILER_INVALID},
        {{"concrete", 8}, MODE_CONCRETE, COMPILER_INVALID},
        {{"traced-xla", 10}, MODE_TRACED, COMPILER_XLA},
        {{"traced-nonXla", 13}, MODE_TRACED, COMPILER_OTHER},
        {{"notTraced-xla", 13}, MODE_NOT_TRACED, COMPILER_XLA},
        {{"notTraced-nonXla", 16}, MODE_NOT_TRACED, COMPILER_OTHER},
    };
    *ret_mode = MODE_INVALID, *ret_compiler = COMPILER_INVALID;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (xpl_str_eq(mode, known[i].text))
            *ret_mode = known[i].mode, *ret_compiler = known[i].compiler;
}

static int32_t join_compilers(int32_t a, int32_t b) {
    if (a == COMPILER_INVALID || a == b) return b;
    return b == COMPILER_INVALID ? a : COMPILER_MIXED;
}

struct point {
    uint64_t at;
    size_t seq; // 2 * call, plus 1 for its end
};

static int by_time(const void *pa, const void *pb) {
    const struct point *a = pa, *b = pb;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

bool xpl_tf_calls_nest(struct xpl_tf_calls *calls, struct xpl_arena *scratch) {
    const size_t n = calls->v.n;
    if (n == 0) return true;
    struct point *p = xpl_arena_array(scratch, n, 2 * sizeof *p);
    size_t *stack = xpl_arena_array(scratch, n, sizeof *stack), depth = 0;
    if (!p || !stack) return false;
    for (size_t i = 0; i < n; i++) {
        p[2 * i] = (struct point){calls->v.v[i].span.begin_ps, 2 * i};
        p[2 * i + 1] = (struct point){xpl_timespan_end(calls->v.v[i].span), 2 * i + 1};
    }
    xpl_sort(p, 2 * n, sizeof *p, by_time);
    for (size_t k = 0; k < 2 * n; k++) {
        if (p[k].seq % 2 == 0) {
            stack[depth++] = p[k].seq / 2;
            continue;
        }
        if (depth) depth--; // upstream trusts that this is the call that ends
        if (depth)
            calls->v.v[stack[depth - 1]].children_ps += calls->v.v[p[k].seq / 2].span.duration_ps;
    }
    return true;
}

static struct xpl_tf_function *function_of(struct xpl_tf_function_table *t, xpl_str_t name) {
    xpl_strid_t id;
    if (!t->names && !(t->names = xpl_intern_new(t->result, xpl_hash_seed()))) return NULL;
    if (!xpl_intern_put(t->names, name, &id)) return NULL;
    while (t->v.n <= id.v) { // id 0 is the empty name
        struct xpl_tf_function *f = xpl_vec_push(t->result, &t->v);
        if (!f) return NULL;
        *f = (struct xpl_tf_function){.total_tracing_count = INT64_MIN};
    }
    struct xpl_tf_function *f = &t->v.v[id.v];
    if (f->total_tracing_count == INT64_MIN) {
        f->total_tracing_count = 0;
        f->name = xpl_intern_get(t->names, id);
    }
    return f;
}

static bool add_mode(struct xpl_tf_function_table *t, struct xpl_tf_function *f, int32_t mode,
                     uint64_t count, uint64_t self_time_ps) {
    size_t i = 0;
    while (i < f->metrics.n && f->metrics.v[i].mode < mode)
        i++;
    if (i == f->metrics.n || f->metrics.v[i].mode != mode) {
        if (!xpl_vec_push(t->result, &f->metrics)) return false;
        for (size_t k = f->metrics.n - 1; k > i; k--)
            f->metrics.v[k] = f->metrics.v[k - 1];
        f->metrics.v[i] = (struct xpl_tf_function_metrics){.mode = mode};
    }
    f->metrics.v[i].count += count;
    f->metrics.v[i].self_time_ps += self_time_ps;
    return true;
}

bool xpl_tf_functions_add(struct xpl_tf_function_table *t, const struct xpl_tf_calls *calls) {
    for (size_t i = 0; i < calls->v.n; i++) {
        const struct xpl_tf_call *c = &calls->v.v[i];
        struct xpl_tf_function *f = function_of(t, c->name);
        if (!f) return false;
        int32_t mode, compiler;
        decode_mode(c->mode, &mode, &compiler);
        if (c->tracing_count > f->total_tracing_count) f->total_tracing_count = c->tracing_count;
        f->compiler = join_compilers(f->compiler, compiler);
        if (!add_mode(t, f, mode, 1, c->span.duration_ps - c->children_ps)) return false;
    }
    return true;
}

bool xpl_tf_functions_combine(struct xpl_tf_function_table *t, const struct xpl_tf_function *src,
                              size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct xpl_tf_function *f = function_of(t, src[i].name);
        if (!f) return false;
        if (src[i].total_tracing_count > f->total_tracing_count)
            f->total_tracing_count = src[i].total_tracing_count;
        f->compiler = join_compilers(f->compiler, src[i].compiler);
        for (size_t k = 0; k < src[i].metrics.n; k++)
            if (!add_mode(t, f, src[i].metrics.v[k].mode, src[i].metrics.v[k].count,
                          src[i].metrics.v[k].self_time_ps))
                return false;
    }
    return true;
}

static int by_name(const void *pa, const void *pb) {
    const struct xpl_tf_function *a = pa, *b = pb;
    return xpl_str_cmp(a->name, b->name);
}

static double expensive_percent(const struct xpl_tf_function *f) {
    uint64_t all = 0, expensive = 0;
    for (size_t i = 0; i < f->metrics.n; i++) {
        all += f->metrics.v[i].self_time_ps;
        if (f->metrics.v[i].mode == MODE_TRACED || f->metrics.v[i].mode == MODE_EAGER)
            expensive += f->metrics.v[i].self_time_ps;
    }
    return all ? 100.0 * (double)expensive / (double)all : 0.0;
}

void xpl_tf_functions_finish(struct xpl_tf_function_table *t) {
    size_t kept = 0;
    for (size_t i = 0; i < t->v.n; i++) {
        if (t->v.v[i].total_tracing_count == INT64_MIN) continue; // the empty name, unless used
        t->v.v[kept] = t->v.v[i];
        t->v.v[kept].expensive_call_percent = expensive_percent(&t->v.v[kept]);
        kept++;
    }
    t->v.n = kept;
    xpl_sort(t->v.v, kept, sizeof *t->v.v, by_name);
}
