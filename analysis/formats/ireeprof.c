// SPDX-License-Identifier: Apache-2.0
// NAME.ireeprof: a profile bundle of IREE, as it is: tools of its own read the bytes
// (analysis/ireeprof), whether the bundle is whole or not.  Its view is an XSpace, for others.
#include "analysis/formats/impl.h"
#include "analysis/ireeprof/reader.h"
#include "analysis/ireeprof/timeline/timeline.h"

// A bundle may be cut, but must begin as one.
xpl_status_t xpl_ireeprof_check(xpl_bytes_t file, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    return xpl_iree_open(file, false, &bundle, err);
}

static xpl_status_t write_view(const struct xpl_iree_bundle *bundle,
                               const struct xpl_format_limits *limits, struct xpl_buf *out,
                               bool *ret_partial, struct xpl_error *err) {
    struct xpl_iree_rows rows = {.format = XPL_IREE_JSONL, .out = out};
    struct xpl_iree_run run = {.bundle = bundle,
                               .options = {.id = -1, .trace = XPL_IREE_XSPACE},
                               .rows = &rows,
                               .exec = limits->exec,
                               .limit = limits->max_bytes};
    XPL_TRY(xpl_iree_timeline_write(&run, err));
    if (out->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the bundle as an XSpace has more than %zu bytes", limits->max_bytes);
    *ret_partial = xpl_iree_is_partial(&run);
    return XPL_OK;
}

xpl_status_t xpl_ireeprof_view(xpl_bytes_t file, const struct xpl_format_limits *limits,
                               struct xpl_profile *ret, struct xpl_error *err) {
    struct xpl_iree_bundle bundle;
    struct xpl_buf out;
    size_t n = 0;
    bool partial = false;
    const xpl_status_t opened = xpl_iree_open(file, false, &bundle, err);
    // A header that is wrong is the file's fault, not the request's.
    if (opened == XPL_INVALID_ARGUMENT && err) err->code = XPL_DATA_LOSS;
    if (opened != XPL_OK) return opened == XPL_INVALID_ARGUMENT ? XPL_DATA_LOSS : opened;
    xpl_buf_init(&out, limits->max_bytes);
    const xpl_status_t st = write_view(&bundle, limits, &out, &partial, err);
    uint8_t *const bytes = st == XPL_OK ? xpl_buf_take(&out, &n) : NULL;
    xpl_buf_fini(&out);
    if (st != XPL_OK) return st;
    if (!bytes) XPL_RETURN_OOM(err, "view of a bundle");
    *ret = (struct xpl_profile){.bytes = {bytes, n}, .owned = bytes, .partial = partial};
    return XPL_OK;
}
