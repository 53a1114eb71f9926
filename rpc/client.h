// SPDX-License-Identifier: Apache-2.0
// Calls to other servers: blocking, from any thread, no state but gRPC's own counted start.
//
// One channel serves any number of threads at once.  Every call has a time limit, and can be
// cancelled from another thread through its xpl_rpc_cancel.
#ifndef XPL_RPC_CLIENT_H_
#define XPL_RPC_CLIENT_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "rpc/status.h"

struct xpl_rpc_channel;

struct xpl_rpc_channel_options {
    size_t size;           // sizeof this
    const char *target;    // "host:port", "unix:/path", "dns:///host:port"
    bool tls;              // else in the clear
    const char *ca_path;   // PEM roots to trust; NULL: the system's
    const char *cert_path; // our own certificate and key, both or none
    const char *key_path;
    const char *server_name; // expected in the certificate, when it is not the target's host
    xpl_str_t token;         // sent as "authorization: Bearer"; empty: none
    const char *user_agent;  // prefix; NULL: "xplaned"
    // Of an answer; 0: no limit.  With one, compressed answers are refused, a call whose answer is
    // larger ends with RESOURCE_EXHAUSTED, and the channel holds at most twice as many bytes of the
    // server's data, which concurrent calls share.
    size_t max_message_bytes;
    bool bounded; // it holds little more than max_message_bytes; slow over long distances
};

// Makes the channel; it connects with the first call.  Fails only for unusable options.
xpl_status_t xpl_rpc_channel_open(const struct xpl_rpc_channel_options *opt,
                                  struct xpl_rpc_channel **ret, struct xpl_error *err);
// No call may be under way.  NULL is fine.
void xpl_rpc_channel_close(struct xpl_rpc_channel *ch);

// Lets one thread cancel the call that another waits for.
struct xpl_rpc_cancel;
struct xpl_rpc_cancel *xpl_rpc_cancel_new(void); // NULL on OOM
// Sticky: calls with it end with CANCELLED, later ones at once.  Any thread, any number of times.
void xpl_rpc_cancel_fire(struct xpl_rpc_cancel *x);
// No call may be using it.  NULL is fine.
void xpl_rpc_cancel_free(struct xpl_rpc_cancel *x);

struct xpl_rpc_call_options {
    size_t size;                   // sizeof this
    int64_t timeout_ms;            // from now to the last byte; 0 or less: none
    struct xpl_rpc_cancel *cancel; // NULL: cannot be cancelled
    bool wait_for_ready;           // wait for a server to come up instead of failing
};

// The answer of a call.  Zero-initialise; each use frees the previous content, fini the last one.
struct xpl_rpc_reply {
    xpl_bytes_t bytes;              // the message in one piece, empty when the call failed
    struct xpl_rpc_details details; // of a failure; retry_ms is -1 when the server gave none
    void *message, *trailer;        // own the bytes of the views
};
void xpl_rpc_reply_fini(struct xpl_rpc_reply *r);

// One request, one answer.  Returns the call's status; err gets the server's message.  `ret` is
// filled on failure too (details).  opt NULL: no limits.
xpl_status_t xpl_rpc_unary(struct xpl_rpc_channel *ch, const char *path, xpl_bytes_t request,
                           const struct xpl_rpc_call_options *opt, struct xpl_rpc_reply *ret,
                           struct xpl_error *err);

// One request, many answers.  A stream belongs to one thread; only its cancel may be fired by
// others.
struct xpl_rpc_stream;
xpl_status_t xpl_rpc_stream_open(struct xpl_rpc_channel *ch, const char *path, xpl_bytes_t request,
                                 const struct xpl_rpc_call_options *opt,
                                 struct xpl_rpc_stream **ret, struct xpl_error *err);
// Waits for the next message.  *ret_more false: the stream has ended with the status returned.
// Each message replaces the one in `msg`.
xpl_status_t xpl_rpc_stream_next(struct xpl_rpc_stream *st, struct xpl_rpc_reply *msg,
                                 bool *ret_more, struct xpl_error *err);
// A stream of which the client sends many messages, too.
xpl_status_t xpl_rpc_duplex_open(struct xpl_rpc_channel *ch, const char *path,
                                 const struct xpl_rpc_call_options *opt,
                                 struct xpl_rpc_stream **ret, struct xpl_error *err);
// Sends one message and waits until gRPC has accepted it.  False: the call has finished; next
// returns its status.
bool xpl_rpc_stream_send(struct xpl_rpc_stream *st, xpl_bytes_t message)
    __attribute__((warn_unused_result));
// No more messages of ours.
void xpl_rpc_stream_send_end(struct xpl_rpc_stream *st);
// Cancels a running call and frees.  NULL is fine.
void xpl_rpc_stream_close(struct xpl_rpc_stream *st);

#endif
