// SPDX-License-Identifier: Apache-2.0
// Private to server/http.  Replies.  On the loop's thread.
#ifndef XPL_SERVER_HTTP_REPLY_H_
#define XPL_SERVER_HTTP_REPLY_H_

#include "base/status.h"
#include "server/http/request.h"

// Sends a body: whole, a range, or 304.  Gives the caller's reference up.
enum MHD_Result xpl_http_reply_body(struct xpl_http_request *r, struct xpl_http_body *b);
// Every answer goes through it, which counts it.
enum MHD_Result xpl_http_queue(struct xpl_http_request *r, unsigned status, struct MHD_Response *m);
// A small reply.  `type` is a constant; `retry_s` 0: no Retry-After.
enum MHD_Result xpl_http_reply(struct xpl_http_request *r, unsigned status,
                               enum xpl_http_policy policy, const char *type, xpl_str_t text,
                               unsigned retry_s);
enum MHD_Result xpl_http_reply_text(struct xpl_http_request *r, unsigned status, const char *fmt,
                                    ...) __attribute__((format(printf, 3, 4)));
// {"error": ...} for our own pages.
enum MHD_Result xpl_http_reply_api_error(struct xpl_http_request *r, const struct xpl_error *err,
                                         int64_t retry_ms);
enum MHD_Result xpl_http_redirect(struct xpl_http_request *r, const char *location);
// 503 with Retry-After.
enum MHD_Result xpl_http_busy(struct xpl_http_request *r);
// From `finish`: replies with r->body or an empty 500.
enum MHD_Result xpl_http_result(struct xpl_http_request *r);
unsigned xpl_http_status_of(xpl_status_t code);

#endif
