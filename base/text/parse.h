// SPDX-License-Identifier: Apache-2.0
// Whole numbers from text, as absl::SimpleAtoi parses them: decimal, blanks around and one sign
// allowed; other text, and numbers out of range, are refused.
#ifndef XPL_BASE_TEXT_PARSE_H_
#define XPL_BASE_TEXT_PARSE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

static inline xpl_str_t xpl_str_strip(xpl_str_t s) {
    while (s.len && (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r')))
        s.ptr++, s.len--;
    while (s.len &&
           (s.ptr[s.len - 1] == ' ' || (s.ptr[s.len - 1] >= '\t' && s.ptr[s.len - 1] <= '\r')))
        s.len--;
    return s;
}

// Only values within [min, max]; with a min of 0 or more a minus is invalid, even before 0.  False
// leaves *ret unchanged.
static inline bool xpl_parse_int(xpl_str_t s, int64_t min, int64_t max, int64_t *ret) {
    s = xpl_str_strip(s);
    const bool minus = s.len && s.ptr[0] == '-';
    if (s.len && (minus || s.ptr[0] == '+')) s.ptr++, s.len--;
    if (s.len == 0 || (minus && min >= 0)) return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v))
            return false;
    }
    if (v > (uint64_t)INT64_MAX + minus) return false;
    const int64_t n = (int64_t)(minus ? 0 - v : v);
    if (n < min || n > max) return false;
    *ret = n;
    return true;
}

static inline bool xpl_parse_i32(xpl_str_t s, int32_t *ret) {
    int64_t v;
    if (!xpl_parse_int(s, INT32_MIN, INT32_MAX, &v)) return false;
    *ret = (int32_t)v;
    return true;
}

static inline bool xpl_parse_u32(xpl_str_t s, uint32_t *ret) {
    int64_t v;
    if (!xpl_parse_int(s, 0, UINT32_MAX, &v)) return false;
    *ret = (uint32_t)v;
    return true;
}

#endif
