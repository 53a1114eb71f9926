// SPDX-License-Identifier: Apache-2.0
#include "base/text/utf8.h"

#include "base/buf.h"

size_t xpl_utf8_valid_length(xpl_str_t s) {
    size_t i = 0;
    for (size_t n; i < s.len; i += n)
        if (!(n = xpl_utf8_next(xpl_str_sub(s, i, SIZE_MAX)))) break;
    return i;
}

bool xpl_utf8_valid(xpl_str_t s) {
    return xpl_utf8_valid_length(s) == s.len;
}

xpl_str_t xpl_utf8_whole(xpl_str_t s) {
    enum { MOST = 3 }; // bytes of a character that is not complete
    size_t back = 1, skip;
    while (back < MOST && back < s.len && xpl_utf8_inside(s.ptr[s.len - back]))
        back++;
    if (back > s.len || (unsigned char)s.ptr[s.len - back] < 0xc0) return s;
    const xpl_str_t last = xpl_str_sub(s, s.len - back, back);
    return !xpl_utf8_scan(last, &skip) && skip == back ? xpl_str_sub(s, 0, s.len - back) : s;
}

xpl_str_t xpl_utf8_cut(xpl_str_t s, size_t max) {
    return s.len <= max ? s : xpl_utf8_whole(xpl_str_sub(s, 0, max));
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
