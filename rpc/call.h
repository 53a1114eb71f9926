// SPDX-License-Identifier: Apache-2.0
// One call on the server's side.
//
// A handler gets a call and a request, both valid until it returns.  It answers at once, or adds a
// reference and any other thread answers later.  Answering is thread-safe and never blocks;
// only the first finish counts, later ones do nothing.  A call whose last reference goes without an
// answer is finished with INTERNAL, so that no client hangs and a shutdown never waits for it.
//
// Finishing needs no memory of ours.  gRPC's own allocations abort the process when they fail; ours
// fail into RESOURCE_EXHAUSTED.
#ifndef XPL_RPC_CALL_H_
#define XPL_RPC_CALL_H_

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "rpc/bytes.h"
#include "rpc/credentials.h"
#include "rpc/listen/announced.h"
#include "rpc/status.h"

struct xpl_rpc_call;

enum xpl_rpc_flags {
    // The metadata (token) is checked before the body is read, which stays in the socket until
    // then.  For methods with big requests; all methods of a server with a token work so.
    XPL_RPC_LATE_BODY = 1,
    // Needs no token: health, reflection.
    XPL_RPC_NO_AUTH = 2,
    // The client sends any number of messages: on_message instead of on_request.
    XPL_RPC_CLIENT_STREAM = 4,
    // The service requests each message after the first by xpl_rpc_call_read: a client is not read
    // faster than its messages are processed.
    XPL_RPC_PACED = 8,
    // Answers until the client goes: a watch.
    XPL_RPC_STAYS = 16,
};

// All callbacks run on the queue's thread.  `service` is the method's.
struct xpl_rpc_method {
    const char *path; // "/xplaned.v1.AnalysisService/GetToolData"
    unsigned flags;   // enum xpl_rpc_flags
    // That the client's token must have, on a server with tokens; none: admin.  Not for NO_AUTH.
    enum xpl_rpc_role role;
    // The whole request.
    void (*on_request)(struct xpl_rpc_call *c, xpl_bytes_t request, void *service);
    // CLIENT_STREAM: each message in order; then once with a NULL ptr when the client has ended its
    // side.  Nothing comes after the call was finished.
    void (*on_message)(struct xpl_rpc_call *c, xpl_bytes_t message, void *service);
    // The client is gone, or its deadline has passed.  At most once, always after on_request has
    // returned, perhaps after the call was finished; not for calls that ended well.  May be NULL.
    void (*on_cancel)(struct xpl_rpc_call *c, void *service);
    // All messages queued by xpl_rpc_send have been written.  May be NULL.
    void (*on_drained)(struct xpl_rpc_call *c, void *service);
    void *service;
};

// Of a PACED call: the current message has been processed; its bytes, valid until now, are freed,
// and the next one is read.  Once for each message, by any thread that holds a reference.
void xpl_rpc_call_read(struct xpl_rpc_call *c);

void xpl_rpc_call_ref(struct xpl_rpc_call *c);
void xpl_rpc_call_unref(struct xpl_rpc_call *c);

// The service's own state of the call.  `release(user)` is called once, when the call's memory goes
// (any thread), and may be NULL.  Set it in the handler, before sharing the call.
void xpl_rpc_call_set_user(struct xpl_rpc_call *c, void *user, void (*release)(void *user));
void *xpl_rpc_call_get_user(const struct xpl_rpc_call *c);

// True once the client is gone or its deadline has passed, so that no client receives the answer.
// One atomic read, so it may be called often, from any thread.
bool xpl_rpc_call_cancelled(const struct xpl_rpc_call *c);
// True once the call was finished, by any thread.
bool xpl_rpc_call_finished(const struct xpl_rpc_call *c);
// Whose token the call came with.  Valid as long as the call.
const struct xpl_rpc_identity *xpl_rpc_call_get_identity(const struct xpl_rpc_call *c);
// The client's address as gRPC writes it: "ipv4:192.0.2.7:40112", "unix:"; also when the client is
// gone, except with TLS; "" if it is not known.
void xpl_rpc_call_get_peer(const struct xpl_rpc_call *c, char ret[XPL_RPC_PEER_SIZE]);
// When the request reached the handler, CLOCK_MONOTONIC nanoseconds.
int64_t xpl_rpc_call_get_start_ns(const struct xpl_rpc_call *c);
// First value of a metadata key (lower case).  False when there is none.  Valid as long as the
// call.
bool xpl_rpc_call_get_metadata(const struct xpl_rpc_call *c, const char *key, xpl_str_t *ret);

// ---- answers: any thread that holds a reference ----

// OK with one message: `head` (copied; may be empty), then the bytes of `body` (its own reference
// is added; may be NULL), as they are.
void xpl_rpc_finish(struct xpl_rpc_call *c, xpl_bytes_t head, struct xpl_rpc_blob *body);
// OK with this message, packed here.
void xpl_rpc_finish_message(struct xpl_rpc_call *c, const ProtobufCMessage *m);
// OK without a message: the end of a stream.
void xpl_rpc_finish_ok(struct xpl_rpc_call *c);
// `code` and a message for a person; nothing else.
void xpl_rpc_finish_status(struct xpl_rpc_call *c, xpl_status_t code, const char *message);
// An error with its details (rpc/status.h).
void xpl_rpc_finish_failure(struct xpl_rpc_call *c, const struct xpl_rpc_failure *f);
// The error as it was recorded: code, message, and the offset as detail when there is one.
void xpl_rpc_finish_error(struct xpl_rpc_call *c, const struct xpl_error *err);

// Messages of a stream; finish afterwards.  They are written in order, one at a time; the queue is
// in memory and has no limit, so a service with unbounded streams checks xpl_rpc_call_queued, or
// sends the next message from on_drained.  CANCELLED if the call has finished, RESOURCE_EXHAUSTED
// on OOM.
xpl_status_t xpl_rpc_send(struct xpl_rpc_call *c, xpl_bytes_t head, struct xpl_rpc_blob *body);
xpl_status_t xpl_rpc_send_message(struct xpl_rpc_call *c, const ProtobufCMessage *m);
// `body` cut into messages of at most `chunk` bytes, each as field `field` (a bytes field) of its
// message; `head`, serialized fields, goes before the first.  An empty body still sends one
// message. Takes no memory per chunk: the next one is made when the last one has been written.
xpl_status_t xpl_rpc_send_chunks(struct xpl_rpc_call *c, xpl_bytes_t head, uint32_t field,
                                 struct xpl_rpc_blob *body, size_t chunk);
// Messages accepted and not yet written; a chunked body counts as one.
unsigned xpl_rpc_call_queued(struct xpl_rpc_call *c);

#endif
