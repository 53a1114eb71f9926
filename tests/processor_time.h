// SPDX-License-Identifier: Apache-2.0
// Bounds of work that other programs on the machine cannot exceed.
#ifndef XPL_TESTS_PROCESSOR_TIME_H_
#define XPL_TESTS_PROCESSOR_TIME_H_

#include <time.h>

#include "tests/check.h"

// Seconds of the processor that this process has used.
static inline double processor_s(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
