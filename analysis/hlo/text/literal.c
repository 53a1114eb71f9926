// SPDX-License-Identifier: Apache-2.0
// Values of constants.  Elements stay in the message; a table of every 64th finds numbers of
// varying length that are not in the order of the text.
#include "analysis/hlo/fields.h"
#include "analysis/hlo/module/shape.h"
#include "analysis/hlo/text/number.h"

// MAX_EMPTY: rows of an array without elements.  A few bytes of a shape can state any number.
enum { MAX_RANK = 128, SMALL = 10, MAX_EMPTY = 1 << 20 };

// ---- elements ----

enum encoding { NONE, VARINT, FIXED };
struct field_of_type {
    uint8_t num, encoding, width; // bytes of an element of FIXED
};
static const struct field_of_type fields[HLO_N_TYPES] = {
    [HLO_TYPE_PRED] = {2, VARINT, 0},       [HLO_TYPE_U8] = {3, FIXED, 1},
    [HLO_TYPE_S32] = {4, VARINT, 0},        [HLO_TYPE_S64] = {5, VARINT, 0},
    [HLO_TYPE_U32] = {6, VARINT, 0},        [HLO_TYPE_U64] = {7, VARINT, 0},
    [HLO_TYPE_F32] = {8, FIXED, 4},         [HLO_TYPE_F64] = {9, FIXED, 8},
    [HLO_TYPE_F16] = {11, FIXED, 2},        [HLO_TYPE_C64] = {12, FIXED, 8},
    [HLO_TYPE_BF16] = {13, FIXED, 2},       [HLO_TYPE_S8] = {15, FIXED, 1},
    [HLO_TYPE_U16] = {16, FIXED, 2},        [HLO_TYPE_S16] = {17, FIXED, 2},
    [HLO_TYPE_C128] = {18, FIXED, 16},      [HLO_TYPE_F8E5M2] = {19, FIXED, 1},
    [HLO_TYPE_F8E4M3FN] = {20, FIXED, 1},   [HLO_TYPE_S4] = {21, FIXED, 1},
    [HLO_TYPE_U4] = {22, FIXED, 1},         [HLO_TYPE_F8E4M3B11FNUZ] = {23, FIXED, 1},
    [HLO_TYPE_F8E5M2FNUZ] = {24, FIXED, 1}, [HLO_TYPE_F8E4M3FNUZ] = {25, FIXED, 1},
    [HLO_TYPE_S2] = {26, FIXED, 1},         [HLO_TYPE_U2] = {27, FIXED, 1},
    [HLO_TYPE_F8E4M3] = {28, FIXED, 1},     [HLO_TYPE_F8E3M4] = {29, FIXED, 1},
    [HLO_TYPE_S1] = {30, FIXED, 1},         [HLO_TYPE_U1] = {31, FIXED, 1},
    [HLO_TYPE_F4E2M1FN] = {32, FIXED, 1},   [HLO_TYPE_F8E8M0FNU] = {33, FIXED, 1},
};

struct values {
    uint64_t type;
    enum encoding encoding;
    size_t width;
    const uint8_t *p, *end; // packed
    const uint8_t *at;      // VARINT: element `next`
    uint64_t next, n;
    const uint8_t **every64th; // VARINT and out of order
    uint8_t *joined;           // the packed bytes, where the message has them in pieces
};

static void free_values(struct values *v) {
    xpl_sys_free(v->every64th);
    xpl_sys_free(v->joined);
}

// Appends an element that is not packed, as it would be in a packed field.
static size_t pack(uint8_t *p, const struct xpl_field *f) {
    size_t n = 0;
    if (f->type == XPL_WIRE_LEN) {
        if (f->len.len) memcpy(p, f->len.ptr, f->len.len);
        return f->len.len;
    }
    if (f->type == XPL_WIRE_VARINT) {
        uint64_t v = f->u;
        for (; v >= 0x80; v >>= 7)
            p[n++] = (uint8_t)(v | 0x80);
        p[n++] = (uint8_t)v;
        return n;
    }
    n = f->type == XPL_WIRE_I32 ? 4 : 8;
    memcpy(p, &f->u, n);
    return n;
}

// A repeated field in pieces, packed or not, is joined: no writer makes such literals.
static bool join_pieces(const struct xpl_hlo_message *m, uint32_t num, struct values *v) {
    v->joined = xpl_sys_alloc(m->bytes.len + 1);
    if (!v->joined) return false;
    struct xpl_wire w = xpl_wire_begin(m->bytes);
    struct xpl_field f;
    size_t n = 0;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == num) n += pack(v->joined + n, &f); // never longer than with its tag
    v->p = v->joined;
    v->end = v->joined + n;
    return true;
}

static size_t count_varints(const uint8_t *p, const uint8_t *end) {
    size_t n = 0;
    for (; p != end; p++)
        n += *p < 0x80;
    return n;
}

// Finds the elements of a literal of n; false when there are not as many, or memory is short.
static bool find_values(struct hlo_text *t, const struct xpl_hlo_message *m, uint64_t type,
                        uint64_t n, struct values *ret) {
    const struct field_of_type f = type < HLO_N_TYPES ? fields[type] : (struct field_of_type){0};
    *ret = (struct values){.type = type, .encoding = f.encoding, .width = f.width, .n = n};
    if (f.encoding == NONE) return type == HLO_TYPE_F6E2M3FN || type == HLO_TYPE_F6E3M2FN;
    const struct xpl_field *const whole = xpl_hlo_field(m, f.num, XPL_WIRE_LEN);
    if (whole && !(m->at[f.num] & XPL_HLO_SEEN_AGAIN)) {
        ret->p = whole->len.ptr;
        ret->end = whole->len.ptr + whole->len.len;
    } else if (m->at[f.num] && !join_pieces(m, f.num, ret)) {
        t->no_memory = t->failed = t->cut = true;
        return false;
    }
    ret->at = ret->p;
    const size_t len = (size_t)(ret->end - ret->p);
    if (f.encoding == FIXED) return len % f.width == 0 && len / f.width == n;
    if (len && ret->end[-1] >= 0x80) return false; // the last one is cut
    return count_varints(ret->p, ret->end) == n;
}

// Makes any element of VARINT reachable.
static bool index_values(struct hlo_text *t, struct values *v) {
    if (v->encoding != VARINT || v->n < 64) return true;
    v->every64th = xpl_sys_alloc((v->n / 64 + 1) * sizeof *v->every64th);
    if (!v->every64th) {
        t->no_memory = t->failed = t->cut = true;
        return false;
    }
    // Bounded by both: the bytes may change after they were counted.
    const uint8_t *p = v->p;
    for (uint64_t i = 0; i < v->n; i++) {
        if (i % 64 == 0) v->every64th[i / 64] = p;
        while (p != v->end && *p >= 0x80)
            p++;
        p += p != v->end;
    }
    return true;
}

static uint64_t read_varint(struct hlo_text *t, struct values *v, uint64_t i) {
    if (i != v->next) {
        v->at = v->every64th ? v->every64th[i / 64] : v->p;
        v->next = v->every64th ? i / 64 * 64 : 0;
    }
    for (;;) {
        const struct xpl_varint x = xpl_varint_read(v->at, v->end);
        if (!x.p) {
            txt_malformed(t);
            return 0;
        }
        v->at = x.p;
        if (v->next++ == i) return x.v;
    }
}

static uint32_t sign_extend(uint32_t v, unsigned bits) {
    const uint32_t top = 1u << (bits - 1);
    return ((v & (2 * top - 1)) ^ top) - top;
}

static void put_fixed(struct hlo_text *t, uint64_t type, const uint8_t *p) {
    uint16_t half;
    float single[2];
    double real[2];
    switch (type) {
        case HLO_TYPE_U8: txt_uint(t, *p); break;
        case HLO_TYPE_S8: txt_int(t, (int8_t)*p); break;
        case HLO_TYPE_S4: txt_int(t, (int32_t)sign_extend(*p, 4)); break;
        case HLO_TYPE_S2: txt_int(t, (int32_t)sign_extend(*p, 2)); break;
        case HLO_TYPE_S1: txt_int(t, (int32_t)sign_extend(*p, 1)); break;
        case HLO_TYPE_U4: txt_uint(t, *p & 15); break;
        case HLO_TYPE_U2: txt_uint(t, *p & 3); break;
        case HLO_TYPE_U1: txt_uint(t, *p & 1); break;
        case HLO_TYPE_F32:
            memcpy(single, p, 4);
            txt_f32(t, single[0]);
            break;
        case HLO_TYPE_F64:
            memcpy(real, p, 8);
            txt_f64(t, real[0]);
            break;
        case HLO_TYPE_C64:
            memcpy(single, p, 8);
            TXT(t, "(");
            txt_f32(t, single[0]);
            TXT(t, ", ");
            txt_f32(t, single[1]);
            TXT(t, ")");
            break;
        case HLO_TYPE_C128:
            memcpy(real, p, 16);
            TXT(t, "(");
            txt_f64(t, real[0]);
            TXT(t, ", ");
            txt_f64(t, real[1]);
            TXT(t, ")");
            break;
        default:
            memcpy(&half, p, fields[type].width);
            if (fields[type].width == 1) half = *p;
            if (type == HLO_TYPE_U16)
                txt_uint(t, half);
            else if (type == HLO_TYPE_S16)
                txt_int(t, (int16_t)half);
            else
                txt_narrow(t, type, half);
    }
}

static void put_value(struct hlo_text *t, struct values *v, uint64_t i) {
    if (v->encoding == FIXED) {
        put_fixed(t, v->type, v->p + i * v->width);
        return;
    }
    if (v->encoding == NONE) {
        txt_narrow(t, v->type, 0);
        return;
    }
    const uint64_t x = read_varint(t, v, i);
    switch (v->type) {
        case HLO_TYPE_PRED: txt_uint(t, x != 0); break;
        case HLO_TYPE_S32: txt_int(t, (int32_t)x); break;
        case HLO_TYPE_S64: txt_int(t, (int64_t)x); break;
        case HLO_TYPE_U32: txt_uint(t, (uint32_t)x); break;
        default: txt_uint(t, x);
    }
}

// ---- arrays ----

struct array {
    unsigned rank;
    bool in_order;    // elements are in the order of the text
    uint64_t n_empty; // of an array without elements: its innermost rows
    uint64_t shown[MAX_RANK], stride[MAX_RANK], index[MAX_RANK];
    struct values values;
};

// Strides of the dimensions by the layout; row-major without one.
static bool read_strides(const struct xpl_hlo_shape *s, const uint64_t *dims, struct array *a) {
    struct xpl_hlo_message layout;
    xpl_hlo_message_read(s->layout, &layout);
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(&layout, HLO_LAYOUT_MINOR_TO_MAJOR);
    uint64_t stride = 1;
    bool seen[MAX_RANK] = {false};
    unsigned n = 0;
    a->in_order = true;
    for (int64_t d; xpl_hlo_ints_next(&v, &d); n++) {
        if (d < 0 || d >= a->rank || seen[d]) return false;
        seen[d] = true;
        a->in_order &= d == (int64_t)(a->rank - 1 - n);
        a->stride[d] = stride;
        stride *= dims[d];
    }
    for (unsigned d = a->rank; n == 0 && d-- > 0;) {
        a->stride[d] = stride;
        stride *= dims[d];
    }
    return n == 0 || n == a->rank;
}

// How many rows the text of an array has before the dimension that has none; UINT64_MAX: more.
static uint64_t count_empty(const struct array *a) {
    uint64_t n = 1;
    for (unsigned d = 0; d < a->rank && a->shown[d]; d++)
        if (__builtin_mul_overflow(n, a->shown[d], &n)) return UINT64_MAX;
    return n;
}

// False when the shape is not an array, too large, or of too many dimensions.
static bool read_array(const struct xpl_hlo_message *m, const struct xpl_hlo_shape *s,
                       struct array *a, uint64_t *ret_n) {
    uint64_t dims[MAX_RANK];
    struct xpl_hlo_ints v = s->dims, is_dynamic = s->is_dynamic;
    struct xpl_hlo_ints sizes = xpl_hlo_ints_begin(m, HLO_LITERAL_DYNAMIC_SIZES);
    int64_t x, dynamic, size;
    bool empty = false, overflow = false;
    *ret_n = 1;
    for (a->rank = 0; xpl_hlo_ints_next(&v, &x); a->rank++) {
        if (a->rank == MAX_RANK || x < 0) return false;
        dims[a->rank] = a->shown[a->rank] = (uint64_t)x;
        a->index[a->rank] = 0;
        empty |= x == 0;
        overflow |= __builtin_mul_overflow(*ret_n, (uint64_t)x, ret_n);
        if (xpl_hlo_ints_next(&is_dynamic, &dynamic) && dynamic &&
            xpl_hlo_ints_next(&sizes, &size) && size >= 0 && size < x)
            a->shown[a->rank] = (uint64_t)size;
    }
    if (empty) *ret_n = 0;
    a->n_empty = empty ? count_empty(a) : 0;
    if ((overflow && !empty) || !read_strides(s, dims, a)) return false;
    for (unsigned d = 0; d < a->rank; d++)
        a->in_order &= a->shown[d] == dims[d];
    return true;
}

static void put_break(struct hlo_text *t) {
    txt_str(t, t->form->lines ? XPL_STR("\n") : XPL_STR(" "));
}

// The innermost dimension.
static void put_row(struct hlo_text *t, struct array *a, uint64_t at) {
    const unsigned d = a->rank - 1;
    const bool wide = a->rank > 1 && a->shown[d] > 1;
    if (a->rank > 1 && t->form->lines) TXT(t, "  ");
    TXT(t, "{");
    if (wide) TXT(t, " ");
    for (uint64_t i = 0; i < a->shown[d] && !txt_stopped(t); i++) {
        txt_tick(t);
        if (i) TXT(t, ", ");
        put_value(t, &a->values, at + i * a->stride[d]);
    }
    if (wide) TXT(t, " ");
    TXT(t, "}");
}

static void put_dimension(struct hlo_text *t, struct array *a, unsigned d, uint64_t at) {
    if (d == a->rank - 1) {
        put_row(t, a, at);
        return;
    }
    const bool numbered = a->rank > 3 && d > 0;
    TXT(t, "{");
    if (numbered) {
        TXT(t, " /*i");
        txt_uint(t, d - 1);
        TXT(t, "=");
        txt_uint(t, a->index[d - 1]);
        TXT(t, "*/");
    }
    if (!numbered || a->shown[d]) put_break(t);
    for (uint64_t i = 0; i < a->shown[d] && !txt_stopped(t); i++) {
        txt_tick(t);
        if (i) TXT(t, ",");
        if (i) put_break(t);
        a->index[d] = i;
        put_dimension(t, a, d + 1, at + i * a->stride[d]);
    }
    put_break(t);
    TXT(t, "}");
}

static void put_array(struct hlo_text *t, const struct xpl_hlo_message *m,
                      const struct xpl_hlo_shape *s, bool large) {
    struct array a;
    uint64_t n;
    if (!read_array(m, s, &a, &n)) {
        txt_malformed(t);
        return;
    }
    if (!large && (n > SMALL || a.n_empty > MAX_EMPTY)) {
        TXT(t, "{...}");
        return;
    }
    if (a.n_empty > MAX_EMPTY) {
        txt_malformed(t);
        return;
    }
    const bool found = find_values(t, m, s->type, n, &a.values);
    if (!found && !t->failed) txt_malformed(t);
    if (found && (a.in_order || index_values(t, &a.values))) {
        if (a.rank)
            put_dimension(t, &a, 0, 0);
        else if (s->type == HLO_TYPE_PRED)
            txt_str(t, read_varint(t, &a.values, 0) ? XPL_STR("true") : XPL_STR("false"));
        else
            put_value(t, &a.values, 0);
    }
    free_values(&a.values);
}

// ---- any literal ----

void txt_literal(struct hlo_text *t, xpl_bytes_t literal, bool large) {
    struct xpl_hlo_message m;
    struct xpl_hlo_shape s;
    if (!txt_enter(t)) return;
    txt_read(t, literal, &m);
    xpl_hlo_shape_read(xpl_hlo_bytes(&m, HLO_LITERAL_SHAPE), &s);
    if (s.type == 0 || (!large && (s.type == HLO_TYPE_TUPLE || s.type == HLO_TYPE_TOKEN))) {
        TXT(t, "{...}");
    } else if (s.type == HLO_TYPE_TOKEN) {
        TXT(t, "token");
    } else if (s.type == HLO_TYPE_TUPLE) {
        struct xpl_hlo_each e = xpl_hlo_each_begin(&m, HLO_LITERAL_TUPLE);
        bool first = true;
        TXT(t, "( ");
        for (xpl_bytes_t one; !txt_stopped(t) && xpl_hlo_each_next(&e, &one); first = false) {
            if (!first) TXT(t, ", ");
            txt_literal(t, one, large);
        }
        TXT(t, " )");
    } else {
        put_array(t, &m, &s, large);
    }
    txt_leave(t);
}
