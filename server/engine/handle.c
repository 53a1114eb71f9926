// SPDX-License-Identifier: Apache-2.0
#include "server/engine/handle.h"

#include "base/arena.h"

// A mapped file costs address space and a descriptor, which are not counted in bytes: this keeps
// 64 of them mapped with the default --answer-cache.
enum { MAPPED_CHARGE = 4 << 20 };

static void handle_destroy(struct xpl_object *o) {
    struct xpl_product_handle *const h = (struct xpl_product_handle *)o;
    h->product->free(h->value);
    xpl_sys_free(h->packed);
    xpl_source_free(h->file);
    xpl_source_free(h->profile);
    xpl_sys_free(h);
}

struct xpl_product_handle *xpl_product_handle_new(const struct xpl_product *product,
                                                  unsigned variant) {
    struct xpl_product_handle *const h = xpl_sys_alloc(sizeof *h);
    if (!h) return NULL;
    *h = (struct xpl_product_handle){
        .object = {.destroy = handle_destroy}, .product = product, .variant = variant};
    atomic_init(&h->object.refs, 1);
    return h;
}

struct xpl_product_handle *xpl_product_handle_from_bytes(const struct xpl_product *product,
                                                         unsigned variant, uint8_t *bytes,
                                                         size_t len, bool packed, size_t limit) {
    struct xpl_product_handle *h = xpl_product_handle_new(product, variant);
    if (h && packed) {
        h->packed = bytes;
        h->packed_len = len;
        return h;
    }
    if (h && product->decode((xpl_bytes_t){bytes, len}, limit, &h->value, NULL) != XPL_OK) {
        xpl_object_unref(&h->object);
        h = NULL;
    }
    xpl_sys_free(bytes);
    return h;
}

struct xpl_product_handle *xpl_product_handle_from_file(const struct xpl_product *product,
                                                        unsigned variant, struct xpl_source *file,
                                                        size_t limit, xpl_status_t *ret_status) {
    struct xpl_product_handle *const h = xpl_product_handle_new(product, variant);
    *ret_status = h ? product->decode(xpl_source_bytes(file), limit, &h->value, NULL)
                    : XPL_RESOURCE_EXHAUSTED;
    if (*ret_status == XPL_OK) {
        h->file = file;
        return h;
    }
    if (h) xpl_object_unref(&h->object);
    return NULL;
}

void xpl_product_handle_pack(struct xpl_product_handle *h) {
    struct xpl_buf b = xpl_buf_of(XPL_STORE_MAX_RESULT);
    if (h->value && h->product->encode && h->product->encode(h->value, &b, NULL) == XPL_OK)
        h->packed = xpl_buf_take(&b, &h->packed_len);
    if (h->packed) {
        h->product->free(h->value);
        h->value = NULL;
    }
    xpl_buf_fini(&b);
}

xpl_status_t xpl_product_handle_unpack(const struct xpl_product_handle *packed, size_t limit,
                                       struct xpl_product_handle **ret, struct xpl_error *err) {
    struct xpl_product_handle *const h = xpl_product_handle_new(packed->product, packed->variant);
    if (!h) XPL_RETURN_OOM(err, packed->product->name);
    const xpl_bytes_t bytes = {packed->packed, packed->packed_len};
    const xpl_status_t st = h->product->decode(bytes, limit, &h->value, err);
    if (st != XPL_OK) {
        xpl_object_unref(&h->object);
        return st;
    }
    h->fingerprint = packed->fingerprint;
    h->format = packed->format;
    h->from_store = packed->from_store;
    h->stable = packed->stable;
    *ret = h;
    return XPL_OK;
}

size_t xpl_product_handle_bytes(const struct xpl_product_handle *h) {
    return sizeof *h + (h->value ? h->product->size(h->value) : 0) + h->packed_len +
           (h->file ? MAPPED_CHARGE : 0);
}
