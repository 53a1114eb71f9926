// SPDX-License-Identifier: Apache-2.0
#include "server/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/net/listen.h"

enum { MAX_PEM = 1 << 20 };

// ---- certificates ----

static char *read_text(const char *path, const char *option, struct xpl_error *err) {
    FILE *f = fopen(path, "re");
    char *p = f ? xpl_sys_alloc(MAX_PEM + 1) : NULL;
    const size_t n = p ? fread(p, 1, MAX_PEM, f) : 0;
    const bool whole = p && feof(f);
    if (!f)
        (void)xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                            "%s %s: %s", option, path, strerror(errno));
    else if (!whole)
        (void)xpl_error_set(err, XPL_FAILED_PRECONDITION, __FILE__, __LINE__, UINT64_MAX,
                            "%s %s: cannot be read, or too large", option, path);
    if (f) (void)fclose(f);
    if (whole) {
        p[n] = 0;
        return p;
    }
    xpl_sys_free(p);
    return NULL;
}

static void get_state(const char *path, struct xpl_http_file_state *ret) {
    struct stat st;
    *ret = (struct xpl_http_file_state){0};
    if (!path[0] || stat(path, &st) != 0) return;
    ret->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    ret->size = (uint64_t)st.st_size, ret->ino = st.st_ino;
}

void xpl_http_pem_states(const struct xpl_http *h,
                         struct xpl_http_file_state ret[XPL_HTTP_PEM_FILES]) {
    get_state(h->options.tls_cert, &ret[0]);
    get_state(h->options.tls_key, &ret[1]);
    get_state(h->options.client_ca, &ret[2]);
}

xpl_status_t xpl_http_pem_read(const struct xpl_http *h, struct xpl_http_pem *ret,
                               struct xpl_error *err) {
    const struct xpl_http_options *const o = &h->options;
    ret->cert = read_text(o->tls_cert, "--tls-cert", err);
    ret->key = ret->cert ? read_text(o->tls_key, "--tls-key", err) : NULL;
    if (ret->key && o->client_ca[0])
        ret->client_ca = read_text(o->client_ca, "--tls-client-ca", err);
    return ret->key && (ret->client_ca || !o->client_ca[0]) ? XPL_OK : XPL_FAILED_PRECONDITION;
}

xpl_status_t xpl_http_check_certificate(const char *cert, const char *key, struct xpl_error *err) {
    gnutls_certificate_credentials_t c = NULL;
    int rc = gnutls_certificate_allocate_credentials(&c);
    if (rc == 0)
        rc = gnutls_certificate_set_x509_key_file2(c, cert, key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (c) gnutls_certificate_free_credentials(c);
    if (rc >= 0) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--tls-cert %s and --tls-key %s: %s", cert, key,
                     gnutls_strerror(rc));
}

void xpl_http_pem_fini(struct xpl_http_pem *p) {
    xpl_sys_free(p->cert);
    if (p->key) explicit_bzero(p->key, strlen(p->key));
    xpl_sys_free(p->key);
    xpl_sys_free(p->client_ca);
}

bool xpl_http_certified(struct xpl_http_request *r) {
    if (!r->http->options.client_ca[0] || r->connection->certified) return true;
    const union MHD_ConnectionInfo *const i =
        MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned status = 0;
    // libmicrohttpd asks for a certificate, and also serves clients without one.
    r->connection->certified =
        i && gnutls_certificate_verify_peers2(i->tls_session, &status) == 0 && status == 0;
    return r->connection->certified;
}

// ---- connections ----

bool xpl_http_admit(const struct xpl_http *h, const struct xpl_peer *peer) {
    size_t n = 0;
    if (peer->local || !h->options.per_address) return true;
    for (const struct xpl_http_connection *c = h->connections; c; c = c->next)
        n += xpl_peer_equal(&c->peer, peer);
    return n < h->options.per_address;
}

// ---- sockets ----

static bool is_loopback(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static bool is_any(const struct sockaddr *a) {
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

// `prefix`: under which a proxy serves the pages, with a slash in front; "" without one.
static void log_listening(int fd, bool tls, const char *prefix) {
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char host[64] = "", port[16] = "", text[96];
    if (getsockname(fd, (struct sockaddr *)&at, &n) != 0 ||
        getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    (void)snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    struct xpl_log_line l;
    xpl_log_begin(&l, XPL_LOG_INFO, "daemon", "listening");
    xpl_log_z(&l, "service", tls ? "https" : "http");
    xpl_log_z(&l, "address", text);
    xpl_log_end(&l);
    const bool any = is_any((const struct sockaddr *)&at);
    xpl_log(XPL_LOG_INFO, "daemon", "the pages: %s://%s%s%s", tls ? "https" : "http",
            any ? "localhost:" : text, any ? port : "", prefix);
}

// At most once for a listener, for which there is room.
static void add_name(struct xpl_http *h, const char *name) {
    if (h->n_names < XPL_HTTP_MAX_NAMES)
        (void)snprintf(h->names[h->n_names++], sizeof h->names[0], "%s", name);
}

static xpl_status_t check_access(const struct xpl_http *h, const struct sockaddr *a,
                                 const char *text, bool *ret_tls, struct xpl_error *err) {
    // A client's certificate is demanded from all or none: loopback does not bypass it.
    *ret_tls = h->options.tls_cert[0] && (!is_loopback(a) || h->options.client_ca[0]);
    if (is_loopback(a)) return XPL_OK;
    if (!*ret_tls && !h->options.insecure)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "--http %s can be reached from other machines: use --tls-cert and --tls-key, or "
            "say --insecure",
            text);
    return XPL_OK;
}

// One of the addresses of HOST:PORT.
static xpl_status_t listen_one(struct xpl_http *h, const struct addrinfo *a, const char *text,
                               struct xpl_error *err) {
    bool tls;
    XPL_TRY(check_access(h, a->ai_addr, text, &tls, err));
    if (h->n_listeners == XPL_HTTP_MAX_LISTENERS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http: at most %d addresses",
                         XPL_HTTP_MAX_LISTENERS);
    const int fd = xpl_listen_open(a, false);
    if (fd < 0) {
        const int why = errno;
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "--http %s: %s%s", text, strerror(why),
                         why == EADDRINUSE ? "; another port: --http HOST:PORT, a free one: port 0"
                                           : "");
    }
    h->listeners[h->n_listeners++] = (struct xpl_http_listener){.fd = fd, .tls = tls};
    char host[64];
    if (is_any(a->ai_addr))
        h->any_address = true;
    else if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) ==
             0)
        add_name(h, host);
    log_listening(fd, tls, h->options.prefix);
    return XPL_OK;
}

// "HOST:PORT" or "[V6]:PORT".
static xpl_status_t split(const char *text, char *host, size_t size, const char **ret_port,
                          struct xpl_error *err) {
    struct xpl_error why = {0};
    if (xpl_listen_split(text, host, size, ret_port, &why) == XPL_OK) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http %s; off is for none", why.msg);
}

static xpl_status_t listen_text(struct xpl_http *h, const char *text, struct xpl_error *err) {
    char host[256];
    const char *port = NULL;
    XPL_TRY(split(text, host, sizeof host, &port, err));
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *all = NULL;
    const int e = getaddrinfo(host, port, &hints, &all);
    if (e != 0)
        XPL_RETURN_ERROR(err, XPL_FAILED_PRECONDITION, "--http %s: %s", text, gai_strerror(e));
    xpl_status_t st = XPL_OK;
    size_t n = 0;
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        struct xpl_error one = {0};
        const xpl_status_t got = listen_one(h, a, text, &one);
        n += got == XPL_OK;
        if (got == XPL_OK || st != XPL_OK) continue;
        st = got;
        *err = one;
    }
    freeaddrinfo(all);
    // Of a name's addresses one is enough: a machine may have no IPv6.
    if (st == XPL_UNAVAILABLE && n) {
        *err = (struct xpl_error){0};
        return XPL_OK;
    }
    return st;
}

xpl_status_t xpl_http_listen(struct xpl_http *h, struct xpl_error *err) {
    const char *at = h->options.listen;
    while (*at) {
        char text[300];
        const size_t n = strcspn(at, ",");
        if (n >= sizeof text)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http: address too long");
        memcpy(text, at, n);
        text[n] = 0;
        at += n + (at[n] == ',');
        XPL_TRY(listen_text(h, text, err));
    }
    return XPL_OK;
}
