// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/shelf.h"

#include <string.h>
#include <zstd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum { LEVEL = 1 };

static xpl_status_t compress(struct xpl_shelved *s, xpl_bytes_t bytes, struct xpl_error *err) {
    const size_t bound = ZSTD_compressBound(bytes.len);
    void *const frame = xpl_sys_alloc(bound), *fitting = NULL;
    const size_t n = frame ? ZSTD_compress(frame, bound, bytes.ptr, bytes.len, LEVEL) : 0;
    if (frame && !ZSTD_isError(n)) fitting = xpl_sys_alloc(n);
    if (fitting) *s = (struct xpl_shelved){memcpy(fitting, frame, n), n, bytes.len};
    xpl_sys_free(frame);
    if (!fitting) XPL_RETURN_OOM(err, "products");
    return XPL_OK;
}

xpl_status_t xpl_shelf_put(struct xpl_shelved *s, const struct xpl_product *p, const void *value,
                           size_t limit, struct xpl_error *err) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, limit);
    XPL_TRY(p->encode(value, &b, err));
    return compress(s, (xpl_bytes_t){b.p, b.n}, err);
}

xpl_status_t xpl_shelf_get(const struct xpl_shelved *s, const struct xpl_product *p, size_t limit,
                           void **ret, struct xpl_error *err) {
    uint8_t *const bytes = xpl_sys_alloc(s->len + 1);
    if (!bytes) XPL_RETURN_OOM(err, p->name);
    xpl_status_t st = XPL_INTERNAL;
    if (ZSTD_decompress(bytes, s->len, s->frame, s->frame_len) == s->len)
        st = p->decode((xpl_bytes_t){bytes, s->len}, limit, ret, err);
    else
        (void)xpl_error_set(err, st, __FILE__, __LINE__, UINT64_MAX, "%s: cannot be unpacked",
                            p->name);
    xpl_sys_free(bytes);
    return st;
}

void xpl_shelf_drop(struct xpl_shelved *s) {
    xpl_sys_free(s->frame);
    *s = (struct xpl_shelved){0};
}
