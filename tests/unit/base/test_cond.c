// SPDX-License-Identifier: Apache-2.0
// Timed waits: over at their time by the monotonic clock, and ended by a signal before it.
#include "base/clock.h"
#include "base/cond.h"
#include "tests/check.h"

enum { MS = 1000000 };

struct shared {
    pthread_mutex_t mu;
    pthread_cond_t cond;
    bool signalled;
};

static void *signal_once(void *arg) {
    struct shared *const s = arg;
    pthread_mutex_lock(&s->mu);
    s->signalled = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

// Nobody signals: the wait lasts until its time, not less.
static void test_time_over(struct shared *s) {
    const uint64_t until = xpl_clock_ns() + 20 * MS;
    pthread_mutex_lock(&s->mu);
    while (xpl_cond_wait_until(&s->cond, &s->mu, until))
        continue;
    pthread_mutex_unlock(&s->mu);
    CHECK(xpl_clock_ns() >= until);
}

// A time that has passed: the wait ends at once.
static void test_time_passed(struct shared *s) {
    const uint64_t now = xpl_clock_ns();
    pthread_mutex_lock(&s->mu);
    CHECK(!xpl_cond_wait_until(&s->cond, &s->mu, now - 1));
    CHECK(!xpl_cond_wait_until(&s->cond, &s->mu, 0));
    pthread_mutex_unlock(&s->mu);
}

static void test_signal(struct shared *s) {
    const uint64_t until = xpl_clock_ns() + (uint64_t)60000 * MS;
    pthread_t thread;
    bool in_time = true;
    pthread_mutex_lock(&s->mu);
    CHECK(pthread_create(&thread, NULL, signal_once, s) == 0);
    while (!s->signalled && in_time)
        in_time = xpl_cond_wait_until(&s->cond, &s->mu, until);
    CHECK(s->signalled);
    pthread_mutex_unlock(&s->mu);
    CHECK(xpl_clock_ns() < until);
    pthread_join(thread, NULL);
}

int main(void) {
    struct shared s = {.mu = PTHREAD_MUTEX_INITIALIZER};
    xpl_cond_init(&s.cond);
    test_time_over(&s);
    test_time_passed(&s);
    test_signal(&s);
    pthread_cond_destroy(&s.cond);
    return 0;
}
