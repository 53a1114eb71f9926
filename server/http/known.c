// SPDX-License-Identifier: Apache-2.0
#include "server/http/known.h"

#include <string.h>

#include "server/http/gateway.h"

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

void xpl_http_remember(struct xpl_http_request *r, struct xpl_http_body *b) {
    struct key k;
    if (make_key(&k, r)) xpl_cache_put(r->http->parts.cache, (xpl_bytes_t){k.b, k.n}, &b->object);
}

struct xpl_http_body *xpl_http_find_known(const struct xpl_http_request *r) {
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
