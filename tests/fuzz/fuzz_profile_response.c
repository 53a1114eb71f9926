// SPDX-License-Identifier: Apache-2.0
// A ProfileResponse from a hostile host.  The first byte says how it is cut into pieces: the
// outcome must not depend on that, and must agree with a reading of the whole by wire.h.
#include <stdlib.h>
#include <string.h>

#include "analysis/wire/wire.h"
#include "capture/check.h"
#include "capture/message.h"
#include "tests/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    bool ok, empty, is_xspace;
    uint64_t xspace_bytes;
    struct xpl_check check;
};

static bool on_xspace(void *ctx, xpl_bytes_t piece) {
    struct outcome *const o = ctx;
    if (xpl_check_put(&o->check, piece, NULL) != XPL_OK) o->is_xspace = false;
    return true;
}

// Names of traces are within the answer.
static bool on_trace(void *ctx, xpl_str_t name) {
    (void)ctx;
    CHECK(xpl_str_ends(name, XPL_STR(XPL_CAPTURE_TRACE_SUFFIX)));
    return true;
}

static struct outcome read_all(xpl_bytes_t x, size_t step) {
    struct outcome o = {.ok = true, .is_xspace = true};
    struct xpl_capture_reply r;
    xpl_check_init(&o.check);
    xpl_capture_reply_init(&r, on_xspace, &o);
    r.on_trace = on_trace;
    for (size_t at = 0; at < x.len && o.ok; at += step) {
        // Exactly as many bytes as the piece has, so that a read beyond them is seen.
        const size_t n = x.len - at < step ? x.len - at : step;
        uint8_t *const piece = malloc(n);
        CHECK(piece);
        memcpy(piece, x.ptr + at, n);
        o.ok = xpl_capture_reply_put(&r, (xpl_bytes_t){piece, n});
        free(piece);
    }
    o.ok = o.ok && xpl_capture_reply_end(&r);
    o.empty = r.empty_trace;
    o.xspace_bytes = r.xspace_bytes;
    o.is_xspace = o.is_xspace && xpl_check_end(&o.check, NULL) == XPL_OK;
    return o;
}

// Whether all of it is well-formed, and its tool data, too.
static bool is_response(xpl_bytes_t x) {
    struct xpl_wire w = xpl_wire_begin(x);
    struct xpl_field f, inner;
    enum xpl_wire_result r, q = XPL_WIRE_END;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD) {
        if (f.num != 6 || f.type != XPL_WIRE_LEN) continue;
        struct xpl_wire t = xpl_wire_begin(f.len);
        while ((q = xpl_wire_next(&t, &inner)) == XPL_WIRE_FIELD)
            continue;
        if (q == XPL_WIRE_MALFORMED) return false;
    }
    return r == XPL_WIRE_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const xpl_bytes_t x = {data + 1, size - 1};
    const struct outcome whole = read_all(x, x.len ? x.len : 1),
                         cut = read_all(x, 1 + data[0] % 32);
    CHECK_EQ(whole.ok, is_response(x));
    CHECK_EQ(cut.ok, whole.ok);
    CHECK(whole.xspace_bytes <= x.len);
    if (!whole.ok) return 0; // how far a broken answer was read depends on its pieces
    CHECK_EQ(cut.empty, whole.empty);
    CHECK_EQ(cut.xspace_bytes, whole.xspace_bytes);
    CHECK_EQ(cut.is_xspace, whole.is_xspace);
    if (!whole.is_xspace) return 0;
    CHECK_EQ(cut.check.counts.events, whole.check.counts.events);
    CHECK_EQ(cut.check.counts.planes, whole.check.counts.planes);
    CHECK_EQ(cut.check.counts.lines, whole.check.counts.lines);
    CHECK(strcmp(cut.check.hostname, whole.check.hostname) == 0);
    return 0;
}
