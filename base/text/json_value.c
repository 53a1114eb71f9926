// SPDX-License-Identifier: Apache-2.0
#include "base/text/json_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/std_sort.h"
#include "base/text/utf8.h"
#include "base/vec.h"

struct reader {
    const char *p, *end;
    struct xpl_arena *arena;
    unsigned depth;
};

static enum xpl_json_result read_value(struct reader *r, struct xpl_json_value *ret);

static void skip_blanks(struct reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool skip_char(struct reader *r, char c) {
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool take_word(struct reader *r, xpl_str_t word) {
    if (!xpl_str_starts((xpl_str_t){r->p, (size_t)(r->end - r->p)}, word)) return false;
    r->p += word.len;
    return true;
}

// ---- strings ----

static bool read_hex4(struct reader *r, uint32_t *ret) {
    *ret = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        if (r->p == r->end) return false;
        const char c = *r->p;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return false;
        *ret = *ret << 4 | (uint32_t)digit;
    }
    return true;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | c >> (6 * more));
    for (int i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return (size_t)more + 1;
}

// After the backslash.  Returns the number of bytes of the result; 0 if the escape is invalid.
static size_t read_escape(struct reader *r, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->p == r->end) return 0;
    const char c = *r->p++;
    const char *const hit = c ? strchr(from, c) : NULL;
    if (hit) {
        *out = to[hit - from];
        return 1;
    }
    uint32_t code, low;
    if (c != 'u' || !read_hex4(r, &code) || (code >= 0xdc00 && code < 0xe000)) return 0;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!skip_char(r, '\\') || !skip_char(r, 'u') || !read_hex4(r, &low)) return 0;
        if (low < 0xdc00 || low >= 0xe000) return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(out, code);
}

// After the opening quote.
static enum xpl_json_result read_string(struct reader *r, xpl_str_t *ret) {
    const char *end = r->p; // an escape is at least as long as its result
    while (end < r->end && *end != '"')
        end += *end == '\\' && r->end - end > 1 ? 2 : 1;
    if (end >= r->end) return XPL_JSON_INVALID;
    char *const out = xpl_arena_alloc(r->arena, (size_t)(end - r->p) + 4);
    if (!out) return XPL_JSON_OOM;
    size_t n = 0;
    while (!skip_char(r, '"')) {
        size_t len;
        if (skip_char(r, '\\')) {
            if (!(len = read_escape(r, out + n))) return XPL_JSON_INVALID;
        } else {
            if (r->p == r->end || (uint8_t)*r->p < 0x20 ||
                !(len = xpl_utf8_next((xpl_str_t){r->p, (size_t)(r->end - r->p)})))
                return XPL_JSON_INVALID;
            memcpy(out + n, r->p, len);
            r->p += len;
        }
        n += len;
    }
    *ret = (xpl_str_t){out, n};
    return XPL_JSON_OK;
}

// ---- numbers ----

static bool take_digits(struct reader *r) {
    const char *const begin = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return r->p > begin;
}

// Whether the digits are a number that 64 bits hold, of either sign; then as they are written.
static bool read_int(const char *z, struct xpl_arena *a, xpl_str_t *ret, bool *oom) {
    errno = 0;
    if (*z == '-') {
        const long long v = strtoll(z, NULL, 10);
        if (errno) return false;
        *oom = !xpl_arena_printf(a, ret, "%lld", v);
    } else {
        const unsigned long long v = strtoull(z, NULL, 10);
        if (errno) return false;
        *oom = !xpl_arena_printf(a, ret, "%llu", v);
    }
    return true;
}

static enum xpl_json_result read_number(struct reader *r, struct xpl_json_value *ret) {
    const char *const begin = r->p;
    bool real = false, oom = false;
    xpl_str_t z;
    (void)skip_char(r, '-');
    if (!skip_char(r, '0') && !take_digits(r)) return XPL_JSON_INVALID;
    if (skip_char(r, '.')) {
        real = true;
        if (!take_digits(r)) return XPL_JSON_INVALID;
    }
    if (skip_char(r, 'e') || skip_char(r, 'E')) {
        real = true;
        if (!skip_char(r, '+')) (void)skip_char(r, '-');
        if (!take_digits(r)) return XPL_JSON_INVALID;
    }
    const xpl_str_t text = {begin, (size_t)(r->p - begin)};
    if (!xpl_arena_printf(r->arena, &z, "%.*s", XPL_STR_FMT(text))) return XPL_JSON_OOM;
    ret->type = XPL_JSON_INT;
    if (!real && read_int(z.ptr, r->arena, &ret->text, &oom))
        return oom ? XPL_JSON_OOM : XPL_JSON_OK;
    ret->type = XPL_JSON_REAL;
    ret->real = strtod(z.ptr, NULL);
    return isfinite(ret->real) ? XPL_JSON_OK : XPL_JSON_INVALID;
}

// ---- arrays and objects ----

struct member {
    struct xpl_json_value v;
    size_t place;
};
static bool comes_before(const void *ctx, const void *a, const void *b) {
    const struct member *const x = a, *const y = b;
    (void)ctx;
    const int c = xpl_str_cmp(x->v.key, y->v.key);
    return c ? c < 0 : x->place < y->place;
}

static enum xpl_json_result read_member(struct reader *r, char close, struct xpl_json_value *ret) {
    if (close == '}') {
        skip_blanks(r);
        if (!skip_char(r, '"')) return XPL_JSON_INVALID;
        xpl_str_t key;
        const enum xpl_json_result st = read_string(r, &key);
        if (st != XPL_JSON_OK) return st;
        skip_blanks(r);
        if (!skip_char(r, ':')) return XPL_JSON_INVALID;
        const enum xpl_json_result value = read_value(r, ret);
        ret->key = key;
        return value;
    }
    return read_value(r, ret);
}

static enum xpl_json_result copy_members(struct reader *r, struct member *m, size_t n,
                                         bool is_object, struct xpl_json_value *ret) {
    if (is_object) xpl_std_sort(m, n, sizeof *m, comes_before, NULL);
    ret->children = xpl_arena_array(r->arena, n, sizeof *ret->children);
    if (!ret->children) return XPL_JSON_OOM;
    for (size_t i = 0; i < n; i++) {
        if (is_object && i + 1 < n && xpl_str_eq(m[i].v.key, m[i + 1].v.key)) continue;
        ret->children[ret->n++] = m[i].v;
    }
    return XPL_JSON_OK;
}

// After the opening bracket.
static enum xpl_json_result read_children(struct reader *r, char close,
                                          struct xpl_json_value *ret) {
    XPL_VEC(struct member) members = {0};
    ret->type = close == '}' ? XPL_JSON_OBJECT : XPL_JSON_ARRAY;
    if (++r->depth > XPL_JSON_MAX_DEPTH) return XPL_JSON_INVALID;
    skip_blanks(r);
    for (bool more = !skip_char(r, close); more; more = !skip_char(r, close)) {
        if (members.n && !skip_char(r, ',')) return XPL_JSON_INVALID;
        struct member *const m = xpl_vec_push(r->arena, &members);
        if (!m) return XPL_JSON_OOM;
        *m = (struct member){.place = members.n};
        struct xpl_json_value value = {0};
        const enum xpl_json_result st = read_member(r, close, &value);
        if (st != XPL_JSON_OK) return st;
        m->v = value;
        skip_blanks(r);
    }
    r->depth--;
    return copy_members(r, members.v, members.n, close == '}', ret);
}

static enum xpl_json_result read_value(struct reader *r, struct xpl_json_value *ret) {
    *ret = (struct xpl_json_value){0};
    skip_blanks(r);
    if (skip_char(r, '{')) return read_children(r, '}', ret);
    if (skip_char(r, '[')) return read_children(r, ']', ret);
    if (skip_char(r, '"')) {
        ret->type = XPL_JSON_STRING;
        return read_string(r, &ret->text);
    }
    if (take_word(r, XPL_STR("null"))) return XPL_JSON_OK;
    ret->b = take_word(r, XPL_STR("true"));
    if (ret->b || take_word(r, XPL_STR("false"))) {
        ret->type = XPL_JSON_BOOL;
        return XPL_JSON_OK;
    }
    return read_number(r, ret);
}

enum xpl_json_result xpl_json_value_read(xpl_str_t text, struct xpl_arena *arena,
                                         struct xpl_json_value *ret, xpl_str_t *ret_rest) {
    struct reader r = {text.ptr, text.ptr + text.len, arena, 0};
    const enum xpl_json_result st = read_value(&r, ret);
    *ret_rest = (xpl_str_t){r.p, (size_t)(r.end - r.p)};
    return st;
}

enum xpl_json_result xpl_json_value_parse(xpl_str_t text, struct xpl_arena *arena,
                                          struct xpl_json_value *ret) {
    xpl_str_t rest;
    const enum xpl_json_result st = xpl_json_value_read(text, arena, ret, &rest);
    if (st != XPL_JSON_OK) return st;
    struct reader r = {rest.ptr, rest.ptr + rest.len, arena, 0};
    skip_blanks(&r);
    return r.p == r.end ? XPL_JSON_OK : XPL_JSON_INVALID;
}

const struct xpl_json_value *xpl_json_value_member(const struct xpl_json_value *object,
                                                   xpl_str_t key) {
    for (size_t i = 0; object->type == XPL_JSON_OBJECT && i < object->n; i++)
        if (xpl_str_eq(object->children[i].key, key)) return &object->children[i];
    return NULL;
}

void xpl_json_value_write(const struct xpl_json_value *v, struct xpl_buf *out) {
    const bool is_object = v->type == XPL_JSON_OBJECT;
    switch (v->type) {
        case XPL_JSON_NULL: xpl_buf_str(out, XPL_STR("null")); return;
        case XPL_JSON_BOOL: xpl_buf_str(out, v->b ? XPL_STR("true") : XPL_STR("false")); return;
        case XPL_JSON_INT: xpl_buf_str(out, v->text); return;
        case XPL_JSON_REAL: xpl_json_gviz_number(out, v->real); return;
        case XPL_JSON_STRING: xpl_json_str(out, v->text, false); return;
        case XPL_JSON_ARRAY:
        case XPL_JSON_OBJECT: break;
    }
    xpl_buf_putc(out, is_object ? '{' : '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i) xpl_buf_putc(out, ',');
        if (is_object) {
            xpl_json_str(out, v->children[i].key, false);
            xpl_buf_putc(out, ':');
        }
        xpl_json_value_write(&v->children[i], out);
    }
    xpl_buf_putc(out, is_object ? '}' : ']');
}
