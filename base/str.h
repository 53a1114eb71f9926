// SPDX-License-Identifier: Apache-2.0
// Views of text and bytes.  Neither owns memory; a string view is not NUL-terminated.
#ifndef XPL_BASE_STR_H_
#define XPL_BASE_STR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct xpl_str {
    const char *ptr;
    size_t len;
} xpl_str_t;

typedef struct xpl_bytes {
    const uint8_t *ptr;
    size_t len;
} xpl_bytes_t;

// For printf's "%.*s".
#define XPL_STR_FMT(s) (int)(s).len, (s).ptr
#define XPL_STR(lit)   ((xpl_str_t){"" lit, sizeof(lit) - 1})

static inline xpl_str_t xpl_str_from(const char *z) {
    return (xpl_str_t){z, strlen(z)};
}
static inline bool xpl_str_eq(xpl_str_t a, xpl_str_t b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
// The same without a call, for texts that are mostly short and mostly equal.
static inline bool xpl_str_eq_short(xpl_str_t a, xpl_str_t b) {
    uint64_t x, y;
    if (a.len != b.len) return false;
    if (a.len < sizeof x) {
        for (size_t i = 0; i < a.len; i++)
            if (a.ptr[i] != b.ptr[i]) return false;
        return true;
    }
    for (size_t i = 0, last = a.len - sizeof x;; i += sizeof x) { // the last eight bytes overlap
        memcpy(&x, a.ptr + (i < last ? i : last), sizeof x);
        memcpy(&y, b.ptr + (i < last ? i : last), sizeof y);
        if (x != y) return false;
        if (i >= last) return true;
    }
}
static inline bool xpl_str_starts(xpl_str_t s, xpl_str_t prefix) {
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}
static inline bool xpl_str_ends(xpl_str_t s, xpl_str_t suffix) {
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}
// Bytewise order, shorter first where one is the prefix of the other (as std::string compares).
static inline int xpl_str_cmp(xpl_str_t a, xpl_str_t b) {
    const size_t n = a.len < b.len ? a.len : b.len;
    const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}
// Whether it starts with one of the `n` texts, none of which is empty.
static inline bool xpl_str_starts_any(xpl_str_t s, const char *const *list, size_t n) {
    for (size_t i = 0; s.len && i < n; i++) // most differ in the first byte
        if (s.ptr[0] == list[i][0] && xpl_str_starts(s, xpl_str_from(list[i]))) return true;
    return false;
}
// First position of `needle` at or after `from`; SIZE_MAX when absent.  The time is bounded by the
// sum of the lengths, for memmem() prepares a table for long needles; short ones do without.
static inline size_t xpl_str_find(xpl_str_t s, xpl_str_t needle, size_t from) {
    enum { SHORT = 32 };
    if (needle.len == 0) return from <= s.len ? from : SIZE_MAX;
    if (s.len < needle.len || from > s.len - needle.len) return SIZE_MAX;
    if (needle.len > SHORT) {
        const char *const hit = memmem(s.ptr + from, s.len - from, needle.ptr, needle.len);
        return hit ? (size_t)(hit - s.ptr) : SIZE_MAX;
    }
    for (size_t i = from; i <= s.len - needle.len; i++) {
        const char *const hit = memchr(s.ptr + i, needle.ptr[0], s.len - needle.len - i + 1);
        if (!hit) return SIZE_MAX;
        i = (size_t)(hit - s.ptr);
        if (memcmp(hit, needle.ptr, needle.len) == 0) return i;
    }
    return SIZE_MAX;
}
static inline bool xpl_str_has(xpl_str_t s, xpl_str_t needle) {
    return xpl_str_find(s, needle, 0) != SIZE_MAX;
}
// s[from, from + len), clipped to the length of s.
static inline xpl_str_t xpl_str_sub(xpl_str_t s, size_t from, size_t len) {
    if (from > s.len) from = s.len;
    if (len > s.len - from) len = s.len - from;
    return (xpl_str_t){s.ptr ? s.ptr + from : s.ptr, len};
}

#endif
