// SPDX-License-Identifier: Apache-2.0
// The digest of names and of stored bytes: its values, which databases have, and which texts
// collide.
#include "storage/hash.h"

#include <string.h>

#include "tests/check.h"

// Of storage/hash.c.
static const uint64_t K[4] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu,
                              0xd6e8feb86659fd93u};

static xpl_bytes_t bytes_of(const void *p, size_t n) {
    return (xpl_bytes_t){p, n};
}

static void test_values(void) {
    uint8_t p[200];
    for (size_t i = 0; i < sizeof p; i++)
        p[i] = (uint8_t)(i * 7);
    uint64_t all = 0;
    for (size_t n = 0; n <= sizeof p; n++)
        all = all * 31 + xpl_digest64(bytes_of(p, n), n);
    CHECK_EQ(all, 0x4524b46113c81ce3u);
}

// A word that equals its constant makes the digest forget those before, whatever the seed.
static void test_forgets(void) {
    uint8_t a[32] = "first", b[32] = "second";
    memcpy(a + 16, &K[0], sizeof K[0]); // of a machine that is little-endian
    memcpy(b + 16, &K[0], sizeof K[0]);
    for (uint64_t seed = 0; seed < 4; seed++)
        CHECK_EQ(xpl_digest64(bytes_of(a, 32), seed), xpl_digest64(bytes_of(b, 32), seed));
    a[16] ^= 1, b[16] ^= 1;
    CHECK(xpl_digest64(bytes_of(a, 32), 1) != xpl_digest64(bytes_of(b, 32), 1));
}

static bool is_inside(uint8_t c) {
    return (c & 0xc0) == 0x80;
}

// But no name has such a word: each has two bytes that UTF-8 never has side by side.
static void test_names_do_not(void) {
    for (size_t k = 0; k < 4; k++) {
        bool never = false;
        for (size_t i = 0; i + 1 < 8; i++) {
            const uint8_t x = (uint8_t)(K[k] >> (8 * i)), y = (uint8_t)(K[k] >> (8 * i + 8));
            never |= (x < 0x80 && is_inside(y)) || (x >= 0xc0 && !is_inside(y));
        }
        CHECK(never);
    }
}

int main(void) {
    test_values();
    test_forgets();
    test_names_do_not();
    return 0;
}
