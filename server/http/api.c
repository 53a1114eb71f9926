// SPDX-License-Identifier: Apache-2.0
// /api/v1: what our own pages read.
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/engine/request.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/monitor/json.h"

enum { MAX_HOSTS = 4096, MAX_REPLY = 256 << 20 };

static enum MHD_Result reply_failure(struct xpl_http_request *r, xpl_status_t code,
                                     const char *text) {
    struct xpl_error err = {0};
    (void)xpl_error_set(&err, code, __FILE__, __LINE__, UINT64_MAX, "%s", text);
    return xpl_http_reply_api_error(r, &err, -1);
}

static void finish_json(struct xpl_http_request *r, struct xpl_buf *b) {
    const struct xpl_http_body_options o = {
        .policy = XPL_POLICY_API, .type = "application/json", .gzip = r->gzip, .validators = true};
    r->body = xpl_http_body_from_buf(b, &o);
}

// ---- /api/v1/sessions ----

static const char *state_name(enum xpl_host_state s) {
    switch (s) {
        case XPL_HOST_CONVERTING: return "converting";
        case XPL_HOST_STORED: return "stored";
        case XPL_HOST_BROKEN: return "broken";
        case XPL_HOST_NEW: break;
    }
    return "new";
}

static void put_host(struct xpl_http *h, struct xpl_buf *b, const struct xpl_host *host) {
    struct xpl_host_status st;
    xpl_engine_host_status(h->parts.engine, host, &st);
    xpl_buf_str(b, XPL_STR("{\"name\":"));
    xpl_json_str(b, host->name, false);
    xpl_buf_printf(b, ",\"bytes\":%llu,\"modified_unix_ms\":%lld,\"state\":\"%s\",\"error\":",
                   (unsigned long long)host->fingerprint.size,
                   (long long)(host->fingerprint.mtime_ns / 1000000), state_name(st.state));
    xpl_json_str(b, xpl_str_from(st.error), false);
    xpl_buf_putc(b, '}');
}

static void put_session(struct xpl_http *h, struct xpl_buf *b, const struct xpl_session *s) {
    xpl_buf_str(b, XPL_STR("{\"name\":"));
    xpl_json_str(b, s->name, false);
    xpl_buf_printf(b, ",\"kind\":\"%s\",\"captured_unix_ms\":%lld,\"bytes\":%llu,\"hosts\":[",
                   xpl_kind_name(xpl_request_session_kind(s)),
                   (long long)(s->captured_ns / 1000000), (unsigned long long)s->bytes);
    for (size_t i = 0; i < s->n_hosts; i++) {
        if (i) xpl_buf_putc(b, ',');
        put_host(h, b, &s->hosts[i]);
    }
    xpl_buf_str(b, XPL_STR("],\"lost\":["));
    for (size_t i = 0; i < s->n_lost; i++) {
        xpl_buf_str(b, i ? XPL_STR(",{\"target\":") : XPL_STR("{\"target\":"));
        xpl_json_str(b, s->lost[i].target, false);
        xpl_buf_str(b, XPL_STR(",\"reason\":"));
        xpl_json_str(b, s->lost[i].reason, false);
        xpl_buf_putc(b, '}');
    }
    xpl_buf_str(b, XPL_STR("]}"));
}

// On a worker: the store has the hosts' states.
static void list_sessions(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, MAX_REPLY);
    struct xpl_snapshot *s = xpl_catalogue_get(r->http->parts.catalogue);
    xpl_buf_str(&b, XPL_STR("{\"sessions\":["));
    for (size_t i = 0; i < s->n_sessions; i++) {
        if (i) xpl_buf_putc(&b, ',');
        put_session(r->http, &b, &s->sessions[i]);
    }
    xpl_buf_str(&b, XPL_STR("]}"));
    xpl_snapshot_unref(s);
    finish_json(r, &b);
}

// ---- /api/v1/tools ----

static void put_option(struct xpl_buf *b, const struct xpl_tool_option *o, bool *first) {
    if (o->internal) return;
    xpl_buf_printf(b, "%s{\"key\":\"%s\",\"values\":[", *first ? "" : ",", o->key);
    const char *at = o->values;
    for (size_t i = 0; at && *at; i++) { // "a|b|c"
        const size_t n = strcspn(at, "|");
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, (xpl_str_t){at, n}, false);
        at += n + (at[n] == '|');
    }
    xpl_buf_str(b, XPL_STR("]}"));
    *first = false;
}

static void put_tool(struct xpl_buf *b, const struct xpl_tool *t, bool first) {
    bool first_option = true;
    xpl_buf_printf(b,
                   "%s{\"name\":\"%s\",\"alias\":\"%s\",\"content_type\":\"%s\","
                   "\"one_host\":%s,\"options\":[",
                   first ? "" : ",", t->name, t->aliases ? t->aliases[0] : "", t->content_type,
                   t->hosts == XPL_HOSTS_ONE ? "true" : "false");
    for (size_t k = 0; k < xpl_tool_n_options(t); k++)
        put_option(b, xpl_tool_option_at(t, k), &first_option);
    xpl_buf_str(b, XPL_STR("]}"));
}

static xpl_str_t find_arg(const struct xpl_http_request *r, xpl_str_t key) {
    for (size_t i = 0; i < r->n_args; i++)
        if (xpl_str_eq(r->args[i].key, key)) return r->args[i].value;
    return XPL_STR("");
}

// All tools, or those that read a file of the session.
static void list_tools(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, MAX_REPLY);
    size_t n;
    bool first = true;
    const struct xpl_tool *const *const all = xpl_tools(&n);
    const xpl_str_t name = find_arg(r, XPL_STR("session"));
    struct xpl_snapshot *snap = xpl_catalogue_get(r->http->parts.catalogue);
    const struct xpl_session *const of = xpl_snapshot_find(snap, name);
    xpl_buf_str(&b, XPL_STR("{\"tools\":["));
    for (size_t i = 0; i < n; i++) {
        if (name.len && !(of && xpl_request_session_feeds(of, all[i]))) continue;
        put_tool(&b, all[i], first);
        first = false;
    }
    xpl_buf_str(&b, XPL_STR("]}"));
    xpl_snapshot_unref(snap);
    finish_json(r, &b);
}

// ---- /api/v1/server ----

static void get_server(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    xpl_buf_init(&b, MAX_REPLY);
    struct xpl_server_stats s;
    xpl_server_stats_read(r->http->parts.stats, &s);
    if (!xpl_server_stats_read_outcomes(r->http->parts.stats, &r->arena, &s)) return;
    xpl_server_stats_put_json(&b, &s);
    finish_json(r, &b);
}

// ---- /api/v1/tool, /api/v1/csv ----

static enum MHD_Result tool(struct xpl_http_request *r, bool csv) {
    struct xpl_http_tool_request a = {.dialect = XPL_DIALECT_API, .csv = csv};
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    xpl_str_t *hosts = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *hosts);
    struct xpl_option *options = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *options);
    if (!hosts || !options) return xpl_http_busy(r);
    for (size_t i = 0; i < r->n_args; i++) {
        const xpl_str_t key = r->args[i].key, value = r->args[i].value;
        if (xpl_str_eq(key, XPL_STR("session")))
            a.session = value;
        else if (xpl_str_eq(key, XPL_STR("tool")))
            a.tool = value;
        else if (!xpl_str_eq(key, XPL_STR("host")))
            options[a.n_options++] = (struct xpl_option){key, value};
        else if (value.len && a.n_hosts < MAX_HOSTS)
            hosts[a.n_hosts++] = value;
    }
    a.hosts = hosts;
    a.options = options;
    if (!a.session.len)
        return reply_failure(r, XPL_INVALID_ARGUMENT,
                             "session=NAME is missing; /api/v1/sessions lists them");
    if (!a.tool.len)
        return reply_failure(r, XPL_INVALID_ARGUMENT,
                             "tool=NAME is missing; /api/v1/tools lists them");
    return xpl_http_answer_tool(r, &a);
}

enum MHD_Result xpl_http_route_api(struct xpl_http_request *r) {
    static const struct {
        const char *path;
        void (*work)(struct xpl_http_request *r);
    } routes[] = {{"/api/v1/sessions", list_sessions},
                  {"/api/v1/tools", list_tools},
                  {"/api/v1/server", get_server}};
    // POST, too: its body has room for more hosts than a URL.
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/tool"))) return tool(r, false);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/csv"))) return tool(r, true);
    if (r->post) return xpl_http_reply_text(r, 405, "this route is read with GET");
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (xpl_str_eq(r->path, xpl_str_from(routes[i].path)))
            return xpl_http_defer(r, routes[i].work, xpl_http_result) ? MHD_YES : xpl_http_busy(r);
    return reply_failure(r, XPL_NOT_FOUND,
                         "no such route; there are /api/v1/sessions, tools, tool, csv and server");
}
