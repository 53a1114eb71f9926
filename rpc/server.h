// SPDX-License-Identifier: Apache-2.0
// A gRPC server: listeners, methods, limits, and its end.
//
//   queue_new -> server_new -> listen... -> start -> ... -> shutdown -> (done) -> free ->
//   queue_free
//
// Several servers may share a queue, such as a public one and one on a unix socket for an XProf
// aggregator, each with its own methods, token and limits.
#ifndef XPL_RPC_SERVER_H_
#define XPL_RPC_SERVER_H_

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "base/str.h"
#include "rpc/call.h"
#include "rpc/credentials.h"
#include "rpc/queue.h"

struct xpl_rpc_server;

enum {
    XPL_RPC_MAX_REQUEST = 4 << 20,        // bytes of a message, where the options say nothing else
    XPL_RPC_KEEPALIVE_TIMEOUT_MS = 10000, // for a peer to acknowledge sent data
};

struct xpl_rpc_server_options {
    size_t size;               // sizeof this
    size_t max_request_bytes;  // of one message; 0: 4 MiB
    uint32_t max_streams;      // calls at once on one connection; 0: 256
    uint32_t max_calls;        // calls at once on this server; 0: 4096; more: RESOURCE_EXHAUSTED
    size_t memory_quota_bytes; // gRPC's own buffers, all connections together; 0: no limit
    int max_connection_age_ms; // 0: none
    xpl_str_t tokens;          // text of a token file, copied; empty: no call needs one
};

// Copies the table and its texts (not the services).  The paths must be unique.
xpl_status_t xpl_rpc_server_new(struct xpl_rpc_queue *q, const struct xpl_rpc_method *methods,
                                size_t n, const struct xpl_rpc_server_options *opt,
                                struct xpl_rpc_server **ret, struct xpl_error *err);

// "127.0.0.1:50551", "[::1]:0", "localhost:50551".  tls NULL: in the clear.  Several listeners are
// fine, all before start.  An address in use is an error, also where another process would share
// the port.  *ret_port (may be NULL) is the port chosen, for port 0.  Unix sockets are
// rpc/unix.h's: gRPC would replace the one of a running process, and leave its mode to the umask.
xpl_status_t xpl_rpc_server_listen(struct xpl_rpc_server *s, const char *address,
                                   struct xpl_rpc_tls *tls, int *ret_port, struct xpl_error *err);

// Calls are served from here on.
xpl_status_t xpl_rpc_server_start(struct xpl_rpc_server *s, struct xpl_error *err);

// Serves a socket that was accepted from that address, in the clear, after start.  Owns fd: closes
// it on failure or when the server is shutting down.  Any thread.
xpl_status_t xpl_rpc_server_adopt(struct xpl_rpc_server *s, int fd, const struct sockaddr *from,
                                  struct xpl_error *err);

// TLS for sockets that are adopted by the second function; once, before start.  As adopt, else.
xpl_status_t xpl_rpc_server_serve_tls(struct xpl_rpc_server *s, struct xpl_rpc_tls *tls,
                                      struct xpl_error *err) XPL_NODISCARD;
xpl_status_t xpl_rpc_server_adopt_tls(struct xpl_rpc_server *s, int fd, struct xpl_error *err);

// Replaces the tokens (SIGHUP) by those of a token file; without any no call needs one.
// INVALID_ARGUMENT for a bad file; FAILED_PRECONDITION for a server that was made without a token:
// its methods read bodies before they check metadata.  Any thread.
xpl_status_t xpl_rpc_server_set_tokens(struct xpl_rpc_server *s, xpl_str_t text,
                                       struct xpl_error *err);

// Refuses new calls and connections; running calls continue. `done(arg)` is called once, when the
// last call has finished and no reference to one is left: on the queue's thread, or on the one that
// dropped the last reference.  Streams without an end (health, watches) must be ended by their
// services.  Any thread, once.
void xpl_rpc_server_shutdown(struct xpl_rpc_server *s, void (*done)(void *arg), void *arg);
// After shutdown: no call is open, and all sent bytes have reached the peers' machines. gRPC then
// still waits for idle clients to close their connections, which can take them seconds:
// xpl_rpc_server_cancel_all closes them.
bool xpl_rpc_server_is_drained(const struct xpl_rpc_server *s);
// After shutdown, when the grace period has ended: cancels all calls and closes all connections.
void xpl_rpc_server_cancel_all(struct xpl_rpc_server *s);
// After `done` has been called (also from within it), or instead of a shutdown when no call can be
// under way: then it waits, and not on the queue's thread.  NULL is fine.
void xpl_rpc_server_free(struct xpl_rpc_server *s);

struct xpl_rpc_server_stats {
    // slow: ended because their clients neither sent nor read (limits.c).
    // denied: with a token of another role.
    uint64_t calls, cancelled, unauthenticated, denied, unimplemented, refused, slow;
    uint32_t open;
};
void xpl_rpc_server_get_stats(const struct xpl_rpc_server *s, struct xpl_rpc_server_stats *ret);

enum { XPL_RPC_CODES = 17 }; // gRPC's: ours, and UNAUTHENTICATED is the last
struct xpl_rpc_method_stats {
    const char *path; // "/xplaned.v1.AnalysisService/GetToolData"; "*" for all that are not known
    uint64_t answered[XPL_RPC_CODES]; // calls that got their status, by it
};
// Of the i-th method of the table; the one behind the last is "*".  False at the end.
bool xpl_rpc_server_get_method(const struct xpl_rpc_server *s, size_t i,
                               struct xpl_rpc_method_stats *ret);

#endif
