// SPDX-License-Identifier: Apache-2.0
// Product trace_index: the index of analysis/trace, opened.
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "analysis/tools/trace_viewer/options.h"
#include "analysis/trace/trace.h"

static struct xpl_trace_index_value *value_new(size_t limit) {
    struct xpl_trace_index_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) return NULL;
    *v = (struct xpl_trace_index_value){.limit = limit};
    xpl_arena_init(&v->arena, limit);
    xpl_buf_init(&v->index, limit);
    return v;
}

static void value_free(void *value) {
    struct xpl_trace_index_value *const v = value;
    if (!v) return;
    xpl_trace_build_free(v->build);
    xpl_arena_fini(&v->arena);
    xpl_buf_fini(&v->index);
    xpl_sys_free(v);
}

static xpl_status_t open_index(struct xpl_trace_index_value *v, struct xpl_error *err) {
    return xpl_trace_open((xpl_bytes_t){v->index.p, v->index.n}, &v->arena, &v->trace, err);
}

static xpl_status_t finish_build(struct xpl_trace_index_value *v, struct xpl_exec *exec,
                                 struct xpl_error *err) {
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &v->index};
    XPL_TRY(xpl_trace_build_finish(v->build, exec, &sink, err));
    xpl_trace_build_free(v->build);
    v->build = NULL;
    return open_index(v, err);
}

static xpl_status_t build(const struct xpl_product_input *in, struct xpl_trace_index_value *v,
                          struct xpl_error *err) {
    const struct xpl_trace_viewer_options *const first = in->first;
    const struct xpl_trace_sink sink = {xpl_trace_sink_buf, &v->index};
    XPL_TRY(xpl_trace_build_begin(in->profile, in->exec, in->limit, &v->build, err));
    if (!first || !xpl_trace_build_has_part(v->build, &first->trace))
        return finish_build(v, in->exec, err);
    XPL_TRY(xpl_trace_build_part(v->build, &first->trace, &sink, err));
    return open_index(v, err);
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_trace_index_value *const v = value_new(in->limit);
    if (!v) XPL_RETURN_OOM(err, "trace index");
    const xpl_status_t st = build(in, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static xpl_bytes_t encoded(const void *value) {
    const struct xpl_trace_index_value *const v = value;
    return (xpl_bytes_t){v->index.p, v->index.n};
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    struct xpl_trace_index_value *const v = value_new(limit);
    if (!v) XPL_RETURN_OOM(err, "trace index");
    const xpl_status_t st = xpl_trace_open(bytes, &v->arena, &v->trace, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static size_t size(const void *value) {
    const struct xpl_trace_index_value *const v = value;
    return sizeof *v + v->arena.reserved + v->index.cap;
}

static bool is_partial(const void *value) {
    return ((const struct xpl_trace_index_value *)value)->build != NULL;
}

static xpl_status_t finish(void *value, struct xpl_exec *exec, struct xpl_error *err) {
    struct xpl_trace_index_value *const v = value;
    xpl_buf_fini(&v->index);
    xpl_arena_fini(&v->arena);
    xpl_buf_init(&v->index, v->limit);
    xpl_arena_init(&v->arena, v->limit);
    v->trace = NULL;
    return finish_build(v, exec, err);
}

const struct xpl_product xpl_product_trace_index = {
    .name = "trace_index",
    .version = XPL_TRACE_VERSION,
    .residency = XPL_RESIDENCY_FILE,
    .make = make,
    .encoded = encoded,
    .decode = decode,
    .size = size,
    .free = value_free,
    .is_partial = is_partial,
    .finish = finish,
};
