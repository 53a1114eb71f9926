// SPDX-License-Identifier: Apache-2.0
// Values of fields: numbers, names of numbers, texts.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/hlo/proto/impl.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/text/c_escape.h"

static void put_digits(struct xpl_buf *b, uint64_t v, bool negative) {
    char text[21], *const end = text + sizeof text, *p = end;
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (negative) *--p = '-';
    xpl_buf_put(b, p, (size_t)(end - p));
}

void txt_proto_uint(struct xpl_buf *b, uint64_t v) {
    put_digits(b, v, false);
}

void txt_proto_int(struct xpl_buf *b, int64_t v) {
    put_digits(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

// NULL for a number without a name.
static const char *name_of(const struct xpl_proto_field *f, int32_t number) {
    const struct xpl_proto_enum *const e = &xpl_hlo_enums[f->of];
    for (unsigned i = 0; i < e->n; i++)
        if (e->values[i].number == number) return e->values[i].name;
    return NULL;
}

static double number_of(const struct xpl_proto_field *f, const struct xpl_field *v) {
    double d;
    float s;
    memcpy(&d, &v->u, sizeof d);
    memcpy(&s, &(uint32_t){(uint32_t)v->u}, sizeof s);
    return f->type == XPL_PROTO_FLOAT ? (double)s : d;
}

// As many digits as read back: six or nine of a float, 15 or 17 of a double.  protobuf's text
// format takes reading a subnormal float for a failure, which gives those nine digits.
static void put_real(struct xpl_buf *b, const struct xpl_proto_field *f, double v) {
    char text[XPL_JSON_FLOAT_MAX];
    const bool subnormal = f->type == XPL_PROTO_FLOAT && fabs(v) > 0 && fabs(v) < (double)FLT_MIN;
    if (isnan(v))
        xpl_buf_str(b, XPL_STR("nan"));
    else if (isinf(v))
        xpl_buf_str(b, v < 0 ? XPL_STR("-inf") : XPL_STR("inf"));
    else if (subnormal)
        xpl_buf_put(b, text, (size_t)snprintf(text, sizeof text, "%.9g", v));
    else if (f->type == XPL_PROTO_FLOAT)
        xpl_buf_put(b, text, xpl_json_float((float)v, text));
    else
        xpl_json_proto_double(b, v);
}

// Numbers that both forms write alike.
static void put_number(struct xpl_buf *b, const struct xpl_proto_field *f,
                       const struct xpl_field *v) {
    switch (f->type) {
        case XPL_PROTO_BOOL: xpl_buf_str(b, v->u ? XPL_STR("true") : XPL_STR("false")); break;
        case XPL_PROTO_UINT32: txt_proto_uint(b, (uint32_t)v->u); break;
        case XPL_PROTO_UINT64: txt_proto_uint(b, v->u); break;
        case XPL_PROTO_INT64: txt_proto_int(b, (int64_t)v->u); break;
        case XPL_PROTO_FLOAT:
        case XPL_PROTO_DOUBLE: put_real(b, f, number_of(f, v)); break;
        default: txt_proto_int(b, (int32_t)v->u);
    }
}

// ---- text format ----

void txt_proto_pbtxt(struct xpl_buf *b, const struct xpl_proto_field *f,
                     const struct xpl_field *v) {
    if (f->type == XPL_PROTO_ENUM) {
        const char *const name = name_of(f, (int32_t)v->u);
        if (name) {
            xpl_buf_str(b, xpl_str_from(name));
            return;
        }
    }
    if (f->type != XPL_PROTO_TEXT && f->type != XPL_PROTO_BYTES) {
        put_number(b, f, v);
        return;
    }
    char escape[XPL_C_ESCAPE_MAX];
    xpl_buf_putc(b, '"');
    for (xpl_str_t s = xpl_wire_str(v); s.len && !b->failed;) {
        const size_t plain = xpl_c_plain(s);
        xpl_buf_put(b, s.ptr, plain);
        if (plain == s.len) break;
        xpl_buf_put(b, escape, xpl_c_escape((uint8_t)s.ptr[plain], escape));
        s = xpl_str_sub(s, plain + 1, SIZE_MAX);
    }
    xpl_buf_putc(b, '"');
}

// ---- JSON ----

void txt_proto_json(struct xpl_buf *b, const struct xpl_proto_field *f, const struct xpl_field *v) {
    const char *name = NULL;
    bool quoted = false;
    switch (f->type) {
        case XPL_PROTO_TEXT: xpl_json_str(b, xpl_wire_str(v), false); return;
        case XPL_PROTO_BYTES:
            xpl_buf_putc(b, '"');
            xpl_base64_put(b, v->len);
            xpl_buf_putc(b, '"');
            return;
        case XPL_PROTO_FLOAT:
        case XPL_PROTO_DOUBLE: {
            const double d = number_of(f, v);
            name = isnan(d) ? "NaN" : !isinf(d) ? NULL : d < 0 ? "-Infinity" : "Infinity";
            if (v->u && !(d < 0) && !(d > 0) && !name) { // readers take -0 for a whole number
                xpl_buf_str(b, XPL_STR("-0.0"));
                return;
            }
            if (f->type == XPL_PROTO_FLOAT && fabs(d) >= (double)FLT_MAX && !name) {
                // Nine digits are more than the largest float, and readers refuse them.
                xpl_buf_str(b, d < 0 ? XPL_STR("-3.4028234e+38") : XPL_STR("3.4028234e+38"));
                return;
            }
            break;
        }
        case XPL_PROTO_ENUM: name = name_of(f, (int32_t)v->u); break;
        case XPL_PROTO_INT64:
        case XPL_PROTO_UINT64: quoted = true; break;
        default: break;
    }
    if (name || quoted) xpl_buf_putc(b, '"');
    if (name)
        xpl_buf_str(b, xpl_str_from(name));
    else
        put_number(b, f, v);
    if (name || quoted) xpl_buf_putc(b, '"');
}

// operand_ids is operandIds.
void txt_proto_json_name(struct xpl_buf *b, const char *name) {
    bool upper = false;
    xpl_buf_putc(b, '"');
    for (; *name; name++) {
        if (*name == '_') {
            upper = true;
            continue;
        }
        const bool change = upper && *name >= 'a' && *name <= 'z';
        xpl_buf_putc(b, (char)(change ? *name - 'a' + 'A' : *name));
        upper = false;
    }
    xpl_buf_str(b, XPL_STR("\":"));
}
