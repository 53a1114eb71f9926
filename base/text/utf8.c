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

uint32_t xpl_utf8_code_point(xpl_str_t s, size_t len) {
    static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (uint8_t)s.ptr[0] & first[len];
    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((uint8_t)s.ptr[i] & 0x3f);
    return c;
}

static bool is_control(uint32_t c) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}

xpl_str_t xpl_utf8_shown(xpl_str_t s, size_t *ret_used) {
    const size_t len = xpl_utf8_scan(s, ret_used);
    return len && !is_control(xpl_utf8_code_point(s, len)) ? xpl_str_sub(s, 0, len) : XPL_STR("?");
}

bool xpl_utf8_is_shown(xpl_str_t s) {
    size_t used;
    for (size_t i = 0; i < s.len; i += used)
        if (xpl_utf8_shown(xpl_str_sub(s, i, SIZE_MAX), &used).ptr != s.ptr + i) return false;
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
