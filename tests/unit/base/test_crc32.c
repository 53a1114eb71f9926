// SPDX-License-Identifier: Apache-2.0
// base/crc32: known sums, zlib's of every length, and pieces give what the whole gives.
#include "base/crc32.h"

#include <zlib.h>

#include "tests/check.h"

static uint32_t sum(uint32_t crc, const void *p, size_t n) {
    return xpl_crc32(crc, (xpl_bytes_t){p, n});
}

int main(void) {
    CHECK_EQ(sum(0, NULL, 0), 0);
    CHECK_EQ(sum(0x12345678, NULL, 0), 0x12345678);
    CHECK_EQ(sum(0, "123456789", 9), 0xcbf43926); // the check value of CRC-32/ISO-HDLC
    CHECK_EQ(sum(0, "a", 1), 0xe8b7be43);
    CHECK_EQ(sum(0, "\0\0\0\0", 4), 0x2144df1c);
    CHECK_EQ(sum(0, "\xff\xff\xff\xff", 4), 0xffffffff);

    static uint8_t bytes[4096];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t n = 0; n <= sizeof bytes; n += n < 300 ? 1 : 97)
        CHECK_EQ(sum(0, bytes, n), crc32(0, bytes, (uInt)n));
    const uint32_t whole = sum(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 61)
        CHECK_EQ(sum(sum(0, bytes, cut), bytes + cut, sizeof bytes - cut), whole);
    uint32_t one_by_one = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        one_by_one = sum(one_by_one, bytes + i, 1);
    CHECK_EQ(one_by_one, whole);
    for (unsigned bit = 0; bit < 8; bit++) { // each single bit matters
        bytes[1000] ^= (uint8_t)(1u << bit);
        CHECK(sum(0, bytes, sizeof bytes) != whole);
        bytes[1000] ^= (uint8_t)(1u << bit);
    }
    return 0;
}
