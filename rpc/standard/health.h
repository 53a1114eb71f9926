// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1.Health: the state of the server ("") and of its services, and their watchers.
#ifndef XPL_RPC_STANDARD_HEALTH_H_
#define XPL_RPC_STANDARD_HEALTH_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/status.h"
#include "rpc/call.h"

struct xpl_rpc_health;

enum { XPL_RPC_HEALTH_METHODS = 3, XPL_RPC_HEALTH_WATCHERS = 1024 };

// Knows the services named by the paths of these methods, and "".  All begin as not serving.
xpl_status_t xpl_rpc_health_new(const struct xpl_rpc_method *methods, size_t n,
                                struct xpl_rpc_health **ret, struct xpl_error *err);
// After the servers using it have been freed.  NULL is fine.
void xpl_rpc_health_free(struct xpl_rpc_health *h);
// The table entries to append to a server's methods.
void xpl_rpc_health_get_methods(struct xpl_rpc_health *h,
                                struct xpl_rpc_method ret[XPL_RPC_HEALTH_METHODS]);

// Appends a serialized HealthListResponse: all services and their state.  Check ret->failed.
void xpl_rpc_health_list(struct xpl_rpc_health *h, struct xpl_buf *ret);

// Sets all services and notifies the watchers.  Any thread.
void xpl_rpc_health_set(struct xpl_rpc_health *h, bool serving);
// NOT_SERVING, and all watches end with UNAVAILABLE: call before xpl_rpc_server_shutdown.
void xpl_rpc_health_stop(struct xpl_rpc_health *h);

#endif
