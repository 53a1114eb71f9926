// SPDX-License-Identifier: Apache-2.0
// The registry of products.
#include "analysis/products/product.h"

#include <string.h>

#include "analysis/formats/format.h"

static const struct xpl_product *const kProducts[] = {
#define XPL_PRODUCT_ROW(name) &xpl_product_##name,
#include "analysis/products/rows.h"
#undef XPL_PRODUCT_ROW
};

const struct xpl_product *const *xpl_products(size_t *ret_n) {
    *ret_n = sizeof kProducts / sizeof *kProducts;
    return kProducts;
}

const struct xpl_product *xpl_products_inspecting(const struct xpl_format *format) {
    for (size_t i = 0; format && i < sizeof kProducts / sizeof *kProducts; i++)
        if (kProducts[i]->inspects && strcmp(kProducts[i]->inspects, format->name) == 0)
            return kProducts[i];
    return NULL;
}
