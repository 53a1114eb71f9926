// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/ireeperf/line.h"

#include <string.h>

static void fail(struct xpl_ireeperf_line *l, const char *why) {
    if (!l->bad) l->bad = why;
    l->p = l->end;
}

static void blanks(struct xpl_ireeperf_line *l) {
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r'))
        l->p++;
}

// Passes one character; false when another one stands there.
static bool pass(struct xpl_ireeperf_line *l, char c) {
    blanks(l);
    if (l->p >= l->end || *l->p != c) return false;
    l->p++;
    return true;
}

// Behind the opening quote.
static xpl_str_t read_string(struct xpl_ireeperf_line *l) {
    const char *const from = l->p;
    while (l->p < l->end && *l->p != '"')
        l->p += *l->p == '\\' && l->end - l->p > 1 ? 2 : 1;
    if (l->p >= l->end) {
        fail(l, "a string has no end");
        return XPL_STR("");
    }
    return (xpl_str_t){from, (size_t)(l->p++ - from)};
}

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '+' || c == '.';
}

static bool read_value(struct xpl_ireeperf_line *l, struct xpl_ireeperf_token *ret) {
    *ret = (struct xpl_ireeperf_token){.kind = XPL_IREEPERF_TOKEN_WORD};
    if (pass(l, '"')) {
        ret->kind = XPL_IREEPERF_TOKEN_STRING;
        ret->text = read_string(l);
    } else if (pass(l, '{') || pass(l, '[')) {
        ret->kind = l->p[-1] == '{' ? XPL_IREEPERF_TOKEN_OBJECT : XPL_IREEPERF_TOKEN_ARRAY;
        l->first = true;
    } else {
        const char *const from = l->p;
        while (l->p < l->end && is_word(*l->p))
            l->p++;
        ret->text = (xpl_str_t){from, (size_t)(l->p - from)};
        if (!ret->text.len) fail(l, "a value is missing");
    }
    return !l->bad;
}

bool xpl_ireeperf_line_begin(struct xpl_ireeperf_line *l, xpl_str_t text) {
    *l = (struct xpl_ireeperf_line){.p = text.ptr, .end = text.ptr + text.len, .first = true};
    if (!pass(l, '{')) fail(l, "the line is not a JSON object");
    return !l->bad;
}

// What stands before the next member or element; false at the end.
static bool more(struct xpl_ireeperf_line *l, char close) {
    const bool first = l->first;
    l->first = false;
    if (l->bad || pass(l, close)) return false;
    if (!first && !pass(l, ',')) fail(l, "a comma is missing, or the line is cut");
    return !l->bad;
}

bool xpl_ireeperf_line_member(struct xpl_ireeperf_line *l, xpl_str_t *ret_name,
                              struct xpl_ireeperf_token *ret) {
    if (!more(l, '}')) return false;
    if (pass(l, '"'))
        *ret_name = read_string(l);
    else
        fail(l, "a member has no name, or the line is cut");
    if (!l->bad && !pass(l, ':')) fail(l, "a member has no value");
    return !l->bad && read_value(l, ret);
}

bool xpl_ireeperf_line_element(struct xpl_ireeperf_line *l, struct xpl_ireeperf_token *ret) {
    return more(l, ']') && read_value(l, ret);
}

void xpl_ireeperf_line_skip(struct xpl_ireeperf_line *l, const struct xpl_ireeperf_token *t) {
    uint32_t objects = t->kind == XPL_IREEPERF_TOKEN_OBJECT; // a bit for each depth
    int depth = t->kind >= XPL_IREEPERF_TOKEN_OBJECT;
    while (depth > 0 && !l->bad) {
        struct xpl_ireeperf_token inner;
        xpl_str_t name;
        const bool got = objects >> (depth - 1) & 1 ? xpl_ireeperf_line_member(l, &name, &inner)
                                                    : xpl_ireeperf_line_element(l, &inner);
        if (!got) {
            depth--;
        } else if (inner.kind >= XPL_IREEPERF_TOKEN_OBJECT && depth == XPL_IREEPERF_LINE_DEPTH) {
            fail(l, "objects and arrays are nested too deeply");
        } else if (inner.kind >= XPL_IREEPERF_TOKEN_OBJECT) {
            const uint32_t bit = 1u << depth++;
            objects = inner.kind == XPL_IREEPERF_TOKEN_OBJECT ? objects | bit : objects & ~bit;
        }
    }
    l->first = false;
}

void xpl_ireeperf_line_end(struct xpl_ireeperf_line *l) {
    blanks(l);
    if (l->p < l->end) fail(l, "something follows the object");
}

bool xpl_ireeperf_token_u64(const struct xpl_ireeperf_token *t, uint64_t *ret) {
    uint64_t v = 0;
    if (t->kind != XPL_IREEPERF_TOKEN_WORD || !t->text.len) return false;
    for (size_t i = 0; i < t->text.len; i++) {
        const unsigned digit = (unsigned)(unsigned char)t->text.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

bool xpl_ireeperf_token_i64(const struct xpl_ireeperf_token *t, int64_t *ret) {
    const bool negative = t->text.len && t->text.ptr[0] == '-';
    const struct xpl_ireeperf_token digits = {t->kind, xpl_str_sub(t->text, negative, SIZE_MAX)};
    uint64_t v;
    if (!xpl_ireeperf_token_u64(&digits, &v) || v > (uint64_t)INT64_MAX + negative) return false;
    *ret = (int64_t)(negative ? 0 - v : v);
    return true;
}

static bool read_hex(const char *p, const char *end, uint32_t *ret) {
    uint32_t v = 0;
    if (end - p < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char c = p[i], low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v << 4 | (uint32_t)(low - 'a' + 10);
        else
            return false;
    }
    *ret = v;
    return true;
}

static void put_utf8(struct xpl_buf *out, uint32_t c) {
    const int more_bytes = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t marks[] = {0, 0xc0, 0xe0, 0xf0};
    xpl_buf_putc(out, (char)(marks[more_bytes] | c >> 6 * more_bytes));
    for (int i = more_bytes - 1; i >= 0; i--)
        xpl_buf_putc(out, (char)(0x80 | (c >> 6 * i & 0x3f)));
}

// Behind the backslash and u; a pair of surrogates is one character, one alone U+FFFD.
static const char *put_unicode(const char *p, const char *end, struct xpl_buf *out) {
    uint32_t c, low;
    if (!read_hex(p, end, &c)) return NULL;
    p += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
        read_hex(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    put_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return p;
}

bool xpl_ireeperf_token_text(xpl_str_t raw, struct xpl_buf *out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (!raw.len) return true;
    const char *p = raw.ptr, *const end = raw.ptr + raw.len;
    while (p < end) {
        const char *const escape = memchr(p, '\\', (size_t)(end - p));
        xpl_buf_put(out, p, (size_t)((escape ? escape : end) - p));
        if (!escape) return true;
        if (end - escape < 2) return false;
        const char *const known = escape[1] ? strchr(names, escape[1]) : NULL;
        if (known) xpl_buf_putc(out, values[known - names]);
        p = known ? escape + 2 : escape[1] == 'u' ? put_unicode(escape + 2, end, out) : NULL;
        if (!p) return false;
    }
    return true;
}
