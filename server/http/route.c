// SPDX-License-Identifier: Apache-2.0
// Which route answers; and earlier answers for the same URI.
#include "base/clock.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/known.h"
#include "server/http/monitor.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/metrics.h"
#include "server/traceparent.h"

static void count(const struct xpl_http_request *r, const struct xpl_http_body *b) {
    if (!b->is_answer) return;
    xpl_engine_count_memory(r->http->parts.engine);
    xpl_metrics_request(
        r->http->parts.metrics,
        &(struct xpl_request_line){.service = "http",
                                   .tool = b->tool,
                                   .session = b->session,
                                   .n_hosts = b->n_hosts,
                                   .host = b->host,
                                   .code = XPL_OK,
                                   .source = "memory",
                                   .bytes = xpl_rpc_blob_get(b->bytes[XPL_HTTP_PLAIN]).len,
                                   .micros = (xpl_clock_ns() - r->began_ns) / 1000,
                                   .traceparent = xpl_http_header(r, XPL_TRACEPARENT)});
}

// ---- routes ----

enum MHD_Result xpl_http_route(struct xpl_http_request *r) {
    struct xpl_http_body *b = xpl_http_find_known(r);
    // As for the first request for it; pages are open to every client that follows a link.
    if (b && b->policy != XPL_POLICY_WEB && !xpl_http_may_compute(r)) {
        xpl_object_unref(&b->object);
        return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    }
    if (b) {
        count(r, b);
        return xpl_http_reply_body(r, b);
    }
    enum MHD_Result got;
    if (xpl_http_route_monitor(r, &got)) return got;
    if (!xpl_http_request_parse(r, r->http->prefix)) return xpl_http_reject(r, XPL_ACCESS_BAD_URI);
    if (!r->mounted && xpl_str_eq(r->path, XPL_STR("/ui"))) return xpl_http_redirect(r, "ui/");
    if (!r->mounted && xpl_str_starts(r->path, XPL_STR("/ui/"))) return xpl_http_route_web(r);
    if (!r->mounted && xpl_str_starts(r->path, XPL_STR("/api/"))) return xpl_http_route_api(r);
    return xpl_http_route_xprof(r);
}
