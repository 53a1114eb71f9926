// SPDX-License-Identifier: Apache-2.0
#include "analysis/wire/writer.h"

#include "analysis/wire/wire.h"
#include "tests/check.h"

static void emit_nested(struct xpl_writer *w) {
    const struct xpl_writer_mark outer = xpl_writer_open(w, 1);
    xpl_writer_varint(w, 2, UINT64_MAX);
    const struct xpl_writer_mark inner = xpl_writer_open(w, 3);
    xpl_writer_bytes(w, 4, "abc", 3);
    xpl_writer_close(w, inner);
    const struct xpl_writer_mark empty = xpl_writer_open(w, 5);
    xpl_writer_close(w, empty);
    xpl_writer_close(w, outer);
    xpl_writer_fixed32(w, 6, 0x01020304);
    xpl_writer_fixed64(w, 1000, 7);
    const struct xpl_writer_mark packed = xpl_writer_open(w, 7);
    xpl_writer_raw_varint(w, 300);
    xpl_writer_raw64(w, 1);
    xpl_writer_close(w, packed);
}

static void test_bytes(void) {
    static const char expected[] =
        "\x0a\x14\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x05\x22\x03"
        "abc\x2a\x00\x35\x04\x03\x02\x01\xc1\x3e\x07\0\0\0\0\0\0\0\x3a\x0a\xac\x02\x01\0\0\0\0\0\0"
        "\0";
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1000);
    struct xpl_writer w;
    xpl_writer_init(&w, &out);
    emit_nested(&w);
    CHECK_EQ(out.n, 0);
    CHECK(xpl_writer_measured(&w));
    emit_nested(&w);
    CHECK(xpl_writer_fini(&w));
    CHECK_EQ(out.n, sizeof expected - 1);
    CHECK_BYTES(out.p, out.n, expected, out.n);
}

// Lengths on both sides of each step of the varint, inside one another.
static void emit_sizes(struct xpl_writer *w, size_t n, unsigned depth) {
    const struct xpl_writer_mark m = xpl_writer_open(w, 1);
    if (depth) {
        emit_sizes(w, n, depth - 1);
    } else {
        static const uint8_t zeros[70000];
        xpl_writer_bytes(w, 2, zeros, n);
    }
    xpl_writer_close(w, m);
}

static void check_sizes(size_t n) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(1 << 20);
    struct xpl_writer w;
    xpl_writer_init(&w, &out);
    emit_sizes(&w, n, 5);
    CHECK(xpl_writer_measured(&w));
    emit_sizes(&w, n, 5);
    CHECK(xpl_writer_fini(&w));
    xpl_bytes_t b = {out.p, out.n};
    for (unsigned depth = 0; depth < 7; depth++) {
        struct xpl_wire r = xpl_wire_begin(b);
        struct xpl_field f;
        CHECK_EQ(xpl_wire_next(&r, &f), XPL_WIRE_FIELD);
        CHECK_EQ(f.num, depth == 6 ? 2 : 1);
        CHECK(r.p == r.end);
        b = f.len;
    }
    CHECK_EQ(b.len, n);
}

static void test_sizes(void) {
    for (size_t n = 0; n < 300; n++)
        check_sizes(n);
    for (size_t n = 16340; n < 16400; n++)
        check_sizes(n);
    check_sizes(70000);
}

static void test_refusals(void) {
    struct xpl_buf out;
    struct xpl_writer w;
    xpl_buf_init(&out, 10); // too small
    xpl_writer_init(&w, &out);
    xpl_writer_bytes(&w, 1, "0123456789", 10);
    CHECK(!xpl_writer_measured(&w));
    CHECK(!xpl_writer_fini(&w));
    CHECK_EQ(out.n, 0);
    xpl_buf_fini(&out);

    xpl_buf_init(&out, 100); // the second pass writes more than it said
    xpl_writer_init(&w, &out);
    xpl_writer_varint(&w, 1, 1);
    CHECK(xpl_writer_measured(&w));
    xpl_writer_varint(&w, 1, 300);
    CHECK(!xpl_writer_fini(&w));

    xpl_writer_init(&w, &out); // and less
    xpl_writer_varint(&w, 1, 1);
    CHECK(xpl_writer_measured(&w));
    CHECK(!xpl_writer_fini(&w));

    xpl_writer_init(&w, &out); // and submessages that were not measured
    CHECK(xpl_writer_measured(&w));
    xpl_writer_close(&w, xpl_writer_open(&w, 1));
    CHECK(!xpl_writer_fini(&w));

    xpl_writer_init(&w, &out); // never measured
    CHECK(!xpl_writer_fini(&w));
    xpl_buf_fini(&out);
}

// Both ways to write a varint give the same bytes, on both sides of each length.
static void test_varints(void) {
    for (unsigned bits = 0; bits <= 64; bits++) {
        const uint64_t first = bits < 64 ? (uint64_t)1 << bits : 0;
        for (uint64_t v = first - 2; v != first + 2; v++) {
            uint8_t a[XPL_VARINT_ROOM], b[XPL_VARINT_ROOM];
            const uint8_t *const end = xpl_varint_put(a, v);
            CHECK_EQ(xpl_varint_put_wide(b, v) - b, end - a);
            CHECK_EQ(xpl_varint_size(v), (unsigned)(end - a));
            CHECK_BYTES(b, (size_t)(end - a), a, (size_t)(end - a));
        }
    }
}

int main(void) {
    test_bytes();
    test_varints();
    test_sizes();
    test_refusals();
    return 0;
}
