// SPDX-License-Identifier: Apache-2.0
#include "base/text/utf8.h"

#include "base/buf.h"

bool xpl_utf8_valid(xpl_str_t s) {
    for (size_t i = 0, n; i < s.len; i += n)
        if (!(n = xpl_utf8_next(xpl_str_sub(s, i, SIZE_MAX)))) return false;
    return true;
}

void xpl_utf8_clean(struct xpl_buf *b, xpl_str_t s, size_t max) {
    static const char replacement[] = "\xef\xbf\xbd";
    size_t out = 0;
    for (size_t i = 0; i < s.len;) {
        const size_t n = xpl_utf8_next(xpl_str_sub(s, i, SIZE_MAX));
        const bool good = n != 0 && s.ptr[i] != 0;
        const size_t w = good ? n : sizeof replacement - 1;
        if (w > max - out) return;
        xpl_buf_put(b, good ? s.ptr + i : replacement, w);
        out += w;
        i += n ? n : 1;
    }
}
