// SPDX-License-Identifier: Apache-2.0
// What products that are the finished answer of one host have in common (XPL_RESIDENCY_NONE): the
// value is a struct xpl_buf.
#ifndef XPL_ANALYSIS_PRODUCTS_ANSWER_BYTES_H_
#define XPL_ANALYSIS_PRODUCTS_ANSWER_BYTES_H_

#include "analysis/products/product.h"

struct xpl_xspace;

// Appends the answer for an opened profile.
typedef xpl_status_t xpl_answer_bytes_fn(const struct xpl_xspace *xs, struct xpl_exec *exec,
                                         size_t limit, struct xpl_buf *out, struct xpl_error *err);

// make, size and free of such a product; `write` fills the buffer.
xpl_status_t xpl_answer_bytes_make(const struct xpl_product_input *in, xpl_answer_bytes_fn *write,
                                   void **ret, struct xpl_error *err) XPL_NODISCARD;
size_t xpl_answer_bytes_size(const void *value);
void xpl_answer_bytes_free(void *value);

#endif
