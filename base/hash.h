// SPDX-License-Identifier: Apache-2.0
// Seeded hash of a string for hash tables: quick, not cryptographic.  The seed is
// xpl_hash_seed() (map.h), so that input cannot be written to collide.
#ifndef XPL_BASE_HASH_H_
#define XPL_BASE_HASH_H_

#include <stdint.h>
#include <string.h>

#include "base/str.h"

static inline uint32_t xpl_hash_str(uint64_t seed, xpl_str_t s) {
    uint64_t h = seed ^ (s.len * 0x9e3779b97f4a7c15u);
    size_t i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t w;
        memcpy(&w, s.ptr + i, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; i < s.len; i++)
        h = (h ^ (uint8_t)s.ptr[i]) * 0x100000001b3u;
    h ^= h >> 29;
    h *= 0xc4ceb9fe1a85ec53u;
    return (uint32_t)(h >> 32);
}

#endif
