// SPDX-License-Identifier: Apache-2.0
#include "base/cond.h"

#include <time.h>

enum { NS_PER_S = 1000000000 };

void xpl_cond_init(pthread_cond_t *c) {
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(c, &a);
    pthread_condattr_destroy(&a);
}

bool xpl_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mu, uint64_t until_ns) {
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    return pthread_cond_timedwait(c, mu, &until) == 0;
}
