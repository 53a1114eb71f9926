// SPDX-License-Identifier: Apache-2.0
// The clocks.
#ifndef XPL_BASE_CLOCK_H_
#define XPL_BASE_CLOCK_H_

#include <stdint.h>
#include <time.h>

// Nanoseconds of CLOCK_MONOTONIC: since an unspecified moment before the process began.
static inline uint64_t xpl_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Nanoseconds since 1970.
static inline int64_t xpl_unix_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Milliseconds since 1970.
static inline int64_t xpl_unix_ms(void) {
    return xpl_unix_ns() / 1000000;
}

// Suspends the thread; a signal may end that early.
static inline void xpl_clock_pause_ms(long ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&t, NULL);
}

// Nanoseconds from `then` to `now`.  0 if another thread recorded `then` after this one read the
// clock: the unsigned difference would be centuries.
static inline uint64_t xpl_clock_between(uint64_t then, uint64_t now) {
    return now > then ? now - then : 0;
}

#endif
