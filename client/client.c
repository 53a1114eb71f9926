// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/impl.h"
#include "rpc/message.h"

enum { DEFAULT_TIMEOUT_MS = 300000, MAX_MESSAGE = 1 << 30 };

const char *xpl_client_version(void) {
    return XPL_VERSION;
}

int xpl_client_result(xpl_result *r, xpl_status_t code, const struct xpl_error *err,
                      int64_t retry_ms) {
    if (r) {
        *r = (xpl_result){.code = (int)code, .retry_after_ms = retry_ms > 0 ? retry_ms : 0};
        if (code != XPL_OK)
            (void)snprintf(r->message, sizeof r->message, "%s", err ? err->msg : "out of memory");
    }
    return (int)code;
}

// The options as this build knows them, whatever size the caller was compiled with.
static xpl_client_options options_of(const xpl_client_options *given) {
    xpl_client_options o = {0};
    if (given) memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    if (o.timeout_ms <= 0) o.timeout_ms = DEFAULT_TIMEOUT_MS;
    return o;
}

int xpl_client_open(const char *server, const xpl_client_options *options, xpl_client **ret,
                    xpl_result *result) {
    const xpl_client_options o = options_of(options);
    if (!server || !server[0]) server = getenv("XPLANED_SERVER");
    if (!server || !server[0]) server = "127.0.0.1:50551";
    xpl_client *c = xpl_sys_alloc(sizeof *c);
    if (!c) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    *c = (xpl_client){.timeout_ms = o.timeout_ms};
    (void)snprintf(c->address, sizeof c->address, "%s", server);
    const struct xpl_rpc_channel_options co = {
        .size = sizeof co,
        .target = server,
        .tls = o.tls_roots || o.tls_cert,
        .ca_path = o.tls_roots,
        .cert_path = o.tls_cert,
        .key_path = o.tls_key,
        .server_name = o.tls_name,
        .token = o.token ? xpl_str_from(o.token) : (xpl_str_t){0},
        .max_message_bytes = MAX_MESSAGE,
    };
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_rpc_channel_open(&co, &c->channel, &err);
    if (st == XPL_OK)
        *ret = c;
    else
        xpl_sys_free(c);
    return xpl_client_result(result, st, &err, 0);
}

void xpl_client_close(xpl_client *c) {
    if (!c) return;
    xpl_rpc_channel_close(c->channel);
    xpl_sys_free(c);
}

// Reasons in the error texts of gRPC 1.51 for a failed connection; NULL for other texts, which come
// from servers.
static const char *why_unreachable(const char *m) {
    static const struct {
        const char *part, *why;
    } rows[] = {{"Connection refused", "connection refused"},
                {"No such file or directory", "no such socket"},
                {"Permission denied", "permission denied"},
                {"DNS resolution failed", "the host's name cannot be resolved"},
                {"Failed parsing HTTP/2", "another kind of server answers there"},
                {"o route to host", "no route to the host"},
                {"etwork is unreachable", "the network is unreachable"},
                {"imed out", "no response; a firewall?"},
                {"andshake", "no TLS connection; check the certificates"},
                {"SSL", "no TLS connection; check the certificates"},
                {"failed to connect to all addresses", "no connection; does it need TLS?"}};
    if (strncmp(m, "failed to connect", 17) != 0 && strncmp(m, "DNS resolution failed", 21) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(m, rows[i].part)) return rows[i].why;
    return NULL;
}

void xpl_client_explain(const xpl_client *c, struct xpl_error *err) {
    const char *const why = err->code == XPL_UNAVAILABLE ? why_unreachable(err->msg) : NULL;
    if (why)
        (void)snprintf(err->msg, sizeof err->msg,
                       "no daemon answers at %.72s (%s): start one with `xplaned --logdir DIR`, or "
                       "name another's address ($XPLANED_SERVER)",
                       c->address, why);
    else if (err->code == XPL_DEADLINE_EXCEEDED && strcmp(err->msg, "Deadline Exceeded") == 0)
        (void)snprintf(err->msg, sizeof err->msg, "%.72s has not answered in %" PRId64 " ms",
                       c->address, c->timeout_ms);
}

xpl_status_t xpl_client_call(xpl_client *c, const char *path, const ProtobufCMessage *request,
                             struct xpl_rpc_reply *reply, xpl_result *r) {
    struct xpl_buf b = xpl_buf_of((size_t)64 << 20);
    xpl_rpc_message_put(&b, request);
    struct xpl_error err = {0};
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (b.failed) {
        (void)xpl_client_result(r, st, NULL, 0);
    } else {
        const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = c->timeout_ms};
        st = xpl_rpc_unary(c->channel, path, (xpl_bytes_t){b.p, b.n}, &o, reply, &err);
        xpl_client_explain(c, &err);
        (void)xpl_client_result(r, st, &err, reply->details.retry_ms);
    }
    xpl_buf_fini(&b);
    return st;
}
