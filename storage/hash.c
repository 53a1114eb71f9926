// SPDX-License-Identifier: Apache-2.0
#include "storage/hash.h"

#include <endian.h>
#include <string.h>

// Four lanes of 128-bit multiplications, folded: 16 bytes for each multiplication.
static const uint64_t K[4] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                              0xd6e8feb86659fd93u};

static uint64_t load(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint64_t fold(uint64_t a, uint64_t b) {
    const __uint128_t m = (__uint128_t)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t xpl_digest64(xpl_bytes_t bytes, uint64_t seed) {
    const uint8_t *p = bytes.ptr;
    size_t n = bytes.len;
    uint64_t lane[4];
    for (int i = 0; i < 4; i++)
        lane[i] = seed ^ K[i];
    for (; n >= 64; p += 64, n -= 64)
        for (int i = 0; i < 4; i++)
            lane[i] = fold(load(p + 16 * i) ^ K[i], load(p + 16 * i + 8) ^ lane[i]);
    uint64_t h = lane[0] ^ fold(lane[1], K[1]) ^ fold(lane[2], K[2]) ^ fold(lane[3], K[3]);
    for (; n >= 16; p += 16, n -= 16)
        h = fold(load(p) ^ K[0], load(p + 8) ^ h);
    uint8_t tail[16] = {0};
    if (n) memcpy(tail, p, n);
    h = fold(load(tail) ^ K[1], load(tail + 8) ^ h);
    return fold(h ^ K[2], (uint64_t)bytes.len ^ K[3]);
}
