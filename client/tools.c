// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/impl.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "proto/xplaned/v1/server.pb-c.h"
#include "rpc/message.h"

#define MAX_ANSWER ((size_t)4 << 30) // bytes, of all messages

struct xpl_answer {
    struct xpl_arena arena; // the decoded first message
    Xplaned__V1__ToolData *head;
    uint8_t *data;
    size_t len;
    const char **warnings;
    size_t n_warnings;
};

void xpl_answer_free(xpl_answer *a) {
    if (!a) return;
    xpl_sys_free(a->data);
    xpl_arena_fini(&a->arena);
    xpl_sys_free(a);
}

const void *xpl_answer_data(const xpl_answer *a, size_t *ret_len) {
    *ret_len = a->len;
    return a->data;
}

const char *xpl_answer_content_type(const xpl_answer *a) {
    return a->head->content_type;
}

const char *xpl_answer_source(const xpl_answer *a) {
    switch (a->head->source) {
        case XPLANED__V1__TOOL_DATA__SOURCE__MEMORY: return "memory";
        case XPLANED__V1__TOOL_DATA__SOURCE__STORE: return "store";
        case XPLANED__V1__TOOL_DATA__SOURCE__COMPUTED: return "computed";
        case XPLANED__V1__TOOL_DATA__SOURCE__SOURCE_UNSPECIFIED:
        case _XPLANED__V1__TOOL_DATA__SOURCE_IS_INT_SIZE:
        default: return "unknown";
    }
}

const char *xpl_answer_warning(const xpl_answer *a, size_t i) {
    return i < a->n_warnings ? a->warnings[i] : NULL;
}

static bool read_warnings(xpl_answer *a) {
    a->warnings = xpl_arena_array(&a->arena, a->head->n_warnings, sizeof *a->warnings);
    for (size_t i = 0; a->warnings && i < a->head->n_warnings; i++) {
        const Xplaned__V1__ToolData__Warning *w = a->head->warnings[i];
        xpl_str_t text;
        if (!xpl_arena_printf(&a->arena, &text, "%s%s%s", w->host, w->host[0] ? ": " : "", w->text))
            return false;
        a->warnings[a->n_warnings++] = text.ptr;
    }
    return a->warnings != NULL;
}

// Adds one message of a stream to the answer: the first one's fields, the data of all.
static xpl_status_t add_message(xpl_answer *a, struct xpl_buf *data, xpl_bytes_t message,
                                struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena chunk = xpl_arena_of((size_t)64 << 20);
    struct xpl_arena *const arena = a->head ? &chunk : &a->arena;
    ProtobufCMessage *msg = NULL;
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__tool_data__descriptor, message, arena, &msg, err));
    Xplaned__V1__ToolData *m = (Xplaned__V1__ToolData *)msg;
    xpl_buf_put(data, m->data.data, m->data.len);
    if (!a->head) a->head = m;
    if (data->failed)
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED,
                         "the answer has more than 4 GiB, or memory is short");
    return XPL_OK;
}

static xpl_status_t receive(struct xpl_rpc_stream *stream, xpl_answer *a, int64_t *ret_retry_ms,
                            struct xpl_error *err) {
    struct xpl_rpc_reply msg = {0};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf data = xpl_buf_of(MAX_ANSWER);
    xpl_status_t st;
    for (;;) {
        bool more = false;
        st = xpl_rpc_stream_next(stream, &msg, &more, err);
        *ret_retry_ms = msg.details.retry_ms;
        if (st != XPL_OK || !more) break;
        st = add_message(a, &data, msg.bytes, err);
        if (st != XPL_OK) break;
    }
    xpl_rpc_reply_fini(&msg);
    if (st == XPL_OK && !a->head)
        st = xpl_error_set(err, XPL_INTERNAL, __FILE__, __LINE__, UINT64_MAX,
                           "the server sent no answer");
    if (st == XPL_OK) a->data = xpl_buf_take(&data, &a->len);
    if (st == XPL_OK && (!a->data || !read_warnings(a)))
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "out of memory");
    return st;
}

// The request, packed; fields of both kinds of requests have the same numbers.
static bool pack(const xpl_tool_request *r, const char *tool, bool large, struct xpl_buf *b) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    typedef Xplaned__V1__GetToolDataRequest__OptionsEntry entry;
    Xplaned__V1__GetToolDataRequest q;
    xplaned__v1__get_tool_data_request__init(&q);
    q.session = (char *)(uintptr_t)r->session;
    if (tool) q.tool = (char *)(uintptr_t)tool;
    q.n_hosts = r->n_hosts;
    q.hosts = (char **)(uintptr_t)r->hosts;
    q.allow_large = large;
    q.options = xpl_arena_array(&arena, r->n_options, sizeof *q.options);
    for (size_t i = 0; q.options && i < r->n_options; i++) {
        entry *e = xpl_arena_alloc(&arena, sizeof *e);
        if (!e) break;
        xplaned__v1__get_tool_data_request__options_entry__init(e);
        e->key = (char *)(uintptr_t)r->options[2 * i];
        e->value = (char *)(uintptr_t)r->options[2 * i + 1];
        q.options[q.n_options++] = e;
    }
    const bool ok = q.options && q.n_options == r->n_options;
    if (ok) xpl_rpc_message_put(b, &q.base);
    return ok && !b->failed;
}

static xpl_answer *answer_new(void) {
    xpl_answer *a = xpl_sys_alloc(sizeof *a);
    if (!a) return NULL;
    memset(a, 0, sizeof *a);
    xpl_arena_init(&a->arena, (size_t)1 << 30);
    return a;
}

static int finish_answer(xpl_answer *a, xpl_status_t st, const struct xpl_error *err,
                         int64_t retry_ms, xpl_answer **ret, xpl_result *result) {
    if (st == XPL_OK)
        *ret = a;
    else
        xpl_answer_free(a);
    return xpl_client_result(result, st, err, retry_ms);
}

// The request as this build knows it, whatever size the caller was compiled with.
static xpl_tool_request request_of(const xpl_tool_request *given) {
    xpl_tool_request r = {0};
    memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
    return r;
}

// Sends a packed request whose answer comes in pieces.
static xpl_status_t ask_stream(xpl_client *c, const char *method, const struct xpl_buf *request,
                               xpl_answer *a, int64_t *ret_retry_ms, struct xpl_error *err) {
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = c->timeout_ms};
    struct xpl_rpc_stream *stream = NULL;
    xpl_status_t st = xpl_rpc_stream_open(c->channel, method, (xpl_bytes_t){request->p, request->n},
                                          &o, &stream, err);
    if (st == XPL_OK) st = receive(stream, a, ret_retry_ms, err);
    xpl_rpc_stream_close(stream);
    xpl_client_explain(c, err);
    return st;
}

int xpl_client_tool(xpl_client *c, const xpl_tool_request *given, xpl_answer **ret,
                    xpl_result *result) {
    const xpl_tool_request request = request_of(given);
    xpl_answer *a = answer_new();
    struct xpl_buf b = xpl_buf_of((size_t)16 << 20);
    struct xpl_error err = {0};
    int64_t retry_ms = 0;
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (!a || !pack(&request, request.tool, false, &b)) {
        xpl_buf_fini(&b);
        xpl_answer_free(a);
        return xpl_client_result(result, st, NULL, 0);
    }
    st = ask_stream(c, "/xplaned.v1.AnalysisService/StreamToolData", &b, a, &retry_ms, &err);
    xpl_buf_fini(&b);
    return finish_answer(a, st, &err, retry_ms, ret, result);
}

int xpl_client_compare(xpl_client *c, const xpl_comparison *given, xpl_answer **ret,
                       xpl_result *result) {
    xpl_comparison q = {0};
    Xplaned__V1__CompareSessionsRequest m;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b;
    struct xpl_error err = {0};
    int64_t retry_ms = 0;
    memcpy(&q, given, given->size < sizeof q ? given->size : sizeof q);
    xplaned__v1__compare_sessions_request__init(&m);
    m.a = (char **)(uintptr_t)q.a;
    m.n_a = q.n_a;
    m.b = (char **)(uintptr_t)q.b;
    m.n_b = q.n_b;
    xpl_answer *const a = answer_new();
    xpl_buf_init(&b, (size_t)16 << 20);
    if (a) xpl_rpc_message_put(&b, &m.base);
    const xpl_status_t st =
        a && !b.failed
            ? ask_stream(c, "/xplaned.v1.AnalysisService/CompareSessions", &b, a, &retry_ms, &err)
            : XPL_RESOURCE_EXHAUSTED;
    return finish_answer(a, st, err.code ? &err : NULL, retry_ms, ret, result);
}

int xpl_client_history(xpl_client *c, const xpl_history_request *given, xpl_answer **ret,
                       xpl_result *result) {
    xpl_history_request q = {0};
    Xplaned__V1__GetHistoryRequest m;
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)16 << 20);
    struct xpl_error err = {0};
    int64_t retry_ms = 0;
    memcpy(&q, given, given->size < sizeof q ? given->size : sizeof q);
    xplaned__v1__get_history_request__init(&m);
    if (q.label) m.label = (char *)(uintptr_t)q.label;
    if (q.directory) m.directory = (char *)(uintptr_t)q.directory;
    m.schedule_id = q.schedule_id;
    m.since_unix_ms = q.since_unix_ms;
    m.last = q.last;
    m.metrics = (char **)(uintptr_t)q.metrics;
    m.n_metrics = q.n_metrics;
    xpl_answer *const a = answer_new();
    if (a) xpl_rpc_message_put(&b, &m.base);
    const xpl_status_t st = a && !b.failed ? ask_stream(c, "/xplaned.v1.AnalysisService/GetHistory",
                                                        &b, a, &retry_ms, &err)
                                           : XPL_RESOURCE_EXHAUSTED;
    return finish_answer(a, st, err.code ? &err : NULL, retry_ms, ret, result);
}

int xpl_client_op_stats(xpl_client *c, const xpl_tool_request *given, xpl_answer **ret,
                        xpl_result *result) {
    const xpl_tool_request request = request_of(given);
    xpl_answer *a = answer_new();
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b, data;
    xpl_buf_init(&b, (size_t)16 << 20);
    xpl_buf_init(&data, SIZE_MAX / 2);
    struct xpl_error err = {0};
    struct xpl_rpc_reply reply = {0};
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (a && pack(&request, NULL, true, &b)) {
        const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = c->timeout_ms};
        st = xpl_rpc_unary(c->channel, "/xplaned.v1.AnalysisService/GetOpStats",
                           (xpl_bytes_t){b.p, b.n}, &o, &reply, &err);
        if (st == XPL_OK) st = add_message(a, &data, reply.bytes, &err);
        if (st == XPL_OK) a->data = xpl_buf_take(&data, &a->len);
        if (st == XPL_OK && (!a->data || !read_warnings(a))) st = XPL_RESOURCE_EXHAUSTED;
    }
    const int64_t retry_ms = reply.details.retry_ms;
    xpl_client_explain(c, &err);
    xpl_rpc_reply_fini(&reply);
    return finish_answer(a, st, err.code ? &err : NULL, retry_ms, ret, result);
}

static xpl_status_t take_json(xpl_answer *a, const uint8_t *json, size_t n) {
    a->data = xpl_sys_alloc(n + 1);
    a->head = xpl_arena_alloc(&a->arena, sizeof *a->head);
    if (!a->data || !a->head) return XPL_RESOURCE_EXHAUSTED;
    xplaned__v1__tool_data__init(a->head);
    a->head->content_type = (char *)(uintptr_t) "application/json";
    a->head->source = XPLANED__V1__TOOL_DATA__SOURCE__COMPUTED;
    if (n) memcpy(a->data, json, n);
    a->len = n;
    return XPL_OK;
}

static xpl_status_t ask_fleet(xpl_client *c, xpl_answer *a, struct xpl_rpc_reply *reply,
                              struct xpl_error *err) {
    ProtobufCMessage *msg = NULL;
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = c->timeout_ms};
    XPL_TRY(xpl_rpc_unary(c->channel, "/xplaned.v1.ServerService/GetFleet", (xpl_bytes_t){0}, &o,
                          reply, err));
    XPL_TRY(xpl_rpc_message_unpack(&xplaned__v1__get_fleet_response__descriptor, reply->bytes,
                                   &a->arena, &msg, err));
    const Xplaned__V1__GetFleetResponse *const r = (const Xplaned__V1__GetFleetResponse *)msg;
    return take_json(a, r->json.data, r->json.len);
}

int xpl_client_fleet(xpl_client *c, xpl_answer **ret, xpl_result *result) {
    struct xpl_error err = {0};
    struct xpl_rpc_reply reply = {0};
    xpl_answer *const a = answer_new();
    if (!a) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    const xpl_status_t st = ask_fleet(c, a, &reply, &err);
    const int64_t retry_ms = reply.details.retry_ms;
    xpl_client_explain(c, &err);
    xpl_rpc_reply_fini(&reply);
    return finish_answer(a, st, err.code ? &err : NULL, retry_ms, ret, result);
}

static xpl_status_t ask_sql(xpl_client *c, const xpl_sql_statement *q, xpl_answer *a,
                            struct xpl_rpc_reply *reply, struct xpl_error *err) {
    Xplaned__V1__RunStatementRequest m;
    ProtobufCMessage *msg = NULL;
    struct xpl_buf b = xpl_buf_of((size_t)16 << 20);
    xplaned__v1__run_statement_request__init(&m);
    m.statement = (char *)(uintptr_t)q->statement;
    m.n_sessions = q->n_sessions;
    m.sessions = (char **)(uintptr_t)q->sessions;
    xpl_rpc_message_put(&b, &m.base);
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = c->timeout_ms};
    xpl_status_t st = b.failed
                          ? XPL_RESOURCE_EXHAUSTED
                          : xpl_rpc_unary(c->channel, "/xplaned.v1.AnalysisService/RunStatement",
                                          (xpl_bytes_t){b.p, b.n}, &o, reply, err);
    xpl_buf_fini(&b);
    if (st == XPL_OK)
        st = xpl_rpc_message_unpack(&xplaned__v1__run_statement_response__descriptor, reply->bytes,
                                    &a->arena, &msg, err);
    if (st != XPL_OK) return st;
    const Xplaned__V1__RunStatementResponse *const r =
        (const Xplaned__V1__RunStatementResponse *)msg;
    return take_json(a, r->json.data, r->json.len);
}

int xpl_client_sql(xpl_client *c, const xpl_sql_statement *given, xpl_answer **ret,
                   xpl_result *result) {
    xpl_sql_statement q = {0};
    struct xpl_error err = {0};
    struct xpl_rpc_reply reply = {0};
    memcpy(&q, given, given->size < sizeof q ? given->size : sizeof q);
    xpl_answer *const a = answer_new();
    if (!a) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    const xpl_status_t st = ask_sql(c, &q, a, &reply, &err);
    const int64_t retry_ms = reply.details.retry_ms;
    xpl_client_explain(c, &err);
    xpl_rpc_reply_fini(&reply);
    return finish_answer(a, st, err.code ? &err : NULL, retry_ms, ret, result);
}
