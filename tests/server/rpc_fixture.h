// SPDX-License-Identifier: Apache-2.0
// A small server for the tests of rpc/: a handful of methods, one queue, one thread that answers
// late.  Everything it does is bounded in time: alarm() ends a test that hangs.
#ifndef XPL_TESTS_SERVER_RPC_FIXTURE_H_
#define XPL_TESTS_SERVER_RPC_FIXTURE_H_

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "proto/descriptors.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/standard/health.h"
#include "rpc/standard/reflection.h"
#include "tests/check.h"

// Every race that ThreadSanitizer sees inside gRPC and suppresses costs it a millisecond.
#if defined(__SANITIZE_THREAD__)
enum { STORM_CALLS = 25 };
#else
enum { STORM_CALLS = 150 };
#endif
enum { FIXTURE_METHODS = 11, FIXTURE_ALL = FIXTURE_METHODS + 5, LATE_MAX = 4096 };

struct fixture {
    struct xpl_rpc_queue *queue;
    struct xpl_rpc_server *server;
    struct xpl_rpc_health *health;
    struct xpl_rpc_reflection *reflection;
    struct xpl_rpc_method methods[FIXTURE_ALL];
    char address[64];
    sem_t down;

    // calls waiting for the late thread
    pthread_t late;
    pthread_mutex_t mu;
    pthread_cond_t cv;
    struct xpl_rpc_call *waiting[LATE_MAX];
    size_t n_waiting;
    bool stop;

    struct xpl_rpc_blob *blob; // what Blob and Chunks send
    atomic_int hanging;        // calls that Hang holds
    atomic_int cancels;        // on_cancel was called
    atomic_int releases;       // user state released
    atomic_int drained;
};

static inline xpl_bytes_t text_bytes(const char *s) {
    return (xpl_bytes_t){(const uint8_t *)s, strlen(s)};
}
static inline int64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
// Waits until *v is `expected`; false after a minute.
static inline bool wait_for(atomic_int *v, int expected) {
    for (int i = 0; i < 60000; i++) {
        if (atomic_load(v) == expected) return true;
        usleep(1000);
    }
    return false;
}

// Options that leave all to the defaults, an empty token among them.
struct fixture *fixture_new(const struct xpl_rpc_server_options *opt);
// Starts the server's end; fixture_free waits for it.
void fixture_stop(struct fixture *f);
void fixture_free(struct fixture *f);
struct xpl_rpc_channel *fixture_connect(const struct fixture *f, const char *token);

#endif
