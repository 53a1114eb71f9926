// SPDX-License-Identifier: Apache-2.0
// A decoded HLO message: the position of each of its fields.  One pass over the message's own
// level; nothing is copied or allocated, and the contents of a sub-message stay unread until they
// are needed.  Of a field that occurs more than once the last counts; a repeated field is walked.
#ifndef XPL_ANALYSIS_HLO_MODULE_MESSAGE_H_
#define XPL_ANALYSIS_HLO_MODULE_MESSAGE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "base/str.h"

// Field numbers of the HLO messages end before this; a message with others has them ignored.
enum { XPL_HLO_FIELDS = 104 };

// As xpl_wire_next.  Half of these messages' field numbers take two bytes, which a call each would
// make slow.  `all`: where the bytes end that may be read, at the message's end or after it: most
// messages are so short that they have no way without a call else.
XPL_INLINE enum xpl_wire_result xpl_hlo_next_within(struct xpl_wire *w, const uint8_t *all,
                                                    struct xpl_field *f) {
    const uint8_t *p = w->p;
    if (p == w->end) return XPL_WIRE_END;
    if (all - p < 24) return xpl_wire_next(w, f);
    uint32_t tag = *p++;
    if (tag >= 0x80) {
        if (*p >= 0x80) return xpl_wire_next(w, f);
        tag = (tag & 0x7f) | (uint32_t)*p++ << 7;
    }
    const uint32_t type = tag & 7;
    if (tag < 8 || (type != XPL_WIRE_VARINT && type != XPL_WIRE_LEN)) return xpl_wire_next(w, f);
    const struct xpl_varint v =
        *p < 0x80 ? (struct xpl_varint){p + 1, *p} : xpl_varint_wide(p, all);
    if (!v.p || v.p > w->end || (type == XPL_WIRE_LEN && v.v > (uint64_t)(w->end - v.p)))
        return XPL_WIRE_MALFORMED;
    f->num = tag >> 3;
    f->type = type;
    f->u = type == XPL_WIRE_VARINT ? v.v : 0;
    f->len = type == XPL_WIRE_LEN ? (xpl_bytes_t){v.p, (size_t)v.v} : (xpl_bytes_t){0};
    w->p = type == XPL_WIRE_LEN ? v.p + v.v : v.p;
    return XPL_WIRE_FIELD;
}
XPL_INLINE enum xpl_wire_result xpl_hlo_next_field(struct xpl_wire *w, struct xpl_field *f) {
    return xpl_hlo_next_within(w, w->end, f);
}

// Takes the next field if it is the sub-message or text `num`, below 16, of less than 128 bytes:
// the first fields of a message need no pass over all of them.
XPL_INLINE bool xpl_hlo_take(struct xpl_wire *w, uint32_t num, xpl_bytes_t *ret) {
    const uint8_t *const p = w->p;
    if (w->end - p < 2 || p[0] != (num << 3 | XPL_WIRE_LEN) || p[1] > 0x7f || w->end - p - 2 < p[1])
        return false;
    *ret = (xpl_bytes_t){p + 2, p[1]};
    w->p = p + 2 + p[1];
    return true;
}

// A value of some 4 KiB, of which only the used part is written: for the stack.
struct xpl_hlo_message {
    xpl_bytes_t bytes;
    bool malformed;
    uint8_t n;
    uint8_t at[XPL_HLO_FIELDS]; // by number: place in `fields` + 1; SEEN_AGAIN when it is repeated
    struct xpl_field fields[XPL_HLO_FIELDS];
};
enum { XPL_HLO_SEEN_AGAIN = 0x80 };

// Decodes.  A malformed message has the fields before the fault.  `all`: as above.
static inline void xpl_hlo_message_read_within(xpl_bytes_t bytes, const uint8_t *all,
                                               struct xpl_hlo_message *ret) {
    static const uint8_t nothing[XPL_HLO_FIELDS];
    struct xpl_wire w = xpl_wire_begin(bytes);
    enum xpl_wire_result r;
    ret->bytes = bytes;
    ret->n = 0;
    memcpy(ret->at, nothing,
           sizeof ret->at); // GCC clears by "rep stos", which takes its time to begin
    while ((r = xpl_hlo_next_within(&w, all, &ret->fields[ret->n])) == XPL_WIRE_FIELD) {
        const uint32_t num = ret->fields[ret->n].num;
        if (num >= XPL_HLO_FIELDS) continue;
        if (ret->at[num]) {
            ret->at[num] |= XPL_HLO_SEEN_AGAIN;
            ret->fields[(ret->at[num] & ~XPL_HLO_SEEN_AGAIN) - 1] = ret->fields[ret->n];
        } else if (ret->n < XPL_HLO_FIELDS - 1) { // always: numbers below it are one fewer
            ret->at[num] = ++ret->n;
        }
    }
    ret->malformed = r == XPL_WIRE_MALFORMED;
}
static inline void xpl_hlo_message_read(xpl_bytes_t bytes, struct xpl_hlo_message *ret) {
    xpl_hlo_message_read_within(bytes, bytes.len ? bytes.ptr + bytes.len : bytes.ptr, ret);
}

// NULL when it is absent, or of another wire type.
static inline const struct xpl_field *xpl_hlo_field(const struct xpl_hlo_message *m, uint32_t num,
                                                    enum xpl_wire_type type) {
    const unsigned at = m->at[num] & ~(unsigned)XPL_HLO_SEEN_AGAIN;
    return at && m->fields[at - 1].type == (uint32_t)type ? &m->fields[at - 1] : NULL;
}
static inline bool xpl_hlo_has(const struct xpl_hlo_message *m, uint32_t num) {
    return m->at[num] != 0;
}
// 0, "" and no bytes for an absent field.
static inline int64_t xpl_hlo_int(const struct xpl_hlo_message *m, uint32_t num) {
    const struct xpl_field *const f = xpl_hlo_field(m, num, XPL_WIRE_VARINT);
    return f ? (int64_t)f->u : 0;
}
static inline bool xpl_hlo_bool(const struct xpl_hlo_message *m, uint32_t num) {
    return xpl_hlo_int(m, num) != 0;
}
static inline xpl_bytes_t xpl_hlo_bytes(const struct xpl_hlo_message *m, uint32_t num) {
    const struct xpl_field *const f = xpl_hlo_field(m, num, XPL_WIRE_LEN);
    return f ? f->len : (xpl_bytes_t){0};
}
static inline xpl_str_t xpl_hlo_str(const struct xpl_hlo_message *m, uint32_t num) {
    const struct xpl_field *const f = xpl_hlo_field(m, num, XPL_WIRE_LEN);
    return f ? xpl_wire_str(f) : (xpl_str_t){"", 0};
}
static inline float xpl_hlo_float(const struct xpl_hlo_message *m, uint32_t num) {
    const struct xpl_field *const f = xpl_hlo_field(m, num, XPL_WIRE_I32);
    float v = 0;
    if (f) memcpy(&v, &(uint32_t){(uint32_t)f->u}, sizeof v);
    return v;
}
static inline double xpl_hlo_double(const struct xpl_hlo_message *m, uint32_t num) {
    const struct xpl_field *const f = xpl_hlo_field(m, num, XPL_WIRE_I64);
    double v = 0;
    if (f) memcpy(&v, &f->u, sizeof v);
    return v;
}

// ---- repeated fields ----

// Walks the sub-messages, or texts, of a repeated field.
struct xpl_hlo_each {
    struct xpl_wire w;
    uint32_t num;
};
static inline struct xpl_hlo_each xpl_hlo_each_begin(const struct xpl_hlo_message *m,
                                                     uint32_t num) {
    const xpl_bytes_t all = m->at[num] ? m->bytes : (xpl_bytes_t){0};
    return (struct xpl_hlo_each){xpl_wire_begin(all), num};
}
static inline bool xpl_hlo_each_next(struct xpl_hlo_each *e, xpl_bytes_t *ret) {
    struct xpl_field f;
    while (xpl_wire_next(&e->w, &f) == XPL_WIRE_FIELD) {
        if (f.num != e->num || f.type != XPL_WIRE_LEN) continue;
        *ret = f.len;
        return true;
    }
    return false;
}

// Walks the numbers of a repeated field, packed or not.
struct xpl_hlo_ints {
    const uint8_t *p, *end; // a packed run
    struct xpl_wire w;      // the bytes after it
    uint32_t num;
};
static inline struct xpl_hlo_ints xpl_hlo_ints_begin(const struct xpl_hlo_message *m,
                                                     uint32_t num) {
    struct xpl_hlo_ints v = {.num = num};
    const struct xpl_field *const one = xpl_hlo_field(m, num, XPL_WIRE_LEN);
    if (one && !(m->at[num] & XPL_HLO_SEEN_AGAIN)) {
        v.p = one->len.ptr;
        v.end = one->len.ptr + one->len.len;
    } else if (m->at[num]) {
        v.w = xpl_wire_begin(m->bytes);
    }
    return v;
}
// The numbers of bytes that are a packed field.
static inline struct xpl_hlo_ints xpl_hlo_ints_packed(xpl_bytes_t b) {
    return (struct xpl_hlo_ints){.p = b.ptr, .end = b.len ? b.ptr + b.len : b.ptr};
}
// The walk ends early where a number is malformed.
static inline bool xpl_hlo_ints_next(struct xpl_hlo_ints *v, int64_t *ret) {
    struct xpl_field f;
    for (;;) {
        if (v->p != v->end) {
            const struct xpl_varint n = xpl_varint_read(v->p, v->end);
            if (!n.p) return false;
            v->p = n.p;
            *ret = (int64_t)n.v;
            return true;
        }
        if (xpl_wire_next(&v->w, &f) != XPL_WIRE_FIELD) return false;
        if (f.num != v->num) continue;
        if (f.type == XPL_WIRE_VARINT) {
            *ret = (int64_t)f.u;
            return true;
        }
        if (f.type == XPL_WIRE_LEN && f.len.len) {
            v->p = f.len.ptr;
            v->end = f.len.ptr + f.len.len;
        }
    }
}
static inline size_t xpl_hlo_ints_count(const struct xpl_hlo_message *m, uint32_t num) {
    struct xpl_hlo_ints v = xpl_hlo_ints_begin(m, num);
    size_t n = 0;
    for (int64_t x; xpl_hlo_ints_next(&v, &x);)
        n++;
    return n;
}

#endif
