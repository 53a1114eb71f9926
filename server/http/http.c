// SPDX-License-Identifier: Apache-2.0
// The gateway's life: libmicrohttpd on the loop, connections, start and stop.
#include "server/http/http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/http/access.h"
#include "server/http/engine.h"
#include "server/http/listen.h"
#include "server/http/monitor.h"
#include "server/http/reply.h"
#include "server/http/routes.h"
#include "server/http/wait.h"

enum {
    MAX_BODY = 64 << 10,  // no route reads one, but for arguments:
    MAX_FORM = 256 << 10, // 4096 of them
    FIRST_FORM = 4 << 10,
    MOST_FORMS = 16 << 20,               // of all bodies that are coming
    ACCEPT_BATCH = XPL_HTTP_MIN_SURPLUS, // none of a batch takes the place of another one of it
    SURPLUS_MS = 2000,
};

static void maybe_stopped(struct xpl_http *h) {
    if (!h->stopped || h->open_handles) return;
    if (h->on_stopped) h->on_stopped(h->on_stopped_arg);
}

// ---- libmicrohttpd's turns ----

static void on_again(uv_idle_t *i);

static void run_microhttpd(struct xpl_http *h) {
    if (xpl_http_engines_run(h))
        uv_idle_start(&h->again, on_again);
    else
        uv_idle_stop(&h->again);
}

static void finish_stop(struct xpl_http *h);

static void run_and_check_stop(struct xpl_http *h) {
    if (h->stopped) return;
    run_microhttpd(h);
    if (h->stopping && !h->n_active) finish_stop(h);
}

static void on_again(uv_idle_t *i) {
    run_and_check_stop(i->data);
}

// ---- waiting requests ----

static void on_wake(uv_async_t *a) {
    struct xpl_http *h = a->data;
    xpl_http_resume_done(h);
    run_and_check_stop(h);
}

static void handle_closed(uv_handle_t *handle) {
    struct xpl_http *h = handle->data;
    h->open_handles--;
    maybe_stopped(h);
}

// ---- requests ----

// Its body is here, or is not kept.
static void stop_counting_form(struct xpl_http_request *r) {
    r->http->form_bytes -= r->form_bytes;
    r->form_bytes = 0;
}

static void request_free(struct xpl_http_request *r) {
    if (!r) return;
    stop_counting_form(r);
    if (r->release) r->release(r); // also when a client's end came before `finish`
    if (r->ticket) xpl_ticket_unref(r->ticket);
    if (r->body) xpl_object_unref(&r->body->object);
    xpl_arena_fini(&r->arena);
    xpl_sys_free(r);
}

static struct xpl_http_connection *connection_of(struct MHD_Connection *m) {
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

// Arguments are ours to read (request.c), as often as a client likes. libmicrohttpd would read them
// as well, into memory of the connection, and 0.9.75 never answers when that runs out; so it is
// shown an empty query. Its callback has its own copy of the line, which it then cuts up.
static void end_query(const char *uri) {
    char *const mark = strchr((char *)(uintptr_t)uri, '?');
    if (mark && mark[1]) mark[1] = 0;
}

// The request line is here.
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *m) {
    struct xpl_http *h = arg;
    struct xpl_http_connection *c = connection_of(m);
    if (!c) return NULL;
    request_free(c->request);
    const size_t n = strlen(uri);
    struct xpl_http_request *r = c->request = xpl_sys_alloc(sizeof *r + n + 1);
    if (!r) return NULL;
    *r = (struct xpl_http_request){
        .http = h, .mhd = m, .connection = c, .began_ns = xpl_clock_ns(), .n_uri = n};
    xpl_arena_init(&r->arena, (size_t)64 << 20);
    memcpy(r->uri, uri, n + 1);
    end_query(uri);
    return r;
}

// No route needs a body but for arguments: a small one is read, a larger one is refused before it
// is sent.
static enum MHD_Result check_body(struct xpl_http_request *r, const char *method,
                                  const char *version) {
    const char *const wrong = xpl_http_read_headers(r, method, version);
    if (wrong) {
        r->refused = true;
        r->http->stats.refused_body++;
        return xpl_http_reply_text(r, 400, "%s", wrong);
    }
    const xpl_str_t length = r->known[XPL_HEADER_CONTENT_LENGTH];
    if (r->known[XPL_HEADER_TRANSFER_ENCODING].ptr) {
        r->refused = true;
        r->http->stats.refused_body++;
        return xpl_http_reply_text(r, 411, "a body needs a Content-Length");
    }
    const bool form = r->post && xpl_http_is_form(r) && !xpl_http_is_monitoring(r);
    const unsigned most = form ? MAX_FORM : MAX_BODY;
    const unsigned long n = length.ptr ? strtoul(length.ptr, NULL, 10) : 0;
    if (length.len > 9 || n > most) {
        r->refused = true;
        r->http->stats.refused_body++;
        return xpl_http_reply_text(r, 413, "at most %u bytes of body are taken", most);
    }
    r->form_size = form ? n : 0;
    return MHD_YES;
}

// Arguments in a body are kept, so the client must be authorized before they come.
static enum MHD_Result prepare_form(struct xpl_http_request *r, const char *method,
                                    const char *version) {
    const enum xpl_http_access access = xpl_http_check_access(r, method, version);
    if (access == XPL_ACCESS_OK) return MHD_YES;
    r->refused = true;
    return xpl_http_reject(r, access);
}

// Ends the request whose body has been coming for longest: those of honest clients take
// milliseconds.
static void end_oldest_form(struct xpl_http *h) {
    struct xpl_http_request *oldest = NULL;
    for (struct xpl_http_connection *c = h->connections; c; c = c->next)
        if (c->request && c->request->form_bytes &&
            (!oldest || c->request->began_ns < oldest->began_ns))
            oldest = c->request;
    if (!oldest) return;
    stop_counting_form(oldest);
    oldest->refused = true;
    h->stats.refused_body++;
    xpl_http_end(oldest->connection);
}

// Room for the received bytes, not for the announced ones: twice as much at a time.
static bool grow_form(struct xpl_http_request *r, size_t n) {
    size_t room = r->form_room ? r->form_room : FIRST_FORM;
    while (room < n)
        room *= 2;
    if (room > r->form_size) room = r->form_size;
    char *const p = xpl_arena_alloc(&r->arena, room);
    if (!p) return false;
    if (r->n_form) memcpy(p, r->form, r->n_form);
    r->form = p;
    r->form_room = room;
    r->form_bytes += room; // the arena keeps the smaller ones
    r->http->form_bytes += room;
    while (r->http->form_bytes > MOST_FORMS)
        end_oldest_form(r->http);
    return true;
}

static void take_body(struct xpl_http_request *r, const char *data, size_t n) {
    // The body is not longer than announced.
    if (r->refused || r->no_room || n > r->form_size - r->n_form) return;
    if (n > r->form_room - r->n_form && !grow_form(r, r->n_form + n)) {
        r->no_room = true;
        return;
    }
    if (r->refused) return; // it was the oldest
    memcpy(r->form + r->n_form, data, n);
    r->n_form += n;
}

static enum MHD_Result begin_request(struct xpl_http_request *r, const char *method,
                                     const char *version) {
    struct xpl_http *h = r->http;
    r->seen = true;
    xpl_http_set_deadline(r->connection, xpl_http_now_ms(h) + h->options.idle_ms); // for the body
    h->n_active++;
    r->post = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    r->head = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    r->method = strcmp(method, MHD_HTTP_METHOD_GET) == 0 ? 0 : r->head ? 1 : r->post ? 2 : 3;
    h->stats.requests++;
    if (r->connection->surplus && !xpl_http_is_monitoring(r)) {
        r->refused = true;
        h->stats.refused_connections++;
        return xpl_http_reply(r, 503, XPL_POLICY_API, "text/plain", XPL_STR(XPL_HTTP_TOO_MANY), 1);
    }
    if (!xpl_http_certified(r)) {
        r->refused = true;
        return xpl_http_reply_text(r, 403, "a client certificate is needed (--tls-client-ca)");
    }
    const enum MHD_Result got = check_body(r, method, version);
    return got == MHD_YES && r->form_size && !r->refused ? prepare_form(r, method, version) : got;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *m, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **context) {
    (void)arg, (void)m, (void)url;
    struct xpl_http_request *r = *context;
    if (!r) return MHD_NO; // out of memory
    if (!r->seen) return begin_request(r, method, version);
    if (*n_data) {
        take_body(r, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    r->complete = true;
    stop_counting_form(r);
    if (r->refused || r->waiting) return MHD_YES;
    if (r->no_room) {
        r->refused = true;
        return xpl_http_busy(r);
    }
    if (r->finish) return r->finish(r);
    const enum xpl_http_access access = xpl_http_check_access(r, method, version);
    return access == XPL_ACCESS_OK ? xpl_http_route(r) : xpl_http_reject(r, access);
}

static void on_completed(void *arg, struct MHD_Connection *m, void **context,
                         enum MHD_RequestTerminationCode why) {
    (void)m, (void)why;
    struct xpl_http *h = arg;
    struct xpl_http_request *r = *context;
    *context = NULL;
    if (!r) return;
    struct xpl_http_connection *c = r->connection;
    xpl_http_set_deadline(c, xpl_http_now_ms(h) + (c->engine->retired ? 0 : h->options.idle_ms));
    c->request = NULL;
    if (r->seen) h->n_active--;
    request_free(r);
}

// ---- connections ----

static void connection_closed(uv_handle_t *handle) {
    struct xpl_http_connection *c = handle->data;
    struct xpl_http *h = c->http;
    xpl_sys_free(c);
    h->open_handles--;
    maybe_stopped(h);
}

static void connection_gone(struct xpl_http *h, struct xpl_http_connection *c) {
    *(c->prev ? &c->prev->next : &h->connections) = c->next;
    if (c->next) c->next->prev = c->prev;
    h->n_connections--;
    h->n_surplus -= c->surplus;
    if (c->surplus && h->surplus[c->place] == c) h->surplus[c->place] = NULL;
    c->engine->n_connections--;
    request_free(c->request);
    c->request = NULL;
    h->open_handles += c->watched;
    if (c->watched)
        uv_close((uv_handle_t *)&c->poll, connection_closed);
    else
        xpl_sys_free(c);
}

static void take_surplus_place(struct xpl_http *h, struct xpl_http_connection *c) {
    c->place = h->next_place++ % h->n_places;
    if (h->surplus[c->place]) xpl_http_end(h->surplus[c->place]);
    h->surplus[c->place] = c;
    h->n_surplus++;
}

static void connection_begins(struct xpl_http_engine *e, struct xpl_http_connection *c,
                              const struct sockaddr *from) {
    struct xpl_http *const h = e->http;
    const size_t max = h->options.max_connections;
    c->http = h, c->engine = e;
    c->peer = xpl_peer_of(from);
    c->surplus =
        h->n_connections - h->n_surplus >= (c->peer.local ? max : xpl_connections_for_others(max));
    c->deadline_ms = xpl_http_now_ms(h) + (c->surplus ? SURPLUS_MS : h->options.idle_ms);
    if (c->surplus) take_surplus_place(h, c);
    c->next = h->connections;
    if (c->next) c->next->prev = c;
    h->connections = c;
    h->n_connections++;
    e->n_connections++;
    xpl_http_watch(c);
}

static void on_connection(void *arg, struct MHD_Connection *m, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    struct xpl_http_engine *const e = arg;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context) connection_gone(e->http, *context);
        *context = NULL;
        return;
    }
    const int fd = MHD_get_connection_info(m, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct xpl_http_connection *const c = *context = xpl_sys_alloc(sizeof *c);
    if (!c) {
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    *c = (struct xpl_http_connection){.mhd = m, .fd = fd};
    connection_begins(e, c,
                      MHD_get_connection_info(m, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
}

// Accepts one waiting connection. False when the listener has to pause.
static bool accept_one(struct xpl_http_listener *l, bool *ret_more) {
    struct xpl_http *const h = l->http;
    struct sockaddr_storage from;
    socklen_t n = 0;
    int fd = -1;
    const enum xpl_accept_result got = xpl_accept(&h->reserve, l->fd, &fd, &from, &n);
    *ret_more = got != XPL_ACCEPT_NONE;
    if (got == XPL_ACCEPT_CLOSED) h->stats.refused_descriptors++;
    if (got != XPL_ACCEPTED) return got != XPL_ACCEPT_STUCK;
    const struct xpl_peer peer = xpl_peer_of((const struct sockaddr *)&from);
    if (xpl_http_admit(h, &peer)) {
        (void)MHD_add_connection(h->current[l->tls]->mhd, fd, (struct sockaddr *)&from, n);
    } else {
        (void)close(fd);
        h->stats.refused_address++;
    }
    return true;
}

static void on_listener(uv_poll_t *p, int status, int events) {
    (void)events;
    struct xpl_http_listener *l = p->data;
    bool more = status == 0;
    for (int i = 0; more && i < ACCEPT_BATCH; i++) {
        if (accept_one(l, &more)) continue;
        uv_poll_stop(p); // no descriptors: the tick tries again
        l->paused = true;
        break;
    }
    run_and_check_stop(l->http);
}

void xpl_http_tick(struct xpl_http *h) {
    if (h->stopped) return;
    const uint64_t now = xpl_http_now_ms(h);
    for (struct xpl_http_connection *c = h->connections; c; c = c->next)
        if (now > c->deadline_ms || xpl_http_is_over(c)) xpl_http_end(c);
    if (!h->stopping) xpl_http_engines_tick(h);
    for (size_t i = 0; i < h->n_listeners && !h->stopping; i++)
        if (h->listeners[i].paused) {
            h->listeners[i].paused = false;
            uv_poll_start(&h->listeners[i].poll, UV_READABLE, on_listener);
        }
}

// ---- start ----

static const struct xpl_http_handlers handlers = {.request = on_request,
                                                  .completed = on_completed,
                                                  .connection = on_connection,
                                                  .uri = on_uri,
                                                  .turn = run_and_check_stop,
                                                  .closed = handle_closed};

static xpl_status_t start_listeners(struct xpl_http *h, struct xpl_error *err) {
    XPL_TRY(xpl_http_listen(h, err));
    uv_loop_t *const uv = xpl_loop_uv(h->parts.loop);
    for (size_t i = 0; i < h->n_listeners; i++) {
        struct xpl_http_listener *l = &h->listeners[i];
        XPL_TRY(xpl_http_engine_start(h, l->tls, err));
        if (uv_poll_init(uv, &l->poll, l->fd) != 0)
            XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "--http: the loop takes no more sockets");
        l->http = h;
        l->polled = true;
        l->poll.data = l;
        h->open_handles++;
        uv_poll_start(&l->poll, UV_READABLE, on_listener);
    }
    return XPL_OK;
}

xpl_status_t xpl_http_new(const struct xpl_http_options *o, const struct xpl_http_parts *parts,
                          struct xpl_http **ret, struct xpl_error *err) {
    struct xpl_http *h = xpl_sys_alloc(sizeof *h);
    if (!h) XPL_RETURN_OOM(err, "http");
    memset(h, 0, sizeof *h);
    h->options = *o;
    h->parts = *parts;
    h->n_places = o->max_connections / 4;
    if (h->n_places < XPL_HTTP_MIN_SURPLUS) h->n_places = XPL_HTTP_MIN_SURPLUS;
    if (h->n_places > XPL_HTTP_MAX_SURPLUS) h->n_places = XPL_HTTP_MAX_SURPLUS;
    h->handlers = handlers;
    pthread_mutex_init(&h->mu, NULL);
    xpl_accept_reserve_init(&h->reserve);
    *ret = h; // the caller stops and frees it even when the rest fails
    uv_loop_t *const uv = xpl_loop_uv(parts->loop);
    uv_idle_init(uv, &h->again);
    h->again.data = h;
    h->open_handles++;
    if (uv_async_init(uv, &h->wake, on_wake) != 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "http: no loop");
    h->wake.data = h;
    h->wake_open = true;
    h->open_handles++;
    XPL_TRY(xpl_http_setup_access(h, err));
    return start_listeners(h, err);
}

void xpl_http_set_ready(struct xpl_http *h, bool ready) {
    h->ready = ready;
    h->was_ready = true;
}

// ---- stop ----

static void close_handle(struct xpl_http *h, void *handle) {
    ((uv_handle_t *)handle)->data = h;
    uv_close(handle, handle_closed);
}

static void stop_listening(struct xpl_http *h) {
    for (size_t i = 0; i < h->n_listeners; i++) {
        struct xpl_http_listener *l = &h->listeners[i];
        if (l->polled) close_handle(h, &l->poll);
        (void)close(l->fd);
        l->polled = false;
    }
    h->n_listeners = 0;
}

// All requests are answered: closes the rest.
static void finish_stop(struct xpl_http *h) {
    h->stopped = true;
    xpl_http_engines_stop(h);
    if (h->wake_open) close_handle(h, &h->wake);
    close_handle(h, &h->again);
}

void xpl_http_stop(struct xpl_http *h, void (*done)(void *arg), void *arg) {
    h->stopping = true;
    h->on_stopped = done;
    h->on_stopped_arg = arg;
    stop_listening(h);
    if (!h->n_active) finish_stop(h);
}

void xpl_http_cancel(struct xpl_http *h) {
    for (struct xpl_http_connection *c = h->connections; c; c = c->next) {
        if (c->request && c->request->waiting)
            xpl_http_give_up(c->request);
        else if (c->request)
            (void)shutdown(c->fd, SHUT_RDWR);
    }
}

void xpl_http_free(struct xpl_http *h) {
    if (!h) return;
    for (int i = 0; i < XPL_HTTP_UI_FILES; i++)
        if (h->files[i]) xpl_object_unref(&h->files[i]->object);
    xpl_rpc_tokens_free(h->tokens);
    xpl_accept_reserve_fini(&h->reserve);
    pthread_mutex_destroy(&h->mu);
    xpl_sys_free(h);
}
