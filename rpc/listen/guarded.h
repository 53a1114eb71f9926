// SPDX-License-Identifier: Apache-2.0
// The guards (guard.h) of the connections that this process serves.
//
// gRPC reads and writes its sockets itself, and has no hook to inspect bytes.  A program that wants
// its connections guarded defines `recvmsg`, `sendmsg`, `close`, `SSL_read` and `SSL_write`, which
// call the functions below (hooks.c); the dynamic linker then binds libgrpc's calls to them.  A
// library must not do that to the program that loads it, so nothing happens without
// xpl_rpc_guarded_enable.
#ifndef XPL_RPC_LISTEN_GUARDED_H_
#define XPL_RPC_LISTEN_GUARDED_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "rpc/listen/guard.h"

// Before the first connection.  `max_message`: bytes of a request.
void xpl_rpc_guarded_enable(size_t max_message);
bool xpl_rpc_guarded_enabled(void);

// ---- plain connections, by their descriptors ----

// A socket that gRPC is about to get, accepted from that address.  False when it cannot be guarded
// (OOM, or its number is beyond the table): it must be closed.  True without guards.
bool xpl_rpc_guarded_add(int fd, const struct sockaddr *from);
// Whether it is one of them.
bool xpl_rpc_guarded_has(int fd);
// Its peer, as xpl_rpc_peer_text; also after the client has reset it.  False if it is not guarded.
// Any thread, while the descriptor is open.
bool xpl_rpc_guarded_get_peer(int fd, char peer[XPL_RPC_PEER_SIZE]);
// `n` bytes were received into m.  Returns n; or -1 with ECONNRESET when the connection must end.
ssize_t xpl_rpc_guarded_received(int fd, const struct msghdr *m, ssize_t n);
// The first `n` bytes of m were sent.
void xpl_rpc_guarded_sent(int fd, const struct msghdr *m, ssize_t n);
// The descriptor is about to be closed.
void xpl_rpc_guarded_close(int fd);
// Ends the connection when its client uses it `at_most` that much; gRPC then closes it.  False if
// the client uses it more, or it is not guarded.  Any thread.
bool xpl_rpc_guarded_end_unused(int fd, enum xpl_rpc_guard_use at_most);

// ---- connections whose bytes are encrypted elsewhere ----

// A separate guard; NULL on OOM.
struct xpl_rpc_guard *xpl_rpc_guarded_new(void);
void xpl_rpc_guarded_free(struct xpl_rpc_guard *g); // NULL is fine
// False when the connection must end.
bool xpl_rpc_guarded_feed(struct xpl_rpc_guard *g, uint8_t *p, size_t n);
void xpl_rpc_guarded_note_sent(struct xpl_rpc_guard *g, const uint8_t *p, size_t n);

// Closed connections by cause: one count for each verdict.  Any thread.
void xpl_rpc_guarded_get_counts(uint64_t ret[XPL_RPC_GUARD_VERDICTS]);

#endif
