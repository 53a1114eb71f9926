// SPDX-License-Identifier: Apache-2.0
#include "analysis/wire/wire.h"

struct xpl_varint xpl_varint_slow(const uint8_t *p, const uint8_t *end) {
    if (XPL_LIKELY(end - p >= 10)) { // one bounds check for the whole varint
        if (p[0] < 0x80) return (struct xpl_varint){p + 1, p[0]};
        if (p[1] < 0x80) return (struct xpl_varint){p + 2, (p[0] & 0x7fu) | (uint64_t)p[1] << 7};
#if XPL_VARINT_SWAR
        uint64_t v;
        memcpy(&v, p, 8);
        const uint64_t stops = ~v & UINT64_C(0x8080808080808080);
        if (stops)
            return (struct xpl_varint){p + (__builtin_ctzll(stops) >> 3) + 1,
                                       xpl_varint_pack(v & (stops ^ (stops - 1)))};
        v = xpl_varint_pack(v) | (uint64_t)(p[8] & 0x7f) << 56;
        if (p[8] < 0x80) return (struct xpl_varint){p + 9, v};
#else
        uint64_t v = p[0] & 0x7fu;
        for (unsigned i = 1; i < 9; i++) {
            v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
            if (p[i] < 0x80) return (struct xpl_varint){p + i + 1, v};
        }
#endif
        if (p[9] > 1) return (struct xpl_varint){NULL, 0}; // would not fit 64 bits
        return (struct xpl_varint){p + 10, v | (uint64_t)p[9] << 63};
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (p == end) break;
        const uint64_t b = *p++;
        if (shift == 63 && b > 1) break;
        v |= (b & 0x7f) << shift;
        if (b < 0x80) return (struct xpl_varint){p, v};
    }
    return (struct xpl_varint){NULL, 0};
}

bool xpl_wire_packed(xpl_bytes_t bytes, uint64_t *v, size_t most, size_t *n) {
    const uint8_t *p = bytes.ptr;
    for (const uint8_t *const end = p + bytes.len; bytes.len && p != end; ++*n) {
        const struct xpl_varint number = xpl_varint_read(p, end);
        if (!number.p) return false;
        if (*n < most) v[*n] = number.v;
        p = number.p;
    }
    return true;
}
