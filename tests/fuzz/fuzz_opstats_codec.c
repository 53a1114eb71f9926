// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as OpStats: readable input can be written, and then reads and writes the same.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/opstats/codec/codec.h"
#include "base/arena.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static struct xpl_buf encode(const struct xpl_opstats *s) {
    struct xpl_buf out = xpl_buf_of(64 << 20);
    struct xpl_error err = {0};
    require(xpl_opstats_encode(s, &out, &err) == XPL_OK);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(64 << 20);
    struct xpl_opstats *s = NULL, *again = NULL;
    struct xpl_error err = {0};
    if (xpl_opstats_decode((xpl_bytes_t){data, size}, &a, &s, &err) == XPL_OK) {
        struct xpl_buf once = encode(s);
        require(xpl_opstats_decode((xpl_bytes_t){once.p, once.n}, &a, &again, &err) == XPL_OK);
        struct xpl_buf twice = encode(again);
        require(once.n == twice.n && (once.n == 0 || memcmp(once.p, twice.p, once.n) == 0));
        xpl_buf_fini(&twice);
        xpl_buf_fini(&once);
    } else {
        require(s == NULL && err.code != XPL_OK);
        require(err.code != XPL_DATA_LOSS || err.offset <= size);
    }
    return 0;
}
