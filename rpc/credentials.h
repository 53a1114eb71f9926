// SPDX-License-Identifier: Apache-2.0
// Transport credentials of listeners and channels.
//
// The bearer token (server.h) travels as metadata `authorization: Bearer TOKEN`.  It protects
// nothing on an insecure listener whose traffic others can read.
#ifndef XPL_RPC_CREDENTIALS_H_
#define XPL_RPC_CREDENTIALS_H_

#include "base/status.h"
#include "base/str.h"

// A certificate and its key in PEM files, read again when they change: renewal needs no restart.
// A changed pair that cannot be read, or is not PEM, is ignored and the old one stays in use.
struct xpl_rpc_tls;

struct xpl_rpc_tls_options {
    size_t size;           // sizeof this
    const char *cert_path; // PEM, the chain from the server's certificate upwards
    const char *key_path;
    const char *client_ca_path; // clients must present a certificate of it; NULL: they need none
};
// Reads the files; the error names the one at fault.
xpl_status_t xpl_rpc_tls_new(const struct xpl_rpc_tls_options *opt, struct xpl_rpc_tls **ret,
                             struct xpl_error *err);
// The servers using it must have been freed.  NULL is fine.
void xpl_rpc_tls_free(struct xpl_rpc_tls *t);
// Reads the files now (SIGHUP).  On failure the old pair stays in use.  Any thread.
xpl_status_t xpl_rpc_tls_reload(struct xpl_rpc_tls *t, struct xpl_error *err);
// How often a certificate was loaded: 1 after the start.
unsigned xpl_rpc_tls_get_loads(const struct xpl_rpc_tls *t);

#endif
