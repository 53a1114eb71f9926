// Which route answers; and what was answered before under the same URI.
#include <string.h>

#include "server/http/impl.h"

// ---- seen before ----

enum { MAX_KEY = 1024 };
struct key {
    uint8_t b[MAX_KEY + 1];
    size_t n;
};

static bool make_key(struct key *k, const struct xpl_http_request *r) {
    if (r->n_uri > MAX_KEY) return false;
    k->b[0] = 'H';
    memcpy(k->b + 1, r->uri, r->n_uri);
    k->n = r->n_uri + 1;
    return true;
}

// Keeps `b` for this URI, for as long as the catalogue stays at b->generation.
void xpl_http_remember(struct xpl_http_request *r, struct xpl_http_body *b) {
    struct key k;
    if (make_key(&k, r)) xpl_cache_put(r->http->parts.cache, (xpl_bytes_t){k.b, k.n}, &b->object);
}

static struct xpl_http_body *known(const struct xpl_http_request *r) {
    struct key k;
    if (r->post || !make_key(&k, r)) return NULL;
    struct xpl_http_body *b =
        (struct xpl_http_body *)xpl_cache_get(r->http->parts.cache, (xpl_bytes_t){k.b, k.n});
    if (!b) return NULL;
    struct xpl_snapshot *s = xpl_catalogue_get(r->http->parts.catalogue);
    const bool holds = b->generation == s->generation && (!r->gzip || b->bytes[XPL_HTTP_GZIP]);
    xpl_snapshot_unref(s);
    if (holds) return b;
    xpl_object_unref(&b->object);
    return NULL;
}

static void count(const struct xpl_http_request *r, const struct xpl_http_body *b) {
    if (!b->is_answer) return;
    xpl_engine_count_memory(r->http->parts.engine);
    xpl_metrics_request(
        r->http->parts.tally,
        &(struct xpl_request_line){.service = "http",
                                   .tool = b->tool,
                                   .session = b->session,
                                   .n_hosts = b->n_hosts,
                                   .host = b->host,
                                   .code = XPL_OK,
                                   .source = "memory",
                                   .bytes = xpl_rpc_blob_get(b->bytes[XPL_HTTP_PLAIN]).len,
                                   .micros = (xpl_clock_ns() - r->began_ns) / 1000});
}

// ---- routes ----

enum MHD_Result xpl_http_route(struct xpl_http_request *r) {
    struct xpl_http_body *b = known(r);
    if (b) {
        count(r, b);
        return xpl_http_reply_body(r, b);
    }
    if (!xpl_http_request_parse(r)) return xpl_http_reject(r, XPL_GATE_MALFORMED);
    if (!r->mounted && xpl_str_eq(r->path, XPL_STR("/ui"))) return xpl_http_redirect(r, "ui/");
    if (!r->mounted && xpl_str_starts(r->path, XPL_STR("/ui/"))) return xpl_http_route_web(r);
    if (!r->mounted && xpl_str_starts(r->path, XPL_STR("/api/"))) return xpl_http_route_api(r);
    return xpl_http_route_xprof(r);
}
