// SPDX-License-Identifier: Apache-2.0
// RunStatement of AnalysisService: SQL over sessions.
#include "base/arena.h"
#include "base/cleanup.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "server/engine/statements.h"
#include "server/grpc/services.h"

enum { MAX_ANSWER = 64 << 20 };

static xpl_status_t answer_message(struct xpl_svc_statements *s, struct xpl_rpc_call *c,
                                   const Xplaned__V1__RunStatementRequest *q,
                                   struct xpl_arena *arena, struct xpl_buf *out,
                                   struct xpl_error *err) {
    xpl_str_t *const sessions = xpl_arena_array(arena, q->n_sessions, sizeof *sessions);
    if (!sessions) XPL_RETURN_OOM(err, "statement");
    for (size_t i = 0; i < q->n_sessions; i++)
        sessions[i] = xpl_str_from(q->sessions[i]);
    const struct xpl_work_owner owner = {xpl_svc_is_cancelled, c};
    return xpl_statements_run(s->statements, xpl_str_from(q->statement), sessions, q->n_sessions,
                              owner, out, err);
}

static void answer(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    XPL_AUTO(xpl_arena_fini) struct xpl_arena arena = xpl_arena_of(16 << 20);
    XPL_AUTO(xpl_buf_fini) struct xpl_buf out = xpl_buf_of(MAX_ANSWER);
    struct xpl_error err = {0};
    ProtobufCMessage *msg = NULL;
    if (!xpl_svc_decode(c, &xplaned__v1__run_statement_request__descriptor, request, &arena, &msg))
        return;
    if (answer_message(service, c, (const Xplaned__V1__RunStatementRequest *)msg, &arena, &out,
                       &err) != XPL_OK) {
        xpl_rpc_finish_error(c, &err);
        return;
    }
    Xplaned__V1__RunStatementResponse r;
    xplaned__v1__run_statement_response__init(&r);
    r.json.data = out.p;
    r.json.len = out.n;
    xpl_rpc_finish_message(c, &r.base);
}

static void run_statement(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    struct xpl_svc_statements *const s = service;
    xpl_svc_later(s->pool, c, request, answer, s, "too many requests wait: try again later");
}

void xpl_svc_statements_methods(struct xpl_svc_statements *s,
                                struct xpl_rpc_method ret[XPL_SVC_STATEMENTS_METHODS]) {
    ret[0] = (struct xpl_rpc_method){.path = "/xplaned.v1.AnalysisService/RunStatement",
                                     .on_request = run_statement,
                                     .service = s};
}
