// SPDX-License-Identifier: Apache-2.0
// Many unary calls under way at once, on one thread, whose answers may be huge.
//
// A set of async calls has one completion queue and belongs to one thread, which asks for events.
// An answer is received only when the owner asks for it: until then HTTP/2's flow control stops its
// server, so that the owner decides how many answers are in memory.  An answer stays in the pieces
// in which gRPC received it: nothing is joined, copied or decoded.
#ifndef XPL_RPC_CALLS_H_
#define XPL_RPC_CALLS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "rpc/client.h"

struct xpl_rpc_async_calls;
struct xpl_rpc_async_call;

xpl_status_t xpl_rpc_async_calls_new(struct xpl_rpc_async_calls **ret, struct xpl_error *err);
// Cancels running calls and waits until gRPC has completed them, at most a tenth of a second.
// Frees all calls; their channels are closed afterwards, by the caller.  NULL is fine.
void xpl_rpc_async_calls_free(struct xpl_rpc_async_calls *calls);

// A call on a channel, which begins with connect or call.  NULL on OOM.
struct xpl_rpc_async_call *xpl_rpc_async_call_new(struct xpl_rpc_async_calls *calls,
                                                  struct xpl_rpc_channel *ch, void *user);
void *xpl_rpc_async_call_get_user(const struct xpl_rpc_async_call *c);
// Cancels and frees, now or when gRPC has completed it; no further event of it is returned.  NULL
// is fine.
void xpl_rpc_async_call_free(struct xpl_rpc_async_call *c);

enum xpl_rpc_async_call_event {
    XPL_RPC_ASYNC_CALL_NONE,        // none within the time
    XPL_RPC_ASYNC_CALL_CONNECTED,   // the server speaks HTTP/2
    XPL_RPC_ASYNC_CALL_UNREACHABLE, // an attempt to connect failed; a call's status says why
    XPL_RPC_ASYNC_CALL_ANSWERING,   // the answer has begun: receive it
    XPL_RPC_ASYNC_CALL_DONE,        // the call is complete: it has a status
};

// Tries to connect; CONNECTED or UNREACHABLE comes once, or nothing while the server is silent.
void xpl_rpc_async_call_connect(struct xpl_rpc_async_call *c);
// Sends the request (copied).  ANSWERING comes at most once, and DONE always, unless the call is
// freed before.  Once per object.
xpl_status_t xpl_rpc_async_call_call(struct xpl_rpc_async_call *c, const char *path,
                                     xpl_bytes_t request, struct xpl_error *err) XPL_NODISCARD;
// After ANSWERING: receives the answer, on a bounded channel of at most `max_bytes`: if more
// arrives, the call ends with RESOURCE_EXHAUSTED.
void xpl_rpc_async_call_receive(struct xpl_rpc_async_call *c, uint64_t max_bytes);
// After ANSWERING: the answer's length, from its first bytes. 0: these have not arrived yet;
// UINT64_MAX: unknown (listen/announced.h).
uint64_t xpl_rpc_async_call_announced(const struct xpl_rpc_async_call *c);

// The next event within wait_ms (0: only a pending one). *ret is its call.
enum xpl_rpc_async_call_event xpl_rpc_async_calls_next(struct xpl_rpc_async_calls *calls,
                                                       int wait_ms,
                                                       struct xpl_rpc_async_call **ret);

// After DONE: how the call ended; err gets the server's message.  OK means that there is an answer.
xpl_status_t xpl_rpc_async_call_status(const struct xpl_rpc_async_call *c, struct xpl_error *err);
// After DONE with OK: the answer's length, and its bytes in order.  `fn` returns false to stop,
// which xpl_rpc_async_call_pieces then does, too.
uint64_t xpl_rpc_async_call_length(const struct xpl_rpc_async_call *c);
bool xpl_rpc_async_call_pieces(struct xpl_rpc_async_call *c,
                               bool (*fn)(void *ctx, xpl_bytes_t piece), void *ctx);

#endif
