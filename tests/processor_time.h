// SPDX-License-Identifier: Apache-2.0
// Bounds of work that other programs on the machine cannot exceed.
#ifndef XPL_TESTS_PROCESSOR_TIME_H_
#define XPL_TESTS_PROCESSOR_TIME_H_

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tests/check.h"
#include "tests/sanitized.h"

// Seconds of the processor that this process has used.
static inline double processor_s(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Whether this process has used fewer than `most` seconds since begin, which processor_s() gave;
// sanitizers may take ten times as long.  Give several times what the work takes on a quiet
// machine, and less than it takes without the change that the test is for.
static inline bool is_within(double begin, double most) {
    const double used = processor_s() - begin;
    if (is_sanitized()) most *= 10;
    if (used >= most) fprintf(stderr, "%.2f s of processor time, %.2f allowed\n", used, most);
    return used < most;
}

// Whether n things, which take `seconds(n)`, take less than `most`; on a slow machine, less than
// three times as long as half of them: quadratic work takes four times as long.  Measured again if
// neither holds, as other programs share the caches.
static inline bool is_done_soon(double (*seconds)(int n), int n, double most) {
    double whole = seconds(n), half = 0;
    for (int i = 0; i < 4 && whole >= most; i++) {
        half = seconds(n / 2);
        if (whole < 3 * half) return true;
        whole = seconds(n);
    }
    if (whole >= most) fprintf(stderr, "%d: %.2f s, %d: %.2f s\n", n / 2, half, n, whole);
    return whole < most;
}

#endif
