// SPDX-License-Identifier: Apache-2.0
#include "rpc/calls.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/support/alloc.h>

#include "base/arena.h"
#include "rpc/impl.h"
#include "rpc/listen/announced.h"

// A connectivity watch cannot be cancelled: it completes when the state changes or at its deadline.
// So the deadline is short and the watch is renewed.
enum { WATCH_MS = 50 };

struct xpl_rpc_async_calls {
    grpc_completion_queue *cq;
    struct xpl_rpc_async_call *first; // all, with those that gRPC still uses
};

struct xpl_rpc_async_call {
    struct xpl_rpc_async_calls *set;
    struct xpl_rpc_async_call *prev, *next;
    struct xpl_rpc_channel *channel;
    void *user;
    struct xpl_rpc_tag on_watch, on_begun, on_message, on_status;
    unsigned pending; // tags that gRPC has
    bool freed;       // by its owner: goes when pending is 0
    bool connecting, announced, receiving, begun, ended, done;
    grpc_connectivity_state state;
    enum xpl_rpc_async_call_event event; // of the tag that completed last
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *message;
    grpc_status_code code;
    grpc_slice text;
};

// ---- completions ----

static void start_watch(struct xpl_rpc_async_call *c) {
    c->pending++;
    xpl_rpc_tag_release(&c->on_watch);
    grpc_channel_watch_connectivity_state(
        c->channel->channel, c->state,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(WATCH_MS, GPR_TIMESPAN)),
        c->set->cq, &c->on_watch);
}

static void on_watch(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_watch);
    (void)ok; // false at the deadline
    if (c->freed || !c->connecting) return;
    c->state = grpc_channel_check_connectivity_state(c->channel->channel, 1);
    if (c->state == GRPC_CHANNEL_READY)
        c->event = XPL_RPC_ASYNC_CALL_CONNECTED;
    else if (c->state == GRPC_CHANNEL_TRANSIENT_FAILURE || c->state == GRPC_CHANNEL_SHUTDOWN)
        c->event = XPL_RPC_ASYNC_CALL_UNREACHABLE;
    else
        start_watch(c);
    if (c->event) c->connecting = false;
}

// The call is complete when its status has arrived and no other batch is under way.
static void complete_if_over(struct xpl_rpc_async_call *c) {
    if (!c->ended || c->done || c->pending) return;
    c->done = true;
    c->event = XPL_RPC_ASYNC_CALL_DONE;
}

static void on_begun(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_begun);
    c->begun = ok;
    if (ok && !c->ended && !c->announced) {
        c->announced = true;
        c->event = XPL_RPC_ASYNC_CALL_ANSWERING;
    }
    complete_if_over(c);
}
static void on_message(struct xpl_rpc_tag *tag, bool ok) {
    (void)ok; // a failure shows in the status
    complete_if_over(XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_message));
}
static void on_status(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const c = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_status);
    (void)ok;
    c->ended = true;
    complete_if_over(c);
}

static void start_batch(struct xpl_rpc_async_call *c, const grpc_op *ops, size_t n,
                        struct xpl_rpc_tag *tag, bool *ret_started) {
    xpl_rpc_tag_release(tag);
    *ret_started = grpc_call_start_batch(c->call, ops, n, tag, NULL) == GRPC_CALL_OK;
    if (*ret_started) c->pending++;
}

// ---- life ----

xpl_status_t xpl_rpc_async_calls_new(struct xpl_rpc_async_calls **ret, struct xpl_error *err) {
    struct xpl_rpc_async_calls *const calls = xpl_sys_alloc(sizeof *calls);
    sigset_t old;
    if (!calls) XPL_RETURN_OOM(err, "calls");
    xpl_rpc_library_start(&old);
    *calls = (struct xpl_rpc_async_calls){.cq = grpc_completion_queue_create_for_next(NULL)};
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    *ret = calls;
    return XPL_OK;
}

static void destroy(struct xpl_rpc_async_call *c) {
    if (c->prev)
        c->prev->next = c->next;
    else
        c->set->first = c->next;
    if (c->next) c->next->prev = c->prev;
    if (c->call) grpc_call_unref(c->call);
    if (c->message) grpc_byte_buffer_destroy(c->message);
    grpc_metadata_array_destroy(&c->initial);
    grpc_metadata_array_destroy(&c->trailing);
    grpc_slice_unref(c->text);
    xpl_sys_free(c);
}

struct xpl_rpc_async_call *xpl_rpc_async_call_new(struct xpl_rpc_async_calls *calls,
                                                  struct xpl_rpc_channel *ch, void *user) {
    struct xpl_rpc_async_call *const c = xpl_sys_alloc(sizeof *c);
    if (!c) return NULL;
    *c = (struct xpl_rpc_async_call){
        .set = calls,
        .next = calls->first,
        .channel = ch,
        .user = user,
        .on_watch.fn = on_watch,
        .on_begun.fn = on_begun,
        .on_message.fn = on_message,
        .on_status.fn = on_status,
        .text = grpc_empty_slice(),
    };
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    if (c->next) c->next->prev = c;
    calls->first = c;
    return c;
}

void *xpl_rpc_async_call_get_user(const struct xpl_rpc_async_call *c) {
    return c->user;
}

void xpl_rpc_async_call_free(struct xpl_rpc_async_call *c) {
    if (!c) return;
    c->freed = true;
    if (c->call && !c->ended) grpc_call_cancel(c->call, NULL);
    if (!c->pending) destroy(c);
}

// Processes one event of the queue.  False when there is none before the deadline.
static bool process_event(struct xpl_rpc_async_calls *calls, gpr_timespec until,
                          struct xpl_rpc_async_call **ret) {
    const grpc_event ev = grpc_completion_queue_next(calls->cq, until, NULL);
    *ret = NULL;
    if (ev.type != GRPC_OP_COMPLETE) return false;
    struct xpl_rpc_tag *const tag = ev.tag;
    xpl_rpc_tag_acquire(tag);
    struct xpl_rpc_async_call *const c =
        tag->fn == on_watch     ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_watch)
        : tag->fn == on_begun   ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_begun)
        : tag->fn == on_message ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_message)
                                : XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_status);
    c->pending--;
    c->event = XPL_RPC_ASYNC_CALL_NONE;
    tag->fn(tag, ev.success != 0);
    if (!c->freed)
        *ret = c;
    else if (!c->pending)
        destroy(c);
    return true;
}

void xpl_rpc_async_calls_free(struct xpl_rpc_async_calls *calls) {
    struct xpl_rpc_async_call *c;
    if (!calls) return;
    for (c = calls->first; c;) {
        struct xpl_rpc_async_call *const next = c->next;
        xpl_rpc_async_call_free(c);
        c = next;
    }
    while (calls->first)
        (void)process_event(calls, gpr_inf_future(GPR_CLOCK_MONOTONIC), &c);
    grpc_completion_queue_shutdown(calls->cq);
    while (grpc_completion_queue_next(calls->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(calls->cq);
    xpl_rpc_library_stop();
    xpl_sys_free(calls);
}

enum xpl_rpc_async_call_event xpl_rpc_async_calls_next(struct xpl_rpc_async_calls *calls,
                                                       int wait_ms,
                                                       struct xpl_rpc_async_call **ret) {
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait_ms, GPR_TIMESPAN));
    while (process_event(calls, until, ret))
        if (*ret && (*ret)->event) return (*ret)->event;
    *ret = NULL;
    return XPL_RPC_ASYNC_CALL_NONE;
}

// ---- one call ----

void xpl_rpc_async_call_connect(struct xpl_rpc_async_call *c) {
    c->connecting = true;
    c->state = grpc_channel_check_connectivity_state(c->channel->channel, 1);
    // A watch from IDLE completes at once, so that the event comes in either case.
    if (c->state == GRPC_CHANNEL_READY || c->state == GRPC_CHANNEL_TRANSIENT_FAILURE)
        c->state = GRPC_CHANNEL_IDLE;
    start_watch(c);
}

xpl_status_t xpl_rpc_async_call_call(struct xpl_rpc_async_call *c, const char *path,
                                     xpl_bytes_t request, struct xpl_error *err) {
    const grpc_slice method = grpc_slice_from_copied_string(path);
    grpc_slice bytes = grpc_slice_from_copied_buffer((const char *)request.ptr, request.len);
    grpc_byte_buffer *const message = grpc_raw_byte_buffer_create(&bytes, 1);
    grpc_metadata auth = {.value = grpc_empty_slice()};
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA,
                       .data.recv_initial_metadata.recv_initial_metadata = &c->initial}};
    if (c->channel->bearer) {
        auth.key = grpc_slice_from_static_string("authorization");
        auth.value = grpc_slice_from_copied_string(c->channel->bearer);
        ops[0].data.send_initial_metadata.count = 1;
        ops[0].data.send_initial_metadata.metadata = &auth;
    }
    const grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                            .data.recv_status_on_client = {.trailing_metadata = &c->trailing,
                                                           .status = &c->code,
                                                           .status_details = &c->text}};
    c->call =
        grpc_channel_create_call(c->channel->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->set->cq,
                                 method, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    bool sent, watched = false;
    start_batch(c, ops, 4, &c->on_begun, &sent);
    if (sent) start_batch(c, &status, 1, &c->on_status, &watched);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(bytes);
    grpc_slice_unref(auth.value);
    grpc_slice_unref(method);
    if (!watched) XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: the call cannot be started", path);
    return XPL_OK;
}

void xpl_rpc_async_call_receive(struct xpl_rpc_async_call *c, uint64_t max_bytes) {
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->message};
    bool started;
    if (c->receiving || c->done) return;
    c->receiving = true;
    xpl_rpc_channel_bound(c->channel, max_bytes);
    start_batch(c, &op, 1, &c->on_message, &started);
}

uint64_t xpl_rpc_async_call_announced(const struct xpl_rpc_async_call *c) {
    char *const peer = c->call ? grpc_call_get_peer(c->call) : NULL;
    const uint64_t length = peer ? xpl_rpc_announced_by(peer) : XPL_RPC_ANNOUNCED_UNKNOWN;
    gpr_free(peer);
    return length;
}

// ---- the answer ----

xpl_status_t xpl_rpc_async_call_status(const struct xpl_rpc_async_call *c, struct xpl_error *err) {
    XPL_TRY(xpl_rpc_status_of(c->code, c->text, err));
    if (!c->message) XPL_RETURN_ERROR(err, XPL_INTERNAL, "OK without an answer");
    return XPL_OK;
}

uint64_t xpl_rpc_async_call_length(const struct xpl_rpc_async_call *c) {
    return c->message ? grpc_byte_buffer_length(c->message) : 0;
}

bool xpl_rpc_async_call_pieces(struct xpl_rpc_async_call *c,
                               bool (*fn)(void *ctx, xpl_bytes_t piece), void *ctx) {
    grpc_byte_buffer_reader r;
    grpc_slice *s;
    bool ok = true;
    if (!c->message || !grpc_byte_buffer_reader_init(&r, c->message)) return true;
    while (ok && grpc_byte_buffer_reader_peek(&r, &s))
        ok = fn(ctx, (xpl_bytes_t){GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s)});
    grpc_byte_buffer_reader_destroy(&r);
    return ok;
}
