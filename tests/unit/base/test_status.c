// SPDX-License-Identifier: Apache-2.0
// base/status: the first failure stays, texts are cut between characters, names; and the clock.
#include "base/status.h"

#include "base/clock.h"
#include "tests/check.h"

static void test_first_wins(void) {
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_error_set(&err, XPL_DATA_LOSS, "a.c", 7, 99, "tag %d of %s", 3, "XPlane"),
                 XPL_DATA_LOSS, NULL);
    CHECK_STATUS(xpl_error_set(&err, XPL_INTERNAL, "b.c", 8, 1, "later"), XPL_INTERNAL, NULL);
    CHECK_STATUS(err.code, XPL_DATA_LOSS, &err);
    CHECK_STR(err.file, "a.c");
    CHECK_EQ(err.line, 7);
    CHECK_EQ(err.offset, 99);
    CHECK_STR(err.msg, "tag 3 of XPlane");
    CHECK_STATUS(xpl_error_set(NULL, XPL_ABORTED, "c.c", 9, 0, "nobody asks"), XPL_ABORTED, NULL);
}

// A message of `n` bytes of 'x' and then `tail`, as xpl_error_set stores it.
static struct xpl_error set_long(int n, const char *tail) {
    struct xpl_error err = {0};
    char text[600];
    memset(text, 'x', sizeof text);
    (void)xpl_error_set(&err, XPL_INTERNAL, "a.c", 1, 0, "%.*s%s", n, text, tail);
    return err;
}

// Cut to what fits, never within a character of UTF-8.
static void test_cutting(void) {
    enum { FITS = sizeof((struct xpl_error *)0)->msg - 1 };
    CHECK_EQ(strlen(set_long(FITS, "").msg), FITS);
    CHECK_EQ(strlen(set_long(FITS + 1, "").msg), FITS);
    CHECK_EQ(strlen(set_long(500, "").msg), FITS);
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < 3; i++) {
        const size_t len = strlen(characters[i]);
        char tail[32];
        (void)snprintf(tail, sizeof tail, "%s!!!!!", characters[i]);
        for (int before = FITS - 5; before <= FITS + 1; before++) {
            const struct xpl_error err = set_long(before, tail);
            const size_t whole = (size_t)before + len <= FITS ? (size_t)before + len
                                 : before < FITS              ? (size_t)before
                                                              : FITS;
            const size_t got = strlen(err.msg);
            // All of the character, then as many marks as fit; or nothing of it.
            CHECK_EQ(got, (size_t)before + len <= FITS ? FITS : whole);
            if ((size_t)before + len <= FITS)
                CHECK_BYTES(err.msg + before, len, characters[i], len);
            else
                CHECK_EQ(err.msg[got - 1], 'x');
        }
        // A character that ends exactly where the text does causes no cut.
        const struct xpl_error err = set_long((int)(FITS - len), characters[i]);
        CHECK_EQ(strlen(err.msg), FITS);
    }
}

static xpl_status_t fail(struct xpl_error *err) {
    XPL_RETURN_ERROR(err, XPL_NOT_FOUND, "no %s", "host");
}
static xpl_status_t fail_at(struct xpl_error *err) {
    XPL_RETURN_ERROR_AT(err, XPL_DATA_LOSS, 17, "bad");
}
static xpl_status_t fail_oom(struct xpl_error *err) {
    XPL_RETURN_OOM(err, "index");
}
static xpl_status_t try_it(xpl_status_t (*fn)(struct xpl_error *), struct xpl_error *err,
                           int *after) {
    XPL_TRY(XPL_OK);
    XPL_TRY(fn(err));
    ++*after;
    return XPL_OK;
}
static xpl_status_t succeed(struct xpl_error *err) {
    (void)err;
    return XPL_OK;
}

static void test_macros(void) {
    int after = 0;
    struct xpl_error err = {0};
    CHECK_OK(try_it(succeed, &err, &after), &err);
    CHECK_EQ(after, 1);
    CHECK_STATUS(try_it(fail, &err, &after), XPL_NOT_FOUND, &err);
    CHECK_EQ(after, 1);
    CHECK_STR(err.msg, "no host");
    CHECK_EQ(err.offset, UINT64_MAX);
    CHECK(strstr(err.file, "test_status.c") && err.line > 0);
    err = (struct xpl_error){0};
    CHECK_STATUS(try_it(fail_at, &err, &after), XPL_DATA_LOSS, &err);
    CHECK_EQ(err.offset, 17);
    err = (struct xpl_error){0};
    CHECK_STATUS(try_it(fail_oom, &err, &after), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(strncmp(err.msg, "index: ", 7) == 0);
    CHECK_STATUS(try_it(fail, NULL, &after), XPL_NOT_FOUND, NULL);
}

static void test_names(void) {
    CHECK_STR(xpl_status_name(XPL_OK), "OK");
    CHECK_STR(xpl_status_name(XPL_CANCELLED), "CANCELLED");
    CHECK_STR(xpl_status_name(XPL_RESOURCE_EXHAUSTED), "RESOURCE_EXHAUSTED");
    CHECK_STR(xpl_status_name(XPL_DATA_LOSS), "DATA_LOSS");
    CHECK_STR(xpl_status_name(XPL_UNAUTHENTICATED), "UNAUTHENTICATED");
    CHECK_STR(xpl_status_name((xpl_status_t)17), "UNKNOWN");
    CHECK_STR(xpl_status_name((xpl_status_t)1000), "UNKNOWN");
    for (int a = 0; a < 17; a++)
        for (int b = 0; b < a; b++)
            CHECK(strcmp(xpl_status_name((xpl_status_t)a), xpl_status_name((xpl_status_t)b)) != 0);
}

static void test_clock(void) {
    uint64_t last = xpl_clock_ns();
    const uint64_t begin = last;
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = xpl_clock_ns();
        CHECK(now >= last);
        last = now;
    }
    const struct timespec pause = {.tv_nsec = 2000000};
    CHECK_EQ(nanosleep(&pause, NULL), 0);
    CHECK(xpl_clock_ns() >= begin + 2000000);
}

int main(void) {
    test_first_wins();
    test_cutting();
    test_macros();
    test_names();
    test_clock();
    return 0;
}
