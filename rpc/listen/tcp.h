// SPDX-License-Identifier: Apache-2.0
// TCP listeners that accept connections themselves and hand them to gRPC.
//
// The accept loop of gRPC 1.51 stops for good when a process has no descriptor left once, and has
// no limit on connections.  Here the daemon's loop polls the descriptors and calls accept.
#ifndef XPL_RPC_LISTEN_TCP_H_
#define XPL_RPC_LISTEN_TCP_H_

#include <stddef.h>

#include "base/status.h"
#include "rpc/listen/connections.h"
#include "rpc/server.h"

enum { XPL_RPC_TCP_MAX_SOCKETS = 8 };

struct xpl_rpc_tcp;

// Listens on "HOST:PORT" or "[V6]:PORT", on each address that the name resolves to, all with the
// same port; one successful address is enough.  "[::]" takes IPv4, too.  *ret_port is the port
// chosen, for port 0.  An address in use is UNAVAILABLE.
xpl_status_t xpl_rpc_tcp_new(const char *address, struct xpl_rpc_tcp **ret, int *ret_port,
                             struct xpl_error *err) XPL_NODISCARD;
void xpl_rpc_tcp_free(struct xpl_rpc_tcp *t); // NULL is fine

// The listening sockets, not blocking.
size_t xpl_rpc_tcp_get_fds(const struct xpl_rpc_tcp *t, const int **ret);

// Accepts a batch of pending connections of one socket, and hands them to the server, with TLS or
// without.  Disconnects clients above a limit at once.  False when the process has no descriptor
// left, not even to disconnect them: the caller stops polling for a while.  One thread at a time.
bool xpl_rpc_tcp_accept(struct xpl_rpc_tcp *t, int listener, struct xpl_rpc_server *s, bool tls,
                        struct xpl_rpc_connections *c);

#endif
