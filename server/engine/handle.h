// SPDX-License-Identifier: Apache-2.0
// Product handles: making, packing and sizing them.  Private to server/engine.
#ifndef XPL_SERVER_ENGINE_HANDLE_H_
#define XPL_SERVER_ENGINE_HANDLE_H_

#include "server/engine/products.h"

// One reference, the caller's.  NULL when out of memory.
struct xpl_product_handle *xpl_product_handle_new(const struct xpl_product *product,
                                                  unsigned variant);
// A stored product: `bytes` (xpl_sys_alloc) are kept as they are when `packed`, else decoded and
// freed.  NULL when they are no such product, or without memory; they are freed in every case.
struct xpl_product_handle *xpl_product_handle_from_bytes(const struct xpl_product *product,
                                                         unsigned variant, uint8_t *bytes,
                                                         size_t len, bool packed, size_t limit);
// A mapped product.  Takes `file` over when it returns a handle; NULL and *ret_status otherwise.
struct xpl_product_handle *xpl_product_handle_from_file(const struct xpl_product *product,
                                                        unsigned variant, struct xpl_source *file,
                                                        size_t limit, xpl_status_t *ret_status);
// Encodes the value in place, when there is memory for that.  Nobody else may have the handle.
void xpl_product_handle_pack(struct xpl_product_handle *h);
// A new handle with the value of a packed one, or the decoder's failure.
xpl_status_t xpl_product_handle_unpack(const struct xpl_product_handle *packed, size_t limit,
                                       struct xpl_product_handle **ret, struct xpl_error *err)
    XPL_NODISCARD;
// What it costs to keep, for the cache.
size_t xpl_product_handle_bytes(const struct xpl_product_handle *h);

#endif
