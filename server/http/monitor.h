// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  What monitoring asks for: /metrics, /healthz, /readyz.  Their paths are
// compared as they are sent, without --http-prefix.  On the loop's thread.
#ifndef XPL_SERVER_HTTP_MONITOR_H_
#define XPL_SERVER_HTTP_MONITOR_H_

#include "server/http/request.h"

// Any of the three: they are answered also when all connections are taken.
bool xpl_http_is_monitoring(const struct xpl_http_request *r);
// /healthz and /readyz: answered whatever Host, Origin and token are, as they say nothing but
// whether the daemon lives.
bool xpl_http_is_probe(const struct xpl_http_request *r);
// /metrics from this machine, and not through a proxy, which would bring others here: needs no
// token.
bool xpl_http_is_local_scrape(const struct xpl_http_request *r);
// Answers one of the three; false for any other path.
bool xpl_http_route_monitor(struct xpl_http_request *r, enum MHD_Result *ret);

#endif
