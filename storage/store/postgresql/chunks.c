// SPDX-License-Identifier: Apache-2.0
// Compression: a network and a log for recovery, both of which see every byte, cost more than zstd.
#include <zstd.h>

#include "storage/store/postgresql/impl.h"

enum { LEVEL = 1 };

bool xpl_pg_compress(xpl_bytes_t data, struct xpl_buf *ret) {
    ret->n = 0;
    if (!xpl_buf_room(ret, ZSTD_compressBound(data.len))) return false;
    const size_t n =
        ZSTD_compress(ret->p, ret->cap, data.len ? (const void *)data.ptr : "", data.len, LEVEL);
    if (ZSTD_isError(n)) return false;
    ret->n = n;
    return true;
}

bool xpl_pg_decompress(xpl_bytes_t frame, uint8_t *to, size_t len) {
    return ZSTD_getFrameContentSize(frame.ptr, frame.len) == len &&
           ZSTD_decompress(to, len, frame.ptr, frame.len) == len;
}
