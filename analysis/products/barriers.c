// SPDX-License-Identifier: Apache-2.0
// Product barriers: which part of each step the cores of a TPU wait for each other.
#include "analysis/products/arena_value.h"
#include "analysis/products/event_fractions.h"

static xpl_status_t fill(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err) {
    struct xpl_barriers_value *const v = value;
    return xpl_event_fractions_make(xs, XPL_STR("barrier-cores"), in->exec, &v->own.arena,
                                    in->limit, &v->fractions, err);
}

static const struct xpl_arena_value_kind kKind = {
    .size = sizeof(struct xpl_barriers_value), .what = "barriers", .fill = fill};

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_arena_value_make(&kKind, in, ret, err);
}

const struct xpl_product xpl_product_barriers = {
    .name = "barriers",
    .version = 4,
    .residency = XPL_RESIDENCY_MEMORY,
    .make = make,
    .size = xpl_arena_value_size,
    .free = xpl_arena_value_free,
};
