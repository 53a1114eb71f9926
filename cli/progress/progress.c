// SPDX-License-Identifier: Apache-2.0
#include "cli/progress/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/text/terminal.h"
#include "cli/commands/command.h"
#include "cli/table.h"

#define FIRST_NS UINT64_C(1000000000) // faster work needs no line
#define EACH_NS  UINT64_C(250000000)

static struct {
    pthread_mutex_t mu;
    pthread_cond_t wake;
    pthread_t thread;
    const char *what;  // the command's name; NULL: nothing is under way
    uint64_t begin_ns; // of the first thing that was
    bool shown;        // the line is there
    _Atomic uint64_t hosts, all_hosts, bytes, all_bytes;
} state = {.mu = PTHREAD_MUTEX_INITIALIZER};

// ---- the line ----

static void show_bytes(uint64_t done, uint64_t all) {
    char some[32], whole[32];
    xpl_show_bytes(some, done);
    xpl_show_bytes(whole, all);
    if (all)
        (void)fprintf(stderr, " %.0f%% (%s of %s),", 100 * (double)done / (double)all, some, whole);
    else
        (void)fprintf(stderr, " %s,", some);
}

// The caller holds state.mu.
static void show(void) {
    const uint64_t all_hosts = state.all_hosts, bytes = state.bytes, all_bytes = state.all_bytes;
    xpl_terminal_clear_line();
    (void)fprintf(stderr, "xplanectl: %s:", state.what);
    if (all_hosts)
        (void)fprintf(stderr, " host %" PRIu64 " of %" PRIu64 ",", (uint64_t)state.hosts,
                      all_hosts);
    if (bytes || all_bytes) show_bytes(bytes, all_bytes);
    (void)fprintf(stderr, " %" PRIu64 " s", (xpl_clock_ns() - state.begin_ns) / 1000000000);
    (void)fflush(stderr);
    state.shown = true;
}

// The caller holds state.mu.
static void hide(void) {
    if (state.shown) xpl_terminal_clear_line();
    state.shown = false;
}

static void *tick(void *arg) {
    (void)arg;
    (void)pthread_mutex_lock(&state.mu);
    uint64_t next = state.begin_ns + FIRST_NS;
    while (state.what) {
        if (xpl_cond_wait_until(&state.wake, &state.mu, next) || !state.what) continue;
        show();
        next = xpl_clock_ns() + EACH_NS;
    }
    (void)pthread_mutex_unlock(&state.mu);
    return NULL;
}

// ---- begin and end ----

// Signals are for the program's first thread.
static bool start_thread(void) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&state.thread, NULL, tick, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void xpl_progress_begin(const struct xpl_args *a) {
    if (state.what || a->quiet || !a->command || !isatty(STDERR_FILENO)) return;
    if (!state.begin_ns) {
        xpl_cond_init(&state.wake);
        state.begin_ns = xpl_clock_ns();
    }
    state.what = a->command->name;
    state.hosts = state.all_hosts = state.bytes = state.all_bytes = 0;
    if (!start_thread()) state.what = NULL; // then without
}

void xpl_progress_end(void) {
    if (!state.what) return; // changed only by this thread
    (void)pthread_mutex_lock(&state.mu);
    state.what = NULL;
    hide();
    (void)pthread_cond_signal(&state.wake);
    (void)pthread_mutex_unlock(&state.mu);
    (void)pthread_join(state.thread, NULL);
}

void xpl_progress_hide(void) {
    (void)pthread_mutex_lock(&state.mu);
    hide();
    (void)pthread_mutex_unlock(&state.mu);
}

void xpl_progress_hosts(uint64_t done, uint64_t all) {
    state.hosts = done;
    state.all_hosts = all;
}

void xpl_progress_bytes(uint64_t done, uint64_t all) {
    state.bytes = done;
    state.all_bytes = all;
}
