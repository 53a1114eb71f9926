// SPDX-License-Identifier: Apache-2.0
// Routes whose answers are made of several sessions: /api/v1/compare and /api/v1/history.
#include "base/text/parse.h"
#include "server/engine/joint/compare.h"
#include "server/engine/joint/history.h"
#include "server/http/access.h"
#include "server/http/gateway.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"
#include "server/traceparent.h"

struct pending { // r->data
    struct xpl_joint *joint;
    struct xpl_error err;
    int64_t retry_ms;
};

// ---- flow ----

static void cancel_joint(struct xpl_http_request *r) {
    const struct pending *const p = r->data;
    if (p->joint) xpl_joint_cancel(p->joint);
}

static void release_joint(struct xpl_http_request *r) {
    struct pending *const p = r->data;
    xpl_joint_unref(p->joint);
    p->joint = NULL;
}

static enum MHD_Result reply_joint(struct xpl_http_request *r) {
    const struct pending *const p = r->data;
    const bool failed = !r->gone && p->err.code != XPL_OK;
    const struct xpl_error err = p->err;
    const int64_t retry_ms = p->retry_ms;
    release_joint(r);
    return failed ? xpl_http_reply_api_error(r, &err, retry_ms) : xpl_http_result(r);
}

// NULL when out of memory.
static struct xpl_http_body *make_body(struct xpl_http_request *r,
                                       const struct xpl_joint_outcome *o) {
    struct xpl_http_header warnings[XPL_HTTP_WARNINGS];
    size_t n = 0;
    uint8_t *const bytes = xpl_buf_take(o->out, &n);
    struct xpl_tool_data *const a =
        bytes ? xpl_tool_data_new(bytes, n, "application/json", o->warnings) : NULL;
    if (!a) return NULL;
    const struct xpl_http_body_options like = {.policy = XPL_POLICY_API,
                                               .type = a->content_type,
                                               .gzip = r->gzip,
                                               .validators = true,
                                               .headers = warnings,
                                               .n_headers =
                                                   xpl_http_warnings(&r->arena, a, warnings)};
    struct xpl_http_body *const body = xpl_http_body_new(a->blob, &like);
    xpl_object_unref(&a->object);
    return body;
}

// On a worker.
static void on_done(void *arg, const struct xpl_joint_outcome *o) {
    struct xpl_http_request *const r = arg;
    struct pending *const p = r->data;
    p->err = o->err;
    p->retry_ms = o->retry_ms;
    if (o->code == XPL_OK) r->body = make_body(r, o);
    xpl_http_done(r);
}

// The values of an argument, in order.
static size_t values_of(const struct xpl_http_request *r, xpl_str_t key, xpl_str_t *ret) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_args; i++)
        if (xpl_str_eq(r->args[i].key, key) && r->args[i].value.len) ret[n++] = r->args[i].value;
    return n;
}

// ---- /api/v1/compare ----

enum MHD_Result xpl_http_compare(struct xpl_http_request *r) {
    struct pending *const p = xpl_arena_zalloc(&r->arena, sizeof *p);
    xpl_str_t *const a = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *a);
    xpl_str_t *const b = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *b);
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    if (!p || !a || !b) return xpl_http_busy(r);
    const struct xpl_http_parts *const parts = &r->http->parts;
    const struct xpl_follow_sources from = {parts->catalogue, parts->labels, parts->history};
    const struct xpl_comparison_request q = {.from = &from,
                                             .a = a,
                                             .b = b,
                                             .n_a = values_of(r, XPL_STR("a"), a),
                                             .n_b = values_of(r, XPL_STR("b"), b),
                                             .memory_limit = r->http->options.memory_limit,
                                             .traceparent = xpl_http_header(r, XPL_TRACEPARENT),
                                             .done = on_done,
                                             .arg = r};
    r->data = p;
    r->release = release_joint;
    r->cancel = cancel_joint;
    xpl_http_wait(r, reply_joint);
    if (xpl_comparison_begin(parts->engine, &q, &p->joint, &p->err) != XPL_OK) {
        p->retry_ms = -1;
        xpl_http_done(r);
    }
    return MHD_YES;
}

// ---- /api/v1/history ----

struct history { // r->data; first it is the pending request
    struct pending pending;
    struct xpl_follow_query query;
    struct xpl_follow_request request;
};

// On a worker: schedules' sessions are in state.db.
static void select_sessions(struct xpl_http_request *r) {
    struct history *const h = r->data;
    const struct xpl_http_parts *const parts = &r->http->parts;
    const struct xpl_follow_sources from = {parts->catalogue, parts->labels, parts->history};
    struct xpl_follow_session *sessions;
    if (xpl_follow_select(&from, &h->query, &r->arena, &sessions, &h->request.n, &h->pending.err) ==
        XPL_OK)
        h->request.sessions = sessions;
}

// On the loop: the sessions are known.
static enum MHD_Result follow_sessions(struct xpl_http_request *r) {
    struct history *const h = r->data;
    if (r->gone || h->pending.err.code != XPL_OK) return reply_joint(r);
    r->release = release_joint;
    r->cancel = cancel_joint;
    xpl_http_wait(r, reply_joint);
    if (xpl_follow_begin(r->http->parts.engine, &h->request, &h->pending.joint, &h->pending.err) !=
        XPL_OK) {
        h->pending.retry_ms = -1;
        xpl_http_done(r);
    }
    return MHD_YES;
}

// An argument that is a whole number; 0 without one.
static bool number_of(const struct xpl_http_request *r, const char *key, uint64_t most,
                      uint64_t *ret, struct xpl_error *err) {
    const xpl_str_t text = xpl_http_arg(r, key);
    int64_t v = 0;
    if (text.len && !xpl_parse_int(text, 0, (int64_t)most, &v)) {
        (void)xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                            "%s=%.*s is not a whole number up to %llu", key, XPL_STR_FMT(text),
                            (unsigned long long)most);
        return false;
    }
    *ret = (uint64_t)v;
    return true;
}

enum MHD_Result xpl_http_history(struct xpl_http_request *r) {
    struct history *const h = xpl_arena_zalloc(&r->arena, sizeof *h);
    xpl_str_t *const metrics = xpl_arena_array(&r->arena, r->n_args + 1, sizeof *metrics);
    struct xpl_error err = {0};
    uint64_t since_ms = 0;
    if (!xpl_http_may_compute(r)) return xpl_http_reject(r, XPL_ACCESS_ELSEWHERE);
    if (!h || !metrics) return xpl_http_busy(r);
    h->query.label = xpl_http_arg(r, "label");
    h->query.directory = xpl_http_arg(r, "directory");
    if (!number_of(r, "schedule", INT64_MAX, &h->query.schedule_id, &err) ||
        !number_of(r, "since_unix_ms", INT64_MAX, &since_ms, &err) ||
        !number_of(r, "last", XPL_JOINT_SESSIONS, &h->query.last, &err))
        return xpl_http_reply_api_error(r, &err, -1);
    h->query.since_ms = (int64_t)since_ms;
    h->request = (struct xpl_follow_request){.metrics = metrics,
                                             .n_metrics = values_of(r, XPL_STR("metric"), metrics),
                                             .selected = xpl_follow_is_selected(&h->query),
                                             .memory_limit = r->http->options.memory_limit,
                                             .traceparent = xpl_http_header(r, XPL_TRACEPARENT),
                                             .done = on_done,
                                             .arg = r};
    h->pending.retry_ms = -1;
    r->data = h;
    return xpl_http_defer(r, select_sessions, follow_sessions) ? MHD_YES : xpl_http_busy(r);
}
