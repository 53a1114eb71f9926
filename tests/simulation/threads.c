// SPDX-License-Identifier: Apache-2.0
// What the product calls of threads, clocks and the system: the linker leads these calls here
// (--wrap in meson.build).
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scheduler.h"

enum { LOCKS_PER_SWITCH = 16 };

#define EPOCH_S 1700000000 // of all wall clocks

#define WRAP(type, name, ...)                                                                      \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

// ---- clocks and sleeping ----

static struct timespec time_of(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / SIM_S), .tv_nsec = (long)(ns % SIM_S)};
}

static uint64_t ns_of(const struct timespec *t) {
    return (uint64_t)t->tv_sec * SIM_S + (uint64_t)t->tv_nsec;
}

WRAP(int, clock_gettime, clockid_t id, struct timespec *ret) {
    const struct sim_process *const p = sim_self();
    if (id == CLOCK_REALTIME)
        *ret = time_of(EPOCH_S * SIM_S + sim_now() + (uint64_t)(p ? p->wall_ns : 0));
    else
        *ret = time_of(sim_now());
    return 0;
}

WRAP(int, nanosleep, const struct timespec *t, struct timespec *rest) {
    (void)rest;
    (void)sim_wait(t, sim_now() + ns_of(t));
    return 0;
}

WRAP(int, poll, struct pollfd *p, nfds_t n, int ms) {
    const uint64_t until = ms < 0 ? SIM_NEVER : sim_now() + (uint64_t)ms * SIM_MS;
    CHECK(n >= 1);
    for (nfds_t i = 0; i < n; i++)
        p[i].revents = 0;
    while (!sim_conn_is_readable(p[0].fd))
        if (sim_now() >= until || !sim_wait(sim_conn_of(p[0].fd), until)) break;
    if (sim_conn_is_readable(p[0].fd)) p[0].revents = POLLIN;
    return p[0].revents != 0;
}

// ---- threads ----

struct start {
    void *(*fn)(void *);
    void *arg;
};

static void thread_start(void *arg) {
    const struct start *const s = arg;
    (void)s->fn(s->arg);
}

WRAP(int, pthread_create, pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
     void *arg) {
    const struct start s = {fn, arg};
    (void)attr;
    *ret = (pthread_t)sim_spawn(sim_self(), thread_start, sim_copy(&s, sizeof s));
    return 0;
}

WRAP(int, pthread_join, pthread_t t, void **ret) {
    (void)ret;
    sim_join((int)t);
    return 0;
}

// ---- mutexes and conditions: a mutex begins with its owner ----

WRAP(int, pthread_mutex_init, pthread_mutex_t *m, const pthread_mutexattr_t *attr) {
    (void)attr;
    memset(m, 0, sizeof *m);
    return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *m) {
    (void)m;
    return 0;
}

static int *owner_of(pthread_mutex_t *m) {
    return (int *)m;
}

WRAP(int, pthread_mutex_trylock, pthread_mutex_t *m) {
    if (*owner_of(m)) return EBUSY;
    *owner_of(m) = sim_thread();
    return 0;
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *m) {
    if (sim_one_in(LOCKS_PER_SWITCH)) sim_yield();
    CHECK(*owner_of(m) != sim_thread());
    while (*owner_of(m))
        (void)sim_wait(m, SIM_NEVER);
    *owner_of(m) = sim_thread();
    return 0;
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *m) {
    CHECK(*owner_of(m) == sim_thread());
    *owner_of(m) = 0;
    sim_wake(m, false);
    return 0;
}

static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until) {
    (void)__wrap_pthread_mutex_unlock(m);
    const bool woken = sim_wait(c, until);
    (void)__wrap_pthread_mutex_lock(m);
    return woken ? 0 : ETIMEDOUT;
}

WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
    return wait_for(c, m, ns_of(t));
}

WRAP(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m) {
    return wait_for(c, m, SIM_NEVER);
}

WRAP(int, pthread_cond_signal, pthread_cond_t *c) {
    sim_wake(c, false);
    return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *c) {
    sim_wake(c, true);
    return 0;
}

// ---- the system ----

WRAP(ssize_t, getrandom, void *p, size_t n, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)sim_random(256);
    return (ssize_t)n;
}

WRAP(int, eventfd, unsigned n, int flags) {
    (void)n, (void)flags;
    return -1; // stores work without: they close at the next time limit
}
