// SPDX-License-Identifier: Apache-2.0
// tensorflow.ProfileAnalysis: captures and tools for clients that know that service.
#include <limits.h>

#include "analysis/formats/format.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/tensorflow/profiler_analysis.pb-c.h"
#include "rpc/message.h"
#include "server/capture_jobs/captures.h"
#include "server/engine/request.h"
#include "server/grpc/services.h"
#include "storage/places.h"
#include "storage/sessions/layout.h"

enum {
    FORMAT = 2,
    OUTPUT = 3,
    DEFAULT_DURATION_MS = 1000
}; // numbers of ProfileSessionDataResponse

typedef Tensorflow__NewProfileSessionRequest new_request;
typedef Tensorflow__ProfileSessionDataRequest data_request;

// ---- NewSession ----

static xpl_str_t without_slashes(xpl_str_t s) {
    while (s.len > 1 && s.ptr[s.len - 1] == '/')
        s.len--;
    return s;
}

static bool is_logdir(xpl_str_t root, const char *logdir) {
    const xpl_str_t tail = XPL_STR("/" XPL_SESSIONS_DIR);
    const xpl_str_t dir = without_slashes(xpl_str_from(logdir));
    root = without_slashes(root);
    if (xpl_str_ends(root, tail)) root = without_slashes(xpl_str_sub(root, 0, root.len - tail.len));
    return xpl_str_eq(root, dir);
}

// Sessions go to LOGDIR: a client that expects them elsewhere gets an error.
static xpl_status_t check_root(const struct xpl_svc_profile_analysis *s, const char *root,
                               struct xpl_error *err) {
    char real[PATH_MAX];
    if (!root[0] || is_logdir(xpl_str_from(root), s->logdir) ||
        (xpl_place_resolve(s->logdir, real) && is_logdir(xpl_str_from(root), real)))
        return XPL_OK;
    XPL_RETURN_ERROR(
        err, XPL_INVALID_ARGUMENT,
        "repository_root \"%.80s\": this daemon stores sessions only in its log directory; "
        "leave the field empty, or set it to that directory",
        root);
}

static int64_t delay_of(const Tensorflow__ProfileOptions *o) {
    const uint64_t now = (uint64_t)xpl_unix_ns();
    if (!o || o->start_timestamp_ns <= now) return 0;
    const uint64_t ms = (o->start_timestamp_ns - now) / 1000000;
    return ms < INT32_MAX ? (int64_t)ms : INT32_MAX; // the plan's check reports excessive values
}

static int level(uint32_t v) {
    return v < 1000 ? (int)v : 1000;
}

static struct xpl_capture_plan plan_of(const new_request *q) {
    const Tensorflow__ProfileRequest *const r = q->request;
    const Tensorflow__ProfileOptions *const o = r ? r->opts : NULL;
    const uint64_t duration = o ? o->duration_ms : r ? r->duration_ms : 0;
    const bool one = !q->n_hosts && r && r->host_name[0];
    return (struct xpl_capture_plan){
        .size = sizeof(struct xpl_capture_plan),
        .call = XPL_CAPTURE_PROFILE,
        .targets = (const char *const *)(one ? &r->host_name : q->hosts),
        .n_targets = one ? 1 : q->n_hosts,
        .session = xpl_str_from(q->session_id[0] ? q->session_id
                                : r              ? r->session_id
                                                 : ""),
        .duration_ms = !duration              ? DEFAULT_DURATION_MS
                       : duration < INT32_MAX ? (int64_t)duration
                                              : INT32_MAX,
        .delay_ms = delay_of(o),
        .host_tracer_level = o ? level(o->host_tracer_level) : -1,
        .device_tracer_level = o ? level(o->device_tracer_level) : -1,
        .python_tracer_level = o ? level(o->python_tracer_level) : -1,
    };
}

struct capture { // a call's user data
    struct xpl_rpc_call *call;
    uint64_t id;
};

static void capture_release(void *user) {
    xpl_sys_free(user);
}

static void capture_done(void *arg, const struct xpl_capture_result *r) {
    struct xpl_rpc_call *const c = ((struct capture *)arg)->call;
    Tensorflow__NewProfileSessionResponse m;
    tensorflow__new_profile_session_response__init(&m);
    m.empty_trace = r->outcome->n_hosts && r->outcome->n_idle == r->outcome->n_hosts;
    if (r->code == XPL_OK || m.empty_trace) {
        xpl_rpc_finish_message(c, &m.base);
    } else {
        char text[XPL_RPC_MAX_MESSAGE];
        xpl_capture_jobs_explain(r, text, sizeof text);
        xpl_rpc_finish_status(c, r->code, text[0] ? text : r->err.msg);
    }
    xpl_rpc_call_unref(c);
}

static void new_session(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_profile_analysis *const s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (!xpl_svc_decode(c, &tensorflow__new_profile_session_request__descriptor, request, &arena,
                        &msg))
        return;
    const new_request *const q = (const new_request *)msg;
    const struct xpl_capture_plan plan = plan_of(q);
    struct capture *k = xpl_sys_alloc(sizeof *k);
    if (!k) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *k = (struct capture){.call = c};
    xpl_rpc_call_set_user(c, k, capture_release);
    xpl_rpc_call_ref(c); // capture_done's
    const struct xpl_capture_listener l = {
        .client = xpl_audit_client_of(c), .done = capture_done, .arg = k};
    if (check_root(s, q->repository_root, &err) == XPL_OK &&
        xpl_capture_jobs_start(s->captures, &plan, NULL, &l, &k->id, &err) == XPL_OK)
        return;
    k->id = 0;
    xpl_rpc_finish_error(c, &err);
    xpl_rpc_call_unref(c);
}

static void new_session_cancelled(struct xpl_rpc_call *c, void *service) {
    struct xpl_svc_profile_analysis *const s = service;
    const struct capture *const k = xpl_rpc_call_get_user(c);
    // NOT_FOUND: it has ended.
    if (k && k->id && xpl_capture_jobs_cancel(s->captures, k->id, NULL) != XPL_OK) return;
}

// ---- EnumSessions ----

// The tools of a session.  Those of one before are given again where they are the same.
struct tool_names {
    const struct xpl_format *of;
    char **names;
    size_t n;
};

static bool find_tool_names(const struct xpl_session *s, struct xpl_arena *arena,
                            struct tool_names *last) {
    const struct xpl_format *const f = xpl_format_of_name(s->hosts[0].path, NULL);
    if (last->names && f == last->of) return true;
    size_t n_tools;
    const struct xpl_tool *const *const tools = xpl_tools(&n_tools);
    *last =
        (struct tool_names){.of = f, .names = xpl_arena_array(arena, n_tools, sizeof *last->names)};
    for (size_t i = 0; last->names && i < n_tools; i++)
        if (xpl_request_session_feeds(s, tools[i]))
            last->names[last->n++] = (char *)(uintptr_t)tools[i]->name;
    return last->names != NULL;
}

static bool fill_sessions(const struct xpl_snapshot *snap, struct xpl_arena *arena,
                          Tensorflow__EnumProfileSessionsAndToolsResponse *m) {
    struct tool_names tools = {0};
    Tensorflow__ProfileSessionInfo *all = xpl_arena_array(arena, snap->n_sessions, sizeof *all);
    m->sessions = xpl_arena_array(arena, snap->n_sessions, sizeof *m->sessions);
    if (!all || !m->sessions) return false;
    for (size_t i = 0; i < snap->n_sessions; i++) {
        xpl_str_t name;
        if (!snap->sessions[i].n_hosts) continue;
        if (!xpl_arena_str(arena, snap->sessions[i].name, &name)) return false;
        if (!find_tool_names(&snap->sessions[i], arena, &tools)) return false;
        tensorflow__profile_session_info__init(&all[i]);
        all[i].session_id = (char *)(uintptr_t)name.ptr;
        all[i].available_tools = tools.names;
        all[i].n_available_tools = tools.n;
        m->sessions[m->n_sessions++] = &all[i];
    }
    return true;
}

static void enum_sessions(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_profile_analysis *const s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)256 << 20);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (!xpl_svc_decode(c, &tensorflow__enum_profile_sessions_and_tools_request__descriptor,
                        request, &arena, &msg))
        return;
    const char *const root =
        ((Tensorflow__EnumProfileSessionsAndToolsRequest *)msg)->repository_root;
    if (check_root(s, root, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    Tensorflow__EnumProfileSessionsAndToolsResponse m;
    tensorflow__enum_profile_sessions_and_tools_response__init(&m);
    if (xpl_snapshot_need_scan(snap, &err) != XPL_OK)
        xpl_rpc_finish_error(c, &err);
    else if (fill_sessions(snap, &arena, &m))
        xpl_rpc_finish_message(c, &m.base);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    xpl_snapshot_unref(snap);
}

// ---- GetSessionToolData ----

struct pending { // a call's user data
    struct xpl_rpc_call *call;
    struct xpl_ticket *ticket;
};

static void pending_release(void *user) {
    struct pending *p = user;
    if (p->ticket) xpl_ticket_unref(p->ticket);
    xpl_sys_free(p);
}

static void reply(struct xpl_rpc_call *c, const struct xpl_tool_data *a) {
    const xpl_str_t type = xpl_str_from(a->content_type);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(4096);
    xpl_rpc_put_text(&b, FORMAT,
                     xpl_str_starts(type, XPL_STR("application/json")) ? XPL_STR("json") : type);
    xpl_rpc_put_len(&b, OUTPUT, xpl_rpc_blob_get(a->blob).len);
    if (b.failed)
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    else
        xpl_rpc_finish(c, (xpl_bytes_t){b.p, b.n}, a->blob);
}

static void data_done(void *arg, const struct xpl_outcome *o) {
    struct xpl_rpc_call *const c = ((struct pending *)arg)->call;
    if (o->code == XPL_OK)
        reply(c, o->answer);
    else
        xpl_rpc_finish_error(c, &o->err);
    xpl_rpc_call_unref(c);
}

static xpl_status_t resolve(struct xpl_svc_profile_analysis *s, const data_request *q,
                            struct xpl_arena *arena, struct xpl_request **ret,
                            struct xpl_error *err) {
    const xpl_str_t host = xpl_str_from(q->host_name);
    struct xpl_option *options = xpl_arena_array(arena, q->n_parameters, sizeof *options);
    if (!options) XPL_RETURN_OOM(err, "request");
    for (size_t i = 0; i < q->n_parameters; i++)
        options[i] = (struct xpl_option){xpl_str_from(q->parameters[i]->key),
                                         xpl_str_from(q->parameters[i]->value)};
    XPL_TRY(check_root(s, q->repository_root, err));
    if (!q->tool_name[0]) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no tool named");
    const bool all = !host.len || xpl_str_eq(host, XPL_STR("ALL_HOSTS"));
    const struct xpl_request_words words = {.session = xpl_str_from(q->session_id),
                                            .hosts = &host,
                                            .n_hosts = all ? 0 : 1,
                                            .tool = xpl_str_from(q->tool_name),
                                            .options = options,
                                            .n_options = q->n_parameters};
    return xpl_engine_resolve(s->engine, &words, ret, err);
}

static void get_data(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_profile_analysis *const s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    struct xpl_request *q = NULL;
    if (!xpl_svc_decode(c, &tensorflow__profile_session_data_request__descriptor, request, &arena,
                        &msg))
        return;
    if (resolve(s, (const data_request *)msg, &arena, &q, &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    struct xpl_tool_data *known = xpl_engine_lookup(s->engine, q);
    if (known) {
        reply(c, known);
        xpl_object_unref(&known->object);
        xpl_request_free(q);
        return;
    }
    struct pending *p = xpl_sys_alloc(sizeof *p);
    if (!p) {
        xpl_request_free(q);
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    *p = (struct pending){.call = c};
    xpl_rpc_call_set_user(c, p, pending_release);
    xpl_rpc_call_ref(c); // data_done's
    xpl_engine_submit(s->engine, q, data_done, p, &p->ticket);
}

static void get_data_cancelled(struct xpl_rpc_call *c, void *service) {
    (void)service;
    const struct pending *const p = xpl_rpc_call_get_user(c);
    if (p && p->ticket) xpl_engine_cancel(p->ticket);
}

void xpl_svc_profile_analysis_methods(struct xpl_svc_profile_analysis *s,
                                      struct xpl_rpc_method ret[XPL_SVC_PROFILE_ANALYSIS_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/tensorflow.ProfileAnalysis/NewSession",
                                     .on_request = new_session,
                                     .on_cancel = new_session_cancelled,
                                     .service = s};
    ret[1] = (struct xpl_rpc_method){.path = "/tensorflow.ProfileAnalysis/EnumSessions",
                                     .on_request = enum_sessions,
                                     .service = s};
    ret[2] = (struct xpl_rpc_method){.path = "/tensorflow.ProfileAnalysis/GetSessionToolData",
                                     .on_request = get_data,
                                     .on_cancel = get_data_cancelled,
                                     .service = s};
}
