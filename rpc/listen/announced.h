// SPDX-License-Identifier: Apache-2.0
// The lengths of answers that this process is receiving, as a client.
//
// An answer is one message, whose length is in its first bytes; gRPC reports it only when the
// answer is complete.  In a program with the hooks (hooks.h), this follows its received bytes:
// HTTP/2's frames (RFC 9113) of plain connections that it made, and the prefix of gRPC's messages
// in them.  It changes no bytes, and cannot follow TLS.
//
// A connection ends when its server fills gRPC's memory with other data than an answer: header
// blocks without an end, and thousands of tiny frames of data within seconds, each of which costs
// more than its bytes.
#ifndef XPL_RPC_LISTEN_ANNOUNCED_H_
#define XPL_RPC_LISTEN_ANNOUNCED_H_

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "rpc/listen/bucket.h"
#include "rpc/listen/frame.h"

// The length is unknown: no hooks, TLS, or a socket of another kind.
#define XPL_RPC_ANNOUNCED_UNKNOWN UINT64_MAX

enum { XPL_RPC_PEER_SIZE = INET6_ADDRSTRLEN + 32 };
// Formats an address like gRPC, an IPv4 one that is mapped to IPv6 as IPv4; "unix:" for a Unix
// socket.  False, and "", for other families.
bool xpl_rpc_peer_text(const struct sockaddr *from, char peer[XPL_RPC_PEER_SIZE]);
// The same of the socket's peer; false also if it has none, or the client has reset it.
bool xpl_rpc_peer_of(int fd, char peer[XPL_RPC_PEER_SIZE]);

struct xpl_rpc_announced { // one connection; zeroed at first; its members are announced.c's
    struct xpl_rpc_frame_head head;
    uint8_t prefix[5], n_prefix;
    struct xpl_rpc_frame_padding padding;
    bool begun;     // the server's settings have come
    bool other;     // not HTTP/2
    bool hidden;    // it has calls that were never made, or several at once: lengths unknown
    bool open;      // the newest call has not ended
    bool follows;   // the frame's data is the newest call's
    bool floods;    // the connection must end
    uint32_t block; // bytes of the header block that has not ended
    struct xpl_rpc_bucket tiny; // frames of data
    uint32_t left;
    uint32_t stream; // of the newest call
    uint64_t length; // of its last message, 1 for an empty one; 0: not known yet
    uint64_t missing;
};

// The next bytes that the server sent, in pieces of any size.
void xpl_rpc_announced_feed(struct xpl_rpc_announced *a, const uint8_t *p, size_t n,
                            uint64_t now_ns);

// ---- the connections of this process ----

// Before the first connection.
void xpl_rpc_announced_enable(void);
// `n` bytes were received into m.  Returns n; or -1 with ECONNRESET when the connection must end.
// One thread at a time for a descriptor; its close comes after.
ssize_t xpl_rpc_announced_received(int fd, const struct msghdr *m, ssize_t n);
// The descriptor is about to be closed.
void xpl_rpc_announced_close(int fd);
// The length of the message that answers the newest call to this peer ("ipv4:127.0.0.1:80", as gRPC
// writes it), the largest when there are several connections; 0: not known yet.  Any thread.
uint64_t xpl_rpc_announced_by(const char *peer);

#endif
