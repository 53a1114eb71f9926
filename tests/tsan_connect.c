// SPDX-License-Identifier: Apache-2.0
// connect() of the programs that the TSan stage runs (LD_PRELOAD). gRPC 1.51 allocates between
// connect() and its use of errno, and ThreadSanitizer's allocator changes errno: EINPROGRESS then
// becomes an error. Here a connection to this machine is made at once, so that there is no errno to
// use.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { PATIENCE_MS = 100 };

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *to,
                                                   socklen_t len) {
    int (*next)(int, const struct sockaddr *, socklen_t);
    *(void **)&next = dlsym(RTLD_NEXT, "connect");
    const int r = next(fd, to, len);
    if (r == 0 || errno != EINPROGRESS) return r;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = EINPROGRESS;
    socklen_t n = sizeof error;
    if (poll(&p, 1, PATIENCE_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 &&
        error == 0)
        return 0;
    errno = error;
    return -1;
}
