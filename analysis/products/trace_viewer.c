// SPDX-License-Identifier: Apache-2.0
// Product trace_viewer: the tool's finished answer, from the profile itself.
#include "analysis/tools/trace_viewer/trace_viewer.h"
#include "analysis/products/answer_bytes.h"

static xpl_status_t write_events(const struct xpl_xspace *xs, struct xpl_exec *exec, size_t limit,
                                 struct xpl_buf *out, struct xpl_error *err) {
    return xpl_trace_json_render(xs, XPL_TRACE_VIEWER_MAX_EVENTS, exec, limit, out, err);
}

static xpl_status_t make(const struct xpl_product_input *in, void **ret, struct xpl_error *err) {
    return xpl_answer_bytes_make(in, write_events, ret, err);
}

const struct xpl_product xpl_product_trace_viewer = {
    .name = "trace_viewer",
    .version = 9,
    .residency = XPL_RESIDENCY_NONE,
    .make = make,
    .size = xpl_answer_bytes_size,
    .free = xpl_answer_bytes_free,
};
