// SPDX-License-Identifier: Apache-2.0
// Text as in C's string literals: bytes that are not printable ASCII are escaped.
#ifndef XPL_BASE_TEXT_C_ESCAPE_H_
#define XPL_BASE_TEXT_C_ESCAPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

// Whether all of eight bytes do, by arithmetic on all at once.
static inline bool xpl_c_plain8(const char *p) {
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    uint64_t x;
    memcpy(&x, p, sizeof x);
    // A byte that is zero, or less than a blank, borrows from its top bit.
    const uint64_t quote = x ^ ones * '"', tick = x ^ ones * '\'', slash = x ^ ones * '\\';
    const uint64_t rubout = x ^ ones * 0x7f;
    const uint64_t special = ((quote - ones) & ~quote) | ((tick - ones) & ~tick) |
                             ((slash - ones) & ~slash) | ((rubout - ones) & ~rubout) |
                             ((x - ones * ' ') & ~x);
    return ((x | special) & tops) == 0;
}

// Number of leading bytes of `s` that need no escape.
static inline size_t xpl_c_plain(xpl_str_t s) {
    size_t n = 0;
    while (s.len - n >= 8 && xpl_c_plain8(s.ptr + n))
        n += 8;
    for (; n < s.len; n++) {
        const uint8_t c = (uint8_t)s.ptr[n];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\'' || c == '\\') break;
    }
    return n;
}

// Writes the escape of a byte, as protobuf and XLA do: \n \r \t \" \' \\, or three octal digits.
// Returns its length.
enum { XPL_C_ESCAPE_MAX = 4 };
static inline size_t xpl_c_escape(uint8_t c, char out[XPL_C_ESCAPE_MAX]) {
    static const char named[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
    const char *const at = c ? strchr(named, c) : NULL;
    out[0] = '\\';
    if (at) {
        out[1] = letters[at - named];
        return 2;
    }
    out[1] = (char)('0' + (c >> 6));
    out[2] = (char)('0' + (c >> 3 & 7));
    out[3] = (char)('0' + (c & 7));
    return 4;
}

#endif
