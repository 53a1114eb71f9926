// SPDX-License-Identifier: Apache-2.0
// What products have in common whose value is one struct and an arena: the struct begins with a
// struct xpl_arena_value, and all that it refers to lies in that arena.
#ifndef XPL_ANALYSIS_PRODUCTS_ARENA_VALUE_H_
#define XPL_ANALYSIS_PRODUCTS_ARENA_VALUE_H_

#include "analysis/products/product.h"
#include "analysis/products/values.h"

struct xpl_xspace;

// What of such a product is its own.
struct xpl_arena_value_kind {
    size_t size;      // of the struct
    const char *what; // there is no memory for
    // Fills the struct, which is zero but for its arena, from an opened profile.
    xpl_status_t (*fill)(const struct xpl_xspace *xs, const struct xpl_product_input *in,
                         void *value, struct xpl_error *err);
    // The same from its encoding; NULL for a product that has none.
    xpl_status_t (*read)(xpl_bytes_t bytes, void *value, struct xpl_error *err);
};

// make, decode, size and free of such a product.
xpl_status_t xpl_arena_value_make(const struct xpl_arena_value_kind *kind,
                                  const struct xpl_product_input *in, void **ret,
                                  struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_arena_value_decode(const struct xpl_arena_value_kind *kind, xpl_bytes_t bytes,
                                    size_t limit, void **ret, struct xpl_error *err) XPL_NODISCARD;
size_t xpl_arena_value_size(const void *value);
void xpl_arena_value_free(void *value);

#endif
