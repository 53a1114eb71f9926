// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

// For 16 values of a nibble: small enough to need no start-up, fast enough for an upload (two
// lookups a byte).
static const uint32_t table[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t xpl_crc32(uint32_t crc, xpl_bytes_t bytes) {
    crc = ~crc;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= bytes.ptr[i];
        crc = table[crc & 15] ^ crc >> 4;
        crc = table[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}
