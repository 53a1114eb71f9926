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

// Room for n bytes at the end of the output; NULL once failed.
static inline uint8_t *room(struct xpl_iree_rows *r, size_t n) {
    struct xpl_buf *const b = r->out;
    if ((b->failed || b->cap - b->n < n) && !xpl_buf_room(b, n)) return NULL;
    return b->p + b->n;
}

enum { DIGITS = XPL_IREE_DIGITS };

static inline size_t count_digits(uint64_t v) {
    static const uint64_t first[DIGITS] = {
        // number of as many digits
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    const size_t bits = (size_t)(64 - __builtin_clzll(v | 1));
    const size_t n = bits * 1233 >> 12; // bits * log10(2): right, or one too few
    return n + (v >= first[n]);
}

static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334"
                            "3536373839404142434445464748495051525354555657585960616263646566676869"
                            "707172737475767778798081828384858687888990919293949596979899";

// Eight digits, of which no pair waits for another.
static inline void write_8_digits(uint8_t *p, uint32_t v) {
    const uint32_t high = v / 10000, low = v % 10000;
    memcpy(p, pairs + 2 * (size_t)(high / 100), 2);
    memcpy(p + 2, pairs + 2 * (size_t)(high % 100), 2);
    memcpy(p + 4, pairs + 2 * (size_t)(low / 100), 2);
    memcpy(p + 6, pairs + 2 * (size_t)(low % 100), 2);
}

// Writes a number, at most DIGITS bytes, and returns its end.
static inline uint8_t *write_u64(uint8_t *p, uint64_t v) {
    if (v < 10) {
        *p = (uint8_t)('0' + v);
        return p + 1;
    }
    uint8_t *const end = p + count_digits(v);
    uint8_t *d = end;
    for (; v >= 100000000; v /= 100000000)
        write_8_digits(d -= 8, (uint32_t)(v % 100000000));
    for (; v >= 100; v /= 100)
        memcpy(d -= 2, pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(d - 2, pairs + 2 * v, 2);
    else
        d[-1] = (uint8_t)('0' + v);
    return end;
}

uint8_t *xpl_iree_digits(uint8_t *p, uint64_t v) {
    return write_u64(p, v);
}

// Copies a name, which is short: without a call for each.
static inline uint8_t *write_name(uint8_t *p, const char *name, size_t n) {
    if (n >= 8 && n <= 16) {
        memcpy(p, name, 8);
        memcpy(p + n - 8, name + n - 8, 8);
    } else if (n > 16 && n <= 32) {
        memcpy(p, name, 16);
        memcpy(p + n - 16, name + n - 16, 16);
    } else {
        memcpy(p, name, n);
    }
    return p + n;
}

// Passes a member to a writer of another form.
static __attribute__((noinline, cold)) void hand(struct xpl_iree_rows *r,
                                                 struct xpl_iree_member m) {
    r->member(r->member_ctx, &m);
}

// Writes the text before a value and leaves room for `more` bytes of it; NULL once failed. Names
// are ours and need no escapes.
static inline uint8_t *begin_value(struct xpl_iree_rows *r, const char *name, size_t length,
                                   size_t more) {
    uint8_t *p = room(r, length + 4 + more);
    if (!p) return NULL;
    if (r->format == XPL_IREE_JSONL || !name) {
        *p = ',';
        p += r->comma;
        if (name) {
            *p++ = '"';
            p = write_name(p, name, length);
            *p++ = '"', *p++ = ':';
        }
    } else {
        *p++ = ' ';
        p = write_name(p, name, length);
        *p++ = '=';
    }
    r->comma = true;
    return p;
}

static inline void end_value(struct xpl_iree_rows *r, const uint8_t *end) {
    r->out->n = (size_t)(end - r->out->p);
}

static void put_name(struct xpl_iree_rows *r, const char *name) {
    const uint8_t *const p = begin_value(r, name, name ? strlen(name) : 0, 0);
    if (p) end_value(r, p);
}

// A member of a line of JSON whose text is ours, which needs no escapes.
static void put_plain(struct xpl_iree_rows *r, const char *name, size_t length, const char *text) {
    const size_t n = strlen(text);
    uint8_t *p = begin_value(r, name, length, n + 2);
    if (!p) return;
    *p++ = '"';
    p = write_name(p, text, n);
    *p++ = '"';
    end_value(r, p);
}

void xpl_row_begin(struct xpl_iree_rows *r, const char *key, const char *type) {
    r->comma = false;
    if (r->begin) r->begin(r->member_ctx, type);
    if (r->member) return;
    if (r->format == XPL_IREE_JSONL) {
        xpl_buf_putc(r->out, '{');
        if (key) put_plain(r, key, strlen(key), type);
    } else {
        put_z(r, type);
        xpl_buf_putc(r->out, ':');
    }
}

void xpl_row_end(struct xpl_iree_rows *r) {
    if (r->end) r->end(r->member_ctx);
    if (r->member) return;
    if (r->format == XPL_IREE_JSONL) xpl_buf_putc(r->out, '}');
    xpl_buf_putc(r->out, '\n');
    xpl_iree_rows_flush_large(r);
}

void xpl_row_number(struct xpl_iree_rows *r, const char *name, size_t length, uint64_t v) {
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_U64, .u64 = v});
        return;
    }
    uint8_t *const p = begin_value(r, name, length, DIGITS);
    if (p) end_value(r, write_u64(p, v));
}

void xpl_row_signed(struct xpl_iree_rows *r, const char *name, size_t length, int64_t v) {
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_I64, .i64 = v});
        return;
    }
    uint8_t *p = begin_value(r, name, length, 1 + DIGITS);
    if (!p) return;
    if (v < 0) *p++ = '-';
    end_value(r, write_u64(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v));
}

static inline uint8_t *write_bool(uint8_t *p, bool v) {
    memcpy(p, v ? "true" : "false", 5); // of the former also the zero behind it
    return p + 5 - v;
}

void xpl_row_bool(struct xpl_iree_rows *r, const char *name, bool v) {
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_BOOL, .is = v});
        return;
    }
    uint8_t *const p = begin_value(r, name, name ? strlen(name) : 0, 5);
    if (p) end_value(r, write_bool(p, v));
}

void xpl_row_null(struct xpl_iree_rows *r, const char *name) {
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_NULL});
        return;
    }
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
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_TEXT, .text = v});
        return;
    }
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
    if (r->member) {
        hand(r,
             (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_DOUBLE, .number = v});
        return;
    }
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
    if (r->member) {
        hand(r,
             (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_DOUBLE, .number = v});
        return;
    }
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
    if (r->member) {
        hand(r, (struct xpl_iree_member){.name = name, .kind = XPL_IREE_MEMBER_OPEN});
        return;
    }
    put_name(r, name);
    xpl_buf_putc(r->out, bracket);
    r->comma = false;
}

void xpl_row_close(struct xpl_iree_rows *r, char bracket) {
    if (r->member) {
        hand(r, (struct xpl_iree_member){.kind = XPL_IREE_MEMBER_CLOSE});
        return;
    }
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

static void put_list(struct xpl_iree_rows *r, const char *name, const uint8_t *from, size_t n) {
    xpl_row_open(r, name, '[');
    uint8_t *p = r->member ? NULL : room(r, n * (DIGITS + 1));
    for (size_t i = 0; p && i < n; i++) {
        *p = ',';
        p = write_u64(p + (i != 0), u32_at(from + 4 * i));
    }
    if (p) end_value(r, p);
    for (size_t i = 0; r->member && i < n; i++)
        xpl_row_u64(r, NULL, u32_at(from + 4 * i));
    xpl_row_close(r, ']');
}

// A text of ours, which needs no escapes.
static void put_own(struct xpl_iree_rows *r, const struct xpl_iree_field *f, const char *text) {
    if (r->member || r->format != XPL_IREE_JSONL)
        xpl_row_text(r, f->name, text);
    else
        put_plain(r, f->name, f->name_length ? f->name_length : strlen(f->name), text);
}

static void put_field(struct xpl_iree_rows *r, const struct xpl_iree_field *f, const uint8_t *p) {
    const size_t n = f->name_length ? f->name_length : f->name ? strlen(f->name) : 0;
    const bool spans = f->kind == XPL_IREE_SPAN || f->kind == XPL_IREE_IS_SPAN;
    const int64_t span = spans ? xpl_iree_span_at(p) : -1;
    switch (f->kind) {
        case XPL_IREE_U32: xpl_row_number(r, f->name, n, u32_at(p)); break;
        case XPL_IREE_U64: xpl_row_number(r, f->name, n, u64_at(p)); break;
        case XPL_IREE_I32: xpl_row_signed(r, f->name, n, (int32_t)u32_at(p)); break;
        case XPL_IREE_I64: xpl_row_signed(r, f->name, n, (int64_t)u64_at(p)); break;
        case XPL_IREE_3U32: put_list(r, f->name, p, 3); break;
        case XPL_IREE_8U32: put_list(r, f->name, p, 8); break;
        case XPL_IREE_ENUM: put_own(r, f, xpl_iree_name(f->names, u32_at(p))); break;
        case XPL_IREE_BIT: xpl_row_bool(r, f->name, (u32_at(p) & f->bit) != 0); break;
        case XPL_IREE_CONST: put_own(r, f, f->text); break;
        case XPL_IREE_OBJECT: xpl_row_open(r, f->name, '{'); break;
        case XPL_IREE_END: xpl_row_close(r, '}'); break;
        case XPL_IREE_SPAN: xpl_row_signed(r, f->name, n, span > 0 ? span : 0); break;
        case XPL_IREE_IS_SPAN: xpl_row_bool(r, f->name, span >= 0); break;
    }
}

// ---- many members of a line of JSON ----

enum {
    MOST_TEXT = 64,                                           // of ours that are written at once
    MOST_MEMBER = 1 + XPL_IREE_LEAD + MOST_TEXT + 2 * DIGITS, // bytes of a member
};

static inline uint8_t *write_i64(uint8_t *p, int64_t v) {
    *p = '-';
    return write_u64(p + (v < 0), v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static inline uint8_t *write_text(uint8_t *p, const char *text, size_t n) {
    *p++ = '"';
    p = write_name(p, text, n);
    *p = '"';
    return p + 1;
}

static inline uint8_t *write_list(uint8_t *p, const uint8_t *from) {
    *p = '[';
    for (size_t i = 0; i < 3; i++) {
        p = write_u64(p + 1, u32_at(from + 4 * i));
        *p = i < 2 ? ',' : ']';
    }
    return p + 1;
}

// Writes a value into what MOST_MEMBER leaves for it.  NULL: it is written in another way.
static inline uint8_t *write_value(uint8_t *p, const struct xpl_iree_field *f,
                                   const uint8_t *from) {
    const char *text;
    int64_t span;
    size_t n;
    switch (f->kind) {
        case XPL_IREE_U32: return write_u64(p, u32_at(from));
        case XPL_IREE_U64: return write_u64(p, u64_at(from));
        case XPL_IREE_I32: return write_i64(p, (int32_t)u32_at(from));
        case XPL_IREE_I64: return write_i64(p, (int64_t)u64_at(from));
        case XPL_IREE_3U32: return write_list(p, from);
        case XPL_IREE_ENUM:
        case XPL_IREE_CONST:
            text = f->kind == XPL_IREE_ENUM ? xpl_iree_name(f->names, u32_at(from)) : f->text;
            n = strlen(text);
            return n <= MOST_TEXT ? write_text(p, text, n) : NULL;
        case XPL_IREE_BIT: return write_bool(p, (u32_at(from) & f->bit) != 0);
        case XPL_IREE_SPAN:
            span = xpl_iree_span_at(from);
            return write_u64(p, span > 0 ? (uint64_t)span : 0);
        case XPL_IREE_IS_SPAN: return write_bool(p, xpl_iree_span_at(from) >= 0);
        case XPL_IREE_8U32:
        case XPL_IREE_OBJECT:
        case XPL_IREE_END: break;
    }
    return NULL;
}

// Writes members from the first on, with one look at the room; returns how many.
static size_t write_members(struct xpl_iree_rows *r, const struct xpl_iree_field *fields, size_t n,
                            const uint8_t *record) {
    uint8_t *p = room(r, n * MOST_MEMBER);
    size_t i = 0;
    bool comma = r->comma;
    for (; p && i < n && fields[i].lead_length; i++) {
        const struct xpl_iree_field *const f = &fields[i];
        *p = ',';
        memcpy(p + comma, f->lead, XPL_IREE_LEAD);
        uint8_t *const end = write_value(p + comma + f->lead_length, f, record + f->offset);
        if (!end) break;
        p = end;
        comma = true;
    }
    if (p) end_value(r, p);
    r->comma = comma;
    return p ? i : n;
}

void xpl_row_fields(struct xpl_iree_rows *r, const struct xpl_iree_field *fields, size_t n,
                    const void *record) {
    const bool quick = !r->member && r->format == XPL_IREE_JSONL;
    for (size_t i = 0; i < n; i++) {
        if (quick) i += write_members(r, fields + i, n - i, record);
        if (r->fields) i += r->fields(r->member_ctx, fields + i, n - i, record);
        if (i < n) put_field(r, &fields[i], (const uint8_t *)record + fields[i].offset);
    }
}
