// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON: from memory and from a source the tokens are the same, offsets never go back,
// lenient reading accepts all that strict reading does, and texts are within the input.
#include <string.h>

#include "base/text/json_reader.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rest {
    const uint8_t *p;
    size_t n;
};

static xpl_status_t give(void *ctx, uint8_t *to, size_t room, size_t *ret_n,
                         struct xpl_error *err) {
    struct rest *const r = ctx;
    const size_t n = r->n < 3 ? r->n : 3;
    (void)err;
    CHECK(room > 0);
    *ret_n = n < room ? n : room;
    if (*ret_n) memcpy(to, r->p, *ret_n);
    r->p += *ret_n;
    r->n -= *ret_n;
    return XPL_OK;
}

static enum xpl_json_at walk(const uint8_t *data, size_t size, unsigned flags) {
    struct rest rest = {data, size};
    const struct xpl_json_source source = {.read = give, .ctx = &rest};
    struct xpl_json_reader whole, pieces;
    struct xpl_error err = {0};
    struct xpl_buf text;
    enum xpl_json_at at;
    uint64_t offset = 0;
    xpl_json_reader_init(&whole, (xpl_str_t){(const char *)data, size}, flags);
    CHECK_OK(xpl_json_reader_open(&pieces, &source, flags, &err), &err);
    do {
        at = xpl_json_reader_next(&whole);
        CHECK_EQ(xpl_json_reader_next(&pieces), at);
        CHECK_EQ(xpl_json_reader_offset(&whole), xpl_json_reader_offset(&pieces));
        CHECK(xpl_json_reader_offset(&whole) >= offset && whole.depth <= XPL_JSON_READER_DEPTH);
        offset = xpl_json_reader_offset(&whole);
        CHECK(offset <= size);
        if (at < XPL_JSON_AT_KEY) continue;
        CHECK(xpl_str_eq(whole.text, pieces.text));
        xpl_buf_init(&text, 3 * size + 3);
        xpl_json_reader_unescape(whole.text, &text);
        CHECK(!text.failed);
        xpl_buf_fini(&text);
    } while (at > XPL_JSON_AT_END);
    CHECK(at == XPL_JSON_AT_END || whole.fault);
    xpl_json_reader_fini(&pieces);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const enum xpl_json_at strict = walk(data, size, 0),
                           lenient = walk(data, size, XPL_JSON_LENIENT);
    CHECK(strict != XPL_JSON_AT_END || lenient == XPL_JSON_AT_END);
    return 0;
}
