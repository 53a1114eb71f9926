// SPDX-License-Identifier: Apache-2.0
#include "cli/program/program.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 50 * 1000 * 1000 };

static volatile sig_atomic_t n_signals, last_signal;

static void on_signal(int number) {
    n_signals = n_signals + 1;
    last_signal = number;
}

// Starts it with the signals as they were before; an errno.
static int start(const char *const *argv, int out, const sigset_t *before, pid_t *ret) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGINT);
    (void)sigaddset(&ours, SIGTERM);
    int e = posix_spawn_file_actions_init(&files);
    if (e) return e;
    e = posix_spawnattr_init(&how);
    if (e) {
        (void)posix_spawn_file_actions_destroy(&files);
        return e;
    }
    e = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!e) e = posix_spawnattr_setpgroup(&how, 0);
    if (!e) e = posix_spawnattr_setsigdefault(&how, &ours);
    if (!e) e = posix_spawnattr_setsigmask(&how, before);
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (!e) e = posix_spawnattr_setflags(&how, flags);
    // The function's type is older than const.
    if (!e) e = posix_spawnp(ret, argv[0], &files, &how, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawnattr_destroy(&how);
    (void)posix_spawn_file_actions_destroy(&files);
    return e;
}

// Waits for a signal or a moment, and passes on what came.
static void wait_a_moment(pid_t group, int *passed_on) {
    const struct timespec t = {.tv_nsec = TICK_NS};
    (void)nanosleep(&t, NULL);
    const int n = n_signals;
    if (n == *passed_on) return;
    *passed_on = n;
    (void)kill(-group, n > 1 ? SIGKILL : last_signal);
}

bool xpl_program_run(const char *const *argv, int out, void (*tick)(void *arg), void *arg,
                     struct xpl_program_end *ret) {
    const struct sigaction act = {.sa_handler = on_signal};
    struct sigaction was_int, was_term;
    sigset_t mask;
    pid_t child, ended = 0;
    int status = 0, passed_on = 0;
    n_signals = 0;
    (void)sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)sigaction(SIGINT, &act, &was_int);
    (void)sigaction(SIGTERM, &act, &was_term);
    const int e = start(argv, out, &mask, &child);
    while (!e && (ended = waitpid(child, &status, WNOHANG)) == 0) {
        if (tick) tick(arg);
        wait_a_moment(child, &passed_on);
    }
    // Programs that are started by a script may have left the one that matters behind.
    if (!e && n_signals) (void)kill(-child, SIGKILL);
    (void)sigaction(SIGINT, &was_int, NULL);
    (void)sigaction(SIGTERM, &was_term, NULL);
    if (e || ended < 0) {
        (void)fprintf(stderr, "xplanectl: cannot run %s: %s\n", argv[0], strerror(e ? e : errno));
        return false;
    }
    *ret = (struct xpl_program_end){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                                    .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                                    .interrupted = n_signals != 0};
    return true;
}
