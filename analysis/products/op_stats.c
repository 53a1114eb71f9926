// SPDX-License-Identifier: Apache-2.0
// Product op_stats: a host's OpStats, kept as XProf's message.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/convert.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/cleanup.h"

static const char *const kVariants[] = {"cpu_as_device", "all_steps", NULL};

static struct xpl_op_stats_value *value_new(size_t limit) {
    struct xpl_op_stats_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) return NULL;
    *v = (struct xpl_op_stats_value){0};
    xpl_arena_init(&v->arena, limit);
    return v;
}

static void value_free(void *value) {
    struct xpl_op_stats_value *const v = value;
    if (!v) return;
    xpl_arena_fini(&v->arena);
    xpl_sys_free(v);
}

static xpl_status_t convert(const struct xpl_product_input *in, struct xpl_op_stats_value *v,
                            struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena view;
    const struct xpl_convert_options o = {
        .cpu_as_device = in->variant & XPL_OP_STATS_CPU_AS_DEVICE,
        .keep_incomplete_steps = in->variant & XPL_OP_STATS_ALL_STEPS,
    };
    struct xpl_xspace *xs;
    xpl_arena_init(&view, in->limit);
    XPL_TRY(xpl_xspace_open(in->profile, &view, in->exec, &xs, err));
    return xpl_opstats_convert(xs, &o, in->exec, &v->arena, in->limit, &v->stats, err);
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_op_stats_value *const v = value_new(in->limit);
    if (!v) XPL_RETURN_OOM(err, "OpStats");
    const xpl_status_t st = convert(in, v, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_opstats_encode(((const struct xpl_op_stats_value *)value)->stats, out, err);
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    struct xpl_op_stats_value *const v = value_new(limit);
    if (!v) XPL_RETURN_OOM(err, "OpStats");
    const xpl_status_t st = xpl_opstats_decode(bytes, &v->arena, &v->stats, err);
    if (st == XPL_OK)
        *ret = v;
    else
        value_free(v);
    return st;
}

static size_t size(const void *value) {
    const struct xpl_op_stats_value *const v = value;
    return sizeof *v + v->arena.reserved;
}

const struct xpl_product xpl_product_op_stats = {
    .name = "op_stats",
    .version = 3,
    .residency = XPL_RESIDENCY_STORE,
    .variants = kVariants,
    .make = make,
    .encode = encode,
    .decode = decode,
    .size = size,
    .free = value_free,
};
