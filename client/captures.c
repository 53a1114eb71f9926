// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "client/impl.h"
#include "proto/xplaned/v1/capture.pb-c.h"
#include "rpc/message.h"

#define MAX_MESSAGE ((size_t)256 << 20)

typedef Xplaned__V1__CaptureRequest request_msg;
typedef Xplaned__V1__CapturedHost host_msg;

struct xpl_captures {
    struct xpl_arena arena;
    xpl_capture_info *list;
    xpl_schedule_info *schedules;
    size_t n, n_schedules;
};

static const char *host_state(Xplaned__V1__HostState s) {
    static const char *const names[] = {"unknown", "connecting", "ready",    "collecting",
                                        "waiting", "receiving",  "pausing",  "stored",
                                        "idle",    "failed",     "cancelled"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : names[0];
}

static const char *capture_state(Xplaned__V1__Capture__State s) {
    static const char *const names[] = {"unknown", "running",   "done",       "partial",
                                        "failed",  "cancelled", "interrupted"};
    return (unsigned)s < sizeof names / sizeof *names ? names[s] : names[0];
}

// ---- requests ----

xpl_capture_request xpl_client_capture_request(const xpl_capture_request *given) {
    xpl_capture_request r = {
        .host_tracer_level = -1, .device_tracer_level = -1, .python_tracer_level = -1};
    memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
    return r;
}

// "true", "false" and integers as such, other values as text.
static void set_value(Xplaned__V1__AdvancedValue *v, const char *text) {
    int64_t n;
    const bool is_true = strcmp(text, "true") == 0;
    if (is_true || strcmp(text, "false") == 0) {
        v->value_case = XPLANED__V1__ADVANCED_VALUE__VALUE_BOOL_VALUE;
        v->bool_value = is_true;
    } else if (xpl_parse_int(xpl_str_from(text), INT64_MIN, INT64_MAX, &n)) {
        v->value_case = XPLANED__V1__ADVANCED_VALUE__VALUE_INT64_VALUE;
        v->int64_value = n;
    } else {
        v->value_case = XPLANED__V1__ADVANCED_VALUE__VALUE_STRING_VALUE;
        v->string_value = (char *)(uintptr_t)text;
    }
}

static bool set_advanced(const xpl_capture_request *r, struct xpl_arena *arena, request_msg *m) {
    m->advanced = xpl_arena_array(arena, r->n_advanced, sizeof *m->advanced);
    for (size_t i = 0; m->advanced && i < r->n_advanced; i++) {
        Xplaned__V1__CaptureRequest__AdvancedEntry *e = xpl_arena_alloc(arena, sizeof *e);
        Xplaned__V1__AdvancedValue *v = xpl_arena_alloc(arena, sizeof *v);
        if (!e || !v) return false;
        xplaned__v1__capture_request__advanced_entry__init(e);
        xplaned__v1__advanced_value__init(v);
        set_value(v, r->advanced[2 * i + 1] ? r->advanced[2 * i + 1] : "");
        e->key = (char *)(uintptr_t)r->advanced[2 * i];
        e->value = v;
        m->advanced[m->n_advanced++] = e;
    }
    return m->advanced != NULL;
}

static bool fill(const xpl_capture_request *r, struct xpl_arena *arena, request_msg *m) {
    xplaned__v1__capture_request__init(m);
    m->targets = (char **)(uintptr_t)r->targets;
    m->n_targets = r->n_targets;
    if (r->host_names) {
        m->host_names = (char **)(uintptr_t)r->host_names;
        m->n_host_names = r->n_targets;
    }
    if (r->session) m->session = (char *)(uintptr_t)r->session;
    m->duration_ms = r->duration_ms > 0 && r->duration_ms < UINT32_MAX ? (uint32_t)r->duration_ms
                     : r->duration_ms > 0                              ? UINT32_MAX
                                                                       : 0;
    m->delay_ms = r->delay_ms > 0 && r->delay_ms < UINT32_MAX ? (uint32_t)r->delay_ms : 0;
    m->retries = r->retries;
    m->detach = r->detach != 0;
    if (r->remote_logdir) m->remote_logdir = (char *)(uintptr_t)r->remote_logdir;
    if (r->host_tracer_level >= 0 || r->device_tracer_level >= 0 || r->python_tracer_level >= 0) {
        Xplaned__V1__TracerLevels *t = xpl_arena_alloc(arena, sizeof *t);
        if (!t) return false;
        xplaned__v1__tracer_levels__init(t);
        t->host = r->host_tracer_level >= 0 ? (uint32_t)r->host_tracer_level : 2;
        t->device = r->device_tracer_level >= 0 ? (uint32_t)r->device_tracer_level : 1;
        t->python = r->python_tracer_level >= 0 ? (uint32_t)r->python_tracer_level : 0;
        m->tracers = t;
    }
    return set_advanced(r, arena, m);
}

// ---- captures ----

static xpl_captured_host *hosts_of(struct xpl_arena *arena, host_msg *const *in, size_t n,
                                   size_t *ret_stored) {
    xpl_captured_host *h = xpl_arena_array(arena, n, sizeof *h);
    *ret_stored = 0;
    for (size_t i = 0; h && i < n; i++) {
        h[i] = (xpl_captured_host){.target = in[i]->target,
                                   .state = host_state(in[i]->state),
                                   .host = in[i]->host,
                                   .reason = in[i]->reason,
                                   .code = in[i]->code,
                                   .bytes = in[i]->bytes,
                                   .attempts = in[i]->attempts};
        *ret_stored += in[i]->state == XPLANED__V1__HOST_STATE__HOST_STATE_STORED;
    }
    return h;
}

static xpl_status_t report_progress(const xpl_capture_request *r, xpl_bytes_t message,
                                    struct xpl_error *err) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(MAX_MESSAGE);
    ProtobufCMessage *msg = NULL;
    const xpl_status_t st = xpl_rpc_message_unpack(&xplaned__v1__capture_progress__descriptor,
                                                   message, &arena, &msg, err);
    if (st == XPL_OK && r->progress) {
        const Xplaned__V1__CaptureProgress *const m = (const Xplaned__V1__CaptureProgress *)msg;
        xpl_capture_status s = {.id = m->id,
                                .session = m->session,
                                .n_hosts = m->n_hosts,
                                .elapsed_ms = (int64_t)m->elapsed_ms,
                                .over = m->capture != NULL};
        s.hosts = hosts_of(&arena, m->hosts, m->n_hosts, &s.n_stored);
        if (s.hosts) r->progress(r->arg, &s);
    }
    return st;
}

static xpl_status_t follow(struct xpl_rpc_stream *stream, const xpl_capture_request *r,
                           int64_t *ret_retry_ms, struct xpl_error *err) {
    struct xpl_rpc_reply msg = {0};
    xpl_status_t st;
    for (;;) {
        bool more = false;
        st = xpl_rpc_stream_next(stream, &msg, &more, err);
        *ret_retry_ms = msg.details.retry_ms;
        if (st != XPL_OK || !more) break;
        st = report_progress(r, msg.bytes, err);
        if (st == XPL_OK && r->cancelled && r->cancelled(r->arg))
            st = xpl_error_set(err, XPL_CANCELLED, __FILE__, __LINE__, UINT64_MAX, "cancelled");
        if (st != XPL_OK) break;
    }
    xpl_rpc_reply_fini(&msg);
    return st;
}

int xpl_client_capture(xpl_client *c, const xpl_capture_request *given, xpl_result *result) {
    const xpl_capture_request r = xpl_client_capture_request(given);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of((size_t)16 << 20);
    struct xpl_error err = {0};
    int64_t retry_ms = 0;
    request_msg m;
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (fill(&r, &arena, &m)) xpl_rpc_message_put(&b, &m.base);
    if (b.n && !b.failed) {
        const struct xpl_rpc_call_options o = {.size = sizeof o};
        struct xpl_rpc_stream *stream = NULL;
        st = xpl_rpc_stream_open(c->channel, "/xplaned.v1.CaptureService/Capture",
                                 (xpl_bytes_t){b.p, b.n}, &o, &stream, &err);
        if (st == XPL_OK) st = follow(stream, &r, &retry_ms, &err);
        xpl_rpc_stream_close(stream);
        xpl_client_explain(c, &err);
    } else if (!b.failed) {
        st = xpl_error_set(&err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                           "no target to capture");
    }
    return xpl_client_result(result, st, err.code ? &err : NULL, retry_ms);
}

// A call whose answer says nothing but that it was done.
static int have_done(xpl_client *c, const char *method, const ProtobufCMessage *request,
                     xpl_result *result) {
    struct xpl_rpc_reply reply = {0};
    const xpl_status_t st = xpl_client_call(c, method, request, &reply, result);
    xpl_rpc_reply_fini(&reply);
    return (int)st;
}

int xpl_client_cancel_capture(xpl_client *c, uint64_t id, xpl_result *result) {
    Xplaned__V1__CancelCaptureRequest q;
    xplaned__v1__cancel_capture_request__init(&q);
    q.id = id;
    return have_done(c, "/xplaned.v1.CaptureService/CancelCapture", &q.base, result);
}

// ---- schedules ----

int xpl_client_schedule(xpl_client *c, const xpl_schedule_request *given, uint64_t *ret_id,
                        xpl_result *result) {
    xpl_schedule_request r = {0};
    memcpy(&r, given, given->size < sizeof r ? given->size : sizeof r);
    if (!r.capture) return xpl_client_result(result, XPL_INVALID_ARGUMENT, NULL, 0);
    const xpl_capture_request capture = xpl_client_capture_request(r.capture);
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)16 << 20);
    struct xpl_error err = {0};
    struct xpl_rpc_reply reply = {0};
    request_msg m;
    Xplaned__V1__CreateScheduleRequest q;
    xplaned__v1__create_schedule_request__init(&q);
    q.capture = &m;
    q.every_ms = r.every_ms > 0 ? (uint64_t)r.every_ms : 0;
    q.continuous = r.continuous != 0;
    q.keep_count = r.keep_count;
    q.keep_bytes = r.keep_bytes;
    q.keep_age_ms = r.keep_age_ms > 0 ? (uint64_t)r.keep_age_ms : 0;
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    if (!fill(&capture, &arena, &m)) {
        (void)xpl_client_result(result, st, NULL, 0);
    } else {
        st = xpl_client_call(c, "/xplaned.v1.CaptureService/CreateSchedule", &q.base, &reply,
                             result);
        ProtobufCMessage *msg = NULL;
        if (st == XPL_OK) {
            st = xpl_rpc_message_unpack(&xplaned__v1__schedule__descriptor, reply.bytes, &arena,
                                        &msg, &err);
            if (st == XPL_OK && ret_id) *ret_id = ((Xplaned__V1__Schedule *)msg)->id;
            (void)xpl_client_result(result, st, &err, 0);
        }
    }
    xpl_rpc_reply_fini(&reply);
    return (int)st;
}

int xpl_client_unschedule(xpl_client *c, uint64_t id, xpl_result *result) {
    Xplaned__V1__DeleteScheduleRequest q;
    xplaned__v1__delete_schedule_request__init(&q);
    q.id = id;
    return have_done(c, "/xplaned.v1.CaptureService/DeleteSchedule", &q.base, result);
}

// ---- lists ----

static bool take_captures(xpl_captures *l, const Xplaned__V1__ListCapturesResponse *m) {
    l->list = xpl_arena_array(&l->arena, m->n_captures, sizeof *l->list);
    for (size_t i = 0; l->list && i < m->n_captures; i++) {
        const Xplaned__V1__Capture *const from = m->captures[i];
        xpl_capture_info *const to = &l->list[i];
        *to = (xpl_capture_info){.id = from->id,
                                 .schedule_id = from->schedule_id,
                                 .state = capture_state(from->state),
                                 .session = from->session,
                                 .message = from->message,
                                 .begin_unix_ms = from->begin_unix_ms,
                                 .end_unix_ms = from->end_unix_ms,
                                 .n_hosts = from->n_hosts};
        to->hosts = hosts_of(&l->arena, from->hosts, from->n_hosts, &to->n_stored);
        if (!to->hosts) return false;
        l->n++;
    }
    return l->list != NULL;
}

static bool take_schedules(xpl_captures *l, const Xplaned__V1__ListSchedulesResponse *m) {
    l->schedules = xpl_arena_array(&l->arena, m->n_schedules, sizeof *l->schedules);
    for (size_t i = 0; l->schedules && i < m->n_schedules; i++) {
        const Xplaned__V1__Schedule *const from = m->schedules[i];
        const Xplaned__V1__CreateScheduleRequest *const r = from->request;
        l->schedules[l->n_schedules++] = (xpl_schedule_info){
            .id = from->id,
            .every_ms = r ? (int64_t)r->every_ms : 0,
            .next_unix_ms = from->next_unix_ms,
            .n_targets = r && r->capture ? r->capture->n_targets : 0,
            .targets = r && r->capture ? (const char *const *)r->capture->targets : NULL,
            .last_capture_id = from->last_capture_id,
            .bytes = from->bytes,
            .sessions = from->sessions,
            .continuous = r ? r->continuous : 0,
        };
    }
    return l->schedules != NULL;
}

// Calls and decodes into the list's arena.
static xpl_status_t fetch_list(xpl_client *c, xpl_captures *l, const char *path,
                               const ProtobufCMessage *q, const ProtobufCMessageDescriptor *type,
                               ProtobufCMessage **ret, xpl_result *result) {
    struct xpl_rpc_reply reply = {0};
    struct xpl_error err = {0};
    xpl_status_t st = xpl_client_call(c, path, q, &reply, result);
    if (st == XPL_OK) {
        st = xpl_rpc_message_unpack(type, reply.bytes, &l->arena, ret, &err);
        (void)xpl_client_result(result, st, &err, 0);
    }
    xpl_rpc_reply_fini(&reply);
    return st;
}

int xpl_client_captures(xpl_client *c, unsigned limit, xpl_captures **ret, xpl_result *result) {
    xpl_captures *l = xpl_sys_alloc(sizeof *l);
    if (!l) return xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    *l = (xpl_captures){0};
    xpl_arena_init(&l->arena, (size_t)1 << 30);
    Xplaned__V1__ListCapturesRequest q;
    Xplaned__V1__ListSchedulesRequest qs;
    ProtobufCMessage *m = NULL;
    xplaned__v1__list_captures_request__init(&q);
    xplaned__v1__list_schedules_request__init(&qs);
    q.limit = limit;
    xpl_status_t st = fetch_list(c, l, "/xplaned.v1.CaptureService/ListCaptures", &q.base,
                                 &xplaned__v1__list_captures_response__descriptor, &m, result);
    if (st == XPL_OK && !take_captures(l, (const Xplaned__V1__ListCapturesResponse *)m))
        st = (xpl_status_t)xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    if (st == XPL_OK)
        st = fetch_list(c, l, "/xplaned.v1.CaptureService/ListSchedules", &qs.base,
                        &xplaned__v1__list_schedules_response__descriptor, &m, result);
    if (st == XPL_OK && !take_schedules(l, (const Xplaned__V1__ListSchedulesResponse *)m))
        st = (xpl_status_t)xpl_client_result(result, XPL_RESOURCE_EXHAUSTED, NULL, 0);
    if (st == XPL_OK)
        *ret = l;
    else
        xpl_captures_free(l);
    return (int)st;
}

const xpl_capture_info *xpl_captures_get(const xpl_captures *l, size_t i) {
    return l && i < l->n ? &l->list[i] : NULL;
}
const xpl_schedule_info *xpl_captures_schedule(const xpl_captures *l, size_t i) {
    return l && i < l->n_schedules ? &l->schedules[i] : NULL;
}
void xpl_captures_free(xpl_captures *l) {
    if (!l) return;
    xpl_arena_fini(&l->arena);
    xpl_sys_free(l);
}
