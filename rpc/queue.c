// SPDX-License-Identifier: Apache-2.0
#include "rpc/queue.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "rpc/impl.h"

enum { SWEEP_MS = 500, EVENTS_PER_SWEEP = 1024 };

struct xpl_rpc_queue {
    grpc_completion_queue *cq;
    pthread_t thread;
    pthread_mutex_t mu;             // protects the members below
    struct xpl_rpc_server *servers; // which are swept twice a second
};

static xpl_rpc_log_fn log_fn; // set once, before gRPC starts

static void on_log(gpr_log_func_args *a) {
    if (log_fn) log_fn((int)a->severity, a->file, a->line, a->message);
}

void xpl_rpc_set_log(xpl_rpc_log_fn fn) {
    log_fn = fn;
    gpr_set_log_function(on_log);
}

// ---- sweeping ----

void xpl_rpc_queue_add(struct xpl_rpc_queue *q, struct xpl_rpc_server *s) {
    pthread_mutex_lock(&q->mu);
    s->next_server = q->servers;
    q->servers = s;
    pthread_mutex_unlock(&q->mu);
}

void xpl_rpc_queue_remove(struct xpl_rpc_queue *q, const struct xpl_rpc_server *s) {
    pthread_mutex_lock(&q->mu);
    struct xpl_rpc_server **at = &q->servers;
    while (*at && *at != s)
        at = &(*at)->next_server;
    if (*at) *at = s->next_server;
    pthread_mutex_unlock(&q->mu);
}

// Holds the first server from here on that is not about to be freed.  A held server stays in the
// list, since it is freed only after the last holder.
static struct xpl_rpc_server *hold_next(struct xpl_rpc_queue *q, struct xpl_rpc_server *const *at) {
    pthread_mutex_lock(&q->mu);
    struct xpl_rpc_server *s = *at;
    while (s && !xpl_rpc_server_try_hold(s))
        s = s->next_server;
    pthread_mutex_unlock(&q->mu);
    return s;
}

static void sweep_all(struct xpl_rpc_queue *q) {
    for (struct xpl_rpc_server *s = hold_next(q, &q->servers), *next; s; s = next) {
        xpl_rpc_server_sweep(s);
        next = hold_next(q, &s->next_server);
        xpl_rpc_server_drop_record(s); // its owner may free it now
    }
}

static gpr_timespec sweep_time(void) {
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(SWEEP_MS, GPR_TIMESPAN));
}

static void *run_queue(void *arg) {
    struct xpl_rpc_queue *const q = arg;
    gpr_timespec next = sweep_time();
    for (unsigned events = 0;; events++) {
        const grpc_event ev = grpc_completion_queue_next(q->cq, next, NULL);
        if (ev.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (ev.type == GRPC_OP_COMPLETE) {
            struct xpl_rpc_tag *const tag = ev.tag;
            xpl_rpc_tag_acquire(tag);
            tag->fn(tag, ev.success);
            // A queue that is never empty does not report timeouts.
            if (events % EVENTS_PER_SWEEP || gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), next) < 0)
                continue;
        }
        sweep_all(q);
        next = sweep_time();
    }
}

xpl_status_t xpl_rpc_queue_new(struct xpl_rpc_queue **ret, struct xpl_error *err) {
    struct xpl_rpc_queue *const q = xpl_sys_alloc(sizeof *q);
    if (!q) XPL_RETURN_OOM(err, "rpc queue");
    *q = (struct xpl_rpc_queue){0};
    pthread_mutex_init(&q->mu, NULL);
    sigset_t old;
    xpl_rpc_library_start(&old);
    q->cq = grpc_completion_queue_create_for_next(NULL);
    const int rc = pthread_create(&q->thread, NULL, run_queue, q);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        grpc_completion_queue_shutdown(q->cq);
        grpc_completion_queue_next(q->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        grpc_completion_queue_destroy(q->cq);
        xpl_rpc_library_stop();
        pthread_mutex_destroy(&q->mu);
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
    pthread_mutex_destroy(&q->mu);
    xpl_sys_free(q);
}

grpc_completion_queue *xpl_rpc_queue_get_cq(struct xpl_rpc_queue *q) {
    return q->cq;
}
