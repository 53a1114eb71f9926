// SPDX-License-Identifier: Apache-2.0
// Calls: their lifetime and incoming data.  Outgoing data is in answer.c.
// One of the group `calls` (impl.h).
#include <grpc/support/alloc.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "rpc/impl.h"
#include "rpc/listen/guarded.h"

enum { MAX_WAITING = 16 }; // answers queued before a client stream is read further

static const uint8_t EMPTY[1];

// ---- life ----

// Frees what gRPC allocated, on any of its threads.  A separate function, because ThreadSanitizer's
// suppressions name it.
static __attribute__((noinline)) void drop_grpc_parts(struct xpl_rpc_call *c) {
    for (struct xpl_rpc_out *o = c->head, *next; o; o = next) {
        next = o->next;
        grpc_slice_unref(o->head);
        grpc_slice_unref(o->body);
        xpl_sys_free(o);
    }
    if (c->final_message) grpc_byte_buffer_destroy(c->final_message);
    if (c->has_text) grpc_slice_unref(c->text);
    if (c->has_detail) grpc_slice_unref(c->detail);
    if (c->has_request) grpc_slice_unref(c->request);
    if (c->payload) grpc_byte_buffer_destroy(c->payload);
    grpc_metadata_array_destroy(&c->metadata);
    if (!c->entry->handle) grpc_call_details_destroy(&c->details);
    if (c->call) grpc_call_unref(c->call);
}

static void free_call(struct xpl_rpc_call *c) {
    struct xpl_rpc_server *const s = c->entry->server;
    if (c->release_user && c->user) c->release_user(c->user);
    if (c->call) atomic_fetch_sub(&s->open, 1);
    drop_grpc_parts(c);
    xpl_sys_free(c->joined);
    pthread_mutex_destroy(&c->mu);
    if (c->spare && !atomic_load(&s->stopping)) {
        // No memory was left to arm another call when this one arrived, so this one is armed again.
        xpl_rpc_call_arm(c->entry, c);
        return;
    }
    xpl_sys_free(c);
    xpl_rpc_server_drop_record(s);
}

void xpl_rpc_call_drop(struct xpl_rpc_call *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) free_call(c);
}

void xpl_rpc_call_ref(struct xpl_rpc_call *c) {
    atomic_fetch_add_explicit(&c->holders, 1, memory_order_relaxed);
}
void xpl_rpc_call_unref(struct xpl_rpc_call *c) {
    if (atomic_fetch_sub_explicit(&c->holders, 1, memory_order_acq_rel) != 1) return;
    if (!atomic_load(&c->finished))
        xpl_rpc_finish_status(c, XPL_INTERNAL, "the server dropped the call without an answer");
    xpl_rpc_call_drop(c);
}
bool xpl_rpc_call_try_hold(struct xpl_rpc_call *c) {
    unsigned n = atomic_load_explicit(&c->holders, memory_order_relaxed);
    while (n)
        if (atomic_compare_exchange_weak(&c->holders, &n, n + 1)) return true;
    return false;
}

// ---- requests ----

// The payload's bytes in one piece; they live as long as the call, or the next message.
static bool join_payload(struct xpl_rpc_call *c, xpl_bytes_t *ret) {
    const size_t len = grpc_byte_buffer_length(c->payload);
    if (c->has_request) grpc_slice_unref(c->request);
    c->has_request = xpl_rpc_only_slice(c->payload, &c->request);
    bool ok = true;
    if (len == 0) {
        *ret = (xpl_bytes_t){EMPTY, 0};
    } else if (c->has_request) { // from the copy: short slices hold their bytes inside
        *ret = (xpl_bytes_t){GRPC_SLICE_START_PTR(c->request), len};
    } else {
        uint8_t *const p = xpl_sys_realloc(c->joined, len);
        ok = p != NULL;
        if (p) c->joined = p;
        if (p) *ret = (xpl_bytes_t){p, xpl_rpc_gather(c->payload, p)};
    }
    grpc_byte_buffer_destroy(c->payload);
    c->payload = NULL;
    return ok;
}

static void receive_message(struct xpl_rpc_call *c) {
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->payload};
    xpl_rpc_call_ref(c); // the call cannot be dropped before the message arrived
    pthread_mutex_lock(&c->mu);
    xpl_rpc_call_start(c, &op, 1, &c->on_recv);
    pthread_mutex_unlock(&c->mu);
}

// gRPC does not inflate messages (server.c), and refuses calls whose headers announce compression;
// this finds messages whose own flag announces it.
static bool is_compressed(const struct xpl_rpc_call *c) {
    return c->payload->data.raw.compression != GRPC_COMPRESS_NONE;
}

static void refuse_compressed(struct xpl_rpc_call *c) {
    xpl_rpc_finish_status(c, XPL_UNIMPLEMENTED, "compressed requests are not taken");
}

static void handle_request(struct xpl_rpc_call *c) {
    const struct xpl_rpc_method *const m = &c->entry->m;
    xpl_bytes_t request;
    if (!c->payload)
        xpl_rpc_finish_status(
            c, XPL_INVALID_ARGUMENT,
            "the call came without a request message, or with one that is far too "
            "large");
    else if (is_compressed(c))
        refuse_compressed(c);
    else if (!join_payload(c, &request))
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for the request");
    else {
        c->handled = true;
        m->on_request(c, request, m->service);
    }
}

static void handle_message(struct xpl_rpc_call *c) {
    const struct xpl_rpc_method *const m = &c->entry->m;
    xpl_bytes_t message = {0};
    if (atomic_load(&c->finished)) return;
    if (c->payload && is_compressed(c)) {
        refuse_compressed(c);
        return;
    }
    if (c->payload && !join_payload(c, &message)) {
        xpl_rpc_finish_status(c, XPL_RESOURCE_EXHAUSTED, "no memory for the message");
        return;
    }
    c->handled = true;
    if (m->flags & XPL_RPC_NO_AUTH) c->active_ns = (int64_t)xpl_clock_ns();
    m->on_message(c, message, m->service);
    if (!message.ptr || atomic_load(&c->finished) || m->flags & XPL_RPC_PACED) return;
    if (xpl_rpc_call_queued(c) < MAX_WAITING) {
        receive_message(c);
    } else { // the client does not read: its next message is read when answers were sent
        c->paused = true;
        xpl_rpc_call_ref(c);
    }
}

void xpl_rpc_call_resume(struct xpl_rpc_call *c) {
    if (!c->paused) return;
    c->paused = false;
    if (!atomic_load(&c->finished)) receive_message(c);
    xpl_rpc_call_unref(c);
}

void xpl_rpc_call_read(struct xpl_rpc_call *c) {
    if (!atomic_load(&c->finished)) receive_message(c);
}

static void on_recv(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_call, on_recv);
    (void)ok; // no payload after a failure
    if (c->entry->m.flags & XPL_RPC_CLIENT_STREAM)
        handle_message(c);
    else
        handle_request(c);
    xpl_rpc_call_unref(c);
    xpl_rpc_call_drop(c);
}

static void on_close(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_call, on_close);
    const struct xpl_rpc_method *const m = &c->entry->m;
    (void)ok;
    if (c->peer_gone && !atomic_load(&c->finished)) {
        atomic_store(&c->cancelled, true);
        atomic_fetch_add(&c->entry->server->cancelled, 1);
        if (c->handled && m->on_cancel && xpl_rpc_call_try_hold(c)) {
            m->on_cancel(c, m->service);
            xpl_rpc_call_unref(c);
        }
        // Nobody receives this, but it completes the call.
        xpl_rpc_finish_status(c, XPL_CANCELLED, "cancelled");
    }
    xpl_rpc_limits_end(c);
    xpl_rpc_call_drop(c);
}

static void arm_close(struct xpl_rpc_call *c) {
    grpc_op op = {0};
    pthread_mutex_lock(&c->mu);
    if (xpl_rpc_call_op_close(c, &op)) xpl_rpc_call_start(c, &op, 1, &c->on_close);
    pthread_mutex_unlock(&c->mu);
}

static void refuse_busy(struct xpl_rpc_call *c) {
    static const char text[] = "too many calls at once on this server";
    const struct xpl_rpc_failure f = {.code = XPL_RESOURCE_EXHAUSTED,
                                      .retry_ms = 1000,
                                      .message = {text, sizeof text - 1},
                                      .reason = "TOO_MANY_CALLS"};
    atomic_fetch_add(&c->entry->server->refused, 1);
    xpl_rpc_finish_failure(c, &f);
}

// Whether the call needs no token, or brings one.  One that needs none may bring it, too, and is
// then not ended for others.
static bool check_token(struct xpl_rpc_call *c) {
    xpl_str_t header = {0};
    c->identity.role = XPL_RPC_ROLE_ADMIN;
    if (!c->entry->server->has_token) return true;
    (void)xpl_rpc_call_get_metadata(c, "authorization", &header);
    c->authorized = xpl_rpc_server_identify(c->entry->server, header, &c->identity);
    xpl_rpc_limits_identify(c);
    return c->authorized || c->entry->m.flags & XPL_RPC_NO_AUTH;
}

static bool may_call(const struct xpl_rpc_call *c) {
    return c->entry->m.flags & XPL_RPC_NO_AUTH ||
           xpl_rpc_role_may(c->identity.role, c->entry->m.role);
}

static void deny(struct xpl_rpc_call *c) {
    struct xpl_error err = {0};
    const enum xpl_rpc_role needs = c->entry->m.role ? c->entry->m.role : XPL_RPC_ROLE_ADMIN;
    atomic_fetch_add(&c->entry->server->denied, 1);
    (void)xpl_error_set(&err, XPL_PERMISSION_DENIED, __FILE__, __LINE__, UINT64_MAX,
                        "this needs a token with the role %s; yours has %s",
                        xpl_rpc_role_name(needs), xpl_rpc_role_name(c->identity.role));
    xpl_rpc_finish_status(c, err.code, err.msg);
}

static void dispatch(struct xpl_rpc_call *c) {
    struct xpl_rpc_server *const s = c->entry->server;
    const unsigned open = atomic_fetch_add(&s->open, 1);
    atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
    c->start_ns = (int64_t)xpl_clock_ns();
    xpl_rpc_limits_begin(c);
    const bool may_ask = check_token(c);
    if (!c->entry->handle) {
        atomic_fetch_add(&s->unimplemented, 1);
        xpl_rpc_finish_status(c, XPL_UNIMPLEMENTED, "this server has no such method");
    } else if (!may_ask) { // before the limits: for it no other call is ended
        atomic_fetch_add(&s->unauthenticated, 1);
        xpl_rpc_finish_status(c, XPL_UNAUTHENTICATED,
                              "no or a wrong token: send metadata 'authorization: Bearer TOKEN'");
    } else if (!may_call(c)) {
        deny(c);
    } else if (!xpl_rpc_limits_admit(c, open)) {
        refuse_busy(c);
    } else if (c->entry->late) {
        receive_message(c);
    } else {
        handle_request(c);
    }
}

static void on_new(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_call, on_new);
    struct xpl_rpc_server *const s = c->entry->server;
    if (!ok) { // the server is shutting down
        c->call = NULL;
        free_call(c);
        return;
    }
    if (!atomic_load(&s->stopping) && !xpl_rpc_call_arm(c->entry, NULL)) c->spare = true;
    dispatch(c);
    // If the call was answered already, RECV_CLOSE was part of that batch.
    arm_close(c);
    xpl_rpc_call_unref(c);
}

bool xpl_rpc_call_arm(struct xpl_rpc_entry *e, struct xpl_rpc_call *spare) {
    struct xpl_rpc_server *const s = e->server;
    struct xpl_rpc_call *const c = spare ? spare : xpl_sys_alloc(sizeof *c);
    grpc_call_error rc;
    if (!c) return false;
    if (!spare) atomic_fetch_add(&s->records, 1);
    *c = (struct xpl_rpc_call){.entry = e};
    c->on_new.fn = on_new, c->on_close.fn = on_close, c->on_recv.fn = on_recv;
    c->on_sent.fn = xpl_rpc_call_on_sent, c->on_final.fn = xpl_rpc_call_on_final;
    c->tail = &c->head;
    atomic_init(&c->holders, 1);
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->mu, NULL);
    grpc_metadata_array_init(&c->metadata);
    if (!e->handle) grpc_call_details_init(&c->details);
    xpl_rpc_tag_release(&c->on_new);
    if (e->handle) {
        rc = grpc_server_request_registered_call(s->server, e->handle, &c->call, &c->deadline,
                                                 &c->metadata, e->late ? NULL : &c->payload, s->cq,
                                                 s->cq, &c->on_new);
    } else {
        rc = grpc_server_request_call(s->server, &c->call, &c->details, &c->metadata, s->cq, s->cq,
                                      &c->on_new);
    }
    if (rc != GRPC_CALL_OK) free_call(c); // the queue is shutting down
    return true;
}

// ---- properties of a call ----

void xpl_rpc_call_set_user(struct xpl_rpc_call *c, void *user, void (*release)(void *user)) {
    c->user = user;
    c->release_user = release;
}
void *xpl_rpc_call_get_user(const struct xpl_rpc_call *c) {
    return c->user;
}
const struct xpl_rpc_identity *xpl_rpc_call_get_identity(const struct xpl_rpc_call *c) {
    return &c->identity;
}
void xpl_rpc_call_get_peer(const struct xpl_rpc_call *c, char ret[XPL_RPC_PEER_SIZE]) {
    // gRPC knows a socket that it did not accept itself by its number.  The call's stream keeps its
    // connection, and that the socket, open, so that no other can have the number.  The system
    // forgets the peer of a connection that was reset: then it is unknown if no guard has it.
    char *const peer = grpc_call_get_peer(c->call);
    int fd;
    (void)snprintf(ret, XPL_RPC_PEER_SIZE, "%s", peer ? peer : "");
    if (peer && sscanf(peer, "fd:%d", &fd) == 1 && !xpl_rpc_guarded_get_peer(fd, ret))
        (void)xpl_rpc_peer_of(fd, ret);
    gpr_free(peer);
}
bool xpl_rpc_call_cancelled(const struct xpl_rpc_call *c) {
    return atomic_load_explicit(&c->cancelled, memory_order_relaxed);
}
bool xpl_rpc_call_finished(const struct xpl_rpc_call *c) {
    return atomic_load_explicit(&c->finished, memory_order_relaxed);
}
int64_t xpl_rpc_call_get_start_ns(const struct xpl_rpc_call *c) {
    return c->start_ns;
}

bool xpl_rpc_call_get_metadata(const struct xpl_rpc_call *c, const char *key, xpl_str_t *ret) {
    for (size_t i = 0; i < c->metadata.count; i++) {
        const grpc_metadata *const m = &c->metadata.metadata[i];
        if (grpc_slice_str_cmp(m->key, key) != 0) continue;
        *ret =
            (xpl_str_t){(const char *)GRPC_SLICE_START_PTR(m->value), GRPC_SLICE_LENGTH(m->value)};
        return true;
    }
    return false;
}
