// SPDX-License-Identifier: Apache-2.0
// Product inference: the requests that a model server answered, and their batches.
#include "analysis/inference/inference.h"
#include "analysis/products/arena_value.h"

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_inference_value *const v = value;
    return xpl_inference_make(xs, in->exec, &v->own.arena, in->limit, &v->inference, err);
}

static xpl_status_t read(xpl_bytes_t bytes, void *value, struct xpl_error *err) {
    struct xpl_inference_value *const v = value;
    return xpl_inference_decode(bytes, &v->own.arena, &v->inference, err);
}

static const struct xpl_arena_value_kind kKind = {sizeof(struct xpl_inference_value), "inference",
                                                  fill, read};

// Most profiles have no requests: their events are not read.  No bytes are the encoding of none.
static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    if (xpl_inference_possible(in->profile)) return xpl_arena_value_make(&kKind, in, ret, err);
    return xpl_arena_value_decode(&kKind, (xpl_bytes_t){NULL, 0}, in->limit, ret, err);
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_inference_encode(((const struct xpl_inference_value *)value)->inference, out, err);
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    return xpl_arena_value_decode(&kKind, bytes, limit, ret, err);
}

const struct xpl_product xpl_product_inference = {
    .name = "inference",
    .version = 1,
    .residency = XPL_RESIDENCY_STORE,
    .make = make,
    .encode = encode,
    .decode = decode,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
