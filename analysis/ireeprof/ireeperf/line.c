// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/ireeperf/line.h"

#include <string.h>

static bool fail(struct xpl_ireeperf_line *l, const char *why) {
    if (!l->bad) l->bad = l->r.cut ? "the line is cut" : l->r.fault ? l->r.fault : why;
    return false;
}

static bool read_value(struct xpl_ireeperf_line *l, enum xpl_json_at at,
                       struct xpl_ireeperf_token *ret) {
    *ret = (struct xpl_ireeperf_token){.kind = XPL_IREEPERF_TOKEN_WORD};
    if (at == XPL_JSON_AT_OBJECT)
        ret->kind = XPL_IREEPERF_TOKEN_OBJECT;
    else if (at == XPL_JSON_AT_ARRAY)
        ret->kind = XPL_IREEPERF_TOKEN_ARRAY;
    else
        ret->text = l->r.text;
    if (at == XPL_JSON_AT_STRING) ret->kind = XPL_IREEPERF_TOKEN_STRING;
    return at > XPL_JSON_AT_END || fail(l, "a value is missing");
}

bool xpl_ireeperf_line_begin(struct xpl_ireeperf_line *l, xpl_str_t text) {
    *l = (struct xpl_ireeperf_line){0};
    xpl_json_reader_init(&l->r, text, XPL_JSON_RAW);
    if (xpl_json_reader_next(&l->r) == XPL_JSON_AT_OBJECT) return true;
    l->bad = "the line is not a JSON object";
    return false;
}

bool xpl_ireeperf_line_member(struct xpl_ireeperf_line *l, xpl_str_t *ret_name,
                              struct xpl_ireeperf_token *ret) {
    if (l->bad) return false;
    const enum xpl_json_at at = xpl_json_reader_next(&l->r);
    if (at == XPL_JSON_AT_OBJECT_END) return false;
    if (at != XPL_JSON_AT_KEY) return fail(l, "a member has no name");
    *ret_name = l->r.text;
    return read_value(l, xpl_json_reader_next(&l->r), ret);
}

bool xpl_ireeperf_line_element(struct xpl_ireeperf_line *l, struct xpl_ireeperf_token *ret) {
    if (l->bad) return false;
    const enum xpl_json_at at = xpl_json_reader_next(&l->r);
    return at != XPL_JSON_AT_ARRAY_END && read_value(l, at, ret);
}

void xpl_ireeperf_line_skip(struct xpl_ireeperf_line *l, const struct xpl_ireeperf_token *t) {
    const bool opens = t->kind >= XPL_IREEPERF_TOKEN_OBJECT;
    if (!l->bad && opens && !xpl_json_reader_skip(&l->r)) (void)fail(l, "");
}

void xpl_ireeperf_line_end(struct xpl_ireeperf_line *l) {
    if (xpl_json_reader_next(&l->r) != XPL_JSON_AT_END) (void)fail(l, "");
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

bool xpl_ireeperf_token_text(xpl_str_t raw, struct xpl_buf *out) {
    while (raw.len) {
        const char *const escape = memchr(raw.ptr, '\\', raw.len);
        const size_t n = escape ? (size_t)(escape - raw.ptr) : raw.len;
        bool half;
        xpl_buf_put(out, raw.ptr, n);
        raw = xpl_str_sub(raw, n, SIZE_MAX);
        const size_t used = escape ? xpl_json_reader_escape(raw, out, &half) : 0;
        if (escape && !used) return false;
        raw = xpl_str_sub(raw, used, SIZE_MAX);
    }
    return true;
}
