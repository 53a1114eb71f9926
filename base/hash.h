// SPDX-License-Identifier: Apache-2.0
// Seeded hash of a string for hash tables: quick, not cryptographic.  The seed is
// xpl_hash_seed() (map.h), so that input cannot be written to collide.
#ifndef XPL_BASE_HASH_H_
#define XPL_BASE_HASH_H_

#include <stdint.h>
#include <string.h>

#include "base/str.h"

// One to seven bytes as a number; the length, which tells equal numbers apart, is in the hash
// already.
static inline uint64_t xpl_hash_tail(const char *p, size_t n) {
    uint32_t low, high;
    if (n < 4)
        return (uint64_t)(uint8_t)p[0] | (uint64_t)(uint8_t)p[n / 2] << 8 |
               (uint64_t)(uint8_t)p[n - 1] << 16;
    memcpy(&low, p, 4);
    memcpy(&high, p + n - 4, 4);
    return low | (uint64_t)high << 32;
}

// All of the product, half of which a factor that is known would leave to the writer of the text:
// it then chooses differences that cancel whatever the seed is.
static inline uint64_t xpl_hash_fold(uint64_t a, uint64_t b) {
    const __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint32_t xpl_hash_str(uint64_t seed, xpl_str_t s) {
    const uint64_t secret = (seed ^ 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u | 1;
    uint64_t h = seed ^ (s.len * 0x9e3779b97f4a7c15u);
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t w;
        memcpy(&w, s.ptr + i, 8);
        h = xpl_hash_fold(h ^ w, secret);
    }
    if (i < s.len) h = (h ^ xpl_hash_tail(s.ptr + i, s.len - i)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

#endif
