// SPDX-License-Identifier: Apache-2.0
// Recurses where values nest, XPL_HLO_JSON_DEPTH deep at most.
#include "analysis/hlo/proto/json_check.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/utf8.h"

enum { MOST_DIGITS = 64 }; // of a number

struct reader {
    const char *p, *end;
    unsigned depth;
};

// ---- tokens ----

static void skip_space(struct reader *r) {
    while (r->p != r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n'))
        r->p++;
}

static char next(struct reader *r) {
    skip_space(r);
    return r->p == r->end ? '\0' : *r->p;
}

static bool accept(struct reader *r, char c) {
    if (c == '\0' || next(r) != c) return false;
    r->p++;
    return true;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool accept_word(struct reader *r, xpl_str_t word) {
    skip_space(r);
    const size_t left = (size_t)(r->end - r->p);
    if (left < word.len || memcmp(r->p, word.ptr, word.len) != 0) return false;
    if (left > word.len && is_word(r->p[word.len])) return false;
    r->p += word.len;
    return true;
}

// Four hexadecimal digits; -1: none.
static int32_t hex4(const char *p, const char *end) {
    int32_t v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = (char)(p[i] | 0x20);
        if (!is_digit(p[i]) && (c < 'a' || c > 'f')) return -1;
        v = v * 16 + (is_digit(p[i]) ? p[i] - '0' : c - 'a' + 10);
    }
    return v;
}

// Behind "\u"; halves of a pair stand together.
static bool read_unicode(struct reader *r) {
    const int32_t first = hex4(r->p, r->end);
    if (first < 0 || (first >= 0xdc00 && first < 0xe000)) return false;
    r->p += 4;
    if (first < 0xd800 || first >= 0xe000) return true;
    if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u') return false;
    const int32_t second = hex4(r->p + 2, r->end);
    if (second < 0xdc00 || second >= 0xe000) return false;
    r->p += 6;
    return true;
}

// *ret: as written, without decoding escapes: names and numbers have none.
static bool read_string(struct reader *r, xpl_str_t *ret) {
    const char quote = next(r);
    if (quote != '"' && quote != '\'') return false;
    const char *const begin = ++r->p;
    while (r->p != r->end && *r->p != quote) {
        if (*r->p++ != '\\') continue;
        if (r->p == r->end || *r->p == '\0' || !strchr("\"'\\/bfnrtu", *r->p)) return false;
        if (*r->p++ == 'u' && !read_unicode(r)) return false;
    }
    if (r->p == r->end) return false;
    *ret = (xpl_str_t){begin, (size_t)(r->p++ - begin)};
    return xpl_utf8_valid(*ret);
}

// -1.5e+3, as JSON has it.
static bool read_number(struct reader *r, xpl_str_t *ret) {
    skip_space(r);
    const char *p = r->p;
    if (p != r->end && *p == '-') p++;
    const char *const digits = p;
    while (p != r->end && is_digit(*p))
        p++;
    if (p == digits || (*digits == '0' && p - digits > 1)) return false;
    if (p != r->end && *p == '.') {
        const char *const fraction = ++p;
        while (p != r->end && is_digit(*p))
            p++;
        if (p == fraction) return false;
    }
    if (p != r->end && (*p == 'e' || *p == 'E')) {
        if (++p != r->end && (*p == '+' || *p == '-')) p++;
        const char *const exponent = p;
        while (p != r->end && is_digit(*p))
            p++;
        if (p == exponent) return false;
    }
    if (p != r->end && is_word(*p)) return false;
    *ret = (xpl_str_t){r->p, (size_t)(p - r->p)};
    r->p = p;
    return true;
}

// ---- values ----

static bool to_double(xpl_str_t text, double *ret) {
    char copy[MOST_DIGITS];
    if (text.len == 0 || text.len >= sizeof copy) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.ptr[i]) && (text.ptr[i] == '\0' || !strchr("+-.eE", text.ptr[i])))
            return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    char *end;
    *ret = strtod(copy, &end);
    return end == copy + text.len && isfinite(*ret);
}

static bool in_range(const char *digits, size_t n, bool negative, uint64_t below, uint64_t above) {
    uint64_t v = 0;
    const uint64_t most = negative ? below : above;
    for (size_t i = 0; i < n; i++) {
        const uint64_t d = (uint64_t)(digits[i] - '0');
        if (v > (most - d) / 10 || d > most) return false;
        v = v * 10 + d;
    }
    return true;
}

// A whole number from -below to above; 1.0 and 1e3 are whole, too.
static bool is_whole(xpl_str_t text, uint64_t below, uint64_t above) {
    const bool negative = text.len && text.ptr[0] == '-';
    const char *const digits = text.ptr + negative;
    const size_t n = text.len - negative;
    size_t k = 0;
    while (k < n && is_digit(digits[k]))
        k++;
    if (k == n) return n && in_range(digits, n, negative, below, above);
    double v;
    return to_double(text, &v) && v >= -(double)below && v <= (double)above && v == floor(v) &&
           v < 0x1p64;
}

static bool is_integer(xpl_str_t text, enum xpl_proto_type type) {
    switch ((int)type) {
        case XPL_PROTO_INT32:
        case XPL_PROTO_ENUM: return is_whole(text, (uint64_t)INT32_MAX + 1, INT32_MAX);
        case XPL_PROTO_UINT32: return is_whole(text, 0, UINT32_MAX);
        case XPL_PROTO_UINT64: return is_whole(text, 0, UINT64_MAX);
        default: return is_whole(text, (uint64_t)INT64_MAX + 1, INT64_MAX);
    }
}

static bool is_float(xpl_str_t text, bool quoted) {
    double v;
    if (!quoted) return to_double(text, &v);
    return xpl_str_eq(text, XPL_STR("NaN")) || xpl_str_eq(text, XPL_STR("Infinity")) ||
           xpl_str_eq(text, XPL_STR("-Infinity")) || to_double(xpl_str_strip(text), &v);
}

static bool is_named(const struct xpl_proto_enum *e, xpl_str_t text) {
    for (unsigned i = 0; i < e->n; i++)
        if (xpl_str_eq(xpl_str_from(e->values[i].name), text)) return true;
    return false;
}

// ---- messages ----

// Whether a field has that name, or the same without its "_": lhs_stride is lhsStride, too.
static bool is_field(const char *field, xpl_str_t name) {
    size_t k = 0;
    if (xpl_str_eq(xpl_str_from(field), name)) return true;
    for (const char *p = field; *p; p++, k++) {
        char c = *p;
        if (c == '_' && p[1]) {
            c = *++p;
            if (c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
        }
        if (k == name.len || name.ptr[k] != c) return false;
    }
    return k == name.len;
}

static const struct xpl_proto_field *find_field(const struct xpl_proto_message *m, xpl_str_t name) {
    for (unsigned i = 0; i < m->n; i++)
        if (is_field(m->fields[i].name, name)) return &m->fields[i];
    return NULL;
}

static bool read_message(struct reader *r, const struct xpl_proto_message *m);

static bool read_scalar(struct reader *r, enum xpl_proto_type type,
                        const struct xpl_proto_enum *e) {
    xpl_str_t text = {0};
    const char c = next(r);
    const bool quoted = c == '"' || c == '\'';
    if (type == XPL_PROTO_BOOL && !quoted)
        return accept_word(r, XPL_STR("true")) || accept_word(r, XPL_STR("false"));
    if (quoted ? !read_string(r, &text) : !read_number(r, &text)) return false;
    switch ((int)type) {
        case XPL_PROTO_BOOL:
            return xpl_str_eq(text, XPL_STR("true")) || xpl_str_eq(text, XPL_STR("false"));
        case XPL_PROTO_TEXT:
        case XPL_PROTO_BYTES: return quoted;
        case XPL_PROTO_FLOAT:
        case XPL_PROTO_DOUBLE: return is_float(text, quoted);
        case XPL_PROTO_ENUM: return (quoted && is_named(e, text)) || is_integer(text, type);
        default: return is_integer(text, type);
    }
}

// One value of a field; null is one of any.
static bool read_value(struct reader *r, const struct xpl_proto_field *f) {
    if (accept_word(r, XPL_STR("null"))) return true;
    if (f->type != XPL_PROTO_MESSAGE)
        return read_scalar(r, (enum xpl_proto_type)f->type,
                           f->type == XPL_PROTO_ENUM ? &xpl_hlo_enums[f->of] : NULL);
    const struct xpl_proto_message *const m = &xpl_hlo_messages[f->of];
    if (m == xpl_hlo_proto_uint64 && next(r) != '{')
        return read_scalar(r, XPL_PROTO_UINT64, NULL); // a wrapper is written as its value
    return read_message(r, m);
}

static bool read_key(struct reader *r, xpl_str_t *ret) {
    const char c = next(r);
    if (c == '"' || c == '\'') return read_string(r, ret) && accept(r, ':');
    const char *const begin = r->p;
    while (r->p != r->end && is_word(*r->p))
        r->p++;
    *ret = (xpl_str_t){begin, (size_t)(r->p - begin)};
    return ret->len && !is_digit(*begin) && accept(r, ':');
}

// Keys of maps are integers here; which are given twice is not looked for.
static bool read_map(struct reader *r, const struct xpl_proto_field *f) {
    const struct xpl_proto_message *const m = &xpl_hlo_messages[f->of];
    xpl_str_t key;
    if (!accept(r, '{')) return false;
    while (!accept(r, '}')) {
        if (!read_key(r, &key) || m->n != 2) return false;
        const enum xpl_proto_type type = (enum xpl_proto_type)m->fields[0].type;
        if (type != XPL_PROTO_TEXT && !is_integer(key, type)) return false;
        if (!read_value(r, &m->fields[1])) return false;
        if (!accept(r, ',') && next(r) != '}') return false;
    }
    return true;
}

static bool read_list(struct reader *r, const struct xpl_proto_field *f) {
    if (!accept(r, '[')) return read_value(r, f); // a single value is valid, too
    while (!accept(r, ']'))
        if (!read_value(r, f) || (!accept(r, ',') && next(r) != ']')) return false;
    return true;
}

static bool read_field(struct reader *r, const struct xpl_proto_field *f) {
    if (f->flags == XPL_PROTO_MAP) return read_map(r, f);
    return f->flags == XPL_PROTO_MANY ? read_list(r, f) : read_value(r, f);
}

// Of fields that exclude each other one may be given, once; null does not count.
static bool read_fields(struct reader *r, const struct xpl_proto_message *m) {
    uint64_t once[(UINT8_MAX + 1) / 64] = {0};
    bool one_given = false;
    xpl_str_t name;
    while (!accept(r, '}')) {
        const struct xpl_proto_field *const f = read_key(r, &name) ? find_field(m, name) : NULL;
        if (!f) return false;
        if (!accept_word(r, XPL_STR("null"))) {
            const size_t at = (size_t)(f - m->fields);
            const uint64_t bit = f->flags & XPL_PROTO_ONCE ? UINT64_C(1) << at % 64 : 0;
            const bool excludes = f->flags & XPL_PROTO_ONE_OF;
            if ((excludes && one_given) || once[at / 64] & bit || !read_field(r, f)) return false;
            once[at / 64] |= bit;
            one_given |= excludes;
        }
        if (!accept(r, ',') && next(r) != '}') return false;
    }
    return true;
}

static bool read_message(struct reader *r, const struct xpl_proto_message *m) {
    if (r->depth == XPL_HLO_JSON_DEPTH || !accept(r, '{')) return false;
    r->depth++;
    const bool ok = read_fields(r, m);
    r->depth--;
    return ok;
}

bool xpl_hlo_json_is(xpl_str_t text, const struct xpl_proto_message *m) {
    struct reader r = {.p = text.ptr, .end = text.ptr + text.len};
    return read_message(&r, m) && next(&r) == '\0' && r.p == r.end;
}
