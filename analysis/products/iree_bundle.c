// SPDX-License-Identifier: Apache-2.0
// Product iree_bundle: that the bytes are a profile bundle of IREE, and how whole it is.
#include "analysis/ireeprof/reader.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/arena.h"

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    if (in->profile.len >= 4 && !xpl_iree_sniff(in->profile))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "the profile is no bundle of IREE (*.ireeprof)");
    const xpl_status_t st = xpl_iree_open(in->profile, false, &bundle, err);
    // A header that is wrong is the file's fault, not the request's.
    if (st != XPL_OK) return st == XPL_INVALID_ARGUMENT ? err->code = XPL_DATA_LOSS : st;
    struct xpl_iree_bundle_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "bundle");
    *v = (struct xpl_iree_bundle_value){.n_records = bundle.n_records, .damaged = bundle.notes.n};
    *ret = v;
    return XPL_OK;
}

static size_t size(const void *value) {
    (void)value;
    return sizeof(struct xpl_iree_bundle_value);
}

const struct xpl_product xpl_product_iree_bundle = {
    .name = "iree_bundle",
    .version = 1,
    .residency = XPL_RESIDENCY_MEMORY,
    .kind = XPL_KIND_IREE,
    .make = make,
    .size = size,
    .free = xpl_sys_free,
};
