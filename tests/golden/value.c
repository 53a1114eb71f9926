// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/value.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/vec.h"

enum { MAX_DEPTH = 200 };

struct parser {
    struct xpl_arena *a;
    const char *p, *end;
    int depth;
};

static bool parse_value(struct parser *ps, struct value *ret);

static void skip_space(struct parser *ps) {
    while (ps->p < ps->end && memchr(" \t\r\n", *ps->p, 4))
        ps->p++;
}

static bool skip_char(struct parser *ps, char c) {
    skip_space(ps);
    if (ps->p >= ps->end || *ps->p != c) return false;
    ps->p++;
    return true;
}

static bool word(struct parser *ps, const char *w) {
    const size_t n = strlen(w);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, w, n) != 0) return false;
    ps->p += n;
    return true;
}

static bool hex4(struct parser *ps, unsigned *ret) {
    unsigned v = 0;
    if (ps->end - ps->p < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char c = *ps->p++;
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0) return false;
        v = v * 16 + (unsigned)d;
    }
    *ret = v;
    return true;
}

static char *put_utf8(char *o, unsigned c) {
    if (c < 0x80) {
        *o++ = (char)c;
    } else if (c < 0x800) {
        *o++ = (char)(0xC0 | (c >> 6));
        *o++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *o++ = (char)(0xE0 | (c >> 12));
        *o++ = (char)(0x80 | ((c >> 6) & 0x3F));
        *o++ = (char)(0x80 | (c & 0x3F));
    } else {
        *o++ = (char)(0xF0 | (c >> 18));
        *o++ = (char)(0x80 | ((c >> 12) & 0x3F));
        *o++ = (char)(0x80 | ((c >> 6) & 0x3F));
        *o++ = (char)(0x80 | (c & 0x3F));
    }
    return o;
}

static bool escape(struct parser *ps, char **o) {
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (ps->p >= ps->end) return false;
    const char c = *ps->p++;
    if (c == 'u') {
        unsigned u = 0, low = 0;
        if (!hex4(ps, &u)) return false;
        if (u >= 0xD800 && u < 0xDC00 && ps->end - ps->p >= 6 && ps->p[0] == '\\' &&
            ps->p[1] == 'u') {
            ps->p += 2;
            if (!hex4(ps, &low)) return false;
            u = 0x10000 + ((u - 0xD800) << 10) + ((low - 0xDC00) & 0x3FF);
        }
        *o = put_utf8(*o, u);
        return true;
    }
    const char *const hit = c ? strchr(names, c) : NULL;
    if (!hit) return false;
    *(*o)++ = bytes[hit - names];
    return true;
}

// Well-formed UTF-8 without overlong forms and surrogates.
static bool valid_utf8(xpl_str_t s) {
    const unsigned char *p = (const unsigned char *)s.ptr, *const end = p + s.len;
    while (p < end) {
        const unsigned c = *p++;
        if (c < 0x80) continue;
        const int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        if (c < 0xC2 || c > 0xF4 || end - p < more) return false;
        unsigned v = c & (0x3Fu >> more);
        for (int i = 0; i < more; i++) {
            if ((*p & 0xC0) != 0x80) return false;
            v = (v << 6) | (*p++ & 0x3Fu);
        }
        if ((more == 2 && v < 0x800) || (more == 3 && v < 0x10000) || v > 0x10FFFF ||
            (v >= 0xD800 && v < 0xE000))
            return false;
    }
    return true;
}

static bool parse_string(struct parser *ps, xpl_str_t *ret) {
    if (!skip_char(ps, '"')) return false;
    const char *const close = ps->p;
    const char *q = close;
    while (q < ps->end && *q != '"')
        q += *q == '\\' ? 2 : 1;
    if (q >= ps->end) return false;
    char *const text = xpl_arena_alloc(ps->a, (size_t)(q - ps->p) + 1), *o = text;
    if (!text) return false;
    while (ps->p < q) {
        const char c = *ps->p++;
        if ((unsigned char)c < 0x20) return false;
        if (c != '\\')
            *o++ = c;
        else if (!escape(ps, &o))
            return false;
    }
    ps->p = q + 1;
    *o = 0;
    *ret = (xpl_str_t){text, (size_t)(o - text)};
    return valid_utf8(*ret);
}

static bool parse_number(struct parser *ps, struct value *ret) {
    char text[64];
    size_t n = 0;
    while (ps->p < ps->end && n + 1 < sizeof text && memchr("+-.0123456789eE", *ps->p, 15))
        text[n++] = *ps->p++;
    text[n] = 0;
    char *stop = NULL;
    ret->kind = VALUE_NUMBER;
    ret->number = strtod(text, &stop);
    return n > 0 && *stop == 0 && isfinite(ret->number) && text[0] != '+';
}

static bool parse_list(struct parser *ps, struct value *ret) {
    XPL_VEC(struct value) items = {0};
    ret->kind = VALUE_LIST;
    if (!skip_char(ps, ']')) {
        do {
            struct value v = {0};
            if (!parse_value(ps, &v)) return false;
            struct value *const slot = xpl_vec_push(ps->a, &items);
            if (!slot) return false;
            *slot = v;
        } while (skip_char(ps, ','));
        if (!skip_char(ps, ']')) return false;
    }
    ret->items = items.v;
    ret->n = items.n;
    return true;
}

struct member {
    xpl_str_t key;
    struct value v;
};

static int by_key(const void *a, const void *b) {
    return xpl_str_cmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static bool parse_members(struct parser *ps, struct member **ret, size_t *ret_n) {
    XPL_VEC(struct member) m = {0};
    do {
        struct member one = {0};
        if (!parse_string(ps, &one.key) || !skip_char(ps, ':') || !parse_value(ps, &one.v))
            return false;
        struct member *const slot = xpl_vec_push(ps->a, &m);
        if (!slot) return false;
        *slot = one;
    } while (skip_char(ps, ','));
    *ret = m.v;
    *ret_n = m.n;
    return skip_char(ps, '}');
}

static bool parse_object(struct parser *ps, struct value *ret) {
    struct member *m = NULL;
    ret->kind = VALUE_OBJECT;
    if (skip_char(ps, '}')) return true;
    if (!parse_members(ps, &m, &ret->n)) return false;
    qsort(m, ret->n, sizeof *m, by_key);
    struct value *const items = xpl_arena_array(ps->a, ret->n, sizeof *items);
    xpl_str_t *const keys = xpl_arena_array(ps->a, ret->n, sizeof *keys);
    if (!items || !keys) return false;
    for (size_t i = 0; i < ret->n; i++) {
        items[i] = m[i].v;
        keys[i] = m[i].key;
        if (i && xpl_str_eq(keys[i], keys[i - 1])) return false; // a key twice
    }
    ret->items = items;
    ret->keys = keys;
    return true;
}

static bool parse_value(struct parser *ps, struct value *ret) {
    if (ps->depth >= MAX_DEPTH) return false;
    skip_space(ps);
    if (ps->p >= ps->end) return false;
    bool ok = true;
    ps->depth++;
    switch (*ps->p) {
        case '{': ps->p++, ok = parse_object(ps, ret); break;
        case '[': ps->p++, ok = parse_list(ps, ret); break;
        case '"': ret->kind = VALUE_STRING, ok = parse_string(ps, &ret->string); break;
        case 'n': ok = word(ps, "null"); break;
        case 't': ret->kind = VALUE_BOOL, ret->b = true, ok = word(ps, "true"); break;
        case 'f': ret->kind = VALUE_BOOL, ok = word(ps, "false"); break;
        default: ok = parse_number(ps, ret); break;
    }
    ps->depth--;
    return ok;
}

const struct value *value_parse(struct xpl_arena *a, xpl_str_t text) {
    struct parser ps = {.a = a, .p = text.ptr, .end = text.ptr + text.len};
    struct value *const v = xpl_arena_zalloc(a, sizeof *v);
    if (!v || !parse_value(&ps, v)) return NULL;
    skip_space(&ps);
    return ps.p == ps.end ? v : NULL;
}

const struct value *value_get(const struct value *v, const char *key) {
    if (!value_is(v, VALUE_OBJECT)) return NULL;
    for (size_t i = 0; i < v->n; i++)
        if (xpl_str_eq(v->keys[i], xpl_str_from(key))) return &v->items[i];
    return NULL;
}

const struct value *value_at(const struct value *v, size_t i) {
    return value_is(v, VALUE_LIST) && i < v->n ? &v->items[i] : NULL;
}

xpl_str_t value_text(const struct value *v) {
    return value_is(v, VALUE_STRING) ? v->string : XPL_STR("");
}

bool value_is(const struct value *v, enum value_kind kind) {
    return v && v->kind == kind;
}
