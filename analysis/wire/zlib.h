// SPDX-License-Identifier: Apache-2.0
// zlib's memory from this program's own allocator, so that it counts and can fail in tests.
#ifndef XPL_ANALYSIS_WIRE_ZLIB_H_
#define XPL_ANALYSIS_WIRE_ZLIB_H_

#include <zlib.h>

#include "base/arena.h"

static inline voidpf xpl_zlib_alloc(voidpf opaque, uInt n, uInt size) {
    (void)opaque;
    return xpl_sys_alloc((size_t)n * size);
}
static inline void xpl_zlib_free(voidpf opaque, voidpf p) {
    (void)opaque;
    xpl_sys_free(p);
}

// For inflateInit2 or deflateInit2.
static inline z_stream xpl_zlib_stream(void) {
    return (z_stream){.zalloc = xpl_zlib_alloc, .zfree = xpl_zlib_free};
}

#endif
