// SPDX-License-Identifier: Apache-2.0
// Opens any bytes under the names of every format. What must hold: offsets of errors lie in the
// input, limits are kept, two passes agree, without a decoder the bytes are the file's own, and
// only formats that we read are opened.
#include <stdio.h>
#include <string.h>

#include "analysis/formats/format.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 18 };

static xpl_status_t open_one(xpl_str_t name, xpl_bytes_t file, size_t limit,
                             struct xpl_profile *ret) {
    const struct xpl_format_limits limits = {.max_bytes = limit};
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_profile_open(name, file, &limits, ret, &err);
    CHECK(st == XPL_OK || st == XPL_DATA_LOSS || st == XPL_RESOURCE_EXHAUSTED ||
          st == XPL_FAILED_PRECONDITION);
    if (st == XPL_DATA_LOSS) CHECK(err.offset <= file.len);
    if (st != XPL_OK) CHECK(err.msg[0] && !ret->owned && !ret->bytes.ptr);
    if (st == XPL_OK) CHECK(ret->format && !ret->format->refusal);
    return st;
}

static void open_as(const char *suffix, xpl_bytes_t file) {
    char text[64];
    (void)snprintf(text, sizeof text, "h%s", suffix);
    const xpl_str_t name = xpl_str_from(text);
    struct xpl_profile p = {0}, q = {0}, r = {0};
    const xpl_status_t st = open_one(name, file, LIMIT, &p);
    CHECK_EQ(open_one(name, file, LIMIT, &q), st);
    if (st == XPL_OK) {
        CHECK(p.format == q.format && p.bytes.len == q.bytes.len && p.bytes.ptr && q.bytes.ptr);
        CHECK(!p.bytes.len || memcmp(p.bytes.ptr, q.bytes.ptr, p.bytes.len) == 0);
        CHECK(p.owned ? p.bytes.len <= LIMIT : p.bytes.ptr == file.ptr && p.bytes.len == file.len);
        if (p.owned && p.bytes.len)
            CHECK_EQ(open_one(name, file, p.bytes.len - 1, &r), XPL_RESOURCE_EXHAUSTED);
        (void)xpl_profile_expect(XPL_FORM_XSPACE, name, file);
    }
    xpl_profile_close(&p);
    xpl_profile_close(&q);
}

static void identify(const struct xpl_format *f, xpl_bytes_t file) {
    char text[64];
    struct xpl_profile_identity id;
    (void)snprintf(text, sizeof text, "rank_1/h.1700000000%s", f->suffixes[0]);
    CHECK(f->identify(xpl_str_from(text), file, &id)); // the name is one of the format
    CHECK(id.rank >= 0 && id.world_size >= -1 && id.begin_ns >= 0);
    CHECK_EQ(id.worker_len, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const xpl_bytes_t file = {data, size};
    size_t n;
    const struct xpl_format *const *const formats = xpl_formats(&n);
    open_as("", file);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; formats[i]->suffixes[k]; k++)
            open_as(formats[i]->suffixes[k], file);
        if (formats[i]->identify) identify(formats[i], file);
    }
    return 0;
}
