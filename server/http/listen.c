// SPDX-License-Identifier: Apache-2.0
#include "server/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

enum { BACKLOG = 512, MAX_PEM = 1 << 20 };

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

xpl_status_t xpl_http_pem_read(const struct xpl_http_options *o, struct xpl_http_pem *ret,
                               struct xpl_error *err) {
    ret->cert = read_text(o->tls_cert, "--tls-cert", err);
    ret->key = ret->cert ? read_text(o->tls_key, "--tls-key", err) : NULL;
    return ret->key ? XPL_OK : XPL_FAILED_PRECONDITION;
}

void xpl_http_pem_fini(struct xpl_http_pem *p) {
    xpl_sys_free(p->cert);
    if (p->key) explicit_bzero(p->key, strlen(p->key));
    xpl_sys_free(p->key);
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

static void log_listening(int fd, bool tls) {
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
}

// At most once for a listener, for which there is room.
static void add_name(struct xpl_http *h, const char *name) {
    if (h->n_names < XPL_HTTP_MAX_NAMES)
        (void)snprintf(h->names[h->n_names++], sizeof h->names[0], "%s", name);
}

static xpl_status_t check_access(const struct xpl_http *h, const struct sockaddr *a,
                                 const char *text, bool *ret_tls, struct xpl_error *err) {
    *ret_tls = !is_loopback(a) && h->options.tls_cert[0];
    if (is_loopback(a)) return XPL_OK;
    if (!*ret_tls && !h->options.insecure)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "--http %s can be reached from other machines: use --tls-cert and --tls-key, or "
            "say --insecure",
            text);
    if (h->options.client_ca)
        XPL_RETURN_ERROR(
            err, XPL_FAILED_PRECONDITION,
            "--http %s cannot ask browsers for the certificates of --tls-client-ca: bind it "
            "to loopback, or switch it off",
            text);
    return XPL_OK;
}

static int open_socket(const struct addrinfo *a) {
    const int one = 1;
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int e = errno;
    (void)close(fd);
    errno = e;
    return -1;
}

// One address of what HOST:PORT stands for.
static xpl_status_t listen_one(struct xpl_http *h, const struct addrinfo *a, const char *text,
                               struct xpl_error *err) {
    bool tls;
    XPL_TRY(check_access(h, a->ai_addr, text, &tls, err));
    if (h->n_listeners == XPL_HTTP_MAX_LISTENERS)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http: at most %d addresses",
                         XPL_HTTP_MAX_LISTENERS);
    const int fd = open_socket(a);
    if (fd < 0) XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "--http %s: %s", text, strerror(errno));
    h->listeners[h->n_listeners++] = (struct xpl_http_listener){.fd = fd, .tls = tls};
    char host[64];
    if (is_any(a->ai_addr))
        h->any_address = true;
    else if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST) ==
             0)
        add_name(h, host);
    log_listening(fd, tls);
    return XPL_OK;
}

// "HOST:PORT" or "[V6]:PORT".
static xpl_status_t split(const char *text, char *host, size_t size, const char **ret_port,
                          struct xpl_error *err) {
    const char *const colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    const char *from = text;
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') from++, n -= 2;
    if (!n || n >= size || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http %s: want HOST:PORT, or off", text);
    if (strlen(colon + 1) > 5 || strtoul(colon + 1, NULL, 10) > 65535)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "--http %s: there is no such port", text);
    memcpy(host, from, n);
    host[n] = 0;
    *ret_port = colon + 1;
    return XPL_OK;
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
