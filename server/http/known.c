// SPDX-License-Identifier: Apache-2.0
#include "server/http/known.h"

#include "server/http/gateway.h"

enum { MAX_URI = 1024 }; // longer ones are not worth it

static struct xpl_cache_key cache_key(const struct xpl_http_request *r) {
    return (struct xpl_cache_key){XPL_CACHE_HTTP_URI, {(const uint8_t *)r->uri, r->n_uri}};
}

void xpl_http_remember(struct xpl_http_request *r, struct xpl_http_body *b) {
    if (r->n_form) return; // the URI is not the complete request
    if (r->n_uri <= MAX_URI) xpl_cache_put(r->http->parts.cache, cache_key(r), &b->object);
}

struct xpl_http_body *xpl_http_find_known(const struct xpl_http_request *r) {
    if (r->post || r->n_uri > MAX_URI) return NULL;
    struct xpl_http_body *b =
        (struct xpl_http_body *)xpl_cache_get(r->http->parts.cache, cache_key(r));
    if (!b) return NULL;
    struct xpl_snapshot *s = xpl_catalogue_get(r->http->parts.catalogue);
    const bool holds = b->generation == s->generation && (!r->gzip || b->bytes[XPL_HTTP_GZIP]);
    xpl_snapshot_unref(s);
    if (holds) return b;
    xpl_object_unref(&b->object);
    return NULL;
}
