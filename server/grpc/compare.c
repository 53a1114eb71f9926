// SPDX-License-Identifier: Apache-2.0
// Methods of AnalysisService that join several sessions: CompareSessions, for two groups, and
// GetHistory, metrics over sessions.
#include "server/engine/joint/compare.h"

#include <stdatomic.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "server/engine/joint/history.h"
#include "server/grpc/services.h"
#include "server/grpc/tool_data.h"

enum { MAX_HEAD = 1 << 20 };

struct pending { // the call's user
    // Begun on a worker, of GetHistory, and cancelled on gRPC's thread.
    _Atomic(struct xpl_joint *) joint;
};

static void release_pending(void *user) {
    struct pending *const p = user;
    xpl_joint_unref(atomic_load(&p->joint));
    xpl_sys_free(p);
}

// NULL when out of memory.  On gRPC's thread.
static struct pending *make_pending(struct xpl_rpc_call *c) {
    struct pending *const p = xpl_sys_alloc(sizeof *p);
    if (!p) return NULL;
    atomic_init(&p->joint, NULL);
    xpl_rpc_call_set_user(c, p, release_pending);
    return p;
}

// As the answers of tools are sent, in pieces.
static xpl_status_t send_answer(struct xpl_rpc_call *c, const struct xpl_joint_outcome *o) {
    XPL_AUTO(xpl_buf_fini) struct xpl_buf head = xpl_buf_of(MAX_HEAD);
    xpl_status_t st = XPL_RESOURCE_EXHAUSTED;
    size_t n = 0;
    uint8_t *const bytes = xpl_buf_take(o->out, &n);
    struct xpl_tool_data *const a =
        bytes ? xpl_tool_data_new(bytes, n, "application/json", o->warnings) : NULL;
    if (a) xpl_svc_put_tool_data_head(&head, a, XPL_COMPUTED, NULL);
    if (a && !head.failed) st = xpl_svc_send_tool_data(c, (xpl_bytes_t){head.p, head.n}, a->blob);
    if (a) xpl_object_unref(&a->object);
    return st;
}

static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    struct xpl_rpc_call *const c = arg;
    if (o->code != XPL_OK)
        xpl_svc_fail(c, &o->err, o->retry_ms);
    else if (send_answer(c, o) == XPL_OK)
        xpl_rpc_finish_ok(c);
    else
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
    xpl_rpc_call_unref(c);
}

static void on_cancel(struct xpl_rpc_call *c, void *service) {
    (void)service;
    struct pending *const p = xpl_rpc_call_get_user(c);
    struct xpl_joint *const joint = p ? atomic_load(&p->joint) : NULL;
    if (joint) xpl_joint_cancel(joint);
}

static bool copy_names(char *const *names, size_t n, struct xpl_arena *arena, xpl_str_t **ret) {
    *ret = xpl_arena_array(arena, n, sizeof **ret);
    for (size_t i = 0; *ret && i < n; i++)
        (*ret)[i] = xpl_str_from(names[i]);
    return *ret;
}

static xpl_status_t begin(struct xpl_svc_analysis *s, struct xpl_rpc_call *c,
                          const Xplaned__V1__CompareSessionsRequest *m, struct xpl_arena *arena,
                          struct xpl_error *err) {
    xpl_str_t *a, *b;
    struct xpl_joint *joint;
    struct pending *const p = make_pending(c);
    if (!p) XPL_RETURN_OOM(err, "comparison");
    if (!copy_names(m->a, m->n_a, arena, &a) || !copy_names(m->b, m->n_b, arena, &b))
        XPL_RETURN_OOM(err, "comparison");
    const struct xpl_follow_sources from = {s->catalogue, s->labels, s->history};
    const struct xpl_comparison_request q = {.from = &from,
                                             .a = a,
                                             .b = b,
                                             .n_a = m->n_a,
                                             .n_b = m->n_b,
                                             .memory_limit = xpl_engine_memory_limit(s->engine),
                                             .traceparent = xpl_svc_traceparent(c),
                                             .done = on_done,
                                             .arg = c};
    xpl_rpc_call_ref(c);
    const xpl_status_t st = xpl_comparison_begin(s->engine, &q, &joint, err);
    if (st == XPL_OK)
        atomic_store(&p->joint, joint);
    else
        xpl_rpc_call_unref(c);
    return st;
}

static void compare_sessions(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(16 << 20);
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__compare_sessions_request__descriptor, request, &arena,
                        &msg))
        return;
    if (begin(service, c, (const Xplaned__V1__CompareSessionsRequest *)msg, &arena, &err) != XPL_OK)
        xpl_rpc_finish_error(c, &err);
}

// ---- GetHistory ----

static xpl_status_t follow(struct xpl_svc_analysis *s, struct xpl_rpc_call *c,
                           const Xplaned__V1__GetHistoryRequest *m, struct xpl_arena *arena,
                           struct xpl_error *err) {
    struct pending *const p = xpl_rpc_call_get_user(c);
    struct xpl_follow_session *sessions;
    struct xpl_joint *joint;
    xpl_str_t *metrics;
    const struct xpl_follow_sources from = {s->catalogue, s->labels, s->history};
    const struct xpl_follow_query which = {.label = xpl_str_from(m->label),
                                           .directory = xpl_str_from(m->directory),
                                           .schedule_id = m->schedule_id,
                                           .since_ms = m->since_unix_ms,
                                           .last = m->last};
    struct xpl_follow_request q = {.n_metrics = m->n_metrics,
                                   .selected = xpl_follow_is_selected(&which),
                                   .memory_limit = xpl_engine_memory_limit(s->engine),
                                   .traceparent = xpl_svc_traceparent(c),
                                   .done = on_done,
                                   .arg = c};
    if (!copy_names(m->metrics, m->n_metrics, arena, &metrics)) XPL_RETURN_OOM(err, "history");
    XPL_TRY(xpl_follow_select(&from, &which, arena, &sessions, &q.n, err));
    q.sessions = sessions;
    q.metrics = metrics;
    xpl_rpc_call_ref(c);
    const xpl_status_t st = xpl_follow_begin(s->engine, &q, &joint, err);
    if (st != XPL_OK) {
        xpl_rpc_call_unref(c);
        return st;
    }
    atomic_store(&p->joint, joint);
    if (xpl_rpc_call_cancelled(c)) xpl_joint_cancel(joint); // on_cancel may have come before
    return XPL_OK;
}

// On a worker: schedules' sessions are in state.db.
static void begin_history(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of((size_t)64 << 20);
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__get_history_request__descriptor, request, &arena, &msg))
        return;
    if (follow(service, c, (const Xplaned__V1__GetHistoryRequest *)msg, &arena, &err) != XPL_OK)
        xpl_rpc_finish_error(c, &err);
}

static void get_history(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_analysis *const s = service;
    if (!make_pending(c)) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    xpl_svc_later(s->pool, c, request, begin_history, s, "too much at once; try again soon");
}

void xpl_svc_compare_methods(struct xpl_svc_analysis *s,
                             struct xpl_rpc_method ret[XPL_SVC_COMPARE_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/CompareSessions",
                                     .on_request = compare_sessions,
                                     .on_cancel = on_cancel,
                                     .service = s};
    ret[1] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/GetHistory",
                                     .on_request = get_history,
                                     .on_cancel = on_cancel,
                                     .service = s};
}
