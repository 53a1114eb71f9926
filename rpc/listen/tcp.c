// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/net/listen.h"

// Bounded, so that a flood of connections does not keep the loop from its other work: pending
// connections keep the descriptor readable.
enum { BATCH = 128 };

struct xpl_rpc_tcp {
    struct xpl_accept_reserve reserve;
    size_t n;
    int fds[XPL_RPC_TCP_MAX_SOCKETS];
};

static int port_of(int fd) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &n) != 0) return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

static void set_port(struct sockaddr *a, int port) {
    const in_port_t p = htons((uint16_t)port);
    if (a->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)a)->sin6_port = p;
    else
        ((struct sockaddr_in *)(void *)a)->sin_port = p;
}

static bool is_any(const struct addrinfo *a) {
    return a->ai_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(
               &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr);
}

// Opens each address; a later one gets the port that the system chose for the first.
static xpl_status_t open_all(struct xpl_rpc_tcp *t, const char *address, const struct addrinfo *all,
                             struct xpl_error *err) {
    int why = EADDRNOTAVAIL, port = 0;
    for (const struct addrinfo *a = all; a && t->n < XPL_RPC_TCP_MAX_SOCKETS; a = a->ai_next) {
        if (port) set_port(a->ai_addr, port);
        const int fd = xpl_listen_open(a, is_any(a));
        if (fd < 0) {
            why = errno;
            continue;
        }
        if (!port) port = port_of(fd);
        t->fds[t->n++] = fd;
    }
    if (!t->n)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "cannot listen on %s: %s%s", address, strerror(why),
                         why == EADDRINUSE ? "; choose another port, or port 0 for a free one"
                                           : "");
    return XPL_OK;
}

static xpl_status_t open_text(struct xpl_rpc_tcp *t, const char *address, struct xpl_error *err) {
    char host[256];
    const char *port = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *all = NULL;
    XPL_TRY(xpl_listen_split(address, host, sizeof host, &port, err));
    const int e = getaddrinfo(host, port, &hints, &all);
    if (e != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "cannot listen on %s: %s", address, gai_strerror(e));
    const xpl_status_t st = open_all(t, address, all, err);
    freeaddrinfo(all);
    return st;
}

xpl_status_t xpl_rpc_tcp_new(const char *address, struct xpl_rpc_tcp **ret, int *ret_port,
                             struct xpl_error *err) {
    struct xpl_rpc_tcp *const t = xpl_sys_alloc(sizeof *t);
    if (!t) XPL_RETURN_OOM(err, "listener");
    *t = (struct xpl_rpc_tcp){0};
    xpl_accept_reserve_init(&t->reserve);
    const xpl_status_t st = open_text(t, address, err);
    if (st != XPL_OK) {
        xpl_rpc_tcp_free(t);
        return st;
    }
    *ret_port = port_of(t->fds[0]);
    *ret = t;
    return XPL_OK;
}

void xpl_rpc_tcp_free(struct xpl_rpc_tcp *t) {
    if (!t) return;
    for (size_t i = 0; i < t->n; i++)
        (void)close(t->fds[i]);
    xpl_accept_reserve_fini(&t->reserve);
    xpl_sys_free(t);
}

size_t xpl_rpc_tcp_get_fds(const struct xpl_rpc_tcp *t, const int **ret) {
    *ret = t->fds;
    return t->n;
}

static void hand_over(int fd, const struct sockaddr *from, struct xpl_rpc_server *s, bool tls,
                      struct xpl_rpc_connections *c) {
    const int one = 1;
    const struct xpl_peer peer = xpl_peer_of(from);
    if (!xpl_rpc_connections_admit(c, &peer)) {
        (void)close(fd);
        return;
    }
    // As gRPC's own listeners: a peer that takes no byte that long is gone, and its calls with it.
    // Calls whose answers wait in a connection cannot be ended one by one.
    const unsigned deaf_ms = XPL_RPC_KEEPALIVE_TIMEOUT_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &deaf_ms, sizeof deaf_ms);
    xpl_rpc_connections_add(c, fd, &peer);
    // Both close the socket when the server is stopping.
    if (tls)
        (void)xpl_rpc_server_adopt_tls(s, fd, NULL);
    else
        (void)xpl_rpc_server_adopt(s, fd, from, NULL);
}

bool xpl_rpc_tcp_accept(struct xpl_rpc_tcp *t, int listener, struct xpl_rpc_server *s, bool tls,
                        struct xpl_rpc_connections *c) {
    for (int i = 0; i < BATCH; i++) {
        struct sockaddr_storage from;
        socklen_t n = 0;
        int fd = -1;
        switch (xpl_accept(&t->reserve, listener, &fd, &from, &n)) {
            case XPL_ACCEPT_NONE: return true;
            case XPL_ACCEPT_STUCK: return false;
            case XPL_ACCEPT_CLOSED: xpl_rpc_connections_note_exhausted(c); break;
            case XPL_ACCEPTED: hand_over(fd, (const struct sockaddr *)&from, s, tls, c); break;
        }
    }
    return true;
}
