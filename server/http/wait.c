// SPDX-License-Identifier: Apache-2.0
#include "server/http/wait.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "server/engine/engine.h"
#include "server/engine/pool.h"
#include "server/http/gateway.h"

// A client that reads a reply more slowly is dropped.
enum { SEND_MS = 60000, SEND_BYTES_PER_MS = 32 };

// ---- time limits ----

uint64_t xpl_http_now_ms(const struct xpl_http *h) {
    return uv_now(xpl_loop_uv(h->parts.loop));
}

void xpl_http_set_deadline(struct xpl_http_connection *c, uint64_t deadline_ms) {
    if (!c->surplus) c->deadline_ms = deadline_ms;
}

void xpl_http_sending(struct xpl_http_request *r, uint64_t bytes) {
    const uint64_t now = xpl_http_now_ms(r->http);
    xpl_http_set_deadline(r->connection, now + SEND_MS + bytes / SEND_BYTES_PER_MS);
}

// ---- the client's end ----

// For a client that has sent no whole request in the time of a surplus connection.
static const char SURPLUS_REPLY[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                    "Connection: close\r\nRetry-After: 1\r\n"
                                    "Content-Type: text/plain\r\n\r\n" XPL_HTTP_TOO_MANY;

void xpl_http_end(struct xpl_http_connection *c) {
    struct xpl_http *const h = c->http;
    const bool plain = c->engine == h->current[0];
    c->deadline_ms = UINT64_MAX;
    if (c->surplus && plain && !(c->request && c->request->seen) &&
        send(c->fd, SURPLUS_REPLY, sizeof SURPLUS_REPLY - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        h->stats.refused_connections++;
    (void)shutdown(c->fd, SHUT_RDWR);
}

bool xpl_http_is_over(const struct xpl_http_connection *c) {
    int unread; // by libmicrohttpd
    const struct xpl_http_request *const r = c->request;
    if (!c->ended || (r && (r->complete || r->refused))) return false;
    return ioctl(c->fd, FIONREAD, &unread) == 0 && unread == 0;
}

// libmicrohttpd has mostly read the bytes before the end; otherwise the tick finds the connection.
static void on_peer(uv_poll_t *p, int status, int events) {
    (void)status, (void)events;
    struct xpl_http_connection *c = p->data;
    uv_poll_stop(p); // it would be called again and again
    c->ended = true;
    if (c->request && c->request->waiting)
        xpl_http_give_up(c->request);
    else if (xpl_http_is_over(c))
        xpl_http_end(c);
}

static void start_watch(struct xpl_http_connection *c) {
    if (c->watched) uv_poll_start(&c->poll, UV_DISCONNECT, on_peer);
}

void xpl_http_watch(struct xpl_http_connection *c) {
    c->watched = uv_poll_init(xpl_loop_uv(c->http->parts.loop), &c->poll, c->fd) == 0;
    c->poll.data = c;
    start_watch(c);
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
    if (atomic_exchange(&r->gone, true)) return;
    if (r->ticket) xpl_engine_cancel(r->ticket);
    if (r->cancel) r->cancel(r);
}

void xpl_http_wait(struct xpl_http_request *r,
                   enum MHD_Result (*finish)(struct xpl_http_request *)) {
    struct xpl_http_connection *c = r->connection;
    r->finish = finish;
    r->waiting = true;
    xpl_http_set_deadline(c, UINT64_MAX);
    MHD_suspend_connection(r->mhd);
    start_watch(c); // also of a client that has ended: it is given up
}

static void do_work(void *arg) {
    struct xpl_http_request *r = arg;
    if (!r->gone) r->work(r);
    xpl_http_done(r);
}

bool xpl_http_defer(struct xpl_http_request *r, void (*work)(struct xpl_http_request *),
                    enum MHD_Result (*finish)(struct xpl_http_request *)) {
    r->work = work;
    if (!xpl_pool_submit(r->http->parts.pool, do_work, r)) return false;
    xpl_http_wait(r, finish); // the loop handles the end of the work, so not before
    return true;
}
