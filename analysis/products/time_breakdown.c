// SPDX-License-Identifier: Apache-2.0
// Product time_breakdown: where the time of a host's devices goes.
#include "analysis/breakdown/breakdown.h"
#include "analysis/opstats/opstats.h"
#include "analysis/products/arena_value.h"

static const char *const kVariants[] = {"cpu_as_device", NULL};

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_time_breakdown_value *const v = value;
    const struct xpl_op_stats_value *const known = in->known;
    // One that is made as XProf makes it groups in another way.
    const bool has_steps = known && !(in->variant & XPL_OP_STATS_XPROF_EXACT);
    const struct xpl_time_breakdown_options o = {
        .cpu_as_device = in->variant & XPL_TIME_BREAKDOWN_CPU_AS_DEVICE,
        .known = has_steps ? &known->stats->step_db : NULL};
    return xpl_time_breakdown_make(xs, &o, in->exec, &v->own.arena, in->limit, &v->breakdown, err);
}

static xpl_status_t read(xpl_bytes_t bytes, void *value, struct xpl_error *err) {
    struct xpl_time_breakdown_value *const v = value;
    return xpl_time_breakdown_decode(bytes, &v->own.arena, &v->breakdown, err);
}

static const struct xpl_arena_value_kind kKind = {sizeof(struct xpl_time_breakdown_value),
                                                  "time breakdown", fill, read};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

static xpl_status_t encode(const void *value, struct xpl_buf *out, struct xpl_error *err) {
    return xpl_time_breakdown_encode(((const struct xpl_time_breakdown_value *)value)->breakdown,
                                     out, err);
}

static xpl_status_t decode(xpl_bytes_t bytes, size_t limit, void **ret, struct xpl_error *err) {
    return xpl_arena_value_decode(&kKind, bytes, limit, ret, err);
}

const struct xpl_product xpl_product_time_breakdown = {
    .name = "time_breakdown",
    .version = 27,
    .residency = XPL_RESIDENCY_STORE,
    .variants = kVariants,
    .uses = &xpl_product_op_stats,
    .make = make,
    .encode = encode,
    .decode = decode,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
