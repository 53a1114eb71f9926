// SPDX-License-Identifier: Apache-2.0
// The audit: a log line, of the topic "audit", for each capture, import, deletion, label, schedule
// and removal by age: which client made it, from which address, and the result.  Any thread.
#ifndef XPL_SERVER_AUDIT_H_
#define XPL_SERVER_AUDIT_H_

#include "base/log.h"
#include "rpc/credentials.h"
#include "rpc/listen/announced.h"

struct xpl_rpc_call;

struct xpl_audit_client {
    const char *cause; // of what the daemon does by itself: "schedule", "retention"; NULL: a client
    struct xpl_rpc_identity identity;
    char peer[XPL_RPC_PEER_SIZE]; // its address: "ipv4:192.0.2.7:40112"
};
struct xpl_audit_client xpl_audit_client_of(const struct xpl_rpc_call *c);

// Begins a line, which the caller ends: `what` is a fixed sentence; level, client and status are
// filled in.  `err` may be NULL.
void xpl_audit_begin(struct xpl_log_line *l, const char *what,
                     const struct xpl_audit_client *client, xpl_status_t code,
                     const struct xpl_error *err);
// A line for a session.
void xpl_audit(const char *what, const struct xpl_audit_client *client, xpl_str_t session,
               xpl_status_t code, const struct xpl_error *err);

#endif
