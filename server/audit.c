// SPDX-License-Identifier: Apache-2.0
#include "server/audit.h"

#include "rpc/call.h"

struct xpl_audit_client xpl_audit_client_of(const struct xpl_rpc_call *c) {
    struct xpl_audit_client client = {.identity = *xpl_rpc_call_get_identity(c)};
    xpl_rpc_call_get_peer(c, client.peer);
    return client;
}

void xpl_audit_begin(struct xpl_log_line *l, const char *what,
                     const struct xpl_audit_client *client, xpl_status_t code,
                     const struct xpl_error *err) {
    const bool fine = code == XPL_OK || code == XPL_CANCELLED;
    xpl_log_begin(l, fine ? XPL_LOG_INFO : XPL_LOG_WARN, "audit", what);
    const char *const by = client->cause ? client->cause : client->identity.name;
    if (by[0]) xpl_log_z(l, "by", by);
    if (client->peer[0]) xpl_log_z(l, "peer", client->peer);
    xpl_log_z(l, "status", xpl_status_name(code));
    if (code != XPL_OK && err) xpl_log_z(l, "error", err->msg);
}

void xpl_audit(const char *what, const struct xpl_audit_client *client, xpl_str_t session,
               xpl_status_t code, const struct xpl_error *err) {
    struct xpl_log_line l;
    xpl_audit_begin(&l, what, client, code, err);
    xpl_log_str(&l, "session", session);
    xpl_log_end(&l);
}
