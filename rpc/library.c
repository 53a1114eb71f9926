// SPDX-License-Identifier: Apache-2.0
// gRPC's start and its end in this process.
#include <grpc/grpc.h>
#include <signal.h>
#include <time.h>

#include "rpc/impl.h"

enum { END_MS = 1500 }; // more than a client's longest pause between two attempts to connect

// gRPC 1.51 never frees a connection that is accepted at the very moment its server is shut down:
// the remaining objects refer only to themselves.  A process that stops a server is about to end.
#if defined(__SANITIZE_ADDRESS__)
#define XPL_RPC_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define XPL_RPC_ASAN 1
#endif
#endif
#ifdef XPL_RPC_ASAN
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:grpc_core::Server::SetupTransport\n";
}
#endif

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static bool shared; // the program uses gRPC without us, too

static void block_signals(sigset_t *ret_old) {
    sigset_t block;
    sigfillset(&block);
    sigdelset(&block, SIGBUS);
    sigdelset(&block, SIGSEGV);
    sigdelset(&block, SIGFPE);
    sigdelset(&block, SIGILL);
    pthread_sigmask(SIG_SETMASK, &block, ret_old);
}

void xpl_rpc_library_start(sigset_t *ret_old) {
    // Signals belong to the main thread.  gRPC's threads inherit the mask of the one that makes
    // them.
    block_signals(ret_old);
    pthread_mutex_lock(&mu);
    if (users++ == 0) shared = grpc_is_initialized();
    grpc_init();
    pthread_mutex_unlock(&mu);
}

// Channels and subchannels keep gRPC up until its own threads have destroyed them, which may be
// after the call that closed them.  A process that ends meanwhile destroys data that these threads
// use: so the last user waits for them.
void xpl_rpc_library_stop(void) {
    pthread_mutex_lock(&mu);
    const bool last = --users == 0 && !shared;
    pthread_mutex_unlock(&mu);
    grpc_shutdown_blocking();
    for (int ms = 0; last && ms < END_MS && grpc_is_initialized(); ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
}
