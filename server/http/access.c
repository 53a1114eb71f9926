// SPDX-License-Identifier: Apache-2.0
#include "server/http/access.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "server/http/gateway.h"
#include "server/http/monitor.h"
#include "server/http/reply.h"
#include "server/roles.h"
#include "storage/places.h"

// ---- names ----

static void to_lower(char *to, size_t size, xpl_str_t s) {
    size_t n = 0;
    for (; n < s.len && n < size - 1; n++)
        to[n] = (char)tolower((unsigned char)s.ptr[n]);
    if (n && to[n - 1] == '.') n--; // "localhost." is localhost
    to[n] = 0;
}

// Whether the name is among the first `n` of ours.
static bool is_listed(const struct xpl_http *h, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(h->names[i], name) == 0) return true;
    return false;
}

// An IP address cannot be rebound, but only those that lead here are names of ours.
static bool is_our_address(const struct xpl_http *h, const char *name) {
    struct in6_addr six;
    struct in_addr four;
    char text[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET, name, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127 || h->any_address;
    if (inet_pton(AF_INET6, name, &six) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || h->any_address ||
           (inet_ntop(AF_INET6, &six, text, sizeof text) && is_listed(h, h->n_names, text));
}

static bool is_ours(const struct xpl_http *h, xpl_str_t host) {
    xpl_str_t name;
    char text[256];
    if (!xpl_http_host_name(host, &name)) return false;
    to_lower(text, sizeof text, name);
    const xpl_str_t s = xpl_str_from(text);
    return strcmp(text, "localhost") == 0 || xpl_str_ends(s, XPL_STR(".localhost")) ||
           is_listed(h, h->n_names, text) || is_our_address(h, text);
}

// A page of the same host and port, or of a name that --http-host lists, may ask.  `page` is an
// origin, or the URL of a page of it.
static bool origin_allowed(const struct xpl_http *h, xpl_str_t page, xpl_str_t host) {
    const size_t at = xpl_str_find(page, XPL_STR("://"), 0);
    if (at == SIZE_MAX) return false; // "null" too
    const xpl_str_t rest = xpl_str_sub(page, at + 3, SIZE_MAX);
    const xpl_str_t authority = xpl_str_sub(rest, 0, xpl_str_find(rest, XPL_STR("/"), 0));
    if (xpl_str_eq(authority, host)) return true;
    xpl_str_t name;
    char text[256];
    if (!xpl_http_host_name(authority, &name)) return false;
    to_lower(text, sizeof text, name);
    return is_listed(h, h->n_proxies, text);
}

// ---- the client ----

// Browsers send a page's request wherever the page sends it.  They say where it comes from:
// by Origin (not for GET from images and links), by Sec-Fetch-Site (not to plain HTTP under a name
// that is not loopback), by Referer (unless the page forbids it).  Where all three are missing the
// request is a program's, or it is a browser's and may come from anywhere.
enum sender { SENDER_OWN_PAGE, SENDER_TYPED, SENDER_PROGRAM, SENDER_UNKNOWN };

static enum sender sender_of(const struct xpl_http_request *r) {
    // A page of another site could send it only with a permission (CORS) that is never given.
    if (r->known[XPL_HEADER_OURS].ptr) return SENDER_OWN_PAGE;
    if (r->known[XPL_HEADER_ORIGIN].ptr) return SENDER_OWN_PAGE; // checked before
    const xpl_str_t referer = r->known[XPL_HEADER_REFERER];
    if (referer.len)
        return origin_allowed(r->http, referer, r->known[XPL_HEADER_HOST]) ? SENDER_OWN_PAGE
                                                                           : SENDER_UNKNOWN;
    const xpl_str_t site = r->known[XPL_HEADER_SITE];
    if (site.ptr)
        return xpl_str_eq(site, XPL_STR("same-origin")) ? SENDER_OWN_PAGE
               : xpl_str_eq(site, XPL_STR("none"))      ? SENDER_TYPED
                                                        : SENDER_UNKNOWN;
    const xpl_str_t agent = r->known[XPL_HEADER_USER_AGENT];
    return xpl_str_starts(agent, XPL_STR("Mozilla/")) ? SENDER_UNKNOWN : SENDER_PROGRAM;
}

enum xpl_http_access xpl_http_check_begin(const struct xpl_http_request *r, const char *method) {
    const enum sender s = sender_of(r);
    if (s != SENDER_OWN_PAGE && !(s == SENDER_PROGRAM && r->post)) return XPL_ACCESS_ELSEWHERE;
    return xpl_rpc_role_may(r->identity.role, xpl_role_of_method(method)) ? XPL_ACCESS_OK
                                                                          : XPL_ACCESS_NO_ROLE;
}

bool xpl_http_may_compute(const struct xpl_http_request *r) {
    return sender_of(r) != SENDER_UNKNOWN;
}

// ---- the token ----

// Bearer for programs; Basic for browsers, with any user name and the token as password.
static bool identify(struct xpl_http_request *r) {
    const xpl_str_t header = xpl_http_header(r, MHD_HTTP_HEADER_AUTHORIZATION);
    const struct xpl_rpc_tokens *const tokens = r->http->tokens;
    if (!tokens || xpl_str_starts(header, XPL_STR("Bearer ")))
        return xpl_rpc_tokens_find(tokens, xpl_str_sub(header, 7, SIZE_MAX), &r->identity);
    char *password = NULL;
    char *const user = MHD_basic_auth_get_username_password(r->mhd, &password);
    const bool ok = password && xpl_rpc_tokens_find(tokens, xpl_str_from(password), &r->identity);
    if (user) MHD_free(user);
    if (password) MHD_free(password);
    return ok;
}

struct xpl_audit_client xpl_http_audit_client(const struct xpl_http_request *r) {
    struct xpl_audit_client client = {.identity = r->identity};
    const union MHD_ConnectionInfo *const i =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (i && i->client_addr) (void)xpl_rpc_peer_text(i->client_addr, client.peer);
    return client;
}

// ---- together ----

enum xpl_http_access xpl_http_check_access(struct xpl_http_request *r, const char *method,
                                           const char *version) {
    struct xpl_http *h = r->http;
    const xpl_str_t host = r->known[XPL_HEADER_HOST];
    const xpl_str_t origin = r->known[XPL_HEADER_ORIGIN];
    const bool method_ok = r->post || strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
                           strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    r->gzip = xpl_http_accepts_gzip(r->known[XPL_HEADER_ACCEPT_ENCODING]);
    if (xpl_http_is_probe(r)) return method_ok ? XPL_ACCESS_OK : XPL_ACCESS_BAD_METHOD;
    // Browsers, of which the checks are about, send Host; HTTP/1.0 does without.
    if (host.ptr ? !is_ours(h, host) : strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return XPL_ACCESS_BAD_HOST;
    if (origin.ptr && !origin_allowed(h, origin, host)) return XPL_ACCESS_BAD_ORIGIN;
    if (!identify(r) && !xpl_http_is_local_scrape(r)) return XPL_ACCESS_NO_TOKEN;
    return method_ok ? XPL_ACCESS_OK : XPL_ACCESS_BAD_METHOD;
}

static enum MHD_Result reply_no_token(struct xpl_http_request *r) {
    static const char text[] = "this daemon asks for its token (--token-file): as Bearer token, or "
                               "as password of any user\n";
    struct MHD_Response *m = MHD_create_response_from_buffer(
        sizeof text - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (!m) return MHD_NO;
    enum MHD_Result got = MHD_NO;
    if (xpl_http_add_policy(m, XPL_POLICY_API) &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8") &&
        MHD_add_response_header(m, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"xplaned\""))
        got = xpl_http_queue(r, 401, m);
    MHD_destroy_response(m);
    return got;
}

static void count_refusal(struct xpl_http_stats *s, enum xpl_http_access why) {
    switch (why) {
        case XPL_ACCESS_BAD_HOST: s->refused_host++; break;
        case XPL_ACCESS_BAD_ORIGIN: s->refused_origin++; break;
        case XPL_ACCESS_ELSEWHERE: s->refused_site++; break;
        case XPL_ACCESS_NO_TOKEN: s->refused_token++; break;
        case XPL_ACCESS_NO_ROLE: s->refused_role++; break;
        case XPL_ACCESS_BAD_METHOD: s->refused_method++; break;
        case XPL_ACCESS_BAD_URI: s->refused_uri++; break;
        case XPL_ACCESS_OK: break;
    }
}

enum MHD_Result xpl_http_reject(struct xpl_http_request *r, enum xpl_http_access why) {
    count_refusal(&r->http->stats, why);
    switch (why) {
        case XPL_ACCESS_BAD_HOST:
            return xpl_http_reply_text(r, 403,
                                       "this host name is not known here; a proxy's name has to be "
                                       "listed with --http-host");
        case XPL_ACCESS_BAD_ORIGIN:
            return xpl_http_reply_text(r, 403,
                                       "pages of other origins may not ask here; a proxy's name "
                                       "has to be listed with --http-host");
        case XPL_ACCESS_ELSEWHERE:
            return xpl_http_reply_text(r, 403,
                                       "this request may come from a page of another site: go to "
                                       "this server's own pages, or send the header "
                                       "\"" XPL_HTTP_REQUEST_HEADER ": 1\"");
        case XPL_ACCESS_NO_TOKEN: return reply_no_token(r);
        case XPL_ACCESS_NO_ROLE:
            return xpl_http_reply_text(r, 403,
                                       "the role of your token is not sufficient for this "
                                       "(--token-file)");
        case XPL_ACCESS_BAD_METHOD:
            return xpl_http_reply_text(r, 405, "only GET, HEAD and POST are understood");
        case XPL_ACCESS_BAD_URI:
            if (!r->too_many) break;
            return xpl_http_reply_text(r, r->n_form ? 413 : 414, "more than 4096 arguments");
        case XPL_ACCESS_OK: break;
    }
    return xpl_http_reply_text(r, 400, "the URL is malformed");
}

// ---- settings ----

static xpl_status_t add_proxies(struct xpl_http *h, xpl_str_t list, struct xpl_error *err) {
    while (list.len) {
        const size_t comma = xpl_str_find(list, XPL_STR(","), 0);
        xpl_str_t one = xpl_str_sub(list, 0, comma), name;
        list = comma == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(list, comma + 1, SIZE_MAX);
        while (one.len && one.ptr[0] == ' ')
            one = xpl_str_sub(one, 1, SIZE_MAX);
        while (one.len && one.ptr[one.len - 1] == ' ')
            one.len--;
        if (!one.len) continue;
        if (!xpl_http_host_name(one, &name))
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http-host: \"%.*s\" is not a host name",
                             XPL_STR_FMT(xpl_str_sub(one, 0, 300)));
        if (h->n_names == XPL_HTTP_MAX_PROXIES)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http-host: more than %d names",
                             XPL_HTTP_MAX_PROXIES);
        to_lower(h->names[h->n_names++], sizeof h->names[0], name);
    }
    return XPL_OK;
}

xpl_status_t xpl_http_setup_access(struct xpl_http *h, struct xpl_error *err) {
    const char *p = h->options.prefix;
    size_t n = strlen(p);
    while (n && p[n - 1] == '/')
        n--;
    if (n && (p[0] != '/' || n >= sizeof h->prefix))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http-prefix %s: not a path such as /xprof",
                         p);
    memcpy(h->prefix, p, n);
    XPL_TRY(add_proxies(h, xpl_str_from(h->options.hosts), err));
    h->n_proxies = h->n_names;
    struct xpl_snapshot *s = xpl_catalogue_get(h->parts.catalogue);
    (void)snprintf(h->base[0], sizeof h->base[0], "%s", s->base.ptr);
    (void)xpl_place_resolve(s->base.ptr, h->base[1]);
    xpl_snapshot_unref(s);
    return XPL_OK;
}

xpl_status_t xpl_http_set_tokens(struct xpl_http *h, xpl_str_t text, struct xpl_error *err) {
    struct xpl_rpc_tokens *tokens = NULL;
    XPL_TRY(xpl_rpc_tokens_parse(text, &tokens, err));
    xpl_rpc_tokens_free(h->tokens);
    h->tokens = tokens;
    return XPL_OK;
}
