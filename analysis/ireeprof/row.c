// SPDX-License-Identifier: Apache-2.0
#include "analysis/ireeprof/row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { FLUSH_AT = 1 << 16 }; // bytes: large enough for writes to be few

bool xpl_iree_rows_flush(struct xpl_iree_rows *r) {
    r->failed |= r->out->failed;
    if (!r->failed && r->write && r->out->n) {
        r->failed = !r->write(r->ctx, r->out->p, r->out->n);
        r->out->n = 0;
    }
    return !r->failed;
}

void xpl_iree_rows_flush_large(struct xpl_iree_rows *r) {
    if (r->out->n >= FLUSH_AT || r->out->failed) (void)xpl_iree_rows_flush(r);
}

static void put_z(struct xpl_iree_rows *r, const char *z) {
    xpl_buf_put(r->out, z, strlen(z));
}

static void put_u64(struct xpl_iree_rows *r, uint64_t v) {
    char digits[20], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    xpl_buf_put(r->out, p, (size_t)(digits + sizeof digits - p));
}

// Hands a member over, where somebody else writes it.
static bool handed(struct xpl_iree_rows *r, struct xpl_iree_member m) {
    if (r->member) r->member(r->member_ctx, &m);
    return r->member != NULL;
}

// What stands before a value.  Names are ours and need no escapes.
static void put_name(struct xpl_iree_rows *r, const char *name) {
    if (r->format == XPL_IREE_JSONL || !name) {
        if (r->comma) xpl_buf_putc(r->out, ',');
        if (name) {
            xpl_buf_putc(r->out, '"');
            put_z(r, name);
            xpl_buf_str(r->out, XPL_STR("\":"));
        }
    } else {
        xpl_buf_putc(r->out, ' ');
        put_z(r, name);
        xpl_buf_putc(r->out, '=');
    }
    r->comma = true;
}

void xpl_row_begin(struct xpl_iree_rows *r, const char *key, const char *type) {
    r->comma = false;
    if (r->member) return;
    if (r->format == XPL_IREE_JSONL) {
        xpl_buf_putc(r->out, '{');
        if (key) xpl_row_text(r, key, type);
    } else {
        put_z(r, type);
        xpl_buf_putc(r->out, ':');
    }
}

void xpl_row_end(struct xpl_iree_rows *r) {
    if (r->member) return;
    if (r->format == XPL_IREE_JSONL) xpl_buf_putc(r->out, '}');
    xpl_buf_putc(r->out, '\n');
    xpl_iree_rows_flush_large(r);
}

void xpl_row_u64(struct xpl_iree_rows *r, const char *name, uint64_t v) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_U64, .u64 = v}))
        return;
    put_name(r, name);
    put_u64(r, v);
}

void xpl_row_i64(struct xpl_iree_rows *r, const char *name, int64_t v) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_I64, .i64 = v}))
        return;
    put_name(r, name);
    if (v < 0) xpl_buf_putc(r->out, '-');
    put_u64(r, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void xpl_row_bool(struct xpl_iree_rows *r, const char *name, bool v) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_BOOL, .is = v}))
        return;
    put_name(r, name);
    put_z(r, v ? "true" : "false");
}

void xpl_row_null(struct xpl_iree_rows *r, const char *name) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_NULL})) return;
    put_name(r, name);
    xpl_buf_str(r->out, XPL_STR("null"));
}

// Whether a text is one word that a terminal shows as it is.
static bool is_plain(xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || s.ptr[i] == '"' || s.ptr[i] == '=') return false;
    return s.len != 0;
}

void xpl_row_str(struct xpl_iree_rows *r, const char *name, xpl_str_t v) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_TEXT, .text = v}))
        return;
    put_name(r, name);
    if (r->format == XPL_IREE_TEXT && is_plain(v))
        xpl_buf_str(r->out, v);
    else
        xpl_json_str(r->out, v, false);
}

void xpl_row_text(struct xpl_iree_rows *r, const char *name, const char *v) {
    xpl_row_str(r, name, xpl_str_from(v));
}

void xpl_row_fixed(struct xpl_iree_rows *r, const char *name, double v, int decimals) {
    if (handed(r,
               (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_DOUBLE, .number = v}))
        return;
    char text[XPL_JSON_FIXED_MAX];
    put_name(r, name);
    const size_t n = decimals <= 3 ? xpl_json_fixed(v, decimals, text) : 0;
    if (n)
        xpl_buf_put(r->out, text, n);
    else if (isfinite(v))
        xpl_buf_printf(r->out, "%.*f", decimals, v);
    else
        xpl_buf_str(r->out, XPL_STR("null"));
}

void xpl_row_double(struct xpl_iree_rows *r, const char *name, double v) {
    if (handed(r,
               (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_DOUBLE, .number = v}))
        return;
    put_name(r, name);
    if (isfinite(v))
        xpl_buf_printf(r->out, "%.17g", v);
    else
        xpl_buf_str(r->out, XPL_STR("null"));
}

void xpl_row_hash(struct xpl_iree_rows *r, const char *name, const uint64_t hash[2], bool present) {
    char text[33];
    (void)snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
    if (present)
        xpl_row_text(r, name, text);
    else
        xpl_row_null(r, name);
}

void xpl_row_open(struct xpl_iree_rows *r, const char *name, char bracket) {
    if (handed(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_OPEN})) return;
    put_name(r, name);
    xpl_buf_putc(r->out, bracket);
    r->comma = false;
}

void xpl_row_close(struct xpl_iree_rows *r, char bracket) {
    if (handed(r, (struct xpl_iree_member){.kind = XPL_IREE_MEMBER_CLOSE})) return;
    xpl_buf_putc(r->out, bracket);
    r->comma = true;
}

static uint32_t u32_at(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static uint64_t u64_at(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void put_list(struct xpl_iree_rows *r, const char *name, const uint8_t *p, size_t n) {
    xpl_row_open(r, name, '[');
    for (size_t i = 0; i < n; i++)
        xpl_row_u64(r, NULL, u32_at(p + 4 * i));
    xpl_row_close(r, ']');
}

static void put_field(struct xpl_iree_rows *r, const struct xpl_iree_field *f, const uint8_t *p) {
    switch (f->kind) {
        case XPL_IREE_U32: xpl_row_u64(r, f->name, u32_at(p)); break;
        case XPL_IREE_U64: xpl_row_u64(r, f->name, u64_at(p)); break;
        case XPL_IREE_I32: xpl_row_i64(r, f->name, (int32_t)u32_at(p)); break;
        case XPL_IREE_I64: xpl_row_i64(r, f->name, (int64_t)u64_at(p)); break;
        case XPL_IREE_3U32: put_list(r, f->name, p, 3); break;
        case XPL_IREE_8U32: put_list(r, f->name, p, 8); break;
        case XPL_IREE_ENUM: xpl_row_text(r, f->name, xpl_iree_name(f->names, u32_at(p))); break;
        case XPL_IREE_BIT: xpl_row_bool(r, f->name, (u32_at(p) & f->bit) != 0); break;
        case XPL_IREE_CONST: xpl_row_text(r, f->name, f->text); break;
        case XPL_IREE_OBJECT: xpl_row_open(r, f->name, '{'); break;
        case XPL_IREE_END: xpl_row_close(r, '}'); break;
    }
}

void xpl_row_fields(struct xpl_iree_rows *r, const struct xpl_iree_field *fields, size_t n,
                    const void *record) {
    for (size_t i = 0; i < n; i++)
        put_field(r, &fields[i], (const uint8_t *)record + fields[i].offset);
}
