// SPDX-License-Identifier: Apache-2.0
// Schema-less protobuf pull reader: no allocation, no recursion, views alias the input.
// The reader is inline, because a profile is read field by field some ten million times a second;
// only varints of two bytes and more, and those near the end of the input, take a call.
#ifndef XPL_ANALYSIS_WIRE_WIRE_H_
#define XPL_ANALYSIS_WIRE_WIRE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct xpl_wire {
    const uint8_t *p, *end;
};

enum xpl_wire_type { XPL_WIRE_VARINT = 0, XPL_WIRE_I64 = 1, XPL_WIRE_LEN = 2, XPL_WIRE_I32 = 5 };
// Three outcomes, so that a truncated message cannot look like a complete one.
enum xpl_wire_result { XPL_WIRE_MALFORMED = -1, XPL_WIRE_END = 0, XPL_WIRE_FIELD = 1 };

// Number and type do not lie side by side: GCC would compare both as one word of eight bytes, which
// then waits for the two stores of four before it.
struct xpl_field {
    uint32_t num;
    xpl_bytes_t len; // LEN
    uint32_t type;   // enum xpl_wire_type
    uint64_t u;      // VARINT, I64, I32
};

#define XPL_LIKELY(x)   __builtin_expect(!!(x), 1)
#define XPL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define XPL_INLINE      static inline __attribute__((always_inline))

// A varint and the position after it: p is NULL if it is truncated, longer than ten bytes, or does
// not fit 64 bits.  Small enough to travel in registers.
struct xpl_varint {
    const uint8_t *p;
    uint64_t v;
};

// Any varint at p < end (or p == end: truncated).
struct xpl_varint xpl_varint_slow(const uint8_t *p, const uint8_t *end);

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define XPL_VARINT_SWAR 1
#else
#define XPL_VARINT_SWAR 0
#endif

// The low seven bits of eight bytes, the first byte's lowest.
XPL_INLINE uint64_t xpl_varint_pack(uint64_t x) {
    x &= UINT64_C(0x7f7f7f7f7f7f7f7f);
    x = (x & UINT64_C(0x007f007f007f007f)) | ((x & UINT64_C(0x7f007f007f007f00)) >> 1);
    x = (x & UINT64_C(0x00003fff00003fff)) | ((x & UINT64_C(0x3fff00003fff0000)) >> 2);
    return (x & UINT64_C(0x000000000fffffff)) | ((x & UINT64_C(0x0fffffff00000000)) >> 4);
}

// As xpl_varint_slow; inline, and without a branch on the length up to eight bytes: lengths of
// times and durations vary, and a wrong guess costs more than the arithmetic.
XPL_INLINE struct xpl_varint xpl_varint_wide(const uint8_t *p, const uint8_t *end) {
    if (XPL_VARINT_SWAR && XPL_LIKELY(end - p >= 8)) {
        uint64_t x;
        memcpy(&x, p, 8);
        const uint64_t stops = ~x & UINT64_C(0x8080808080808080); // last byte: high bit clear
        if (XPL_LIKELY(stops)) {
            const unsigned n = (unsigned)__builtin_ctzll(stops) >> 3;
            x &= stops ^ (stops - 1); // drop bytes after the last one
            return (struct xpl_varint){p + n + 1, xpl_varint_pack(x)};
        }
    }
    return xpl_varint_slow(p, end);
}

// As xpl_varint_slow; inline, and without a branch between one byte and two, which ids have.
XPL_INLINE struct xpl_varint xpl_varint_small(const uint8_t *p, const uint8_t *end) {
    if (XPL_LIKELY(end - p >= 2) && XPL_LIKELY(!(p[0] & p[1] & 0x80))) {
        const unsigned two = p[0] >> 7;
        return (struct xpl_varint){p + 1 + two, (p[0] & 0x7fu) | (p[1] & (0u - two)) << 7};
    }
    return xpl_varint_slow(p, end);
}

// As xpl_varint_slow, with a short way for one byte.
XPL_INLINE struct xpl_varint xpl_varint_read(const uint8_t *p, const uint8_t *end) {
    if (XPL_LIKELY(p != end) && XPL_LIKELY(*p < 0x80)) return (struct xpl_varint){p + 1, *p};
    return xpl_varint_slow(p, end);
}

XPL_INLINE struct xpl_wire xpl_wire_begin(xpl_bytes_t b) {
    return (struct xpl_wire){b.ptr, b.len ? b.ptr + b.len : b.ptr};
}

// The next field.  On MALFORMED the cursor stays on the offending field, so that the caller can
// report its offset, and *f is unspecified.  Groups are malformed: XSpace and OpStats have none.
__attribute__((warn_unused_result)) XPL_INLINE enum xpl_wire_result
xpl_wire_next(struct xpl_wire *w, struct xpl_field *f) {
    const uint8_t *const end = w->end;
    if (w->p == end) return XPL_WIRE_END;
    const struct xpl_varint tag = xpl_varint_read(w->p, end);
    if (XPL_UNLIKELY(!tag.p) || XPL_UNLIKELY(tag.v > UINT32_MAX) || XPL_UNLIKELY(tag.v < 8))
        return XPL_WIRE_MALFORMED;
    f->num = (uint32_t)tag.v >> 3;
    f->type = (uint32_t)tag.v & 7;
    f->u = 0;
    f->len = (xpl_bytes_t){0};
    const uint8_t *p = tag.p;
    switch (f->type) {
        case XPL_WIRE_VARINT: {
            const struct xpl_varint v = xpl_varint_read(p, end);
            if (XPL_UNLIKELY(!v.p)) return XPL_WIRE_MALFORMED;
            f->u = v.v;
            p = v.p;
            break;
        }
        case XPL_WIRE_I64:
            if (XPL_UNLIKELY(end - p < 8)) return XPL_WIRE_MALFORMED;
            memcpy(&f->u, p, 8);
            p += 8;
            break;
        case XPL_WIRE_LEN: {
            const struct xpl_varint n = xpl_varint_read(p, end);
            // Sizes are compared, never pointers past the end.
            if (XPL_UNLIKELY(!n.p) || XPL_UNLIKELY(n.v > (uint64_t)(end - n.p)))
                return XPL_WIRE_MALFORMED;
            f->len = (xpl_bytes_t){n.p, (size_t)n.v};
            p = n.p + n.v;
            break;
        }
        case XPL_WIRE_I32: {
            uint32_t v;
            if (XPL_UNLIKELY(end - p < 4)) return XPL_WIRE_MALFORMED;
            memcpy(&v, p, 4);
            f->u = v;
            p += 4;
            break;
        }
        default: return XPL_WIRE_MALFORMED;
    }
    w->p = p;
    return XPL_WIRE_FIELD;
}

// The message's bytes as text.
XPL_INLINE xpl_str_t xpl_wire_str(const struct xpl_field *f) {
    return (xpl_str_t){(const char *)f->len.ptr, f->len.len};
}

// Appends the numbers of a packed field to the *n numbers in `v`, which holds at most `most`.  Adds
// all of them to *n, so that *n > `most` says that some did not fit.  False: malformed.
bool xpl_wire_packed(xpl_bytes_t bytes, uint64_t *v, size_t most, size_t *n);

#endif
