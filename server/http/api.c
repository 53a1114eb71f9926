// SPDX-License-Identifier: Apache-2.0
// /api/v1: what our own pages read.
#include <stdatomic.h>
#include <string.h>

#include "analysis/tools/lib/gviz.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "server/capture_jobs/json.h"
#include "server/engine/request.h"
#include "server/engine/statements.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/jobs/fleet.h"
#include "server/labels/labels.h"
#include "server/monitor/json.h"
#include "server/roles.h"

enum { MAX_HOSTS = 4096, MAX_REPLY = 256 << 20 };

static enum MHD_Result reply_failure(struct xpl_http_request *r, xpl_status_t code,
                                     const char *text) {
    struct xpl_error err = {0};
    (void)xpl_error_set(&err, code, __FILE__, __LINE__, UINT64_MAX, "%s", text);
    return xpl_http_reply_api_error(r, &err, -1);
}

static struct xpl_http_body *json_body(struct xpl_buf *b, bool gzip) {
    const struct xpl_http_body_options o = {
        .policy = XPL_POLICY_API, .type = "application/json", .gzip = gzip, .validators = true};
    return xpl_http_body_from_buf(b, &o);
}

static void finish_json(struct xpl_http_request *r, struct xpl_buf *b) {
    r->body = json_body(b, r->gzip);
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

static void put_labels(struct xpl_buf *b, const xpl_str_t *labels, size_t n) {
    xpl_buf_str(b, XPL_STR("\"labels\":["));
    for (size_t i = 0; i < n; i++) {
        if (i) xpl_buf_putc(b, ',');
        xpl_json_str(b, labels[i], false);
    }
    xpl_buf_putc(b, ']');
}

// False when out of memory.
static bool put_labels_of(struct xpl_http *h, struct xpl_buf *b, xpl_str_t session) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    xpl_str_t *labels;
    size_t n;
    if (!xpl_labels_of(h->parts.labels, session, &arena, &labels, &n)) return false;
    put_labels(b, labels, n);
    return true;
}

static bool put_session(struct xpl_http *h, struct xpl_buf *b, const struct xpl_session *s) {
    const struct xpl_format *const format = xpl_request_session_format(s);
    xpl_buf_str(b, XPL_STR("{\"name\":"));
    xpl_json_str(b, s->name, false);
    xpl_buf_printf(b, ",\"kind\":\"%s\",\"title\":\"%s\",\"report\":\"%s\"", format->family,
                   format->title, format->instead ? format->instead : "");
    xpl_buf_printf(b, ",\"captured_unix_ms\":%lld,\"bytes\":%llu,\"hosts\":[",
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
    xpl_buf_str(b, XPL_STR("],"));
    const bool ok = put_labels_of(h, b, s->name);
    xpl_buf_putc(b, '}');
    return ok;
}

// NULL when out of memory.
static struct xpl_http_body *make_list(struct xpl_http *h, bool gzip) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    struct xpl_snapshot *s = xpl_catalogue_get(h->parts.catalogue);
    xpl_buf_str(&b, XPL_STR("{\"sessions\":["));
    bool ok = true;
    for (size_t i = 0; ok && i < s->n_sessions; i++) {
        if (i) xpl_buf_putc(&b, ',');
        ok = put_session(h, &b, &s->sessions[i]);
    }
    xpl_buf_str(&b, XPL_STR("]}"));
    xpl_snapshot_unref(s);
    return ok ? json_body(&b, gzip) : NULL;
}

// On a worker: the store has the hosts' states.  One list for all requests that came before it was
// begun: many hosts take long, and their list is large.
static void list_sessions(void *arg) {
    struct xpl_http_request *r = arg;
    bool gzip = false, wanted = false;
    for (const struct xpl_http_request *one = r; one; one = one->next_alike) {
        gzip |= one->gzip;
        wanted |= !one->gone;
    }
    struct xpl_http_body *const body = wanted ? make_list(r->http, gzip) : NULL;
    for (struct xpl_http_request *next; r; r = next) {
        next = r->next_alike; // r may go at once
        if (body) xpl_object_ref(&body->object);
        r->body = body;
        xpl_http_done(r);
    }
    if (body) xpl_object_unref(&body->object);
}

// On the loop.
static void begin_list(struct xpl_http *h) {
    struct xpl_http_request *all = h->listings;
    if (h->listing || !all) return;
    h->listings = NULL;
    h->listing = all;
    if (xpl_pool_submit(h->parts.pool, list_sessions, all)) return;
    h->listing = NULL;
    for (struct xpl_http_request *next; all; all = next) {
        next = all->next_alike;
        xpl_http_done(all);
    }
}

// The list of this request is complete, and the next may begin.
static void end_list(struct xpl_http_request *r) {
    if (r->http->listing != r) return;
    r->http->listing = NULL;
    begin_list(r->http);
}

static enum MHD_Result reply_list(struct xpl_http_request *r) {
    end_list(r);
    return r->gone || r->body ? xpl_http_result(r) : xpl_http_busy(r);
}

static enum MHD_Result sessions(struct xpl_http_request *r) {
    struct xpl_http *const h = r->http;
    r->release = end_list;
    r->next_alike = h->listings;
    h->listings = r;
    xpl_http_wait(r, reply_list);
    begin_list(h);
    return MHD_YES;
}

// ---- /api/v1/label ----

struct labeling { // r->data
    struct xpl_labels_change change;
    struct xpl_audit_client client;
    struct xpl_error err;
};

// On a worker: state.db is written.
static void set_labels(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    struct labeling *const l = r->data;
    struct xpl_snapshot *const snap = xpl_catalogue_get(r->http->parts.catalogue);
    const xpl_status_t st = xpl_labels_set(r->http->parts.labels, snap, &l->change, &l->err);
    xpl_snapshot_unref(snap);
    xpl_labels_audit(&l->client, &l->change, st, &l->err);
    if (st != XPL_OK) return;
    xpl_buf_putc(&b, '{');
    if (!put_labels_of(r->http, &b, l->change.session)) return;
    xpl_buf_putc(&b, '}');
    finish_json(r, &b);
}

static enum MHD_Result reply_labels(struct xpl_http_request *r) {
    const struct labeling *const l = r->data;
    if (r->gone || l->err.code == XPL_OK) return xpl_http_result(r);
    return xpl_http_reply_api_error(r, &l->err, -1);
}

// Only POST: following a link changes nothing.
static enum MHD_Result label(struct xpl_http_request *r) {
    struct labeling *const l = xpl_arena_zalloc(&r->arena, sizeof *l);
    xpl_str_t *const add = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *add);
    xpl_str_t *const remove = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *remove);
    if (!r->post) return xpl_http_reply_text(r, 405, "labels are changed with POST");
    const enum xpl_http_access access = xpl_http_check_begin(r, XPL_METHOD_LABEL);
    if (access != XPL_ACCESS_OK) return xpl_http_reject(r, access);
    if (!l || !add || !remove) return xpl_http_busy(r);
    l->change = (struct xpl_labels_change){.add = add, .remove = remove};
    l->client = xpl_http_audit_client(r);
    for (size_t i = 0; i < r->n_args; i++) {
        const xpl_str_t key = r->args[i].key, value = r->args[i].value;
        if (xpl_str_eq(key, XPL_STR("session")))
            l->change.session = value;
        else if (xpl_str_eq(key, XPL_STR("add")))
            add[l->change.n_add++] = value;
        else if (xpl_str_eq(key, XPL_STR("remove")))
            remove[l->change.n_remove++] = value;
    }
    if (!l->change.session.len)
        return reply_failure(r, XPL_INVALID_ARGUMENT,
                             "session=NAME is missing; /api/v1/sessions lists them");
    r->data = l;
    return xpl_http_defer(r, set_labels, reply_labels) ? MHD_YES : xpl_http_busy(r);
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

// The name as a title: "Event time fraction analyzer"; of a format's own tools with the format's.
static void put_title(struct xpl_buf *b, xpl_str_t name) {
    size_t n, at = 0;
    const struct xpl_format *const *const all = xpl_formats(&n);
    for (size_t i = 0; i < n && !at; i++) {
        const xpl_str_t family = xpl_str_from(all[i]->family);
        if (!all[i]->title || !xpl_str_starts(name, family) || name.ptr[family.len] != '_')
            continue;
        xpl_buf_str(b, xpl_str_from(all[i]->title));
        at = family.len;
    }
    if (!at) xpl_buf_putc(b, (char)(name.ptr[at++] - 'a' + 'A'));
    for (; at < name.len; at++)
        xpl_buf_putc(b, name.ptr[at] == '_' ? ' ' : name.ptr[at]);
}

static void put_tool(struct xpl_buf *b, const struct xpl_tool *t, bool first) {
    bool first_option = true, first_unit = true;
    xpl_buf_printf(b, "%s{\"name\":\"%s\",\"title\":\"", first ? "" : ",", t->name);
    put_title(b, xpl_str_from(t->name));
    xpl_buf_printf(b, "\",\"alias\":\"%s\",\"content_type\":\"%s\",\"one_host\":%s,\"options\":[",
                   t->aliases ? t->aliases[0] : "", t->content_type,
                   t->hosts == XPL_HOSTS_ONE ? "true" : "false");
    for (size_t k = 0; k < xpl_tool_n_options(t); k++)
        put_option(b, xpl_tool_option_at(t, k), &first_option);
    xpl_buf_str(b, XPL_STR("],\"units\":{"));
    for (size_t i = 0; i < XPL_TOOL_MAX_TABLES && t->columns[i]; i++)
        for (const struct xpl_column *c = t->columns[i]; c->id; c++) {
            if (!c->unit) continue;
            xpl_buf_printf(b, "%s\"%s\":\"%s\"", first_unit ? "" : ",", c->id, c->unit);
            first_unit = false;
        }
    xpl_buf_str(b, XPL_STR("},\"tables\":["));
    for (const char *const *title = t->titles; title && *title; title++)
        xpl_buf_printf(b, "%s\"%s\"", title == t->titles ? "" : ",", *title);
    xpl_buf_str(b, XPL_STR("]}"));
}

static xpl_str_t find_arg(const struct xpl_http_request *r, xpl_str_t key) {
    for (size_t i = 0; i < r->n_args; i++)
        if (xpl_str_eq(r->args[i].key, key)) return r->args[i].value;
    return XPL_STR("");
}

// All tools, or those that read a file of the session.
static void list_tools(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    size_t n;
    bool first = true;
    const struct xpl_tool *const *const all = xpl_tools(&n);
    const xpl_str_t name = find_arg(r, XPL_STR("session"));
    struct xpl_snapshot *snap = xpl_catalogue_get(r->http->parts.catalogue);
    const struct xpl_session *of = NULL;
    struct xpl_error *const err = r->data;
    if (name.len && xpl_snapshot_find_all(&snap, name, &of, err) == XPL_NOT_FOUND)
        *err = (struct xpl_error){0}; // no tool reads a session that is not there
    xpl_buf_str(&b, XPL_STR("{\"tools\":["));
    for (size_t i = 0; i < n; i++) {
        if (name.len && !(of && xpl_request_session_feeds(of, all[i]))) continue;
        put_tool(&b, all[i], first);
        first = false;
    }
    xpl_buf_str(&b, XPL_STR("]}"));
    xpl_snapshot_unref(snap);
    if (err->code == XPL_OK) finish_json(r, &b);
}

// ---- /api/v1/server ----

static void get_server(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    struct xpl_server_stats s;
    xpl_server_stats_read(r->http->parts.stats, &s);
    if (!xpl_server_stats_read_outcomes(r->http->parts.stats, &r->arena, &s)) return;
    xpl_server_stats_put_json(&b, &s);
    finish_json(r, &b);
}

// ---- /api/v1/captures ----

// Of a route whose work leaves an error in r->data.
static enum MHD_Result reply_or_error(struct xpl_http_request *r) {
    const struct xpl_error *const err = r->data;
    if (r->gone || err->code == XPL_OK) return xpl_http_result(r);
    return xpl_http_reply_api_error(r, err, -1);
}

static void list_captures(struct xpl_http_request *r) {
    const struct xpl_http_parts *const p = &r->http->parts;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    if (xpl_capture_jobs_put_json(p->captures, p->history, p->schedules, &b, r->data) == XPL_OK)
        finish_json(r, &b);
}

static enum MHD_Result captures(struct xpl_http_request *r) {
    // Daemons that share a database have their captures there.
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    if (!(r->data = xpl_arena_zalloc(&r->arena, sizeof(struct xpl_error)))) return xpl_http_busy(r);
    return xpl_http_defer(r, list_captures, reply_or_error) ? MHD_YES : xpl_http_busy(r);
}

// ---- /api/v1/fleet ----

static void list_fleet(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    if (xpl_fleet_put_json(r->http->parts.store, &b, r->data) == XPL_OK) finish_json(r, &b);
}

static enum MHD_Result fleet(struct xpl_http_request *r) {
    // It asks a database that others need, too, and waits while that is away.
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    if (!(r->data = xpl_arena_zalloc(&r->arena, sizeof(struct xpl_error)))) return xpl_http_busy(r);
    return xpl_http_defer(r, list_fleet, reply_or_error) ? MHD_YES : xpl_http_busy(r);
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

// ---- /api/v1/sql ----

struct statement { // r->data
    xpl_str_t text, *sessions;
    size_t n_sessions;
    struct xpl_error err;
    atomic_bool is_cancelled;
};

static bool is_cancelled(void *arg) {
    return atomic_load(&((struct statement *)arg)->is_cancelled);
}

// On the loop, while a worker runs it.
static void cancel_statement(struct xpl_http_request *r) {
    atomic_store(&((struct statement *)r->data)->is_cancelled, true);
}

static void run_statement(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(MAX_REPLY);
    struct statement *const s = r->data;
    if (xpl_statements_run(r->http->parts.statements, s->text, s->sessions, s->n_sessions,
                           (struct xpl_work_owner){is_cancelled, s}, &b, &s->err) == XPL_OK)
        finish_json(r, &b);
}

static enum MHD_Result reply_statement(struct xpl_http_request *r) {
    const struct statement *const s = r->data;
    if (r->gone || s->err.code == XPL_OK) return xpl_http_result(r);
    return xpl_http_reply_api_error(r, &s->err, -1);
}

static enum MHD_Result sql(struct xpl_http_request *r) {
    struct statement *const s = xpl_arena_zalloc(&r->arena, sizeof *s);
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    if (!s || !(s->sessions = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *s->sessions)))
        return xpl_http_busy(r);
    for (size_t i = 0; i < r->n_args; i++) {
        if (xpl_str_eq(r->args[i].key, XPL_STR("q"))) s->text = r->args[i].value;
        if (xpl_str_eq(r->args[i].key, XPL_STR("session")) && r->args[i].value.len)
            s->sessions[s->n_sessions++] = r->args[i].value;
    }
    if (!s->text.len)
        return reply_failure(r, XPL_INVALID_ARGUMENT, "q=SELECT... is missing; docs/sql.md");
    r->data = s;
    r->cancel = cancel_statement;
    return xpl_http_defer(r, run_statement, reply_statement) ? MHD_YES : xpl_http_busy(r);
}

// ---- all of them ----

// An empty list would mean no session, or no tool for it.
static enum MHD_Result list(struct xpl_http_request *r, void (*work)(struct xpl_http_request *r)) {
    struct xpl_error err = {0};
    struct xpl_snapshot *const s = xpl_catalogue_get(r->http->parts.catalogue);
    const bool tells = !work || find_arg(r, XPL_STR("session")).len;
    const xpl_status_t st = tells ? xpl_snapshot_need_scan(s, &err) : XPL_OK;
    xpl_snapshot_unref(s);
    if (st != XPL_OK) return xpl_http_reply_api_error(r, &err, 1000);
    if (!work) return sessions(r);
    if (!(r->data = xpl_arena_zalloc(&r->arena, sizeof err))) return xpl_http_busy(r);
    return xpl_http_defer(r, work, reply_or_error) ? MHD_YES : xpl_http_busy(r);
}

enum MHD_Result xpl_http_route_api(struct xpl_http_request *r) {
    static const struct {
        const char *path;
        void (*work)(struct xpl_http_request *r); // NULL: sessions
    } routes[] = {
        {"/api/v1/sessions", NULL}, {"/api/v1/tools", list_tools}, {"/api/v1/server", get_server}};
    // POST, too: its body has room for more hosts than a URL.
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/tool"))) return tool(r, false);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/csv"))) return tool(r, true);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/sql"))) return sql(r);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/compare"))) return xpl_http_compare(r);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/history"))) return xpl_http_history(r);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/label"))) return label(r);
    if (r->post) return xpl_http_reply_text(r, 405, "this route is read with GET");
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/fleet"))) return fleet(r);
    if (xpl_str_eq(r->path, XPL_STR("/api/v1/captures"))) return captures(r);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (xpl_str_eq(r->path, xpl_str_from(routes[i].path))) return list(r, routes[i].work);
    return reply_failure(r, XPL_NOT_FOUND,
                         "no such route; there are /api/v1/sessions, tools, tool, csv, compare, "
                         "history, label, sql, captures, server and fleet");
}
