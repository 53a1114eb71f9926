// SPDX-License-Identifier: Apache-2.0
// Descriptors of a program: standard input, output and error if it was started without one of them,
// errors of writing to output, the limit on open files; writing.
#ifndef XPL_BASE_STD_FDS_H_
#define XPL_BASE_STD_FDS_H_

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Opens /dev/null for each closed descriptor from 0 to 2: otherwise the next opened file would get
// its number, and then receive output such as the log.  Call it first in main().
static inline void xpl_std_fds_open(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) (void)close(fd);
}

// Writes all bytes.  False with errno: it cannot.
static inline bool xpl_write_all(int fd, const void *p, size_t n) {
    for (size_t at = 0; at < n;) {
        const ssize_t done = write(fd, (const char *)p + at, n - at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return false;
        at += (size_t)done;
    }
    return true;
}

// Raises the soft limit on open descriptors to the hard one, at most to 65,536.  Systems start
// programs with a soft limit of 1,024, for those that use select(), which ours do not.
static inline void xpl_fd_limit_raise(void) {
    const rlim_t most = 65536;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most) return;
    limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// The exit status of a program that would end with `status`: 1, with a message on stderr, if its
// output could not be written completely (a full disk, a limit). `failed`: `status` reports a
// failure already, and stays.
static inline int xpl_std_out_end(const char *program, int status, bool failed) {
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || failed) return status;
    if (errno == EPIPE) return status; // the reader ended early
    (void)fprintf(stderr, "%s: cannot write output: %s\n", program,
                  errno ? strerror(errno) : "an earlier write failed");
    return 1;
}

#endif
