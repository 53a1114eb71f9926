// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/trace_viewer/json.h"

#include <string.h>

#include "base/json.h"

static const char kHex[] = "0123456789abcdef";

static void put_escape(struct xpl_buf *b, unsigned code) {
    const char e[6] = {
        '\\',           'u', kHex[code >> 12 & 15], kHex[code >> 8 & 15], kHex[code >> 4 & 15],
        kHex[code & 15]};
    xpl_buf_put(b, e, sizeof e);
}

static void put_control(struct xpl_buf *b, uint8_t c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *const hit = c ? strchr(from, c) : NULL;
    if (!hit) {
        put_escape(b, c);
        return;
    }
    xpl_buf_putc(b, '\\');
    xpl_buf_putc(b, to[hit - from]);
}

// Decodes the well-formed sequence at p, n bytes at most; returns its length, or 0 with the length
// of the ill-formed sequence in *ret_skip.
static size_t decode(const uint8_t *p, size_t n, unsigned *ret, size_t *ret_skip) {
    const uint8_t c = p[0];
    const size_t length = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    unsigned lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    size_t i = 1;
    *ret_skip = 1;
    if (length == 0 || c > 0xf4) return 0;
    *ret = c & (0xffu >> (length + 1));
    for (; i < length && i < n && p[i] >= lo && p[i] <= hi; i++) {
        *ret = *ret << 6 | (p[i] & 0x3fu);
        lo = 0x80, hi = 0xbf;
    }
    *ret_skip = i;
    return i == length ? length : 0;
}

static bool is_plain(uint8_t c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void xpl_trace_json_str(struct xpl_buf *b, xpl_str_t s) {
    const uint8_t *p = (const uint8_t *)s.ptr;
    const uint8_t *const end = s.len ? p + s.len : p;
    xpl_buf_putc(b, '"');
    while (p < end) {
        const uint8_t *const run = p;
        while (p < end && is_plain(*p))
            p++;
        xpl_buf_put(b, run, (size_t)(p - run));
        if (p == end) break;
        if (*p < 0x80) {
            put_control(b, *p++);
            continue;
        }
        unsigned code = 0;
        size_t skip;
        const size_t len = decode(p, (size_t)(end - p), &code, &skip);
        if (!len) code = 0xfffd;
        if (code >= 0x10000) {
            put_escape(b, 0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        put_escape(b, code);
        p += skip;
    }
    xpl_buf_putc(b, '"');
}

// Writes the digits of v so that they end before `end`; returns where they begin.
static char *digits_before(char *end, uint64_t v) {
    do
        *--end = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    return end;
}

static void put_quoted(struct xpl_buf *b, bool negative, uint64_t v) {
    char text[24], *const end = text + sizeof text;
    char *p = end;
    *--p = '"';
    p = digits_before(p, v);
    if (negative) *--p = '-';
    *--p = '"';
    xpl_buf_put(b, p, (size_t)(end - p));
}

void xpl_trace_json_uint(struct xpl_buf *b, uint64_t v) {
    put_quoted(b, false, v);
}

void xpl_trace_json_int(struct xpl_buf *b, int64_t v) {
    put_quoted(b, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void xpl_trace_json_us(struct xpl_buf *b, uint64_t ps) {
    enum { PS_PER_US = 1000000 };
    // Up to 15 digits are their own shortest form; below 1e-4 exponents are used.
    if (ps >= UINT64_C(1000000000000000) || (ps < 100 && ps > 0)) {
        xpl_json_gviz_number(b, (double)ps / PS_PER_US);
        return;
    }
    char text[24], *const end = text + sizeof text;
    char *tail = end, *p = end - 6;
    uint64_t fraction = ps % PS_PER_US;
    for (int i = 0; i < 6; i++, fraction /= 10)
        end[-1 - i] = (char)('0' + fraction % 10);
    while (tail > p + 1 && tail[-1] == '0')
        tail--;
    *--p = '.';
    p = digits_before(p, ps / PS_PER_US);
    xpl_buf_put(b, p, (size_t)(tail - p));
}
