// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/lib/product_answer.h"

xpl_status_t xpl_product_answer_render(const struct xpl_tool_input *in, struct xpl_buf *out,
                                       struct xpl_error *err) {
    // The product belongs only to this render (product.h), so that its bytes, hundreds of megabytes
    // for a trace, need not be copied.
    struct xpl_buf *const made = (struct xpl_buf *)(uintptr_t)in->hosts[0].products[0];
    if (made->n > out->max)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "the answer exceeds the limit of %zu bytes",
                         out->max);
    const size_t max = out->max;
    xpl_buf_fini(out);
    *out = *made;
    out->max = max;
    *made = (struct xpl_buf){.max = max};
    return XPL_OK;
}
