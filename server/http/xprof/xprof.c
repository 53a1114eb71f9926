// SPDX-License-Identifier: Apache-2.0
// XProf's routes, as its plugin/xprof/profile_plugin.py answers them (docs/http.md says where we
// differ).
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "server/capture_jobs/captures.h"
#include "server/engine/request.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/xprof/xprof.h"
#include "server/roles.h"

#define COMPATIBLE_VERSION "2.24.2" // of XProf, whose interface and answers ours are
#define ALL_HOSTS          XPL_STR("ALL_HOSTS")

enum { MAX_HOSTS = 4096 };

// ---- hosts ----

static bool is_one_of(xpl_str_t s, const char *const *list) {
    for (; *list; list++)
        if (xpl_str_eq(s, xpl_str_from(*list))) return true;
    return false;
}

static void put_host(struct xpl_buf *b, xpl_str_t name) {
    if (b->n > 1) xpl_buf_str(b, XPL_STR(", "));
    xpl_buf_str(b, XPL_STR("{\"hostname\": "));
    xpl_http_put_py_str(b, name);
    xpl_buf_putc(b, '}');
}

static enum MHD_Result hosts(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(XPL_HTTP_XPROF_MAX_REPLY);
    struct xpl_snapshot *snap = xpl_catalogue_get(r->http->parts.catalogue);
    const struct xpl_session *const s = xpl_http_find_run(r, snap);
    const struct xpl_tool *const tool = xpl_tool_find_named(xpl_http_arg(r, "tag"));
    const enum xpl_tool_hosts offered = tool ? tool->hosts : XPL_HOSTS_EACH;
    const bool several = s && s->n_hosts > 1, only = several && offered == XPL_HOSTS_ALL;
    bool all = several && offered == XPL_HOSTS_EACH_OR_ALL;
    xpl_buf_putc(&b, '[');
    for (size_t i = 0; s && !only && i < s->n_hosts; i++) {
        if (all && xpl_str_cmp(ALL_HOSTS, s->hosts[i].name) < 0) {
            put_host(&b, ALL_HOSTS);
            all = false;
        }
        put_host(&b, s->hosts[i].name);
    }
    if (only || all) put_host(&b, ALL_HOSTS);
    xpl_buf_putc(&b, ']');
    xpl_snapshot_unref(snap);
    return xpl_http_reply_py_json(r, &b);
}

// ---- data ----

static enum MHD_Result reply_no_tool(struct xpl_http_request *r, xpl_str_t tool, bool csv) {
    return xpl_http_reply_text(r, 404, "%s: xplaned has no tool \"%.*s\"",
                               csv ? "No Data Found" : "No Data",
                               XPL_STR_FMT(xpl_str_sub(tool, 0, 60)));
}

// The hosts of the request, or an error reply.  False when there was one.
static bool choose_hosts(struct xpl_http_request *r, const struct xpl_session *s,
                         struct xpl_http_tool_request *a, enum MHD_Result *ret) {
    const xpl_str_t several = xpl_http_arg(r, "hosts"), one = xpl_http_arg(r, "host");
    const bool lists = several.len && xpl_str_starts(a->tool, XPL_STR("trace_viewer"));
    xpl_str_t rest = lists ? several : one;
    xpl_str_t *list = xpl_arena_array(&r->arena, MAX_HOSTS, sizeof *list);
    *ret = MHD_NO;
    if (!list) return false;
    a->hosts = list;
    if (!lists && xpl_str_eq(one, ALL_HOSTS)) return true;
    while (rest.len && a->n_hosts < MAX_HOSTS) {
        const size_t comma = lists ? xpl_str_find(rest, XPL_STR(","), 0) : SIZE_MAX;
        const xpl_str_t name = xpl_str_sub(rest, 0, comma);
        rest = comma == SIZE_MAX ? (xpl_str_t){0} : xpl_str_sub(rest, comma + 1, SIZE_MAX);
        if (!xpl_session_find_host(s, name)) {
            *ret = xpl_http_reply_text(r, 404, "No xplane file found for host: %.*s in run: %.*s",
                                       XPL_STR_FMT(xpl_str_sub(name, 0, 200)),
                                       XPL_STR_FMT(xpl_str_sub(xpl_http_arg(r, "run"), 0, 200)));
            return false;
        }
        list[a->n_hosts++] = name;
    }
    const struct xpl_tool *const tool = xpl_tool_find(a->tool);
    if (tool && tool->whole_session) a->n_hosts = 0;
    return true;
}

// All other arguments are options; those that a tool does not know are ignored, as by XProf.  An
// event's details are JSON, whatever the format of the rest.
static bool choose_options(struct xpl_http_request *r, struct xpl_http_tool_request *a) {
    static const char *const ours[] = {"run", "tag",          "host",     "hosts",
                                       "tqx", "session_path", "run_path", NULL};
    struct xpl_option *o = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *o);
    if (!o) return false;
    const bool details = xpl_http_arg(r, "event_name").len != 0;
    for (size_t i = r->n_args; i > 0; i--) // the first of equal keys counts, so it comes last
        if (!is_one_of(r->args[i - 1].key, ours) &&
            !(details && xpl_str_eq(r->args[i - 1].key, XPL_STR("format"))))
            o[a->n_options++] = (struct xpl_option){r->args[i - 1].key, r->args[i - 1].value};
    a->options = o;
    return true;
}

static enum MHD_Result answer_session(struct xpl_http_request *r, const struct xpl_session *s,
                                      bool csv) {
    struct xpl_http_tool_request a = {
        .dialect = XPL_DIALECT_XPROF, .csv = csv, .tool = xpl_http_arg(r, "tag")};
    enum MHD_Result got;
    if (!choose_hosts(r, s, &a, &got)) return got;
    if (!choose_options(r, &a) || !xpl_arena_str(&r->arena, s->name, &a.session))
        return xpl_http_busy(r);
    return xpl_http_answer_tool(r, &a);
}

static enum MHD_Result data_or_csv(struct xpl_http_request *r, bool csv) {
    const xpl_str_t tool = xpl_http_arg(r, "tag"), run = xpl_http_arg(r, "run");
    if (!run.len)
        return xpl_http_reply_text(r, 404, "run=NAME is missing; the route /runs lists them");
    if (!tool.len || !xpl_tool_find(tool)) return reply_no_tool(r, tool, csv);
    struct xpl_snapshot *snap = xpl_catalogue_get(r->http->parts.catalogue);
    const struct xpl_session *const s = xpl_http_find_run(r, snap);
    const enum MHD_Result got =
        s && s->n_hosts
            ? answer_session(r, s, csv)
            : xpl_http_reply_text(r, 404, "No xplane file found for run: %.*s, tool: %.*s",
                                  XPL_STR_FMT(xpl_str_sub(run, 0, 200)),
                                  XPL_STR_FMT(xpl_str_sub(tool, 0, 60)));
    xpl_snapshot_unref(snap);
    return got;
}

static enum MHD_Result data(struct xpl_http_request *r) {
    return data_or_csv(r, false);
}
static enum MHD_Result data_csv(struct xpl_http_request *r) {
    return data_or_csv(r, true);
}

// ---- the rest ----

static enum MHD_Result version(struct xpl_http_request *r) {
    return xpl_http_reply(r, 200, XPL_POLICY_XPROF, "text/plain", XPL_STR(COMPATIBLE_VERSION), 0);
}

static enum MHD_Result config(struct xpl_http_request *r) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 16);
    // The capture button is hidden when there is nothing behind it for this client.
    const bool may_capture =
        xpl_capture_jobs_enabled(r->http->parts.captures) &&
        xpl_rpc_role_may(r->identity.role, xpl_role_of_method(XPL_METHOD_CAPTURE));
    xpl_buf_printf(&b,
                   "{\"enableTabNameLabel\": false, \"hideCaptureProfileButton\": %s, "
                   "\"srcPathPrefix\": ",
                   may_capture ? "false" : "true");
    if (r->http->options.src_prefix[0])
        xpl_http_put_py_str(&b, xpl_str_from(r->http->options.src_prefix));
    else
        xpl_buf_str(&b, XPL_STR("null"));
    xpl_buf_putc(&b, '}');
    return xpl_http_reply_py_json(r, &b);
}

static enum MHD_Result index_page(struct xpl_http_request *r) {
    if (r->http->options.ui_dir[0] || r->mounted) return xpl_http_reply_ui(r, "index.html");
    return xpl_http_redirect(r, "ui/");
}

// Of routes that tell of sessions: while none is known because nothing was listed yet, they say so.
static bool reply_unscanned(struct xpl_http_request *r, enum MHD_Result *ret) {
    struct xpl_error err = {0};
    struct xpl_snapshot *const s = xpl_catalogue_get(r->http->parts.catalogue);
    const xpl_status_t st = xpl_snapshot_need_scan(s, &err);
    xpl_snapshot_unref(s);
    if (st == XPL_OK) return false;
    *ret = xpl_http_reply(r, xpl_http_status_of(st), XPL_POLICY_XPROF, "text/plain",
                          xpl_str_from(err.msg), 1);
    return true;
}

enum MHD_Result xpl_http_route_xprof(struct xpl_http_request *r) {
    // What a request does: BEGINS is for the route to check; all that computes tells of sessions.
    enum { READS, TELLS, COMPUTES, BEGINS };
    static const struct {
        const char *path;
        enum MHD_Result (*answer)(struct xpl_http_request *);
        int does;
        bool post; // may be sent with POST
    } routes[] = {
        {"/data", data, COMPUTES, false},
        {"/data_csv", data_csv, COMPUTES, false},
        {"/runs", xpl_http_runs, TELLS, false},
        {"/run_tools", xpl_http_run_tools, COMPUTES, false},
        {"/hosts", hosts, TELLS, false},
        {"/module_list", xpl_http_module_list, COMPUTES, false},
        {"/version", version, READS, false},
        {"/config", config, READS, false},
        {"/capture_profile", xpl_http_capture, BEGINS, true},
        {"/generate_cache", xpl_http_generate_cache, COMPUTES, true},
        {"/local", index_page, READS, false},
        {"/index.html", index_page, READS, false},
        {"/", index_page, READS, false},
        {"", index_page, READS, false},
    };
    xpl_str_t path = r->path;
    if (path.len > 1 && path.ptr[path.len - 1] == '/') path.len--;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!xpl_str_eq(path, xpl_str_from(routes[i].path))) continue;
        if (r->post && !routes[i].post)
            return xpl_http_reply_text(r, 405, "this route is read with GET");
        // HEAD must not begin anything.
        if (r->head && routes[i].does == BEGINS)
            return xpl_http_reply_text(r, 405, "a capture is begun with GET or POST");
        if (routes[i].does == COMPUTES && !xpl_http_may_compute(r))
            return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
        enum MHD_Result got;
        const bool tells = routes[i].does == TELLS || routes[i].does == COMPUTES;
        return tells && reply_unscanned(r, &got) ? got : routes[i].answer(r);
    }
    if (r->post) return xpl_http_reply_text(r, 405, "this route is read with GET");
    char name[64] = "";
    if (path.len > 1 && path.len <= sizeof name && !memchr(path.ptr + 1, '/', path.len - 1))
        memcpy(name, path.ptr + 1, path.len - 1);
    if (xpl_http_is_ui_file(name)) return xpl_http_reply_ui(r, name);
    // XProf's own pages have no routes on the server: the interface reads the address itself.
    if (r->mounted && !xpl_str_has(xpl_http_last_part(path), XPL_STR("."))) return index_page(r);
    return xpl_http_reply_text(r, 404,
                               "there is nothing at %.*s; see / for the interface and /runs for "
                               "the profiles",
                               XPL_STR_FMT(xpl_str_sub(r->path, 0, 200)));
}
