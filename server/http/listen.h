// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  The gateway's sockets, and the certificate of those that need one.
#ifndef XPL_SERVER_HTTP_LISTEN_H_
#define XPL_SERVER_HTTP_LISTEN_H_

#include "server/http/gateway.h"

// Fills h->listeners from the options: loopback without TLS, all else with it; with client_ca, all
// with it.
xpl_status_t xpl_http_listen(struct xpl_http *h, struct xpl_error *err) XPL_NODISCARD;

struct xpl_http_pem { // NUL-terminated; client_ca is NULL without one
    char *cert, *key, *client_ca;
};
// Which files they are now; all 0 for one that is missing.
void xpl_http_pem_states(const struct xpl_http *h,
                         struct xpl_http_file_state ret[XPL_HTTP_PEM_FILES]);
xpl_status_t xpl_http_pem_read(const struct xpl_http *h, struct xpl_http_pem *ret,
                               struct xpl_error *err) XPL_NODISCARD;
void xpl_http_pem_fini(struct xpl_http_pem *p);

// Whether one more connection of this peer may be open.
bool xpl_http_admit(const struct xpl_http *h, const struct xpl_peer *peer);
// Whether the request's client has shown a certificate that --tls-client-ca demands; true without
// such a demand.
bool xpl_http_certified(struct xpl_http_request *r);

#endif
