// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  Bodies by the URI that they answered, in the daemon's cache, each for
// one generation of the catalogue.  On the loop's thread.
#ifndef XPL_SERVER_HTTP_KNOWN_H_
#define XPL_SERVER_HTTP_KNOWN_H_

#include "server/http/request.h"

// Keeps `b` for the request's URI, for as long as the catalogue stays at b->generation.
void xpl_http_remember(struct xpl_http_request *r, struct xpl_http_body *b);
// The body that answers the request, referenced; NULL when there is none.
struct xpl_http_body *xpl_http_find_known(const struct xpl_http_request *r);

#endif
