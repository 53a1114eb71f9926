// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  The gateway's sockets, and the certificate of those that need one.
#ifndef XPL_SERVER_HTTP_LISTEN_H_
#define XPL_SERVER_HTTP_LISTEN_H_

#include "server/http/gateway.h"

// Fills h->listeners from the options: loopback without TLS, all else with it.
xpl_status_t xpl_http_listen(struct xpl_http *h, struct xpl_error *err) XPL_NODISCARD;

struct xpl_http_pem { // NUL-terminated
    char *cert, *key;
};
xpl_status_t xpl_http_pem_read(const struct xpl_http_options *o, struct xpl_http_pem *ret,
                               struct xpl_error *err) XPL_NODISCARD;
void xpl_http_pem_fini(struct xpl_http_pem *p);

#endif
