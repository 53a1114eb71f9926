// SPDX-License-Identifier: Apache-2.0
#include "analysis/tools/memory_profile/address_map.h"

#include <string.h>

#include "tests/check.h"

enum { N_ADDRESSES = 1000 };

static uint64_t next(uint64_t *s) {
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

// Against an array, while entries come and go.
static void test_random(void) {
    XPL_AUTO(xpl_address_map_fini) struct xpl_address_map m;
    uint32_t expected[N_ADDRESSES];
    size_t live = 0;
    memset(expected, 0, sizeof expected); // 0: not there
    xpl_address_map_init(&m, 1 << 20);
    uint64_t seed = 1;
    for (uint32_t i = 1; i < 200000; i++) {
        const uint64_t a = next(&seed) % N_ADDRESSES, address = a * 256;
        const bool grows = i / 20000 % 2 == 0;
        const uint32_t *const got = xpl_address_map_get(&m, address);
        CHECK(got ? *got == expected[a] : expected[a] == 0);
        if (next(&seed) % 8 < (grows ? 6 : 2)) {
            CHECK(xpl_address_map_put(&m, address, i));
            live += expected[a] == 0;
            expected[a] = i;
        } else {
            CHECK_EQ(xpl_address_map_remove(&m, address), expected[a] != 0);
            live -= expected[a] != 0;
            expected[a] = 0;
        }
        CHECK_EQ(m.n, live);
    }
}

static void test_limit(void) {
    struct xpl_address_map m;
    xpl_address_map_init(&m, 200 * sizeof(struct xpl_address_slot));
    CHECK(!xpl_address_map_get(&m, 0));
    CHECK(!xpl_address_map_remove(&m, 0));
    uint64_t n = 0;
    while (xpl_address_map_put(&m, n, 7))
        CHECK(++n < 200);
    CHECK_EQ(n, 64);
    for (uint64_t i = 0; i < n; i++)
        CHECK(xpl_address_map_get(&m, i) && *xpl_address_map_get(&m, i) == 7);
    xpl_address_map_fini(&m);
    xpl_address_map_fini(&m);
}

int main(void) {
    test_random();
    test_limit();
    return 0;
}
