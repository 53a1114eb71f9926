// SPDX-License-Identifier: Apache-2.0
// Private to rpc: PEM files, for both ends of TLS.
#ifndef XPL_RPC_PEM_H_
#define XPL_RPC_PEM_H_

#include "base/status.h"

// Reads a file that must contain `what` ("BEGIN CERTIFICATE"); *ret is NUL-terminated.
xpl_status_t xpl_rpc_pem_read(const char *path, const char *what, char **ret,
                              struct xpl_error *err);
// Wipes and frees.  NULL is fine.
void xpl_rpc_pem_free(char *text);

#endif
