// SPDX-License-Identifier: Apache-2.0
// Checks of tests.  Not assert(): they live under NDEBUG, print the values that differ, and end the
// program.  Every argument is evaluated once.
#ifndef XPL_TESTS_CHECK_H_
#define XPL_TESTS_CHECK_H_

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/status.h"
#include "base/str.h"

// For conditions that have no two values to print.
#define CHECK(e)                                                                                   \
    do {                                                                                           \
        if (!(e)) {                                                                                \
            fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #e);                         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
// Ends the test with a sentence.
#define FAIL_TEST(text)                                                                            \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (text));                                \
        abort();                                                                                   \
    } while (0)

// Whole numbers of any type, compared as numbers: -1 differs from UINT64_MAX.  Floating-point
// numbers and pointers do not compile.
#define CHECK_EQ(got, expected)                                                                    \
    do {                                                                                           \
        const __typeof__((got) + 0) got_ = (got);                                                  \
        const __typeof__((expected) + 0) expected_ = (expected);                                   \
        chk_whole(__FILE__, __LINE__, #got " == " #expected, CHECK_WHOLE_(got_),                   \
                  CHECK_WHOLE_(expected_));                                                        \
    } while (0)
// Floating-point numbers no further apart than `tolerance`; with 0, equal.  NaN equals nothing.
#define CHECK_REAL(got, expected, tolerance)                                                       \
    chk_real(__FILE__, __LINE__, #got " == " #expected, (double)(got), (double)(expected),         \
             (double)(tolerance))
// Texts, each a char * or an xpl_str_t.  Two NULLs are equal.
#define CHECK_STR(got, expected)                                                                   \
    chk_text(__FILE__, __LINE__, #got " == " #expected, CHECK_TEXT_(got), CHECK_TEXT_(expected))
// Memory; prints the first difference in hexadecimal.
#define CHECK_BYTES(got, got_len, expected, expected_len)                                          \
    chk_bytes(__FILE__, __LINE__, #got " == " #expected, (got), (got_len), (expected),             \
              (expected_len))
// A status of XPL_OK; else prints it with the message of `err`, a struct xpl_error * or NULL.
#define CHECK_OK(status, err)                                                                      \
    do {                                                                                           \
        const xpl_status_t status_ = (xpl_status_t)(status);                                       \
        chk_status(__FILE__, __LINE__, #status, status_, XPL_OK, (err));                           \
    } while (0)
// A certain status, as CHECK_OK.
#define CHECK_STATUS(status, expected, err)                                                        \
    do {                                                                                           \
        const xpl_status_t status_ = (xpl_status_t)(status);                                       \
        chk_status(__FILE__, __LINE__, #status " == " #expected, status_,                          \
                   (xpl_status_t)(expected), (err));                                               \
    } while (0)

// ---- what the macros are made of ----

struct chk_whole {
    bool is_unsigned;
    uint64_t bits;
};
#define CHECK_WHOLE_(v)                                                                            \
    ((struct chk_whole){_Generic((v), int                                                          \
                                 : false, long                                                     \
                                 : false, long long                                                \
                                 : false, unsigned                                                 \
                                 : true, unsigned long                                             \
                                 : true, unsigned long long                                        \
                                 : true),                                                          \
                        (uint64_t)(v)})
#define CHECK_TEXT_(v)                                                                             \
    _Generic((v), xpl_str_t : chk_text_str, char * : chk_text_z, const char * : chk_text_z)(v)

static inline xpl_str_t chk_text_str(xpl_str_t s) {
    return s;
}
static inline xpl_str_t chk_text_z(const char *z) {
    return z ? xpl_str_from(z) : (xpl_str_t){NULL, SIZE_MAX};
}

static inline void chk_print_whole(struct chk_whole v) {
    if (v.is_unsigned)
        fprintf(stderr, "%" PRIu64, v.bits);
    else
        fprintf(stderr, "%" PRId64, (int64_t)v.bits);
    if (v.bits > 9 && (v.is_unsigned || (int64_t)v.bits > 0))
        fprintf(stderr, " = 0x%" PRIx64, v.bits);
}

static inline void chk_whole(const char *file, int line, const char *what, struct chk_whole got,
                             struct chk_whole expected) {
    const bool signs_differ = got.is_unsigned != expected.is_unsigned &&
                              (int64_t)got.bits < 0; // a negative one and a big one
    if (got.bits == expected.bits && !signs_differ) return;
    fprintf(stderr, "%s:%d: %s\n  got      ", file, line, what);
    chk_print_whole(got);
    fprintf(stderr, "\n  expected ");
    chk_print_whole(expected);
    fprintf(stderr, "\n");
    abort();
}

static inline void chk_real(const char *file, int line, const char *what, double got,
                            double expected, double tolerance) {
    if (got >= expected && got <= expected) return; // infinities too
    if (fabs(got - expected) <= tolerance) return;
    fprintf(stderr, "%s:%d: %s\n  got      %.17g\n  expected %.17g\n  off by %g, at most %g\n",
            file, line, what, got, expected, got - expected, tolerance);
    abort();
}

static inline void chk_print_text(const char *name, xpl_str_t s) {
    if (s.len == SIZE_MAX)
        fprintf(stderr, "  %s NULL\n", name);
    else
        fprintf(stderr, "  %s %zu bytes \"%.*s\"\n", name, s.len,
                (int)(s.len < 4096 ? s.len : 4096), s.len ? s.ptr : "");
}

static inline void chk_text(const char *file, int line, const char *what, xpl_str_t got,
                            xpl_str_t expected) {
    if (got.len == expected.len && (got.len == SIZE_MAX || xpl_str_eq(got, expected))) return;
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    chk_print_text("got     ", got);
    chk_print_text("expected", expected);
    size_t at = 0;
    while (got.ptr && expected.ptr && at < got.len && at < expected.len &&
           got.ptr[at] == expected.ptr[at])
        at++;
    fprintf(stderr, "  first difference at byte %zu\n", at);
    abort();
}

// Up to 16 bytes from `at`.
static inline void chk_print_bytes(const char *name, const uint8_t *p, size_t n, size_t at) {
    fprintf(stderr, "  %s %zu bytes, from %zu:", name, n, at);
    for (size_t i = at; i < n && i < at + 16; i++)
        fprintf(stderr, " %02x", p[i]);
    fprintf(stderr, "\n");
}

static inline void chk_bytes(const char *file, int line, const char *what, const void *got,
                             size_t got_len, const void *expected, size_t expected_len) {
    if (got_len == expected_len && (got_len == 0 || memcmp(got, expected, got_len) == 0)) return;
    const uint8_t *const g = got, *const w = expected;
    size_t at = 0;
    while (at < got_len && at < expected_len && g[at] == w[at])
        at++;
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    chk_print_bytes("got     ", g, got_len, at);
    chk_print_bytes("expected", w, expected_len, at);
    abort();
}

static inline void chk_status(const char *file, int line, const char *what, xpl_status_t got,
                              xpl_status_t expected, const struct xpl_error *err) {
    if (got == expected) return;
    fprintf(stderr, "%s:%d: %s\n  got      %s\n  expected %s\n", file, line, what,
            xpl_status_name(got), xpl_status_name(expected));
    if (err && err->code != XPL_OK)
        fprintf(stderr, "  error of %s:%d: %s\n", err->file, err->line, err->msg);
    abort();
}

#endif
