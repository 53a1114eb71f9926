// SPDX-License-Identifier: Apache-2.0
// The agent's TCP listener: connections are accepted here, within limits, and handed to gRPC.
// gRPC's own accept loop has no limit, and stops for good when descriptors run out once.
#ifndef XPL_AGENT_ACCEPT_H_
#define XPL_AGENT_ACCEPT_H_

#include "base/status.h"
#include "rpc/server.h"

enum {
    XPL_AGENT_CONNECTIONS = 256, // at once
    XPL_AGENT_PER_ADDRESS = 64,  // of these, of one other machine
};

struct xpl_agent_accept;

// Listens on "HOST:PORT"; *ret_port is the port chosen, for port 0.  The server is borrowed.
xpl_status_t xpl_agent_accept_new(struct xpl_rpc_server *server, const char *address,
                                  struct xpl_agent_accept **ret, int *ret_port,
                                  struct xpl_error *err) XPL_NODISCARD;
// Accepts until a byte, or a signal, can be read from `end_fd`.  Blocks; one thread.
void xpl_agent_accept_run(struct xpl_agent_accept *a, int end_fd);
// Closes the listener, not its connections.  NULL is fine.
void xpl_agent_accept_free(struct xpl_agent_accept *a);

#endif
