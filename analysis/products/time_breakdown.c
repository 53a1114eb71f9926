// SPDX-License-Identifier: Apache-2.0
// Product time_breakdown: where the time of a host's devices goes.
#include "analysis/breakdown/breakdown.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/cleanup.h"

static const char *const kVariants[] = {"cpu_as_device", NULL};

static struct xpl_time_breakdown_value *value_new(size_t limit) {
    struct xpl_time_breakdown_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) return NULL;
    *v = (struct xpl_time_breakdown_value){0};
    xpl_arena_init(&v->arena, limit);
    return v;
}

static void value_free(void *value) {
    struct xpl_time_breakdown_value *const v = value;
    if (!v) return;
    xpl_arena_fini(&v->arena);
    xpl_sys_free(v);
}

static xpl_status_t fill(const struct xpl_product_input *in, struct xpl_time_breakdown_value *v,
                         struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    struct xpl_xspace *xs;
    xpl_arena_init(&view, in->limit);
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    return xpl_time_breakdown_make(xs, in->variant & XPL_TIME_BREAKDOWN_CPU_AS_DEVICE, in->exec,
                                   &v->arena, in->limit, &v->breakdown, err);
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_time_breakdown_value *const v = value_new(in->limit);
    if (!v) XPL_RETURN_OOM(err, "time breakdown");
    const xpl_status_t st = fill(in, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_time_breakdown_encode(((const struct xpl_time_breakdown_value *)value)->breakdown,
                                     out, err);
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    struct xpl_time_breakdown_value *const v = value_new(limit);
    if (!v) XPL_RETURN_OOM(err, "time breakdown");
    const xpl_status_t st = xpl_time_breakdown_decode(bytes, &v->arena, &v->breakdown, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static size_t size(const void *value) {
    const struct xpl_time_breakdown_value *const v = value;
    return sizeof *v + v->arena.reserved;
}

const struct xpl_product xpl_product_time_breakdown = {
    .name = "time_breakdown",
    .version = 2,
    .residency = XPL_RESIDENCY_STORE,
    .variants = kVariants,
    .make = make,
    .encode = encode,
    .decode = decode,
    .size = size,
    .free = value_free,
};
