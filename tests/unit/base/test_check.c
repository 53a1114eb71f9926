// SPDX-License-Identifier: Apache-2.0
// tests/check.h itself: what passes, what ends the program, and that the values are printed.
#include "tests/check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char output[8192];

// Runs `body` in a child, whose stderr goes to `output`.  True when it was ended by abort().
static bool aborts(void (*body)(void)) {
    int fds[2];
    if (pipe(fds) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(fds[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    (void)close(fds[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(fds[0], output + n, sizeof output - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = 0;
    (void)close(fds[0]);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

// Fails the test without the macros it is about.
static void must(bool ok, int line, const char *what) {
    if (ok) return;
    (void)fprintf(stderr, "line %d: %s\nthe child wrote: %s\n", line, what, output);
    exit(1);
}
#define MUST(e) must((e), __LINE__, #e)

static void good(void) {
    const uint64_t big = UINT64_MAX;
    const int8_t small = -1;
    const xpl_str_t view = {"abcd", 3};
    char array[] = "abc";
    int evaluated = 0;
    CHECK(array[0] == 'a');
    CHECK_EQ(big, UINT64_MAX);
    CHECK_EQ(small, -1);
    CHECK_EQ((uint8_t)200, 200u);
    CHECK_EQ(true, 1);
    CHECK_EQ(INT64_MIN, INT64_MIN);
    CHECK_EQ(evaluated++, 0);
    CHECK_EQ(evaluated, 1);
    CHECK_REAL(0.1 + 0.2, 0.3, 1e-15);
    CHECK_REAL(INFINITY, INFINITY, 0);
    CHECK_REAL(-0.0, 0.0, 0);
    CHECK_REAL(2, 1, 1);
    CHECK_STR(view, "abc");
    CHECK_STR(array, view);
    CHECK_STR((const char *)NULL, (const char *)NULL);
    CHECK_STR(((xpl_str_t){NULL, 0}), "");
    CHECK_BYTES(array, 4, "abc", 4);
    CHECK_BYTES(NULL, 0, "x", 0);
    CHECK_OK(XPL_OK, NULL);
    CHECK_STATUS(XPL_ABORTED, XPL_ABORTED, NULL);
}

static void bad_check(void) {
    CHECK(1 + 1 == 3);
}
static void bad_signed(void) {
    CHECK_EQ(-3, INT64_MIN);
}
static void bad_unsigned(void) {
    CHECK_EQ(UINT64_MAX, 255u);
}
static void bad_signs(void) { // the same 64 bits
    CHECK_EQ(UINT64_MAX, -1);
}
static void bad_signs_turned(void) {
    CHECK_EQ(INT64_MIN, (uint64_t)1 << 63);
}
static void bad_low_bits(void) {
    CHECK_EQ(((uint64_t)1 << 32) + 7, 7);
}
static void bad_real(void) {
    CHECK_REAL(1.5, 1.25, 0.125);
}
static void bad_real_exact(void) {
    CHECK_REAL(0.1 + 0.2, 0.3, 0);
}
static void bad_nan(void) {
    CHECK_REAL(NAN, NAN, 1);
}
static void bad_infinity(void) {
    CHECK_REAL(INFINITY, -INFINITY, 1e300);
}
static void bad_str(void) {
    CHECK_STR("abcx", ((xpl_str_t){"abcyz", 4}));
}
static void bad_str_length(void) {
    CHECK_STR("abc", "abcd");
}
static void bad_str_null(void) {
    CHECK_STR((const char *)NULL, "");
}
static void bad_bytes(void) {
    CHECK_BYTES("\x01\x02\xfe\x04", 4, "\x01\x02\xff\x04", 4);
}
static void bad_bytes_length(void) {
    CHECK_BYTES("\x01\x02", 2, "\x01", 1);
}
static void bad_ok(void) {
    struct xpl_error err = {0};
    CHECK_OK(xpl_error_set(&err, XPL_DATA_LOSS, "f.c", 12, 0, "bad tag %d", 9), &err);
}
static void bad_ok_without_error(void) {
    CHECK_OK(XPL_ABORTED, NULL);
}
static void bad_status(void) {
    CHECK_STATUS(XPL_OK, XPL_NOT_FOUND, NULL);
}
static void bad_sentence(void) {
    FAIL_TEST("nothing came");
}

static bool wrote(const char *text) {
    return strstr(output, text) != NULL;
}

int main(void) {
    good();
    MUST(!aborts(good) && output[0] == 0);
    MUST(aborts(bad_check) && wrote("test_check.c:") && wrote("1 + 1 == 3"));
    MUST(aborts(bad_signed) && wrote("got      -3\n") && wrote("expected -9223372036854775808\n"));
    MUST(aborts(bad_unsigned) && wrote("18446744073709551615 = 0xffffffffffffffff") &&
         wrote("255 = 0xff"));
    MUST(aborts(bad_signs) && wrote("expected -1\n"));
    MUST(aborts(bad_signs_turned));
    MUST(aborts(bad_low_bits) && wrote("4294967303"));
    MUST(aborts(bad_real) && wrote("1.5\n") && wrote("1.25\n") && wrote("at most 0.125"));
    MUST(aborts(bad_real_exact) && wrote("0.30000000000000004"));
    MUST(aborts(bad_nan));
    MUST(aborts(bad_infinity));
    MUST(aborts(bad_str) && wrote("\"abcx\"") && wrote("\"abcy\"") && wrote("at byte 3"));
    MUST(aborts(bad_str_length) && wrote("3 bytes") && wrote("4 bytes"));
    MUST(aborts(bad_str_null) && wrote("NULL"));
    MUST(aborts(bad_bytes) && wrote("from 2: fe 04") && wrote("from 2: ff 04"));
    MUST(aborts(bad_bytes_length) && wrote("2 bytes, from 1: 02"));
    MUST(aborts(bad_ok) && wrote("DATA_LOSS") && wrote("f.c:12: bad tag 9"));
    MUST(aborts(bad_ok_without_error) && wrote("ABORTED"));
    MUST(aborts(bad_status) && wrote("got      OK") && wrote("expected NOT_FOUND"));
    MUST(aborts(bad_sentence) && wrote("nothing came"));
    return 0;
}
