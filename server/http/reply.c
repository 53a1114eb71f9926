// SPDX-License-Identifier: Apache-2.0
#include "server/http/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/http/gateway.h"
#include "server/http/known.h"
#include "server/http/wait.h"

enum MHD_Result xpl_http_queue(struct xpl_http_request *r, unsigned status,
                               struct MHD_Response *m) {
    const enum MHD_Result got = MHD_queue_response(r->mhd, status, m);
    const bool counted = got == MHD_YES && status >= 100 && status < 100 + XPL_HTTP_STATUSES;
    if (counted) r->http->stats.replies[r->method][status - 100]++;
    return got;
}

// ---- 304 and 206 ----

static enum MHD_Result not_modified(struct xpl_http_request *r, const struct xpl_http_body *b,
                                    int encoding) {
    struct MHD_Response *m =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (!m) return MHD_NO;
    enum MHD_Result got = MHD_NO;
    if (xpl_http_add_policy(m, b->policy) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, b->etag[encoding]) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"))
        got = xpl_http_queue(r, 304, m);
    MHD_destroy_response(m);
    return got;
}

static enum MHD_Result send_range(struct xpl_http_request *r, const struct xpl_http_body *b,
                                  uint64_t from, uint64_t len) {
    struct xpl_rpc_blob *const blob = b->bytes[XPL_HTTP_PLAIN];
    struct MHD_Response *m = xpl_http_blob_response(blob, from, len);
    if (!m) return MHD_NO;
    char text[96];
    (void)snprintf(text, sizeof text, "bytes %llu-%llu/%zu", (unsigned long long)from,
                   (unsigned long long)(from + len - 1), xpl_rpc_blob_get(blob).len);
    enum MHD_Result got = MHD_NO;
    if (xpl_http_add_policy(m, b->policy) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, b->type) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, b->etag[XPL_HTTP_PLAIN]) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache") &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_RANGE, text))
        got = xpl_http_queue(r, 206, m);
    MHD_destroy_response(m);
    xpl_http_sending(r, len);
    return got;
}

static enum MHD_Result bad_range(struct xpl_http_request *r, uint64_t size) {
    struct MHD_Response *m =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    char text[48];
    (void)snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    enum MHD_Result got = MHD_NO;
    if (m && MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_RANGE, text))
        got = xpl_http_queue(r, 416, m);
    if (m) MHD_destroy_response(m);
    return got;
}

// True when the request is for a part, which was then sent.
static bool try_range(struct xpl_http_request *r, const struct xpl_http_body *b,
                      enum MHD_Result *ret) {
    const xpl_str_t header = xpl_http_header(r, MHD_HTTP_HEADER_RANGE);
    if (!header.ptr || !b->etag[0][0]) return false;
    const xpl_str_t condition = xpl_http_header(r, MHD_HTTP_HEADER_IF_RANGE);
    if (condition.ptr && !xpl_str_eq(condition, xpl_str_from(b->etag[XPL_HTTP_PLAIN])))
        return false;
    const size_t size = xpl_rpc_blob_get(b->bytes[XPL_HTTP_PLAIN]).len;
    uint64_t from = 0, len = 0;
    switch (xpl_http_range(header, size, &from, &len)) {
        case XPL_RANGE_OK: *ret = send_range(r, b, from, len); return true;
        case XPL_RANGE_BAD: *ret = bad_range(r, size); return true;
        case XPL_RANGE_NONE: break;
    }
    return false;
}

static enum MHD_Result send_body(struct xpl_http_request *r, const struct xpl_http_body *b) {
    const int encoding = r->gzip && b->bytes[XPL_HTTP_GZIP] ? XPL_HTTP_GZIP : XPL_HTTP_PLAIN;
    if (b->etag[0][0]) {
        const xpl_str_t known = xpl_http_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
        if (known.ptr && xpl_http_etag_listed(known, b)) return not_modified(r, b, encoding);
        enum MHD_Result got;
        if (try_range(r, b, &got)) return got;
    }
    xpl_http_sending(r, xpl_rpc_blob_get(b->bytes[encoding]).len);
    return xpl_http_queue(r, b->status, b->response[encoding]);
}

enum MHD_Result xpl_http_reply_body(struct xpl_http_request *r, struct xpl_http_body *b) {
    const enum MHD_Result got = send_body(r, b);
    xpl_object_unref(&b->object);
    return got;
}

// ---- small ones ----

// What Allow says: two routes take POST.
static xpl_str_t methods_of(const struct xpl_http_request *r) {
    return xpl_str_eq(r->path, XPL_STR("/generate_cache"))    ? XPL_STR("POST")
           : xpl_str_eq(r->path, XPL_STR("/capture_profile")) ? XPL_STR("GET, POST")
                                                              : XPL_STR("GET, HEAD");
}

enum MHD_Result xpl_http_reply(struct xpl_http_request *r, unsigned status,
                               enum xpl_http_policy policy, const char *type, xpl_str_t text,
                               unsigned retry_s) {
    char seconds[16];
    (void)snprintf(seconds, sizeof seconds, "%u", retry_s);
    struct xpl_http_header more[3];
    size_t n = 0;
    if (r->refused || r->connection->surplus)
        more[n++] = (struct xpl_http_header){MHD_HTTP_HEADER_CONNECTION, XPL_STR("close")};
    if (retry_s)
        more[n++] = (struct xpl_http_header){MHD_HTTP_HEADER_RETRY_AFTER, xpl_str_from(seconds)};
    if (status == 405) more[n++] = (struct xpl_http_header){MHD_HTTP_HEADER_ALLOW, methods_of(r)};
    const struct xpl_http_body_options o = {.status = status,
                                            .policy = policy,
                                            .type = type,
                                            .gzip = r->gzip,
                                            .headers = more,
                                            .n_headers = n};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(text.len + 1);
    xpl_buf_str(&b, text);
    struct xpl_http_body *body = xpl_http_body_from_buf(&b, &o);
    return body ? xpl_http_reply_body(r, body) : MHD_NO;
}

enum MHD_Result xpl_http_reply_text(struct xpl_http_request *r, unsigned status, const char *fmt,
                                    ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const xpl_str_t s = {text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1};
    return xpl_http_reply(r, status, XPL_POLICY_XPROF, "text/plain", s, 0);
}

enum MHD_Result xpl_http_busy(struct xpl_http_request *r) {
    r->http->stats.refused_busy++;
    return xpl_http_reply(r, 503, XPL_POLICY_API, "text/plain",
                          XPL_STR("too many requests are waiting; try again soon"), 1);
}

unsigned xpl_http_status_of(xpl_status_t code) {
    switch (code) {
        case XPL_OK: return 200;
        case XPL_INVALID_ARGUMENT:
        case XPL_OUT_OF_RANGE: return 400;
        case XPL_UNAUTHENTICATED: return 401;
        case XPL_PERMISSION_DENIED: return 403;
        case XPL_NOT_FOUND: return 404;
        case XPL_ALREADY_EXISTS:
        case XPL_FAILED_PRECONDITION: return 409;
        case XPL_DATA_LOSS: return 422; // the profile is broken
        case XPL_CANCELLED: return 499; // not read
        case XPL_UNIMPLEMENTED: return 501;
        case XPL_RESOURCE_EXHAUSTED:
        case XPL_ABORTED:
        case XPL_UNAVAILABLE: return 503;
        case XPL_DEADLINE_EXCEEDED: return 504;
        case XPL_UNKNOWN:
        case XPL_INTERNAL: break;
    }
    return 500;
}

enum MHD_Result xpl_http_reply_api_error(struct xpl_http_request *r, const struct xpl_error *err,
                                         int64_t retry_ms) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    xpl_buf_printf(&b, "{\"error\":{\"code\":\"%s\",\"message\":", xpl_status_name(err->code));
    xpl_json_str(&b, xpl_str_from(err->msg), false);
    xpl_buf_str(&b, XPL_STR("}}"));
    if (b.failed) return MHD_NO;
    const unsigned retry_s = retry_ms < 0 ? 0 : (unsigned)(retry_ms / 1000 + 1);
    return xpl_http_reply(r, xpl_http_status_of(err->code), XPL_POLICY_API, "application/json",
                          (xpl_str_t){(char *)b.p, b.n}, retry_s);
}

enum MHD_Result xpl_http_redirect(struct xpl_http_request *r, const char *location) {
    struct MHD_Response *m =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    enum MHD_Result got = MHD_NO;
    if (m && xpl_http_add_policy(m, XPL_POLICY_API) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, location))
        got = xpl_http_queue(r, 302, m);
    if (m) MHD_destroy_response(m);
    return got;
}

enum MHD_Result xpl_http_result(struct xpl_http_request *r) {
    if (r->gone) return MHD_NO;
    if (!r->body)
        return xpl_http_reply(r, 503, XPL_POLICY_API, "text/plain", XPL_STR("out of memory"), 1);
    struct xpl_http_body *b = r->body;
    r->body = NULL;
    if (r->keep) xpl_http_remember(r, b);
    return xpl_http_reply_body(r, b);
}
