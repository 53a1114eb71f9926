// SPDX-License-Identifier: Apache-2.0
// base/buf: the maximum to the byte, the first failure sticks, ownership, printf at the edges.
#include "base/buf.h"

#include "base/arena.h"
#include "tests/check.h"

// The contents of a buffer that did not fail.
static xpl_str_t text_of(const struct xpl_buf *b) {
    CHECK(!b->failed);
    return (xpl_str_t){(const char *)b->p, b->n};
}

static void test_writing(void) {
    struct xpl_buf b = xpl_buf_of(1 << 20);
    CHECK_EQ(b.n, 0);
    CHECK(!b.p && !b.failed);
    xpl_buf_put(&b, NULL, 0);
    xpl_buf_str(&b, (xpl_str_t){NULL, 0});
    CHECK(!b.p); // nothing was needed
    xpl_buf_putc(&b, 'a');
    xpl_buf_put(&b, "b\0c", 3);
    xpl_buf_str(&b, XPL_STR("de"));
    xpl_buf_printf(&b, "%d%s", 12, "");
    CHECK_BYTES(b.p, b.n, "ab\0cde12", 8);
    for (size_t i = 0; i < 100000; i++) // grows
        xpl_buf_putc(&b, (char)('0' + i % 10));
    CHECK_EQ(text_of(&b).len, 100008);
    CHECK_BYTES(b.p, 8, "ab\0cde12", 8);
    for (size_t i = 0; i < 100000; i++)
        CHECK_EQ(b.p[8 + i], '0' + i % 10);
    xpl_buf_fini(&b);
    CHECK(!b.p);
    xpl_buf_fini(&b);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf zero = {0};
    xpl_buf_putc(&zero, 'x'); // its maximum is 0
    CHECK(zero.failed);
}

// Exactly the maximum fits, in one piece, byte by byte and in printf; one more fails for good.
static void test_maximum(size_t max) {
    static char text[2000];
    memset(text, 'x', sizeof text);
    for (int way = 0; way < 4; way++) {
        struct xpl_buf b = xpl_buf_of(max);
        if (way == 0)
            xpl_buf_put(&b, text, max);
        else if (way == 1)
            xpl_buf_printf(&b, "%.*s", (int)max, text);
        for (size_t i = 0; way == 2 && i < max; i++)
            xpl_buf_putc(&b, 'x');
        if (way == 3) {
            xpl_buf_put(&b, text, max / 2);
            xpl_buf_printf(&b, "%.*s", (int)(max - max / 2), text);
        }
        CHECK_STR(text_of(&b), ((xpl_str_t){text, max}));
        CHECK(b.cap <= max);
        CHECK(xpl_buf_room(&b, 0));
        xpl_buf_put(&b, "", 0);
        xpl_buf_printf(&b, "%s", "");
        CHECK(!b.failed);
        if (way == 0)
            xpl_buf_put(&b, "y", 1);
        else if (way == 1)
            xpl_buf_printf(&b, "y");
        else
            xpl_buf_putc(&b, 'y');
        CHECK(b.failed);
        CHECK_EQ(b.n, max);
        xpl_buf_fini(&b);
    }
    struct xpl_buf b = xpl_buf_of(max);
    xpl_buf_printf(&b, "%.*s", (int)max + 1, text);
    CHECK(b.failed);
    CHECK_EQ(b.n, 0);
    xpl_buf_fini(&b);
}

// The capacity is exactly the expected size, unless that exceeds the maximum; the buffer still
// grows.
static void test_expected(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1000);
    xpl_buf_expect(&b, 1001);
    CHECK(!b.p && !b.failed);
    xpl_buf_expect(&b, 300);
    CHECK_EQ(b.cap, 300);
    const uint8_t *const p = b.p;
    for (int i = 0; i < 300; i++)
        xpl_buf_putc(&b, 'x');
    xpl_buf_expect(&b, 200);
    CHECK(b.p == p && b.cap == 300);
    xpl_buf_putc(&b, 'y');
    CHECK_EQ(text_of(&b).len, 301);
    CHECK_EQ(b.cap, 600);
}

static void test_failure_sticks(void) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(10);
    xpl_buf_str(&b, XPL_STR("123456"));
    xpl_buf_str(&b, XPL_STR("too long"));
    CHECK(b.failed);
    CHECK_EQ(b.n, 6);
    xpl_buf_putc(&b, 'x'); // would fit
    xpl_buf_str(&b, XPL_STR("y"));
    xpl_buf_printf(&b, "z");
    xpl_buf_printf(&b, "%0300d", 1);
    CHECK(!xpl_buf_room(&b, 1));
    CHECK(!xpl_buf_room(&b, 0));
    CHECK_BYTES(b.p, b.n, "123456", 6);
    size_t len = 77;
    CHECK(!xpl_buf_take(&b, &len));
    CHECK_EQ(len, 77);
}

static void test_room(void) {
    struct xpl_buf b = xpl_buf_of(5000);
    CHECK(xpl_buf_room(&b, 5000));
    memset(b.p, 'r', 5000);
    b.n += 5000;
    CHECK(!xpl_buf_room(&b, 1));
    xpl_buf_fini(&b);
    xpl_buf_init(&b, SIZE_MAX);
    xpl_buf_str(&b, XPL_STR("abc"));
    CHECK(!xpl_buf_room(&b, SIZE_MAX - 2)); // the sum wraps around
    CHECK(b.failed);
    xpl_buf_fini(&b);
    xpl_buf_init(&b, SIZE_MAX);
    xpl_buf_str(&b, XPL_STR("abc"));
    CHECK(!xpl_buf_room(&b, SIZE_MAX - 3)); // fits the maximum, but no memory
    CHECK(b.failed);
    CHECK_BYTES(b.p, b.n, "abc", 3);
    xpl_buf_fini(&b);
}

static void test_take(void) {
    struct xpl_buf b = xpl_buf_of(100);
    size_t len = 9;
    uint8_t *p = xpl_buf_take(&b, &len);
    CHECK(p); // of an empty one too: NULL is failure
    CHECK_EQ(len, 0);
    xpl_sys_free(p);
    xpl_buf_str(&b, XPL_STR("again"));
    p = xpl_buf_take(&b, &len);
    CHECK_BYTES(p, len, "again", 5);
    xpl_sys_free(p);
    CHECK_EQ(b.n, 0);
    CHECK_EQ(b.max, 100);
    CHECK(!b.p && !b.failed);
    for (int i = 0; i < 101; i++)
        xpl_buf_putc(&b, 'x');
    CHECK(b.failed); // the maximum still holds
    xpl_buf_fini(&b);
    xpl_buf_init(&b, 0);
    p = xpl_buf_take(&b, &len);
    CHECK(p);
    CHECK_EQ(len, 0);
    xpl_sys_free(p);
    xpl_buf_fini(&b);
}

#if XPL_FAULTS
static void test_faults(void) {
    struct xpl_buf b = xpl_buf_of(1 << 20);
    const int64_t live = xpl_fault_live();
    xpl_fault_reset();
    xpl_fault_fail_on(1);
    xpl_buf_str(&b, XPL_STR("kept"));
    xpl_buf_printf(&b, "%0500d", 1);
    CHECK(b.failed);
    CHECK_BYTES(b.p, b.n, "kept", 4);
    xpl_buf_fini(&b);
    xpl_buf_init(&b, 1 << 20);
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    size_t len;
    CHECK(!xpl_buf_take(&b, &len));
    xpl_buf_fini(&b);
    CHECK_EQ(xpl_fault_live(), live);
    xpl_fault_reset();
}
#endif

int main(void) {
    test_writing();
    static const size_t edges[] = {0, 1, 2, 255, 256, 257, 511, 512, 513, 1000, 1999};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        test_maximum(edges[i]);
    test_expected();
    test_failure_sticks();
    test_room();
    test_take();
#if XPL_FAULTS
    test_faults();
#endif
    return 0;
}
