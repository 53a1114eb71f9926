// SPDX-License-Identifier: Apache-2.0
// grpc.reflection, v1 and v1alpha: a client learns our schemas from the server itself.
#ifndef XPL_RPC_STANDARD_REFLECTION_H_
#define XPL_RPC_STANDARD_REFLECTION_H_

#include <stddef.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "rpc/call.h"

struct xpl_rpc_reflection;

enum { XPL_RPC_REFLECTION_METHODS = 2 };

// `set`: a serialized google.protobuf.FileDescriptorSet with all imports; it must outlive the
// object (proto/descriptors.h).  Lists the services named by the paths of these methods, and
// itself.
xpl_status_t xpl_rpc_reflection_new(xpl_bytes_t set, const struct xpl_rpc_method *methods, size_t n,
                                    struct xpl_rpc_reflection **ret, struct xpl_error *err);
// After the servers using it have been freed.  NULL is fine.
void xpl_rpc_reflection_free(struct xpl_rpc_reflection *r);
// The table entries to append to a server's methods.
void xpl_rpc_reflection_get_methods(struct xpl_rpc_reflection *r,
                                    struct xpl_rpc_method ret[XPL_RPC_REFLECTION_METHODS]);

// Answers one request with one response, both serialized; the methods call it for each message.
xpl_status_t xpl_rpc_reflection_answer(const struct xpl_rpc_reflection *r, xpl_bytes_t request,
                                       struct xpl_buf *ret, struct xpl_error *err);

#endif
