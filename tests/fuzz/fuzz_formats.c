// SPDX-License-Identifier: Apache-2.0
// Opens any bytes in every format.  What must hold: offsets of errors lie in the input, limits are
// kept, two passes agree, a plain file is its own bytes, and a format that a name does not promise
// is refused.
#include <string.h>

#include "analysis/formats/format.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 18 };

static xpl_status_t open_one(const struct xpl_format *f, xpl_bytes_t file, size_t limit,
                             struct xpl_profile *ret) {
    const struct xpl_format_limits limits = {.max_bytes = limit};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_format_open(f, file, &limits, ret, &err);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED ||
          (st == XPL_FAILED_PRECONDITION && !f->open));
    if (st == XPL_DATA_LOSS) CHECK(err.offset <= file.len);
    if (st != XPL_OK) CHECK(err.msg[0] && !ret->owned && !ret->bytes.ptr);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_bytes_t file = {data, size};
    size_t n;
    const struct xpl_format *const formats = xpl_formats(&n);
    const struct xpl_format *const seen = xpl_format_sniff(file);
    for (size_t i = 0; i < n; i++) {
        struct xpl_profile p = {0}, q = {0}, r = {0};
        const xpl_status_t st = open_one(&formats[i], file, LIMIT, &p);
        CHECK(st != XPL_OK || seen == &formats[i]);
        CHECK_EQ(open_one(&formats[i], file, LIMIT, &q), st);
        if (st == XPL_OK) {
            CHECK(p.bytes.len == q.bytes.len && p.bytes.ptr && q.bytes.ptr);
            CHECK(!p.bytes.len || memcmp(p.bytes.ptr, q.bytes.ptr, p.bytes.len) == 0);
            CHECK(p.owned ? p.bytes.len <= LIMIT : p.bytes.ptr == data && p.bytes.len == size);
            if (p.owned && p.bytes.len)
                CHECK_EQ(open_one(&formats[i], file, p.bytes.len - 1, &r), XPL_RESOURCE_EXHAUSTED);
        }
        xpl_profile_close(&p);
        xpl_profile_close(&q);
    }
    return 0;
}
