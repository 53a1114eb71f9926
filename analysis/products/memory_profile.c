// SPDX-License-Identifier: Apache-2.0
// Product memory_profile: the tool's finished answer, from the profile itself.
#include "analysis/tools/memory_profile/memory_profile.h"
#include "analysis/products/answer_bytes.h"

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_answer_bytes_make(in, xpl_memory_profile, ret, err);
}

const struct xpl_product xpl_product_memory_profile = {
    .name = "memory_profile",
    .version = 3,
    .residency = XPL_RESIDENCY_NONE,
    .make = make,
    .size = xpl_answer_bytes_size,
    .free = xpl_answer_bytes_free,
};
