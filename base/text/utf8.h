// SPDX-License-Identifier: Apache-2.0
// UTF-8 as Unicode defines it (Table 3-7): no overlong forms, no surrogates, nothing above
// U+10FFFF.  The one decoder of all folders.  Any thread.
#ifndef XPL_BASE_TEXT_UTF8_H_
#define XPL_BASE_TEXT_UTF8_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct xpl_buf;

// Length of the well-formed sequence at the front of `s` (1 to 4), or 0.  *ret_skip is the same
// length, or that of the ill-formed part (Unicode's "maximal subpart", at least 1); 0 for an empty
// `s`.
static inline size_t xpl_utf8_scan(xpl_str_t s, size_t *ret_skip) {
    const uint8_t *const p = (const uint8_t *)s.ptr;
    *ret_skip = s.len != 0;
    if (s.len == 0) return 0;
    const uint8_t c = p[0];
    if (c < 0x80) return 1;
    const size_t len = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    // Of the second byte: no overlong form, no surrogate, nothing too large.
    uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    size_t i = 1;
    for (; i < len && i < s.len && p[i] >= lo && p[i] <= hi; i++) {
        lo = 0x80;
        hi = 0xbf;
    }
    *ret_skip = i;
    return len && i == len ? len : 0;
}

// Only the length.
static inline size_t xpl_utf8_next(xpl_str_t s) {
    size_t skip;
    return xpl_utf8_scan(s, &skip);
}

// Whether a byte of a character is not its first.
static inline bool xpl_utf8_inside(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

// `s` without a character at its end of which only the beginning is there.
xpl_str_t xpl_utf8_whole(xpl_str_t s);
// The first characters of `s` that fit into `max` bytes.
xpl_str_t xpl_utf8_cut(xpl_str_t s, size_t max);

// The number of the well-formed character at the front of `s`, which has `len` bytes.
uint32_t xpl_utf8_code_point(xpl_str_t s, size_t len);
// The first character of `s` (not empty) for a terminal: unchanged, or "?" for ill-formed bytes and
// for a control character: C0, DEL, C1, separators of lines and paragraphs, and characters that
// change the direction of text.  The only definition of these.  *ret_used: the number of bytes of
// `s` that the result replaces.
xpl_str_t xpl_utf8_shown(xpl_str_t s, size_t *ret_used);
// Whether all of `s` is shown as it is.
bool xpl_utf8_is_shown(xpl_str_t s);

// How many bytes at the front of `s` are well-formed; s.len when all are.
size_t xpl_utf8_valid_length(xpl_str_t s);
bool xpl_utf8_valid(xpl_str_t s);
// Appends `s` with U+FFFD in place of ill-formed bytes, one for each, and of NULs; at most `max`
// bytes, cut between characters.
void xpl_utf8_clean(struct xpl_buf *b, xpl_str_t s, size_t max);

#endif
