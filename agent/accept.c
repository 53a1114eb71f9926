// SPDX-License-Identifier: Apache-2.0
#include "agent/accept.h"

#include <poll.h>
#include <stdbool.h>

#include "base/arena.h"
#include "rpc/listen/connections.h"
#include "rpc/listen/tcp.h"

enum { PAUSE_MS = 200 }; // without descriptors, until it is tried again

struct xpl_agent_accept {
    struct xpl_rpc_server *server;
    struct xpl_rpc_tcp *tcp;
    struct xpl_rpc_connections *connections;
};

void xpl_agent_accept_free(struct xpl_agent_accept *a) {
    if (!a) return;
    xpl_rpc_tcp_free(a->tcp);
    xpl_rpc_connections_free(a->connections);
    xpl_sys_free(a);
}

xpl_status_t xpl_agent_accept_new(struct xpl_rpc_server *server, const char *address,
                                  struct xpl_agent_accept **ret, int *ret_port,
                                  struct xpl_error *err) {
    const struct xpl_rpc_connections_options o = {.max = XPL_AGENT_CONNECTIONS,
                                                  .per_address = XPL_AGENT_PER_ADDRESS};
    struct xpl_agent_accept *const a = xpl_sys_alloc(sizeof *a);
    if (!a) XPL_RETURN_OOM(err, "listener");
    *a = (struct xpl_agent_accept){.server = server, .connections = xpl_rpc_connections_new(&o)};
    const xpl_status_t st =
        a->connections ? xpl_rpc_tcp_new(address, &a->tcp, ret_port, err) : XPL_RESOURCE_EXHAUSTED;
    if (st == XPL_OK) {
        *ret = a;
        return XPL_OK;
    }
    xpl_agent_accept_free(a);
    return st;
}

void xpl_agent_accept_run(struct xpl_agent_accept *a, int end_fd) {
    const int *fds = NULL;
    const size_t n = xpl_rpc_tcp_get_fds(a->tcp, &fds);
    struct pollfd all[1 + XPL_RPC_TCP_MAX_SOCKETS] = {{.fd = end_fd, .events = POLLIN}};
    for (size_t i = 0; i < n; i++)
        all[1 + i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    bool paused = false;
    for (;;) {
        const int got = poll(all, 1 + (paused ? 0 : (nfds_t)n), paused ? PAUSE_MS : -1);
        paused = false;
        if (got <= 0) continue; // the pause has ended, or an unrelated signal arrived
        if (all[0].revents) return;
        for (size_t i = 0; i < n; i++)
            if (all[1 + i].revents)
                paused |= !xpl_rpc_tcp_accept(a->tcp, fds[i], a->server, false, a->connections);
    }
}
