// SPDX-License-Identifier: Apache-2.0
// Private to server.  Listeners of gRPC's servers: sockets that the loop polls and accepts from.
// All functions on the loop's thread.
#ifndef XPL_SERVER_LISTENERS_H_
#define XPL_SERVER_LISTENERS_H_

#include <sys/types.h>
#include <uv.h>

#include "base/status.h"
#include "rpc/listen/connections.h"
#include "rpc/listen/guarded.h"
#include "rpc/server.h"

enum { XPL_MAX_LISTENERS = 32 };

struct xpl_listener {
    struct xpl_listeners *all;
    struct xpl_rpc_unix *unix_socket; // one of these two
    struct xpl_rpc_tcp *tcp;          // shared by the sockets of one address
    bool owns_tcp;                    // the first of them
    int fd;
    bool tls, paused, closed;
    struct xpl_rpc_server *server;
    uv_poll_t poll;
};

struct xpl_listeners { // zeroed, then init
    uv_loop_t *loop;
    struct xpl_rpc_connections *connections;
    unsigned ticks;
    uint64_t guarded[XPL_RPC_GUARD_VERDICTS]; // connections closed for their bytes, as logged
    size_t n;
    struct xpl_listener all[XPL_MAX_LISTENERS];
};

// connections: those of all listeners together; owned from here on.
void xpl_listeners_init(struct xpl_listeners *l, uv_loop_t *loop,
                        struct xpl_rpc_connections *connections);
void xpl_listeners_fini(struct xpl_listeners *l);

// True for addresses that only this machine's users can reach.
bool xpl_listeners_is_local(const char *address);

// "unix:/PATH" or "HOST:PORT", for a server; said in the log under the service's name.  `group`
// (gid_t)-1 for none: who else may use a unix socket.  tls: TCP is served with the server's TLS.
struct xpl_listen_request {
    const char *address, *service;
    struct xpl_rpc_server *server;
    gid_t group;
    bool tls;
};
xpl_status_t xpl_listeners_add(struct xpl_listeners *l, const struct xpl_listen_request *q,
                               struct xpl_error *err) XPL_NODISCARD;
// A few times a second: polls again what had to pause because no descriptors were left; says in the
// log which connections were closed for what they sent.
void xpl_listeners_tick(struct xpl_listeners *l);
// Accepts nothing more for this server.
void xpl_listeners_stop(struct xpl_listeners *l, const struct xpl_rpc_server *server);
// After the loop has ended: closes this server's sockets.
void xpl_listeners_free(struct xpl_listeners *l, const struct xpl_rpc_server *server);

#endif
