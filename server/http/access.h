// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  Access checks: Host and Origin against DNS rebinding, pages of other
// sites that send requests through a browser, the token, the method.  On the loop's thread.
#ifndef XPL_SERVER_HTTP_ACCESS_H_
#define XPL_SERVER_HTTP_ACCESS_H_

#include "base/status.h"
#include "server/audit.h"
#include "server/http/request.h"

enum xpl_http_access {
    XPL_ACCESS_OK,
    XPL_ACCESS_BAD_HOST,
    XPL_ACCESS_BAD_ORIGIN,
    XPL_ACCESS_ELSEWHERE,
    XPL_ACCESS_NO_TOKEN,
    XPL_ACCESS_NO_ROLE,
    XPL_ACCESS_BAD_METHOD,
    XPL_ACCESS_BAD_URI
};
// Checks Host, Origin, token and method; reads Accept-Encoding.
enum xpl_http_access xpl_http_check_access(struct xpl_http_request *r, const char *method,
                                           const char *version);
// Whether a request that changes something (begins a capture) comes from a page of ours, or from a
// program that meant it: POST, or XPL_HTTP_REQUEST_HEADER.
#define XPL_HTTP_REQUEST_HEADER "Xplaned-Request"
// XPL_ACCESS_ELSEWHERE if not, and XPL_ACCESS_NO_ROLE if its token may not call `method` over gRPC
// (server/roles.h).
enum xpl_http_access xpl_http_check_begin(const struct xpl_http_request *r, const char *method);
// Whether a request that starts work of seconds, and changes nothing, may be answered: not when it
// may come from a page of another site.
bool xpl_http_may_compute(const struct xpl_http_request *r);
struct xpl_audit_client xpl_http_audit_client(const struct xpl_http_request *r);
enum MHD_Result xpl_http_reject(struct xpl_http_request *r, enum xpl_http_access why);
// Reads prefix and names of the options; LOGDIR's paths.
xpl_status_t xpl_http_setup_access(struct xpl_http *h, struct xpl_error *err) XPL_NODISCARD;

#endif
