// SPDX-License-Identifier: Apache-2.0
// Transport credentials of listeners and channels, and clients' tokens.
//
// A bearer token travels as metadata `authorization: Bearer TOKEN`.  It protects nothing on an
// insecure listener whose traffic others can read.
#ifndef XPL_RPC_CREDENTIALS_H_
#define XPL_RPC_CREDENTIALS_H_

#include <stdbool.h>

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

// ---- tokens (token.c) ----
//
// Token files: who may call a server, and what for.
//
// One token a line: TOKEN [ROLE [NAME]].  A line without a role, which only the first may be, is a
// token of an admin, so that a file with nothing but a token is one.  Empty lines and lines that
// begin with '#' do not count.  NAME is for logs: letters, digits and . _ - @; without one it is
// the role.

// Each includes those before it.
enum xpl_rpc_role {
    XPL_RPC_ROLE_NONE, // of a client: nothing; of a method that states none: admin
    XPL_RPC_ROLE_READ,
    XPL_RPC_ROLE_CAPTURE,
    XPL_RPC_ROLE_ADMIN
};
// "read", "capture", "admin"; "none".
const char *xpl_rpc_role_name(enum xpl_rpc_role role);
static inline bool xpl_rpc_role_may(enum xpl_rpc_role has, enum xpl_rpc_role needs) {
    return has >= (needs ? needs : XPL_RPC_ROLE_ADMIN);
}

enum { XPL_RPC_TOKENS_MOST = 256, XPL_RPC_NAME_SIZE = 32, XPL_RPC_TOKEN_FILE = 1 << 16 };

struct xpl_rpc_identity {
    enum xpl_rpc_role role;
    char name[XPL_RPC_NAME_SIZE]; // "" where no token is needed
};

struct xpl_rpc_tokens;
// From the text of a token file.  INVALID_ARGUMENT with the line's number; RESOURCE_EXHAUSTED.
// Text without a token gives *ret NULL.
xpl_status_t xpl_rpc_tokens_parse(xpl_str_t text, struct xpl_rpc_tokens **ret,
                                  struct xpl_error *err) XPL_NODISCARD;
// Overwrites the tokens.  NULL is fine.
void xpl_rpc_tokens_free(struct xpl_rpc_tokens *t);
// False: it is none of them.  The time depends on neither the token found nor on differences.
// NULL: no token is needed, every client is an admin without a name.
bool xpl_rpc_tokens_find(const struct xpl_rpc_tokens *t, xpl_str_t given,
                         struct xpl_rpc_identity *ret);

#endif
