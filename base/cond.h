// SPDX-License-Identifier: Apache-2.0
// Condition variables whose timed waits use CLOCK_MONOTONIC: a clock that is set neither shortens
// nor lengthens them.  Destroyed with pthread_cond_destroy.  And what a function demands of its
// callers' mutexes.
#ifndef XPL_BASE_COND_H_
#define XPL_BASE_COND_H_

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Initialises c for xpl_cond_wait_until.
void xpl_cond_init(pthread_cond_t *c);

// Waits for a signal, until xpl_clock_ns() (base/clock.h) reaches until_ns.  False when the time is
// over.  The caller holds mu, and checks its condition again in either case: a wakeup may be
// spurious.  c was made by xpl_cond_init.
bool xpl_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mu, uint64_t until_ns);

// The first line of a function whose callers hold `mu`.  Finds callers that do not, while no other
// thread holds it.
static inline void xpl_assert_held(pthread_mutex_t *mu) {
    assert(pthread_mutex_trylock(mu) == EBUSY);
}

#endif
