// What the services' methods share.
#include <string.h>

#include "rpc/message.h"
#include "server/engine/pool.h"
#include "server/grpc/services.h"

bool xpl_svc_decode(struct xpl_rpc_call *c, const ProtobufCMessageDescriptor *type,
                    xpl_bytes_t request, struct xpl_arena *arena, ProtobufCMessage **ret) {
    struct xpl_error err = {0};
    if (xpl_rpc_message_unpack(type, request, arena, ret, &err) == XPL_OK) return true;
    xpl_rpc_finish_error(c, &err);
    return false;
}

struct errand {
    struct xpl_rpc_call *call;
    xpl_svc_answer_fn answer;
    void *service;
    size_t n;
    uint8_t request[];
};

static void run_errand(void *arg) {
    struct errand *const e = arg;
    if (!xpl_rpc_call_cancelled(e->call))
        e->answer(e->call, (xpl_bytes_t){e->request, e->n}, e->service);
    xpl_rpc_call_unref(e->call);
    xpl_sys_free(e);
}

void xpl_svc_later(struct xpl_pool *pool, struct xpl_rpc_call *c, xpl_bytes_t request,
                   xpl_svc_answer_fn answer, void *service, const char *busy) {
    struct errand *const e = xpl_sys_alloc(sizeof *e + request.len);
    if (e) {
        *e = (struct errand){.call = c, .answer = answer, .service = service, .n = request.len};
        if (request.len) memcpy(e->request, request.ptr, request.len);
        xpl_rpc_call_ref(c);
        if (xpl_pool_submit(pool, run_errand, e)) return;
        xpl_rpc_call_unref(c);
        xpl_sys_free(e);
    }
    xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, busy);
}
