// SPDX-License-Identifier: Apache-2.0
#include "server/http/wait.h"

#include "server/engine/engine.h"
#include "server/engine/pool.h"
#include "server/http/gateway.h"

// A client that reads a reply more slowly is dropped.
enum { SEND_MS = 60000, SEND_BYTES_PER_MS = 32 };

// ---- time limits ----

uint64_t xpl_http_now_ms(const struct xpl_http *h) {
    return uv_now(xpl_loop_uv(h->parts.loop));
}

void xpl_http_sending(struct xpl_http_request *r, uint64_t bytes) {
    r->connection->deadline_ms = xpl_http_now_ms(r->http) + SEND_MS + bytes / SEND_BYTES_PER_MS;
}

// ---- waiting requests ----

void xpl_http_resume_done(struct xpl_http *h) {
    pthread_mutex_lock(&h->mu);
    struct xpl_http_request *list = h->done;
    h->done = NULL;
    pthread_mutex_unlock(&h->mu);
    for (struct xpl_http_request *r; (r = list);) {
        list = r->next_done;
        r->waiting = false;
        xpl_http_sending(r, 0); // whatever the reply is, it has to be read
        if (r->connection->polling) uv_poll_stop(&r->connection->poll);
        MHD_resume_connection(r->mhd);
    }
}

void xpl_http_done(struct xpl_http_request *r) {
    struct xpl_http *h = r->http;
    pthread_mutex_lock(&h->mu);
    r->next_done = h->done;
    h->done = r;
    uv_async_send(&h->wake); // under the lock: r may go as soon as it is released
    pthread_mutex_unlock(&h->mu);
}

void xpl_http_give_up(struct xpl_http_request *r) {
    if (r->gone) return;
    r->gone = true;
    if (r->ticket) xpl_engine_cancel(r->ticket);
    if (r->cancel) r->cancel(r);
}

static void on_peer(uv_poll_t *p, int status, int events) {
    (void)status, (void)events;
    struct xpl_http_connection *c = p->data;
    uv_poll_stop(p);
    if (c->request && c->request->waiting) xpl_http_give_up(c->request);
}

void xpl_http_wait(struct xpl_http_request *r,
                   enum MHD_Result (*finish)(struct xpl_http_request *)) {
    struct xpl_http_connection *c = r->connection;
    r->finish = finish;
    r->waiting = true;
    c->deadline_ms = UINT64_MAX;
    MHD_suspend_connection(r->mhd);
    // libmicrohttpd does not watch connections that wait.
    if (!c->polling && uv_poll_init(xpl_loop_uv(r->http->parts.loop), &c->poll, c->fd) == 0) {
        c->polling = true;
        c->poll.data = c;
    }
    if (c->polling) uv_poll_start(&c->poll, UV_DISCONNECT, on_peer);
}

static void do_work(void *arg) {
    struct xpl_http_request *r = arg;
    r->work(r);
    xpl_http_done(r);
}

bool xpl_http_defer(struct xpl_http_request *r, void (*work)(struct xpl_http_request *),
                    enum MHD_Result (*finish)(struct xpl_http_request *)) {
    r->work = work;
    if (!xpl_pool_submit(r->http->parts.pool, do_work, r)) return false;
    xpl_http_wait(r, finish); // the loop handles the end of the work, so not before
    return true;
}
