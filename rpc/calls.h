// Many unary calls under way at once, on one thread, whose answers may be huge.
//
// A set of flights has one completion queue and belongs to one thread, which asks for events.  An
// answer is received only when the owner says so: until then it waits at its server, held back by
// HTTP/2's flow control, so that the number of answers in memory is the owner's to choose.  It
// stays in the pieces in which gRPC has it: nothing is joined, copied or decoded.
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
// Cancels what is under way and waits until gRPC has let go of it, which takes at most a tenth of
// a second.  Frees all flights; their channels are to be closed afterwards.  NULL is fine.
void xpl_rpc_async_calls_free(struct xpl_rpc_async_calls *fl);

// Something to happen on a channel; begins with connect or call.  NULL on OOM.
struct xpl_rpc_async_call *xpl_rpc_async_call_new(struct xpl_rpc_async_calls *fl,
                                                  struct xpl_rpc_channel *ch, void *user);
void *xpl_rpc_async_call_get_user(const struct xpl_rpc_async_call *f);
// Cancels and frees, now or when gRPC has let go of it; no event of it comes any more.  NULL is
// fine.
void xpl_rpc_async_call_free(struct xpl_rpc_async_call *f);

enum xpl_rpc_async_call_event {
    XPL_RPC_FLIGHT_NONE,        // time has passed
    XPL_RPC_FLIGHT_CONNECTED,   // the server speaks HTTP/2
    XPL_RPC_FLIGHT_UNREACHABLE, // an attempt to connect failed; a call tells why
    XPL_RPC_FLIGHT_ANSWERING,   // the answer has begun: receive it
    XPL_RPC_FLIGHT_DONE,        // the call is over: look at its status
};

// Tries to connect; CONNECTED or UNREACHABLE comes once, or nothing while the server is silent.
void xpl_rpc_async_call_connect(struct xpl_rpc_async_call *f);
// Stops waiting for connect's event.
void xpl_rpc_async_call_stop_connecting(struct xpl_rpc_async_call *f);
// Sends the request (copied).  Later ANSWERING comes, at most once, and DONE, always, unless the
// flight is freed.  One call per flight.
xpl_status_t xpl_rpc_async_call_call(struct xpl_rpc_async_call *f, const char *path,
                                     xpl_bytes_t request, struct xpl_error *err) XPL_NODISCARD;
// After ANSWERING: lets the answer come.
void xpl_rpc_async_call_receive(struct xpl_rpc_async_call *f);
// DONE then comes with CANCELLED, unless the call is over by then.
void xpl_rpc_async_call_cancel(struct xpl_rpc_async_call *f);

// The next event within wait_ms (0: only what is there already).  *ret is its flight.
enum xpl_rpc_async_call_event xpl_rpc_async_calls_next(struct xpl_rpc_async_calls *fl, int wait_ms,
                                                       struct xpl_rpc_async_call **ret);

// After DONE: how the call ended; err gets the server's message.  OK means that there is an answer.
xpl_status_t xpl_rpc_async_call_status(const struct xpl_rpc_async_call *f, struct xpl_error *err);
// After DONE with OK: the answer's length, and its bytes in order.  `fn` returns false to stop,
// which xpl_rpc_async_call_pieces then does, too.
uint64_t xpl_rpc_async_call_length(const struct xpl_rpc_async_call *f);
bool xpl_rpc_async_call_pieces(struct xpl_rpc_async_call *f,
                               bool (*fn)(void *ctx, xpl_bytes_t piece), void *ctx);

#endif
