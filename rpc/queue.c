// SPDX-License-Identifier: Apache-2.0
#include "rpc/queue.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "rpc/impl.h"

struct xpl_rpc_queue {
    grpc_completion_queue *cq;
    pthread_t thread;
};

static xpl_rpc_log_fn log_fn; // set once, before gRPC starts

static void on_log(gpr_log_func_args *a) {
    if (log_fn) log_fn((int)a->severity, a->file, a->line, a->message);
}

void xpl_rpc_set_log(xpl_rpc_log_fn fn) {
    log_fn = fn;
    gpr_set_log_function(on_log);
}

static void *run(void *arg) {
    grpc_completion_queue *const cq = arg;
    for (;;) {
        const grpc_event ev =
            grpc_completion_queue_next(cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (ev.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (ev.type != GRPC_OP_COMPLETE) continue;
        struct xpl_rpc_tag *const tag = ev.tag;
        xpl_rpc_tag_acquire(tag);
        tag->fn(tag, ev.success);
    }
}

xpl_status_t xpl_rpc_queue_new(struct xpl_rpc_queue **ret, struct xpl_error *err) {
    struct xpl_rpc_queue *const q = xpl_sys_alloc(sizeof *q);
    if (!q) XPL_RETURN_OOM(err, "rpc queue");
    sigset_t old;
    xpl_rpc_library_start(&old);
    q->cq = grpc_completion_queue_create_for_next(NULL);
    const int rc = pthread_create(&q->thread, NULL, run, q->cq);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        grpc_completion_queue_shutdown(q->cq);
        grpc_completion_queue_next(q->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        grpc_completion_queue_destroy(q->cq);
        xpl_rpc_library_stop();
        xpl_sys_free(q);
        XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "rpc queue: cannot start a thread: %s",
                         strerror(rc));
    }
    pthread_setname_np(q->thread, "xpl-grpc");
    *ret = q;
    return XPL_OK;
}

void xpl_rpc_queue_free(struct xpl_rpc_queue *q) {
    if (!q) return;
    grpc_completion_queue_shutdown(q->cq);
    pthread_join(q->thread, NULL);
    grpc_completion_queue_destroy(q->cq);
    xpl_rpc_library_stop();
    xpl_sys_free(q);
}

grpc_completion_queue *xpl_rpc_queue_get_cq(struct xpl_rpc_queue *q) {
    return q->cq;
}
