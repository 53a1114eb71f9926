// SPDX-License-Identifier: Apache-2.0
// base/exec: every piece runs once and before run returns, on several threads; cancelling; pools
// whose threads cannot be started.
#include "base/exec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/check.h"

enum { MAX_PIECES = 5000 };

struct work {
    atomic_uint runs[MAX_PIECES];
    atomic_size_t total;
    pthread_t caller;
    atomic_uint elsewhere; // pieces that ran on other threads
};

static void count(void *ctx, size_t i) {
    struct work *const w = ctx;
    CHECK(i < MAX_PIECES);
    atomic_fetch_add(&w->runs[i], 1);
    atomic_fetch_add(&w->total, 1);
    if (!pthread_equal(pthread_self(), w->caller)) atomic_fetch_add(&w->elsewhere, 1);
}

static void run_and_check(struct xpl_exec *e, size_t n) {
    static struct work w;
    memset(&w, 0, sizeof w);
    w.caller = pthread_self();
    xpl_exec_run(e, n, count, &w);
    CHECK_EQ(atomic_load(&w.total), n); // all have returned
    for (size_t i = 0; i < MAX_PIECES; i++)
        CHECK_EQ(atomic_load(&w.runs[i]), i < n);
}

struct order {
    size_t next;
};
static void in_order(void *ctx, size_t i) {
    CHECK_EQ(((struct order *)ctx)->next++, i);
}

static void test_serial(void) {
    struct xpl_exec e = xpl_exec_serial();
    CHECK_EQ(e.width, 1);
    struct order o = {0};
    xpl_exec_run(&e, 100, in_order, &o);
    CHECK_EQ(o.next, 100);
    xpl_exec_run(&e, 0, in_order, &o);
    CHECK_EQ(o.next, 100);
    CHECK(!xpl_exec_cancelled(&e)); // NULL: never
}

static bool g_over;
static bool say_over(struct xpl_exec *e) {
    (void)e;
    return g_over;
}

static void test_cancelled(void) {
    struct xpl_exec e = xpl_exec_serial();
    e.cancelled = say_over;
    CHECK(!xpl_exec_cancelled(&e));
    g_over = true;
    CHECK(xpl_exec_cancelled(&e));
}

static void test_widths(void) {
    for (unsigned width = 1; width <= 9; width++) {
        struct xpl_exec_pool *const p = xpl_exec_pool_new(width);
        CHECK(p);
        struct xpl_exec *const e = xpl_exec_pool_get(p);
        CHECK_EQ(e->width, width);
        CHECK(!xpl_exec_cancelled(e));
        static const size_t counts[] = {0, 1, 2, 3, 8, 9, 10, 1000, MAX_PIECES};
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            run_and_check(e, counts[i]);
        xpl_exec_pool_free(p);
    }
    struct xpl_exec_pool *const p = xpl_exec_pool_new(0);
    CHECK(p);
    CHECK_EQ(xpl_exec_pool_get(p)->width, sysconf(_SC_NPROCESSORS_ONLN));
    run_and_check(xpl_exec_pool_get(p), 100);
    xpl_exec_pool_free(p);
    xpl_exec_pool_free(NULL);
}

// Many short rounds: a thread that wakes late must not join a finished round.
static void test_rounds(void) {
    struct xpl_exec_pool *const p = xpl_exec_pool_new(4);
    CHECK(p);
    for (size_t round = 0; round < 2000; round++)
        run_and_check(xpl_exec_pool_get(p), 2 + round % 5);
    xpl_exec_pool_free(p);
    for (int i = 0; i < 50; i++) // threads that never had work
        xpl_exec_pool_free(xpl_exec_pool_new(3));
}

struct meeting {
    pthread_barrier_t all;
    pthread_t caller;
    atomic_uint over;
};
static void meet(void *ctx, size_t i) {
    struct meeting *const m = ctx;
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)i;
    (void)pthread_barrier_wait(&m->all);
    if (!pthread_equal(pthread_self(), m->caller)) (void)nanosleep(&pause, NULL);
    atomic_fetch_add(&m->over, 1);
}

// As many pieces as the width wait for one another: they do run at once, or this never ends. The
// other threads' pieces end after the caller's, which waits for them.
static void test_at_once(void) {
    enum { WIDTH = 4 };
    struct xpl_exec_pool *const p = xpl_exec_pool_new(WIDTH);
    struct meeting m = {.caller = pthread_self()};
    CHECK(p);
    CHECK_EQ(pthread_barrier_init(&m.all, NULL, WIDTH), 0);
    for (unsigned i = 1; i <= 20; i++) {
        xpl_exec_run(xpl_exec_pool_get(p), WIDTH, meet, &m);
        CHECK_EQ(atomic_load(&m.over), i * WIDTH);
    }
    xpl_exec_pool_free(p);
    CHECK_EQ(pthread_barrier_destroy(&m.all), 0);
}

// Without threads the caller does all of it, and the width says so.
static void test_no_threads(void) {
    pthread_attr_t before, huge;
    CHECK_EQ(pthread_getattr_default_np(&before), 0);
    CHECK_EQ(pthread_attr_init(&huge), 0);
    CHECK_EQ(pthread_attr_setstacksize(&huge, (size_t)1 << 48), 0); // more than can be mapped
    CHECK_EQ(pthread_setattr_default_np(&huge), 0);
    struct xpl_exec_pool *const p = xpl_exec_pool_new(4);
    CHECK_EQ(pthread_setattr_default_np(&before), 0);
    CHECK(p);
    CHECK_EQ(xpl_exec_pool_get(p)->width, 1);
    run_and_check(xpl_exec_pool_get(p), 100);
    xpl_exec_pool_free(p);
    CHECK_EQ(pthread_attr_destroy(&huge), 0);
    CHECK_EQ(pthread_attr_destroy(&before), 0);
}

#if XPL_FAULTS
static void test_faults(void) {
    const int64_t live = xpl_fault_live();
    uint64_t at = 0;
    for (struct xpl_exec_pool *p = NULL; !p; at++) {
        xpl_fault_reset();
        xpl_fault_fail_on(at);
        p = xpl_exec_pool_new(2);
        CHECK(p || xpl_fault_live() == live);
        if (!p) continue;
        xpl_exec_pool_free(p);
        break;
    }
    CHECK(at > 0); // some did fail
    CHECK_EQ(xpl_fault_live(), live);
    xpl_fault_reset();
}
#endif

int main(void) {
    alarm(60);
    test_serial();
    test_cancelled();
    test_widths();
    test_rounds();
    test_at_once();
    test_no_threads();
#if XPL_FAULTS
    test_faults();
#endif
    return 0;
}
