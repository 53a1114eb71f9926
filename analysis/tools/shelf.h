// SPDX-License-Identifier: Apache-2.0
// Private to the resolver: a product between its uses, encoded and compressed, which takes a small
// part of the memory.
#ifndef XPL_ANALYSIS_TOOLS_SHELF_H_
#define XPL_ANALYSIS_TOOLS_SHELF_H_

#include "analysis/products/product.h"

struct xpl_shelved {
    void *frame; // NULL: nothing is there
    size_t frame_len, len;
};

// RESOURCE_EXHAUSTED.  The value stays the caller's.
xpl_status_t xpl_shelf_put(struct xpl_shelved *s, const struct xpl_product *p, const void *value,
                           size_t limit, struct xpl_error *err) XPL_NODISCARD;
// *ret is the caller's; the shelved copy stays.
xpl_status_t xpl_shelf_get(const struct xpl_shelved *s, const struct xpl_product *p, size_t limit,
                           void **ret, struct xpl_error *err) XPL_NODISCARD;
void xpl_shelf_drop(struct xpl_shelved *s);

#endif
