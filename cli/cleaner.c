// SPDX-License-Identifier: Apache-2.0
#include "cli/cleaner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "storage/sessions/removal.h"

// Reads until the pipe's other end is closed.  False unless exactly one directory came.
static bool read_directory(int fd, struct xpl_session_place *ret) {
    size_t n = 0;
    char *const to = (char *)ret;
    for (;;) {
        char beyond;
        const ssize_t k =
            n < sizeof *ret ? read(fd, to + n, sizeof *ret - n) : read(fd, &beyond, 1);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return n == sizeof *ret;
        n += (size_t)k;
    }
}

// The other process.  It holds nothing that others wait for: no terminal, no standard output.
static void wait_and_clean(int fd) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static struct xpl_session_place d;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)setsid();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        (void)dup2(null, i);
    if (read_directory(fd, &d)) xpl_session_clean(d.path, d.dev, d.ino);
}

int xpl_cleaner_start(void) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[1]);
        wait_and_clean(ends[0]);
        _exit(0);
    }
    (void)close(ends[0]);
    if (child > 0) return ends[1];
    (void)close(ends[1]);
    return -1;
}

void xpl_cleaner_watch(int fd, const char *logdir, const char *name) {
    static struct xpl_session_place d; // too large for a stack, and written whole
    if (fd < 0 || !xpl_session_locate(logdir, xpl_str_from(name), &d)) return;
    // Less than a pipe holds.
    (void)!write(fd, &d, sizeof d);
}
