// SPDX-License-Identifier: Apache-2.0
#include "base/net/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_ABORTED = 16 }; // connections that ended before they were accepted, in one call

struct xpl_peer xpl_peer_of(const struct sockaddr *a) {
    struct xpl_peer p = {.local = true};
    if (a->sa_family == AF_INET) {
        const struct in_addr four = ((const struct sockaddr_in *)(const void *)a)->sin_addr;
        p.key[10] = p.key[11] = 0xff;
        memcpy(p.key + 12, &four, sizeof four);
        p.local = p.key[12] == 127;
    } else if (a->sa_family == AF_INET6) {
        const struct in6_addr *const six =
            &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        const bool mapped = IN6_IS_ADDR_V4MAPPED(six);
        memcpy(p.key, six, mapped ? 16 : 8);
        p.local = mapped ? p.key[12] == 127 : IN6_IS_ADDR_LOOPBACK(six);
    }
    return p;
}

void xpl_accept_reserve_init(struct xpl_accept_reserve *r) {
    r->fd = open("/", O_PATH | O_CLOEXEC);
}

void xpl_accept_reserve_fini(struct xpl_accept_reserve *r) {
    if (r->fd >= 0) (void)close(r->fd);
    r->fd = -1;
}

// Disconnects one pending client, with the reserved descriptor.
static enum xpl_accept_result close_one(struct xpl_accept_reserve *r, int listener) {
    if (r->fd < 0) xpl_accept_reserve_init(r); // another thread was faster the last time
    if (r->fd < 0) return XPL_ACCEPT_STUCK;
    xpl_accept_reserve_fini(r);
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int why = errno;
    if (fd >= 0) (void)close(fd);
    xpl_accept_reserve_init(r);
    if (fd >= 0) return XPL_ACCEPT_CLOSED;
    return why == EAGAIN ? XPL_ACCEPT_NONE : XPL_ACCEPT_STUCK;
}

enum xpl_accept_result xpl_accept(struct xpl_accept_reserve *r, int listener, int *ret_fd,
                                  struct sockaddr_storage *ret_peer, socklen_t *ret_len) {
    for (int i = 0; i < MAX_ABORTED; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof peer;
        const int fd =
            accept4(listener, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            *ret_fd = fd, *ret_peer = peer, *ret_len = len;
            return XPL_ACCEPTED;
        }
        if (errno == EAGAIN) return XPL_ACCEPT_NONE;
        if (errno == EMFILE || errno == ENFILE) return close_one(r, listener);
        if (errno == ENOBUFS || errno == ENOMEM) return XPL_ACCEPT_STUCK;
        // Otherwise accept reports and removes an error of the connection itself.
    }
    return XPL_ACCEPT_NONE; // a level-triggered loop comes back
}

uint64_t xpl_descriptors_raise(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0) return 1024;
    const struct rlimit raised = {.rlim_cur = l.rlim_max, .rlim_max = l.rlim_max};
    if (l.rlim_cur < l.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0) l = raised;
    return l.rlim_cur == RLIM_INFINITY ? UINT64_MAX : l.rlim_cur;
}
