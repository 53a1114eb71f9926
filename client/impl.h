// SPDX-License-Identifier: Apache-2.0
// Declarations that the files of libxplaned share.
#ifndef XPL_CLIENT_IMPL_H_
#define XPL_CLIENT_IMPL_H_

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "client/xplaned.h"
#include "rpc/client.h"

struct xpl_client {
    struct xpl_rpc_channel *channel;
    int64_t timeout_ms;
    char address[128]; // of the daemon, as it was given; cut
};

// Replaces gRPC's message for an unreachable or silent daemon by one with a remedy.  Leaves
// messages of the daemon unchanged.
void xpl_client_explain(const xpl_client *c, struct xpl_error *err);

// Fills *r (may be NULL) from the outcome of a call; returns the code.
int xpl_client_result(xpl_result *r, xpl_status_t code, const struct xpl_error *err,
                      int64_t retry_ms);
// Packs `request`, calls, and leaves the serialized answer in *reply (xpl_rpc_reply_fini).
xpl_status_t xpl_client_call(xpl_client *c, const char *path, const ProtobufCMessage *request,
                             struct xpl_rpc_reply *reply, xpl_result *r);

// The request as this build knows it, whatever size the caller was compiled with.
xpl_capture_request xpl_client_capture_request(const xpl_capture_request *given);

#endif
