// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  libmicrohttpd's daemons: one without TLS, and one for each certificate
// that connections still use.  On the loop's thread.
//
// libmicrohttpd reads certificate and clients' CA when it starts.  When they change, another daemon
// of it is started for new connections, and the one before ends with its last connection.
#ifndef XPL_SERVER_HTTP_ENGINE_H_
#define XPL_SERVER_HTTP_ENGINE_H_

#include "server/http/gateway.h"

// The one that new connections get, unless there is one.
xpl_status_t xpl_http_engine_start(struct xpl_http *h, bool tls, struct xpl_error *err)
    XPL_NODISCARD;
// Lets each do what it has to do; true when one has more to do at once.
bool xpl_http_engines_run(struct xpl_http *h);
// Ends those that are not in use any more; now and then looks for another certificate.
void xpl_http_engines_tick(struct xpl_http *h);
// Ends all, with their connections.  No request may be under way.
void xpl_http_engines_stop(struct xpl_http *h);

#endif
