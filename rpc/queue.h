// SPDX-License-Identifier: Apache-2.0
// gRPC's start and end in this process, and the completion queue with its one thread.  All handlers
// of all servers on a queue run on that thread, one after the other: they must never block.
#ifndef XPL_RPC_QUEUE_H_
#define XPL_RPC_QUEUE_H_

#include "base/status.h"

// gRPC's own messages.  severity: 0 debug, 1 info, 2 error.  Any thread.
typedef void (*xpl_rpc_log_fn)(int severity, const char *file, int line, const char *text);
// Sends gRPC's messages there instead of to stderr; NULL drops them.  Before anything else.
void xpl_rpc_set_log(xpl_rpc_log_fn fn);

struct xpl_rpc_queue;

// Starts gRPC (counted) and the thread, with all signals blocked but those of faults.
xpl_status_t xpl_rpc_queue_new(struct xpl_rpc_queue **ret, struct xpl_error *err);
// All its servers must have been freed.  Joins the thread, stops gRPC when this was its last user.
// Not from the queue's own thread.  NULL is fine.
void xpl_rpc_queue_free(struct xpl_rpc_queue *q);

#endif
