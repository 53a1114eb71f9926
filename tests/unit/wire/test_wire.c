// SPDX-License-Identifier: Apache-2.0
// The wire reader: every length of varint at every distance from the end, lengths around the
// remaining size, and every prefix of a good message.
#include <stdlib.h>
#include <string.h>

#include "analysis/wire/wire.h"
#include "tests/check.h"

static size_t put_varint(uint8_t *p, uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

// A copy of exactly n bytes, so that a read past the end is seen by AddressSanitizer.
static uint8_t *exact(const void *p, size_t n) {
    uint8_t *const c = malloc(n + !n);
    CHECK(c);
    if (n) memcpy(c, p, n);
    return c;
}

static void check_varint(uint64_t v) {
    uint8_t bytes[10];
    const size_t n = put_varint(bytes, v);
    for (size_t room = 0; room <= n + 12; room++) {
        uint8_t *const p = malloc(room + !room);
        CHECK(p);
        for (size_t i = 0; i < room; i++)
            p[i] = i < n ? bytes[i] : 0xff;
        const struct xpl_varint all[] = {xpl_varint_slow(p, p + room), xpl_varint_wide(p, p + room),
                                         xpl_varint_read(p, p + room)};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            CHECK_EQ(all[i].p != NULL, room >= n);
            if (room < n) continue;
            CHECK(all[i].p == p + n);
            CHECK_EQ(all[i].v, v);
        }
        free(p);
    }
}

static void test_varints(void) {
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t one = UINT64_C(1) << bit;
        check_varint(one);
        check_varint(one - 1);
        check_varint(one | 1);
    }
    check_varint(UINT64_MAX);
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 2000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        check_varint(x >> (x & 63));
    }
}

static void test_overlong(void) {
    // More bytes than needed are fine up to ten; what does not fit 64 bits is not.
    static const struct {
        const char *bytes;
        size_t n;
        bool ok;
        uint64_t v;
    } rows[] = {
        {"\x81\x00", 2, true, 1},
        {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, true, 1},
        {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, true, 1 | UINT64_C(1) << 63},
        {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, false, 0},
        {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *const p = exact(rows[i].bytes, rows[i].n);
        const struct xpl_varint a = xpl_varint_slow(p, p + rows[i].n);
        const struct xpl_varint b = xpl_varint_wide(p, p + rows[i].n);
        CHECK_EQ(a.p != NULL, rows[i].ok);
        CHECK_EQ(b.p != NULL, rows[i].ok);
        if (rows[i].ok) CHECK(a.v == rows[i].v && b.v == rows[i].v);
        free(p);
    }
}

static enum xpl_wire_result walk(const uint8_t *p, size_t n, size_t *ret_fields, size_t *ret_at) {
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){p, n});
    struct xpl_field f;
    enum xpl_wire_result r;
    *ret_fields = 0;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        ++*ret_fields;
    *ret_at = (size_t)(w.p - p);
    return r;
}

// Prefixes that end at a field are messages; all others are malformed, at the field that is cut.
static void test_every_prefix(void) {
    static const uint8_t good[] = {
        0x08, 0x96, 0x01,                                           // 1: 150
        0x11, 1,    2,    3,    4,    5,    6,    7,    8,          // 2: fixed64
        0x1a, 3,    'a',  'b',  'c',                                // 3: "abc"
        0x25, 1,    2,    3,    4,                                  // 4: fixed32
        0x2a, 0,                                                    // 5: ""
        0x80, 0x01, 1,                                              // 16: 1
        0x0a, 0x81, 0x00, 'x',                                      // 1: length in two bytes
        0xf8, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x01, // the largest field number
    };
    static const size_t ends[] = {0, 3, 12, 17, 22, 24, 27, 31, sizeof good};
    for (size_t n = 0; n <= sizeof good; n++) {
        uint8_t *const p = exact(good, n);
        size_t fields, at, whole = 0;
        while (whole + 1 < sizeof ends / sizeof *ends && ends[whole + 1] <= n)
            whole++;
        const enum xpl_wire_result r = walk(p, n, &fields, &at);
        CHECK_EQ(r, ends[whole] == n ? XPL_WIRE_END : XPL_WIRE_MALFORMED);
        CHECK_EQ(fields, whole);
        CHECK_EQ(at, ends[whole]);
        free(p);
    }
}

static void test_lengths(void) {
    static const uint64_t lengths[] = {
        0, 1, 4, 5, 6, 127, 128, UINT32_MAX, (uint64_t)INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint8_t bytes[32] = {0x0a};
        const size_t head = 1 + put_varint(bytes + 1, lengths[i]);
        memset(bytes + head, 'x', 5);
        uint8_t *const p = exact(bytes, head + 5); // five bytes are left
        struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){p, head + 5});
        struct xpl_field f;
        const enum xpl_wire_result r = xpl_wire_next(&w, &f);
        CHECK_EQ(r, lengths[i] <= 5 ? XPL_WIRE_FIELD : XPL_WIRE_MALFORMED);
        if (r == XPL_WIRE_FIELD) {
            CHECK_EQ(f.len.len, lengths[i]);
            CHECK(f.len.ptr == p + head);
            CHECK(w.p == p + head + lengths[i]);
        } else {
            CHECK(w.p == p);
        }
        free(p);
    }
}

static void test_bad_tags(void) {
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"\x00\x01", 2},                 // field number 0
        {"\x07", 1},                     //
        {"\x0b\x0c", 2},                 // a group
        {"\x0c", 1},                     // its end
        {"\x0e\x01", 2},                 // wire types 6 and 7
        {"\x0f\x01", 2},                 //
        {"\x80\x80\x80\x80\x10\x01", 6}, // more than 32 bits
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *const p = exact(rows[i].bytes, rows[i].n);
        size_t fields, at;
        CHECK_EQ(walk(p, rows[i].n, &fields, &at), XPL_WIRE_MALFORMED);
        CHECK_EQ(at, 0);
        free(p);
    }
}

static void test_values(void) {
    static const uint8_t bytes[] = {0x09, 1, 0, 0, 0, 0, 0, 0, 0x80, 0x0d, 0xfe, 0xff, 0xff, 0xff};
    struct xpl_wire w = xpl_wire_begin((xpl_bytes_t){bytes, sizeof bytes});
    struct xpl_field f;
    CHECK_EQ(xpl_wire_next(&w, &f), XPL_WIRE_FIELD);
    CHECK_EQ(f.num, 1);
    CHECK_EQ(f.type, XPL_WIRE_I64);
    CHECK_EQ(f.u, UINT64_C(1) << 63 | 1);
    CHECK_EQ(xpl_wire_next(&w, &f), XPL_WIRE_FIELD);
    CHECK_EQ(f.num, 1);
    CHECK_EQ(f.type, XPL_WIRE_I32);
    CHECK_EQ(f.u, 0xfffffffe);
    CHECK_EQ(xpl_wire_next(&w, &f), XPL_WIRE_END);
    w = xpl_wire_begin((xpl_bytes_t){NULL, 0});
    CHECK_EQ(xpl_wire_next(&w, &f), XPL_WIRE_END);
}

int main(void) {
    test_varints();
    test_overlong();
    test_every_prefix();
    test_lengths();
    test_bad_tags();
    test_values();
    return 0;
}
