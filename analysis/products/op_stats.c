// SPDX-License-Identifier: Apache-2.0
// Product op_stats: a host's OpStats, kept as XProf's message.
#include "analysis/opstats/codec/codec.h"
#include "analysis/opstats/combine/outline.h"
#include "analysis/opstats/convert.h"
#include "analysis/products/arena_value.h"

static const char *const kVariants[] = {"cpu_as_device", "all_steps", "xprof_exact", NULL};

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_op_stats_value *const v = value;
    const struct xpl_convert_options o = {
        .cpu_as_device = in->variant & XPL_OP_STATS_CPU_AS_DEVICE,
        .keep_incomplete_steps = in->variant & XPL_OP_STATS_ALL_STEPS,
        .xprof_exact = in->variant & XPL_OP_STATS_XPROF_EXACT,
    };
    return xpl_opstats_convert(xs, &o, in->exec, &v->own.arena, in->limit, &v->stats, err);
}

static xpl_status_t read(xpl_bytes_t bytes, void *value, struct xpl_error *err) {
    struct xpl_op_stats_value *const v = value;
    return xpl_opstats_decode(bytes, &v->own.arena, &v->stats, err);
}

static const struct xpl_arena_value_kind kKind = {sizeof(struct xpl_op_stats_value), "OpStats",
                                                  fill, read};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_opstats_encode(((const struct xpl_op_stats_value *)value)->stats, out, err);
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    return xpl_arena_value_decode(&kKind, bytes, limit, ret, err);
}

static xpl_status_t outline(const void *value, void **ret, struct xpl_error *err) {
    const struct xpl_op_stats_value *const v = value;
    void *const at = xpl_sys_alloc(xpl_host_outline_size(v->stats));
    if (!at) XPL_RETURN_OOM(err, "outline of OpStats");
    xpl_host_outline_put(v->stats, at)->bytes = xpl_arena_value_size(value);
    *ret = at;
    return XPL_OK;
}

const struct xpl_product xpl_product_op_stats = {
    .name = "op_stats",
    .version = 26,
    .residency = XPL_RESIDENCY_STORE,
    .variants = kVariants,
    .make = make,
    .encode = encode,
    .decode = decode,
    .outline = outline,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
