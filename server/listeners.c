// SPDX-License-Identifier: Apache-2.0
#include "server/listeners.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "rpc/listen/tcp.h"
#include "rpc/unix.h"

void xpl_listeners_init(struct xpl_listeners *l, uv_loop_t *loop,
                        struct xpl_rpc_connections *connections) {
    l->loop = loop;
    l->connections = connections;
}

void xpl_listeners_fini(struct xpl_listeners *l) {
    xpl_rpc_connections_free(l->connections);
    l->connections = NULL;
}

bool xpl_listeners_is_local(const char *a) {
    static const char *const local[] = {"localhost:", "[::1]:", "unix:", "unix-abstract:"};
    char host[INET_ADDRSTRLEN]; // 127.0.0.0/8 in numbers: "127.example.com" is anywhere
    const char *const colon = strrchr(a, ':');
    struct in_addr ip;
    const size_t len = colon ? (size_t)(colon - a) : strlen(a);
    if (len < sizeof host) {
        memcpy(host, a, len);
        host[len] = 0;
        if (inet_pton(AF_INET, host, &ip) == 1) return ntohl(ip.s_addr) >> 24 == 127;
    }
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(a, local[i], strlen(local[i])) == 0) return true;
    return false;
}

static void log_listening(const char *service, const char *address, int port) {
    const char *const colon = strncmp(address, "unix", 4) == 0 ? NULL : strrchr(address, ':');
    char text[PATH_MAX + 32];
    if (colon)
        (void)snprintf(text, sizeof text, "%.*s:%d", (int)(colon - address), address, port);
    else
        (void)snprintf(text, sizeof text, "%s", address);
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "daemon", "listening");
    xpl_log_z(&l, "service", service);
    xpl_log_z(&l, "address", text);
    xpl_log_end(&l);
}

// ---- accepting ----

static void on_connection(uv_poll_t *p, int status, int events) {
    (void)events;
    struct xpl_listener *const it = p->data;
    bool ok = true;
    if (status != 0) return;
    if (it->tcp)
        ok = xpl_rpc_tcp_accept(it->tcp, it->fd, it->server, it->tls, it->all->connections);
    else
        ok = xpl_rpc_unix_accept(it->unix_socket, it->server, it->all->connections);
    if (ok) return;
    uv_poll_stop(p); // no descriptors: the tick tries again
    it->paused = true;
}

// Says which connections were closed since the last time, in one line for each cause.
static void log_closed(struct xpl_listeners *l) {
    uint64_t now[XPL_RPC_GUARD_VERDICTS];
    xpl_rpc_guarded_get_counts(now);
    for (int i = 0; i < XPL_RPC_GUARD_VERDICTS; i++) {
        if (now[i] == l->guarded[i]) continue;
        xpl_log(XPL_LOG_WARN, "grpc", "%" PRIu64 " connection%s closed: %s", now[i] - l->guarded[i],
                now[i] - l->guarded[i] == 1 ? "" : "s",
                xpl_rpc_guard_explain((enum xpl_rpc_guard_verdict)i));
        l->guarded[i] = now[i];
    }
}

void xpl_listeners_tick(struct xpl_listeners *l) {
    enum { LOG_TICKS = 25 };
    if (++l->ticks % LOG_TICKS == 0) log_closed(l);
    for (size_t i = 0; i < l->n; i++) {
        struct xpl_listener *const it = &l->all[i];
        if (!it->paused || it->closed) continue;
        it->paused = false;
        uv_poll_start(&it->poll, UV_READABLE, on_connection);
    }
}

// ---- life ----

// Polls a socket; what it belongs to is owned by the listener from here on.
static xpl_status_t add_socket(struct xpl_listeners *l, const struct xpl_listener *what,
                               struct xpl_error *err) {
    if (l->n == XPL_MAX_LISTENERS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "at most %d listeners", XPL_MAX_LISTENERS);
    struct xpl_listener *const it = &l->all[l->n];
    *it = *what;
    it->all = l;
    if (uv_poll_init(l->loop, &it->poll, it->fd) != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the loop takes no more sockets");
    it->poll.data = it;
    l->n++;
    uv_poll_start(&it->poll, UV_READABLE, on_connection);
    return XPL_OK;
}

static xpl_status_t add_unix(struct xpl_listeners *l, const struct xpl_listen_request *q,
                             struct xpl_error *err) {
    struct xpl_rpc_unix *u = NULL;
    XPL_TRY(xpl_rpc_unix_new(q->address + 5, q->group, &u, err));
    const struct xpl_listener what = {
        .unix_socket = u, .fd = xpl_rpc_unix_get_fd(u), .server = q->server};
    const xpl_status_t st = add_socket(l, &what, err);
    if (st != XPL_OK) xpl_rpc_unix_free(u);
    return st;
}

static xpl_status_t add_tcp(struct xpl_listeners *l, const struct xpl_listen_request *q,
                            int *ret_port, struct xpl_error *err) {
    struct xpl_rpc_tcp *t = NULL;
    const int *fds = NULL;
    XPL_TRY(xpl_rpc_tcp_new(q->address, &t, ret_port, err));
    const size_t n = xpl_rpc_tcp_get_fds(t, &fds);
    for (size_t i = 0; i < n; i++) {
        const struct xpl_listener what = {
            .tcp = t, .owns_tcp = i == 0, .fd = fds[i], .tls = q->tls, .server = q->server};
        const xpl_status_t st = add_socket(l, &what, err);
        if (st == XPL_OK) continue;
        if (i == 0) xpl_rpc_tcp_free(t);
        return st;
    }
    return XPL_OK;
}

xpl_status_t xpl_listeners_add(struct xpl_listeners *l, const struct xpl_listen_request *q,
                               struct xpl_error *err) {
    int port = 0;
    if (strncmp(q->address, "unix:", 5) == 0)
        XPL_TRY(add_unix(l, q, err));
    else
        XPL_TRY(add_tcp(l, q, &port, err));
    log_listening(q->service, q->address, port);
    return XPL_OK;
}

void xpl_listeners_stop(struct xpl_listeners *l, const struct xpl_rpc_server *server) {
    for (size_t i = 0; i < l->n; i++) {
        struct xpl_listener *const it = &l->all[i];
        if (it->server != server || it->closed) continue;
        it->closed = true;
        uv_close((uv_handle_t *)&it->poll, NULL);
    }
}

void xpl_listeners_free(struct xpl_listeners *l, const struct xpl_rpc_server *server) {
    for (size_t i = 0; i < l->n; i++) {
        struct xpl_listener *const it = &l->all[i];
        if (it->server != server) continue;
        xpl_rpc_unix_free(it->unix_socket);
        if (it->owns_tcp) xpl_rpc_tcp_free(it->tcp);
        it->unix_socket = NULL, it->tcp = NULL, it->owns_tcp = false;
    }
}
