// SPDX-License-Identifier: Apache-2.0
// The connections that were handed to gRPC: how many there are, in all and of one address.
//
// gRPC owns a socket that it was given, and does not say when it closes it.  So each is known by
// its descriptor and the inode of its socket, and those whose inode has gone are forgotten when
// room is needed.  One thread uses this (the daemon's loop); the counters may be read by any.
#ifndef XPL_RPC_LISTEN_CONNECTIONS_H_
#define XPL_RPC_LISTEN_CONNECTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/net/accept.h"

struct xpl_rpc_connections;

struct xpl_rpc_connections_options {
    size_t max;         // at once; 7/8 of them for peers from elsewhere (base/net/accept.h)
    size_t per_address; // of one peer from elsewhere; 0: only `max` applies
};

// NULL on OOM.
struct xpl_rpc_connections *xpl_rpc_connections_new(const struct xpl_rpc_connections_options *o);
void xpl_rpc_connections_free(struct xpl_rpc_connections *c); // NULL is fine

// Whether one more connection of this peer may be open.  When all places are taken, a connection
// without TLS ends for it: the oldest whose client has not begun a call yet, else the oldest whose
// calls have ended, else the oldest of whose calls no message has come whole; for a peer from
// elsewhere, one from elsewhere.  Either is counted as a refusal.
bool xpl_rpc_connections_admit(struct xpl_rpc_connections *c, const struct xpl_peer *peer);
// Notes a connection that was admitted, before gRPC gets it.
void xpl_rpc_connections_add(struct xpl_rpc_connections *c, int fd, const struct xpl_peer *peer);
// Forgets closed connections.  Called when room is needed, and before the counters are read.
void xpl_rpc_connections_sweep(struct xpl_rpc_connections *c);
// Counts a connection that was closed because no descriptor was left.
void xpl_rpc_connections_note_exhausted(struct xpl_rpc_connections *c);

struct xpl_rpc_connections_stats {
    uint64_t accepted, refused_total, refused_address, refused_descriptors;
    size_t open; // as of the last sweep or connection
};
void xpl_rpc_connections_get_stats(const struct xpl_rpc_connections *c,
                                   struct xpl_rpc_connections_stats *ret);

#endif
