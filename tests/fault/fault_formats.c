// SPDX-License-Identifier: Apache-2.0
// Opening compressed profiles with every allocation failing once.  libzstd's own are not ours to
// fail; those of zlib and of the result are.
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/formats/format.h"
#include "base/arena.h"
#include "tests/check.h"

enum { N = 500000 };
static uint8_t plain[N], packed[N + 4096];

static xpl_status_t run(const char *name, size_t n, struct xpl_profile *ret) {
    const struct xpl_format_limits limits = {.max_bytes = 1 << 20};
    struct xpl_error err = {0};
    const xpl_status_t st =
        xpl_profile_open(xpl_str_from(name), (xpl_bytes_t){packed, n}, &limits, ret, &err);
    CHECK(st == XPL_OK || (err.code == st && err.msg[0]));
    return st;
}

static void fail_each(const char *name, size_t packed_len) {
    struct xpl_profile p = {0};
    xpl_fault_reset();
    const int64_t live = xpl_fault_live();
    CHECK_OK(run(name, packed_len, &p), NULL);
    xpl_profile_close(&p);
    const uint64_t n = xpl_fault_count();
    unsigned n_ok = 0;
    CHECK(n >= 4);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        const xpl_status_t st = run(name, packed_len, &p);
        CHECK(st == XPL_RESOURCE_EXHAUSTED || st == XPL_OK);
        n_ok += st == XPL_OK;
        if (st == XPL_OK) CHECK(p.bytes.len == N && memcmp(p.bytes.ptr, plain, N) == 0);
        xpl_profile_close(&p);
        CHECK_EQ(xpl_fault_live(), live);
    }
    CHECK_EQ(n_ok, 3); // those that give memory back: after both heads, and after everything
    xpl_fault_reset();
    xpl_fault_fail_on(UINT64_MAX);
    CHECK_OK(run(name, packed_len, &p), NULL);
    xpl_profile_close(&p);
}

int main(void) {
    uint32_t x = 1;
    for (size_t i = 0; i < N; i++) {
        x = x * 1664525 + 1013904223;
        plain[i] = (uint8_t)(x >> 29);
    }
    z_stream z = {.next_in = plain, .avail_in = N, .next_out = packed, .avail_out = sizeof packed};
    CHECK_EQ(deflateInit2(&z, 1, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    fail_each("h.xplane.pb.gz", z.total_out);
    const size_t n = ZSTD_compress(packed, sizeof packed, plain, N, 1);
    CHECK(!ZSTD_isError(n));
    fail_each("h.xplane.pb.zst", n);
    return 0;
}
