// SPDX-License-Identifier: Apache-2.0
#include "base/text/json_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/std_sort.h"
#include "base/text/json_reader.h"
#include "base/vec.h"

struct builder {
    struct xpl_json_reader r;
    struct xpl_arena *arena;
};

static enum xpl_json_result read_value(struct builder *b, enum xpl_json_at at,
                                       struct xpl_json_value *ret);

// The key or string that was read last.
static enum xpl_json_result copy_text(const struct builder *b, xpl_str_t *ret) {
    if (b->r.plain) return xpl_arena_str(b->arena, b->r.text, ret) ? XPL_JSON_OK : XPL_JSON_OOM;
    struct xpl_buf out = xpl_buf_of(b->arena->limit);
    const bool valid = xpl_json_reader_unescape(b->r.text, &out);
    const bool kept =
        !out.failed && xpl_arena_str(b->arena, (xpl_str_t){(char *)out.p, out.n}, ret);
    xpl_buf_fini(&out);
    return !valid ? XPL_JSON_INVALID : kept ? XPL_JSON_OK : XPL_JSON_OOM;
}

// Whether the digits are a number that 64 bits hold, of either sign.
static bool is_int(const char *z) {
    errno = 0;
    if (*z == '-')
        (void)strtoll(z, NULL, 10);
    else
        (void)strtoull(z, NULL, 10);
    return errno == 0 && !z[strcspn(z, ".eE")];
}

static enum xpl_json_result read_number(const struct builder *b, struct xpl_json_value *ret) {
    xpl_str_t text;
    if (!xpl_arena_str(b->arena, b->r.text, &text)) return XPL_JSON_OOM;
    if (is_int(text.ptr)) {
        ret->type = XPL_JSON_INT;
        ret->text = xpl_str_eq(text, XPL_STR("-0")) ? XPL_STR("0") : text;
        return XPL_JSON_OK;
    }
    ret->type = XPL_JSON_REAL;
    ret->real = strtod(text.ptr, NULL);
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

static enum xpl_json_result copy_members(struct builder *b, struct member *m, size_t n,
                                         struct xpl_json_value *ret) {
    const bool is_object = ret->type == XPL_JSON_OBJECT;
    if (is_object) xpl_std_sort(m, n, sizeof *m, comes_before, NULL);
    ret->children = xpl_arena_array(b->arena, n, sizeof *ret->children);
    if (!ret->children) return XPL_JSON_OOM;
    for (size_t i = 0; i < n; i++) {
        if (is_object && i + 1 < n && xpl_str_eq(m[i].v.key, m[i + 1].v.key)) continue;
        ret->children[ret->n++] = m[i].v;
    }
    return XPL_JSON_OK;
}

// Up to the end of the array or object that was opened.
static enum xpl_json_result read_children(struct builder *b, struct xpl_json_value *ret) {
    XPL_VEC(struct member) members = {0};
    enum xpl_json_result st = XPL_JSON_OK;
    for (;;) {
        enum xpl_json_at at = xpl_json_reader_next(&b->r);
        if (at == XPL_JSON_AT_OBJECT_END || at == XPL_JSON_AT_ARRAY_END) break;
        struct member m = {.place = members.n};
        xpl_str_t key = {0};
        if (at == XPL_JSON_AT_KEY) {
            if ((st = copy_text(b, &key)) != XPL_JSON_OK) return st;
            at = xpl_json_reader_next(&b->r);
        }
        if ((st = read_value(b, at, &m.v)) != XPL_JSON_OK) return st;
        m.v.key = key;
        struct member *const slot = xpl_vec_push(b->arena, &members);
        if (!slot) return XPL_JSON_OOM;
        *slot = m;
    }
    return copy_members(b, members.v, members.n, ret);
}

static enum xpl_json_result read_value(struct builder *b, enum xpl_json_at at,
                                       struct xpl_json_value *ret) {
    *ret = (struct xpl_json_value){0};
    switch (at) {
        case XPL_JSON_AT_OBJECT:
        case XPL_JSON_AT_ARRAY:
            ret->type = at == XPL_JSON_AT_OBJECT ? XPL_JSON_OBJECT : XPL_JSON_ARRAY;
            return read_children(b, ret);
        case XPL_JSON_AT_STRING: ret->type = XPL_JSON_STRING; return copy_text(b, &ret->text);
        case XPL_JSON_AT_NUMBER: return read_number(b, ret);
        case XPL_JSON_AT_WORD: // true, false or null
            if (!xpl_str_eq(b->r.text, XPL_STR("null"))) ret->type = XPL_JSON_BOOL;
            ret->b = xpl_str_eq(b->r.text, XPL_STR("true"));
            return XPL_JSON_OK;
        case XPL_JSON_AT_ERROR:
        case XPL_JSON_AT_END:
        case XPL_JSON_AT_OBJECT_END:
        case XPL_JSON_AT_ARRAY_END:
        case XPL_JSON_AT_KEY: break;
    }
    return XPL_JSON_INVALID;
}

enum xpl_json_result xpl_json_value_read(xpl_str_t text, struct xpl_arena *arena,
                                         struct xpl_json_value *ret, xpl_str_t *ret_rest) {
    struct builder b = {.arena = arena};
    xpl_json_reader_init(&b.r, text, 0);
    const enum xpl_json_result st = read_value(&b, xpl_json_reader_next(&b.r), ret);
    *ret_rest = (xpl_str_t){b.r.p, (size_t)(b.r.end - b.r.p)};
    return st;
}

enum xpl_json_result xpl_json_value_parse(xpl_str_t text, struct xpl_arena *arena,
                                          struct xpl_json_value *ret) {
    struct builder b = {.arena = arena};
    xpl_json_reader_init(&b.r, text, 0);
    const enum xpl_json_result st = read_value(&b, xpl_json_reader_next(&b.r), ret);
    const bool whole = st != XPL_JSON_OK || xpl_json_reader_next(&b.r) == XPL_JSON_AT_END;
    return whole ? st : XPL_JSON_INVALID;
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
