// SPDX-License-Identifier: Apache-2.0
#include "server/http/monitor.h"

#include <arpa/inet.h>

#include "base/cleanup.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/monitor/text.h"
#include "storage/store/jobs.h"

enum { MAX_TEXT = 4 << 20 };

static bool is_path(const struct xpl_http_request *r, xpl_str_t path) {
    const xpl_str_t uri = {r->uri, r->n_uri};
    return xpl_str_starts(uri, path) && (uri.len == path.len || uri.ptr[path.len] == '?');
}

bool xpl_http_is_probe(const struct xpl_http_request *r) {
    return is_path(r, XPL_STR("/healthz")) || is_path(r, XPL_STR("/readyz"));
}

static bool is_metrics(const struct xpl_http_request *r) {
    return is_path(r, XPL_STR("/metrics"));
}

bool xpl_http_is_monitoring(const struct xpl_http_request *r) {
    return is_metrics(r) || xpl_http_is_probe(r);
}

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *const four = (const void *)a;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (a->sa_family != AF_INET6) return false;
    const struct in6_addr *const six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

bool xpl_http_is_local_scrape(const struct xpl_http_request *r) {
    if (!is_metrics(r)) return false;
    static const char *const forwarded[] = {"Forwarded", "X-Forwarded-For", "Via"};
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        if (xpl_http_header(r, forwarded[i]).ptr) return false;
    const union MHD_ConnectionInfo *const i =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return i && i->client_addr && is_loopback(i->client_addr);
}

static enum MHD_Result reply_plain(struct xpl_http_request *r, unsigned status, const char *text) {
    return xpl_http_reply(r, status, XPL_POLICY_API, "text/plain", xpl_str_from(text), 0);
}

// On the loop: monitoring has to work when no worker is free, and nothing here waits.
static enum MHD_Result reply_metrics(struct xpl_http_request *r) {
    const struct xpl_http_parts *const p = &r->http->parts;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_TEXT);
    struct xpl_figures f;
    f.http = r->http->stats;
    f.http.connections = r->http->n_connections;
    f.http.requests_open = r->http->n_active;
    f.newest = xpl_newest_read(p->newest, &r->arena, &f.n_newest);
    xpl_figures_read(p->stats, p->captures, &f);
    xpl_metrics_put_text(&b, &f, p->metrics);
    if (b.failed) return xpl_http_busy(r);
    return xpl_http_reply(r, 200, XPL_POLICY_API, XPL_METRICS_TYPE,
                          (xpl_str_t){(const char *)b.p, b.n}, 0);
}

// Ready: the catalogue was read once, the daemon is not about to end, and its results can be
// stored. Without its database one that answers clients goes on, and says so.
static enum MHD_Result reply_ready(struct xpl_http_request *r) {
    struct xpl_http *const h = r->http;
    struct xpl_snapshot *const s = xpl_catalogue_get(h->parts.catalogue);
    const bool scanned = s->generation > 0;
    xpl_snapshot_unref(s);
    if (h->stopping || (h->was_ready && !h->ready)) return reply_plain(r, 503, "stopping\n");
    if (!h->ready || !scanned) return reply_plain(r, 503, "starting\n");
    if (!xpl_store_jobs(h->parts.store) || xpl_store_role(h->parts.store) == XPL_STORE_WRITER)
        return reply_plain(r, 200, "ready\n");
    return h->parts.needs_store ? reply_plain(r, 503, "the store takes nothing\n")
                                : reply_plain(r, 200, "ready, degraded: the store takes nothing\n");
}

bool xpl_http_route_monitor(struct xpl_http_request *r, enum MHD_Result *ret) {
    if (!xpl_http_is_monitoring(r)) return false;
    if (r->post)
        *ret = xpl_http_reply_text(r, 405, "this route is read with GET");
    else if (is_metrics(r))
        *ret = reply_metrics(r);
    else if (is_path(r, XPL_STR("/readyz")))
        *ret = reply_ready(r);
    else
        *ret = reply_plain(r, 200, "ok\n");
    return true;
}
