// SPDX-License-Identifier: Apache-2.0
#include "server/http/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "server/http/listen.h"
#include "server/http/wait.h"

enum {
    POOL_BYTES = 32 << 10, // of libmicrohttpd for one connection: bounds the headers
    CHECK_TICKS = 25,      // between two looks for another certificate: 5 s
    RETIRED_MS = 2000,     // for connections of the certificate before to begin their request
};

// ---- one of libmicrohttpd's daemons ----

__attribute__((format(printf, 2, 0))) static void on_log(void *arg, const char *fmt, va_list ap) {
    (void)arg;
    char text[512];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = 0;
    xpl_log(XPL_LOG_DEBUG, "http", "%s", text);
}

// GnuTLS's own choice still takes TLS 1.0 and 1.1.
static const char TLS_VERSIONS[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static void start_daemon(struct xpl_http_engine *e, const struct xpl_http_pem *pem) {
    struct xpl_http *const h = e->http;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, pem->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, pem->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)(uintptr_t)TLS_VERSIONS},
        {pem->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, pem->client_ca},
        {MHD_OPTION_END, 0, NULL},
    };
    // Strictness 0: a missing Host and blanks in the URI are ours to refuse (request.c).
    // libmicrohttpd begins its own answer to the one twice, and gives none to the other.
    const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                           MHD_USE_ERROR_LOG | (pem->cert ? MHD_USE_TLS : 0u);
    e->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, h->handlers.request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, h->handlers.completed, h, MHD_OPTION_NOTIFY_CONNECTION,
        h->handlers.connection, e, MHD_OPTION_URI_LOG_CALLBACK, h->handlers.uri, h,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        // Of surplus ones as many may have been ended and not closed yet.
        (unsigned)h->options.max_connections + 2 * XPL_HTTP_MAX_SURPLUS,
        MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        pem->cert ? tls : tls + 4, MHD_OPTION_END);
}

static void on_engine(uv_poll_t *p, int status, int events) {
    (void)status, (void)events;
    struct xpl_http_engine *const e = p->data;
    e->http->handlers.turn(e->http);
}

static void on_closed(uv_handle_t *handle) {
    struct xpl_http_engine *const e = handle->data;
    e->polled = false;
    handle->data = e->http;
    e->http->handlers.closed(handle);
}

static void stop_engine(struct xpl_http_engine *e) {
    if (!e->mhd) return;
    uv_close((uv_handle_t *)&e->poll, on_closed); // before its descriptor goes
    MHD_stop_daemon(e->mhd);                      // closes the connections
    e->mhd = NULL;
}

static xpl_status_t start_engine(struct xpl_http_engine *e, bool tls, struct xpl_error *err) {
    struct xpl_http *const h = e->http;
    XPL_AUTO(xpl_http_pem_fini) struct xpl_http_pem pem = {0};
    if (tls) XPL_TRY(xpl_http_pem_read(h, &pem, err));
    e->retired = false;
    start_daemon(e, &pem);
    const union MHD_DaemonInfo *const i =
        e->mhd ? MHD_get_daemon_info(e->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!i || uv_poll_init(xpl_loop_uv(h->parts.loop), &e->poll, i->epoll_fd) != 0) {
        if (e->mhd) MHD_stop_daemon(e->mhd);
        e->mhd = NULL;
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "--http: libmicrohttpd did not start%s",
                         tls ? "; are --tls-cert and --tls-key right?" : "");
    }
    e->poll.data = e;
    e->polled = true;
    h->open_handles++;
    uv_poll_start(&e->poll, UV_READABLE, on_engine);
    h->current[tls] = e;
    return XPL_OK;
}

static struct xpl_http_engine *find_free(struct xpl_http *h) {
    for (size_t i = 0; i < XPL_HTTP_ENGINES; i++) {
        struct xpl_http_engine *const e = &h->engines[i];
        e->http = h;
        if (!e->mhd && !e->polled) return e;
    }
    return NULL;
}

// ---- certificates ----

static bool is_same(const struct xpl_http_file_state *a, const struct xpl_http_file_state *b) {
    bool same = true;
    for (int i = 0; i < XPL_HTTP_PEM_FILES; i++)
        same &= a[i].mtime_ns == b[i].mtime_ns && a[i].size == b[i].size && a[i].ino == b[i].ino;
    return same;
}

// Running requests are answered, with their first certificate.
static void retire(struct xpl_http_engine *e) {
    struct xpl_http *const h = e->http;
    const uint64_t end = xpl_http_now_ms(h) + RETIRED_MS;
    e->retired = true;
    for (struct xpl_http_connection *c = h->connections; c; c = c->next)
        if (c->engine == e && !c->request && c->deadline_ms > end) c->deadline_ms = end;
}

static xpl_status_t renew(struct xpl_http *h, struct xpl_error *err) {
    struct xpl_http_engine *const before = h->current[1], *const e = find_free(h);
    struct xpl_http_file_state states[XPL_HTTP_PEM_FILES];
    xpl_http_pem_states(h, states); // before they are read: a later change is noticed
    XPL_TRY(xpl_http_check_certificate(h->options.tls_cert, h->options.tls_key, err));
    if (!e)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                         "HTTPS: requests still use the certificates of before; send SIGHUP later");
    XPL_TRY(start_engine(e, true, err));
    memcpy(h->pem_states, states, sizeof states);
    retire(before);
    xpl_log(XPL_LOG_INFO, "http", "HTTPS uses the changed certificate");
    return XPL_OK;
}

xpl_status_t xpl_http_renew_certificate(struct xpl_http *h, struct xpl_error *err) {
    struct xpl_http_file_state now[XPL_HTTP_PEM_FILES];
    if (!h->current[1] || h->stopping) return XPL_OK;
    xpl_http_pem_states(h, now);
    if (is_same(now, h->pem_states)) return XPL_OK;
    const xpl_status_t st = renew(h, err);
    if (st != XPL_OK) memcpy(h->pem_bad, now, sizeof now);
    return st;
}

enum { CHECKS_OF_BAD = 12 };

// Files are replaced one after the other, so it may be too early; logged once. The cause may be
// temporary, such as no descriptor: it is tried again now and then.
static void check_certificate_files(struct xpl_http *h) {
    struct xpl_http_file_state now[XPL_HTTP_PEM_FILES];
    struct xpl_error err = {0};
    if (!h->current[1]) return;
    xpl_http_pem_states(h, now);
    const bool is_known = is_same(now, h->pem_bad);
    if (is_known && ++h->bad_checks % CHECKS_OF_BAD) return;
    if (xpl_http_renew_certificate(h, &err) != XPL_OK && !is_known)
        xpl_log(XPL_LOG_WARN, "http", "HTTPS keeps its certificate: %s", err.msg);
}

// ---- all of them ----

xpl_status_t xpl_http_engine_start(struct xpl_http *h, bool tls, struct xpl_error *err) {
    if (h->current[tls]) return XPL_OK;
    if (tls) xpl_http_pem_states(h, h->pem_states);
    return start_engine(find_free(h), tls, err);
}

bool xpl_http_engines_run(struct xpl_http *h) {
    bool again = false;
    for (size_t i = 0; i < XPL_HTTP_ENGINES; i++) {
        struct MHD_Daemon *const d = h->engines[i].mhd;
        MHD_UNSIGNED_LONG_LONG ms = 1;
        if (!d) continue;
        (void)MHD_run(d);
        if (MHD_get_timeout(d, &ms) == MHD_YES && ms == 0) again = true;
    }
    return again;
}

void xpl_http_engines_tick(struct xpl_http *h) {
    for (size_t i = 0; i < XPL_HTTP_ENGINES; i++)
        if (h->engines[i].retired && !h->engines[i].n_connections) stop_engine(&h->engines[i]);
    if (++h->ticks % CHECK_TICKS == 0) check_certificate_files(h);
}

void xpl_http_engines_stop(struct xpl_http *h) {
    for (size_t i = 0; i < XPL_HTTP_ENGINES; i++)
        stop_engine(&h->engines[i]);
}
