// SPDX-License-Identifier: Apache-2.0
// What the services' methods share.
#include <string.h>

#include "rpc/message.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"
#include "server/traceparent.h"

bool xpl_svc_decode(struct xpl_rpc_call *c, const ProtobufCMessageDescriptor *type,
                    xpl_bytes_t request, struct xpl_arena *arena, ProtobufCMessage **ret) {
    struct xpl_error err = {0};
    if (xpl_rpc_message_unpack(type, request, arena, ret, &err) == XPL_OK) return true;
    xpl_rpc_finish_error(c, &err);
    return false;
}

void xpl_svc_fail(struct xpl_rpc_call *c, const struct xpl_error *err, int64_t retry_ms) {
    if (retry_ms < 0) {
        xpl_rpc_finish_error(c, err);
        return;
    }
    xpl_rpc_finish_failure(c, &(struct xpl_rpc_failure){.code = err->code,
                                                        .message = xpl_str_from(err->msg),
                                                        .retry_ms = retry_ms,
                                                        .reason = "BUSY"});
}

char *xpl_svc_field(const char *s) {
    return (char *)(uintptr_t)s;
}

bool xpl_svc_is_cancelled(void *call) {
    return xpl_rpc_call_cancelled(call);
}

xpl_str_t xpl_svc_traceparent(const struct xpl_rpc_call *c) {
    xpl_str_t text = {0};
    (void)xpl_rpc_call_get_metadata(c, XPL_TRACEPARENT, &text);
    return text;
}

struct task {
    struct xpl_rpc_call *call;
    xpl_svc_answer_fn answer;
    void *service;
    size_t n;
    uint8_t request[];
};

static void run_task(void *arg) {
    struct task *const t = arg;
    if (!xpl_rpc_call_cancelled(t->call))
        t->answer(t->call, (xpl_bytes_t){t->request, t->n}, t->service);
    xpl_rpc_call_unref(t->call);
    xpl_sys_free(t);
}

void xpl_svc_later(struct xpl_pool *pool, struct xpl_rpc_call *c, xpl_bytes_t request,
                   xpl_svc_answer_fn answer, void *service, const char *busy) {
    struct task *const t = xpl_sys_alloc(sizeof *t + request.len);
    if (t) {
        *t = (struct task){.call = c, .answer = answer, .service = service, .n = request.len};
        if (request.len) memcpy(t->request, request.ptr, request.len);
        xpl_rpc_call_ref(c);
        if (xpl_pool_submit(pool, run_task, t)) return;
        xpl_rpc_call_unref(c);
        xpl_sys_free(t);
    }
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, busy);
}
