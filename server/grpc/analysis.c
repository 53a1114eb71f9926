// SPDX-License-Identifier: Apache-2.0
// AnalysisService.  Runs on gRPC's queue thread, so it only looks answers up; what must be made
// goes to the engine.
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "rpc/message.h"
#include "server/grpc/services.h"
#include "server/grpc/tool_data.h"
#include "server/metrics.h"

// Stubs accept 4 MiB by default; the rest is for the header.
enum { SMALL_REPLY = (4 << 20) - (64 << 10), MAX_HEAD = 64 << 20 };

enum method { TOOL_DATA, STREAM_TOOL_DATA, OP_STATS };

// ---- replies ----

// The fields before the data, as the method sends them.  False when out of memory.
static bool make_head(struct xpl_buf *b, enum method m, const struct xpl_tool_data *a,
                      enum xpl_answer_source source, const uint64_t *stage_us) {
    xpl_buf_init(b, MAX_HEAD);
    xpl_svc_put_tool_data_head(b, a, source, stage_us);
    if (m != STREAM_TOOL_DATA) xpl_svc_put_tool_data_len(b, xpl_rpc_blob_get(a->blob).len);
    return !b->failed;
}

static xpl_status_t finish_oom(struct xpl_rpc_call *c) {
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    return XPL_RESOURCE_EXHAUSTED;
}

// Finishes the call with the answer behind its head.  Returns the status that the client sees.
static xpl_status_t reply(struct xpl_rpc_call *c, enum method m, bool allow_large,
                          struct xpl_rpc_blob *data, xpl_bytes_t head) {
    const size_t len = xpl_rpc_blob_get(data).len;
    if (m == STREAM_TOOL_DATA) {
        const xpl_status_t st = xpl_svc_send_tool_data(c, head, data);
        if (st == XPL_OK)
            xpl_rpc_finish_ok(c);
        else
            xpl_rpc_finish_status(c, st, "out of memory");
        return st;
    }
    if (!allow_large && len > SMALL_REPLY) {
        xpl_rpc_finish_status(c, XPL_OUT_OF_RANGE,
                              m == OP_STATS ? "the OpStats are too large for one message: set "
                                              "allow_large and raise the stub's message limit"
                                            : "the answer is too large for one message: use "
                                              "StreamToolData, or set allow_large");
        return XPL_OUT_OF_RANGE;
    }
    xpl_rpc_finish(c, head, len ? data : NULL);
    return XPL_OK;
}

static uint64_t since_us(const struct xpl_rpc_call *c) {
    return (xpl_clock_ns() - (uint64_t)xpl_rpc_call_get_start_ns(c)) / 1000;
}

// ---- requests seen before: no decoding, no lookup of names ----

struct known { // cached under the raw request
    struct xpl_object object;
    uint64_t generation; // of the catalogue for which the answer holds
    struct xpl_tool_data *answer;
    bool allow_large;
    size_t n_hosts;
    xpl_bytes_t head; // in `text`, as the others
    xpl_str_t tool, session, host;
    char text[];
};

static void known_destroy(struct xpl_object *o) {
    struct known *k = (struct known *)o;
    xpl_object_unref(&k->answer->object);
    xpl_sys_free(k);
}

// `raw` with the method in front.  False when the request is too long to be worth it.
enum { MAX_KNOWN = 1024 };
struct known_key {
    uint8_t b[MAX_KNOWN + 1];
    size_t n;
};
static bool known_key(struct known_key *k, enum method m, xpl_bytes_t raw) {
    if (raw.len > MAX_KNOWN) return false;
    k->b[0] = (uint8_t)m;
    if (raw.len) memcpy(k->b + 1, raw.ptr, raw.len);
    k->n = raw.len + 1;
    return true;
}

static struct xpl_cache_key cache_key(const struct known_key *k) {
    return (struct xpl_cache_key){XPL_CACHE_GRPC_REQUEST, {k->b, k->n}};
}

static xpl_str_t append(char *text, size_t *at, xpl_str_t s) {
    if (s.len) memcpy(text + *at, s.ptr, s.len);
    *at += s.len;
    return (xpl_str_t){text + *at - s.len, s.len};
}

struct asked { // a request, decoded
    enum method method;
    xpl_bytes_t raw;
    struct xpl_request_words words;
    bool allow_large;
};

// Keeps an answer from memory, and the head that it was sent with, under the raw request.
static void remember(struct xpl_svc_analysis *s, const struct asked *asked,
                     const struct xpl_request *q, struct xpl_tool_data *a, xpl_bytes_t head) {
    struct known_key key;
    if (q->bypass_cache || !known_key(&key, asked->method, asked->raw)) return;
    const xpl_str_t tool = xpl_str_from(q->tool->name), session = q->session->name;
    const xpl_str_t host = q->n_hosts == 1 ? q->hosts[0]->name : (xpl_str_t){0};
    const size_t size = sizeof(struct known) + tool.len + session.len + host.len + head.len;
    struct known *k = xpl_sys_alloc(size);
    if (!k) return;
    // It holds the answer even when the answer's own entry has gone from the cache.
    *k = (struct known){.object = {.bytes = size, .part = &a->object, .destroy = known_destroy},
                        .generation = q->snapshot->generation,
                        .answer = a,
                        .allow_large = asked->allow_large,
                        .n_hosts = q->all_hosts ? 0 : q->n_hosts};
    atomic_init(&k->object.refs, 1);
    xpl_object_ref(&a->object);
    size_t at = 0;
    k->tool = append(k->text, &at, tool);
    k->session = append(k->text, &at, session);
    k->host = append(k->text, &at, host);
    const xpl_str_t copy = append(k->text, &at, (xpl_str_t){(const char *)head.ptr, head.len});
    k->head = (xpl_bytes_t){(const uint8_t *)copy.ptr, copy.len};
    xpl_cache_put(s->cache, cache_key(&key), &k->object);
    xpl_object_unref(&k->object);
}

static bool answer_known(struct xpl_svc_analysis *s, struct xpl_rpc_call *c, enum method m,
                         xpl_bytes_t raw) {
    struct known_key key;
    if (!known_key(&key, m, raw)) return false;
    struct known *k = (struct known *)xpl_cache_get(s->cache, cache_key(&key));
    if (!k) return false;
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    const bool holds = snap->generation == k->generation;
    xpl_snapshot_unref(snap);
    if (holds) {
        const size_t len = xpl_rpc_blob_get(k->answer->blob).len;
        const xpl_status_t st = reply(c, m, k->allow_large, k->answer->blob, k->head);
        xpl_engine_count_memory(s->engine);
        xpl_metrics_request(s->metrics,
                            &(struct xpl_request_line){.service = "grpc",
                                                       .tool = k->tool,
                                                       .session = k->session,
                                                       .n_hosts = k->n_hosts,
                                                       .host = k->host,
                                                       .code = st,
                                                       .source = "memory",
                                                       .bytes = len,
                                                       .micros = since_us(c),
                                                       .traceparent = xpl_svc_traceparent(c)});
    }
    xpl_object_unref(&k->object);
    return holds;
}

// ---- requests that the engine works on ----

struct pending { // the call's user data
    struct xpl_svc_analysis *svc;
    struct xpl_rpc_call *call;
    struct xpl_ticket *ticket;
    enum method method;
    bool allow_large;
    struct xpl_arena arena; // names for the log line
    xpl_str_t tool, session, host;
    size_t n_hosts;
};

static void pending_release(void *user) {
    struct pending *p = user;
    xpl_ticket_unref(p->ticket);
    xpl_arena_fini(&p->arena);
    xpl_sys_free(p);
}

static void log_failure(struct xpl_svc_analysis *s, const struct xpl_rpc_call *c, xpl_str_t tool,
                        xpl_str_t session, const struct xpl_error *err) {
    xpl_metrics_request(s->metrics,
                        &(struct xpl_request_line){.service = "grpc",
                                                   .tool = tool,
                                                   .session = session,
                                                   .code = err->code,
                                                   .micros = since_us(c),
                                                   .traceparent = xpl_svc_traceparent(c),
                                                   .error = err->msg});
}

static void on_done(void *arg, const struct xpl_outcome *o) {
    struct pending *p = arg;
    xpl_status_t st = o->code;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf head = {0};
    if (st != XPL_OK)
        xpl_svc_fail(p->call, &o->err, o->retry_ms);
    else if (make_head(&head, p->method, o->answer, o->source, o->stage_us))
        st = reply(p->call, p->method, p->allow_large, o->answer->blob,
                   (xpl_bytes_t){head.p, head.n});
    else
        st = finish_oom(p->call);
    xpl_metrics_request(p->svc->metrics,
                        &(struct xpl_request_line){
                            .service = "grpc",
                            .tool = p->tool,
                            .session = p->session,
                            .n_hosts = p->n_hosts,
                            .host = p->host,
                            .code = st,
                            .source = xpl_outcome_source(o),
                            .bytes = o->code == XPL_OK ? xpl_rpc_blob_get(o->answer->blob).len : 0,
                            .micros = since_us(p->call),
                            .traceparent = xpl_svc_traceparent(p->call),
                            .stage_us = o->stage_us,
                            .error = o->code == XPL_OK ? NULL : o->err.msg});
    xpl_rpc_call_unref(p->call);
}

static void on_cancel(struct xpl_rpc_call *c, void *service) {
    (void)service;
    struct pending *p = xpl_rpc_call_get_user(c);
    if (p && p->ticket) xpl_engine_cancel(p->ticket);
}

static struct pending *pending_new(struct xpl_svc_analysis *s, struct xpl_rpc_call *c,
                                   enum method m, bool allow_large, const struct xpl_request *q) {
    struct pending *p = xpl_sys_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (struct pending){.svc = s,
                          .call = c,
                          .method = m,
                          .allow_large = allow_large,
                          .tool = xpl_str_from(q->tool->name),
                          .n_hosts = q->all_hosts ? 0 : q->n_hosts};
    xpl_arena_init(&p->arena, 1 << 20);
    if (xpl_arena_str(&p->arena, q->session->name, &p->session) &&
        xpl_arena_str(&p->arena, q->hosts[0]->name, &p->host))
        return p;
    pending_release(p);
    return NULL;
}

static void submit(struct xpl_svc_analysis *s, struct xpl_rpc_call *c, enum method m,
                   bool allow_large, struct xpl_request *q) {
    struct pending *p = pending_new(s, c, m, allow_large, q);
    if (!p) {
        xpl_request_free(q);
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    xpl_rpc_call_set_user(c, p, pending_release);
    xpl_rpc_call_ref(c);
    xpl_engine_submit(s->engine, q, on_done, p, &p->ticket);
}

// Replies with an answer from memory.
static void reply_known(struct xpl_svc_analysis *s, struct xpl_rpc_call *c, const struct asked *a,
                        const struct xpl_request *q, struct xpl_tool_data *answer) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = {0};
    xpl_status_t st;
    if (make_head(&b, a->method, answer, XPL_FROM_MEMORY, NULL)) {
        const xpl_bytes_t head = {b.p, b.n};
        st = reply(c, a->method, a->allow_large, answer->blob, head);
        remember(s, a, q, answer, head);
    } else {
        st = finish_oom(c);
    }
    xpl_metrics_request(s->metrics,
                        &(struct xpl_request_line){.service = "grpc",
                                                   .tool = xpl_str_from(q->tool->name),
                                                   .session = q->session->name,
                                                   .n_hosts = q->all_hosts ? 0 : q->n_hosts,
                                                   .host = q->hosts[0]->name,
                                                   .code = st,
                                                   .source = "memory",
                                                   .bytes = xpl_rpc_blob_get(answer->blob).len,
                                                   .micros = since_us(c),
                                                   .traceparent = xpl_svc_traceparent(c)});
}

static void answer_request(struct xpl_svc_analysis *s, struct xpl_rpc_call *c,
                           const struct asked *a) {
    struct xpl_request *q = NULL;
    struct xpl_error err = {0};
    if (xpl_engine_resolve(s->engine, &a->words, &q, &err) != XPL_OK) {
        xpl_svc_fail(c, &err, -1);
        log_failure(s, c, a->words.tool, a->words.session, &err);
        return;
    }
    struct xpl_tool_data *answer = xpl_engine_lookup(s->engine, q);
    if (!answer) {
        submit(s, c, a->method, a->allow_large, q);
        return;
    }
    reply_known(s, c, a, q, answer);
    xpl_object_unref(&answer->object);
    xpl_request_free(q);
}

static bool copy_hosts(struct xpl_arena *arena, char *const *hosts, size_t n,
                       struct xpl_request_words *w) {
    xpl_str_t *list = xpl_arena_array(arena, n, sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < n; i++)
        list[i] = xpl_str_from(hosts[i]);
    w->hosts = list;
    w->n_hosts = n;
    return true;
}

typedef Xplaned__V1__GetToolDataRequest tool_request;
typedef Xplaned__V1__GetOpStatsRequest stats_request;

static xpl_status_t decode_tool(xpl_bytes_t raw, struct xpl_arena *arena, struct asked *a,
                                struct xpl_error *err) {
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__get_tool_data_request__descriptor, raw, arena,
                                   &msg, err));
    const tool_request *r = (const tool_request *)msg;
    struct xpl_option *options = xpl_arena_array(arena, r->n_options, sizeof *options);
    if (!options || !copy_hosts(arena, r->hosts, r->n_hosts, &a->words))
        XPL_RETURN_OOM(err, "request");
    for (size_t i = 0; i < r->n_options; i++)
        options[i] = (struct xpl_option){xpl_str_from(r->options[i]->key),
                                         xpl_str_from(r->options[i]->value)};
    a->words.session = xpl_str_from(r->session);
    a->words.tool = xpl_str_from(r->tool);
    a->words.options = options;
    a->words.n_options = r->n_options;
    a->allow_large = r->allow_large;
    if (!a->words.tool.len) XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no tool is named");
    return XPL_OK;
}

static xpl_status_t decode_stats(xpl_bytes_t raw, struct xpl_arena *arena, struct asked *a,
                                 struct xpl_error *err) {
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__get_op_stats_request__descriptor, raw, arena, &msg,
                                   err));
    const stats_request *r = (const stats_request *)msg;
    struct xpl_option *options = xpl_arena_array(arena, r->n_options, sizeof *options);
    if (!options || !copy_hosts(arena, r->hosts, r->n_hosts, &a->words))
        XPL_RETURN_OOM(err, "request");
    for (size_t i = 0; i < r->n_options; i++)
        options[i] = (struct xpl_option){xpl_str_from(r->options[i]->key),
                                         xpl_str_from(r->options[i]->value)};
    a->words.session = xpl_str_from(r->session);
    a->words.row = &xpl_tool_op_stats;
    a->words.options = options;
    a->words.n_options = r->n_options;
    a->allow_large = r->allow_large;
    return XPL_OK;
}

static void handle(struct xpl_svc_analysis *s, struct xpl_rpc_call *c, enum method m,
                   xpl_bytes_t raw) {
    if (answer_known(s, c, m, raw)) return;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct asked a = {
        .method = m, .raw = raw, .words = {.strict = true, .traceparent = xpl_svc_traceparent(c)}};
    struct xpl_error err = {0};
    const xpl_status_t st =
        m == OP_STATS ? decode_stats(raw, &arena, &a, &err) : decode_tool(raw, &arena, &a, &err);
    if (st == XPL_OK) {
        answer_request(s, c, &a);
        return;
    }
    xpl_svc_fail(c, &err, -1);
    log_failure(s, c, a.words.tool, a.words.session, &err);
}

static void get_tool_data(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    handle(service, c, TOOL_DATA, request);
}
static void stream_tool_data(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    handle(service, c, STREAM_TOOL_DATA, request);
}
static void get_op_stats(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    handle(service, c, OP_STATS, request);
}

// ---- ListTools ----

typedef Xplaned__V1__ToolInfo tool_info;
typedef Xplaned__V1__ToolOption tool_option;

// Splits "a|b|c".
static bool split_values(struct xpl_arena *arena, const char *values, tool_option *o) {
    xpl_str_t copy;
    if (!xpl_arena_str(arena, xpl_str_from(values), &copy)) return false;
    size_t n = 1;
    for (size_t i = 0; i < copy.len; i++)
        n += copy.ptr[i] == '|';
    o->values = xpl_arena_array(arena, n, sizeof *o->values);
    if (!o->values) return false;
    char *at = xpl_svc_field(copy.ptr);
    while (o->n_values < n) {
        o->values[o->n_values++] = at;
        char *const bar = strchr(at, '|');
        if (bar) *bar = 0, at = bar + 1;
    }
    return true;
}

static bool add_options(struct xpl_arena *arena, tool_info *info, const struct xpl_tool *t) {
    const size_t n = xpl_tool_n_options(t);
    info->options = xpl_arena_array(arena, n, sizeof *info->options);
    for (size_t i = 0; info->options && i < n; i++) {
        const struct xpl_tool_option *const row = xpl_tool_option_at(t, i);
        if (row->internal) continue;
        tool_option *o = xpl_arena_alloc(arena, sizeof *o);
        if (!o) return false;
        xplaned__v1__tool_option__init(o);
        o->name = xpl_svc_field(row->key);
        if (row->values && !split_values(arena, row->values, o)) return false;
        o->default_value = xpl_svc_field(row->preset ? row->preset : "");
        info->options[info->n_options++] = o;
    }
    return info->options != NULL;
}

static tool_info *describe(struct xpl_arena *arena, const struct xpl_tool *t) {
    tool_info *info = xpl_arena_alloc(arena, sizeof *info);
    size_t n = 0;
    while (t->aliases && t->aliases[n])
        n++;
    char **aliases = xpl_arena_array(arena, n, sizeof *aliases);
    if (!info || !aliases) return NULL;
    xplaned__v1__tool_info__init(info);
    info->name = xpl_svc_field(t->name);
    info->content_type = xpl_svc_field(t->content_type);
    info->one_host = t->hosts == XPL_HOSTS_ONE;
    info->aliases = aliases;
    while (info->n_aliases < n) {
        aliases[info->n_aliases] = xpl_svc_field(t->aliases[info->n_aliases]);
        info->n_aliases++;
    }
    return add_options(arena, info, t) ? info : NULL;
}

static void list_tools(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_analysis *s = service;
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(1 << 20);
    ProtobufCMessage *msg = NULL;
    struct xpl_error err = {0};
    if (xpl_rpc_message_unpack(&xplaned__v1__list_tools_request__descriptor, request, &arena, &msg,
                               &err) != XPL_OK) {
        xpl_svc_fail(c, &err, -1);
        return;
    }
    const char *const session = ((Xplaned__V1__ListToolsRequest *)msg)->session;
    struct xpl_snapshot *snap = xpl_catalogue_get(s->catalogue);
    const struct xpl_session *of = NULL;
    if (session[0] && xpl_snapshot_find_all(&snap, xpl_str_from(session), &of, &err) != XPL_OK) {
        xpl_snapshot_unref(snap);
        xpl_svc_fail(c, &err, -1);
        return;
    }
    size_t n;
    const struct xpl_tool *const *const tools = xpl_tools(&n);
    Xplaned__V1__ListToolsResponse r;
    xplaned__v1__list_tools_response__init(&r);
    r.tools = xpl_arena_array(&arena, n, sizeof *r.tools);
    bool ok = r.tools != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        if (session[0] && !xpl_request_session_feeds(of, tools[i])) continue;
        ok = (r.tools[r.n_tools++] = describe(&arena, tools[i])) != NULL;
    }
    xpl_snapshot_unref(snap);
    if (ok)
        xpl_rpc_finish_message(c, &r.base);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
}

void xpl_svc_analysis_methods(struct xpl_svc_analysis *s,
                              struct xpl_rpc_method ret[XPL_SVC_ANALYSIS_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/GetToolData",
                                     .on_request = get_tool_data,
                                     .on_cancel = on_cancel,
                                     .service = s};
    ret[1] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/StreamToolData",
                                     .on_request = stream_tool_data,
                                     .on_cancel = on_cancel,
                                     .service = s};
    ret[2] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/GetOpStats",
                                     .on_request = get_op_stats,
                                     .on_cancel = on_cancel,
                                     .service = s};
    ret[3] = (struct xpl_rpc_method){
        .path = "/xplaned.v1.AnalysisService/ListTools", .on_request = list_tools, .service = s};
}
