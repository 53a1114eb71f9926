// SPDX-License-Identifier: Apache-2.0
// Product iree_bundle: that the bytes are a profile bundle of IREE, and how whole it is.
#include "analysis/ireeprof/model.h"
#include "analysis/ireeprof/reports/report.h"
#include "analysis/products/product.h"
#include "analysis/products/values.h"
#include "base/arena.h"

// Reads all events, as the summary does, and the metadata, as what shows names does: damage among
// them is found by reading.
static xpl_status_t read_all(struct xpl_iree_run *run, struct xpl_error *err) {
    struct xpl_iree_model model;
    XPL_TRY(xpl_iree_report_run(xpl_iree_report_find(XPL_STR("summary")), run, err));
    xpl_iree_model_init(&model);
    const xpl_status_t st = xpl_iree_model_load(&model, run, err);
    xpl_iree_model_fini(&model);
    return st;
}

static xpl_status_t find_damage(const struct xpl_product_input *in,
                                const struct xpl_iree_bundle *bundle,
                                struct xpl_iree_bundle_value *v, struct xpl_error *err) {
    struct xpl_buf out;
    struct xpl_iree_rows rows = {.format = XPL_IREE_JSONL, .out = &out};
    struct xpl_iree_run run = {
        .bundle = bundle, .options.id = -1, .rows = &rows, .exec = in->exec, .limit = in->limit};
    xpl_buf_init(&out, in->limit);
    const xpl_status_t st = read_all(&run, err);
    xpl_buf_fini(&out);
    if (st != XPL_OK || !xpl_iree_is_partial(&run)) return st;
    while (v->n_warnings < XPL_IREE_BUNDLE_WARNINGS &&
           xpl_iree_warning(&run, v->n_warnings, v->warnings[v->n_warnings],
                            XPL_IREE_BUNDLE_WARNING_SIZE))
        v->n_warnings++;
    return XPL_OK;
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    if (in->profile.len >= 4 && !xpl_iree_sniff(in->profile))
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION,
                         "the profile is not an IREE bundle (*.ireeprof)");
    const xpl_status_t st = xpl_iree_open(in->profile, false, &bundle, err);
    // A header that is wrong is the file's fault, not the request's.
    if (st != XPL_OK) return st == XPL_INVALID_ARGUMENT ? err->code = XPL_DATA_LOSS : st;
    struct xpl_iree_bundle_value *const v = xpl_sys_alloc(sizeof *v);
    if (!v) XPL_RETURN_OOM(err, "bundle");
    *v = (struct xpl_iree_bundle_value){.n_records = bundle.n_records};
    const xpl_status_t found = find_damage(in, &bundle, v, err);
    if (found == XPL_OK)
        *ret = v;
    else
        xpl_sys_free(v);
    return found;
}

static const char *warning(const void *value, size_t i) {
    const struct xpl_iree_bundle_value *const v = value;
    return i < v->n_warnings ? v->warnings[i] : NULL;
}

static size_t size(const void *value) {
    (void)value;
    return sizeof(struct xpl_iree_bundle_value);
}

const struct xpl_product xpl_product_iree_bundle = {
    .name = "iree_bundle",
    .version = 3,
    .residency = XPL_RESIDENCY_MEMORY,
    .form = XPL_FORM_FILE,
    .make = make,
    .inspects = "ireeprof",
    .warning = warning,
    .size = size,
    .free = xpl_sys_free,
};
