#include "rpc/calls.h"

#include <grpc/byte_buffer_reader.h>
#include <string.h>

#include "base/arena.h"
#include "rpc/impl.h"

// gRPC gives a watch back when the state changes or its time is over, never at our word: so it gets
// little time, again and again.
enum { WATCH_MS = 50 };

struct xpl_rpc_async_calls {
    grpc_completion_queue *cq;
    struct xpl_rpc_async_call *first; // all, also those that wait for gRPC to let go of them
};

struct xpl_rpc_async_call {
    struct xpl_rpc_async_calls *set;
    struct xpl_rpc_async_call *prev, *next;
    struct xpl_rpc_channel *channel;
    void *user;
    struct xpl_rpc_tag on_watch, on_begun, on_message, on_status;
    unsigned pending; // tags that gRPC has
    bool dropped;     // by its owner: goes when pending is 0
    bool connecting, announced, receiving, begun, ended, done;
    grpc_connectivity_state state;
    enum xpl_rpc_async_call_event event; // what a tag has brought
    grpc_call *call;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *message;
    grpc_status_code code;
    grpc_slice text;
};

// ---- what gRPC brings ----

static void start_watch(struct xpl_rpc_async_call *f) {
    f->pending++;
    XPL_RPC_HAND_OVER(&f->on_watch);
    grpc_channel_watch_connectivity_state(
        f->channel->channel, f->state,
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(WATCH_MS, GPR_TIMESPAN)),
        f->set->cq, &f->on_watch);
}

static void on_watch(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const f = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_watch);
    (void)ok; // false when only the time is over
    if (f->dropped || !f->connecting) return;
    f->state = grpc_channel_check_connectivity_state(f->channel->channel, 1);
    if (f->state == GRPC_CHANNEL_READY)
        f->event = XPL_RPC_FLIGHT_CONNECTED;
    else if (f->state == GRPC_CHANNEL_TRANSIENT_FAILURE || f->state == GRPC_CHANNEL_SHUTDOWN)
        f->event = XPL_RPC_FLIGHT_UNREACHABLE;
    else
        start_watch(f);
    if (f->event) f->connecting = false;
}

// The call is over when its status is there and no other batch is out.
static void look_for_end(struct xpl_rpc_async_call *f) {
    if (!f->ended || f->done || f->pending) return;
    f->done = true;
    f->event = XPL_RPC_FLIGHT_DONE;
}

static void on_begun(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const f = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_begun);
    f->begun = ok;
    if (ok && !f->ended && !f->announced) {
        f->announced = true;
        f->event = XPL_RPC_FLIGHT_ANSWERING;
    }
    look_for_end(f);
}
static void on_message(struct xpl_rpc_tag *tag, bool ok) {
    (void)ok; // a failure shows in the status
    look_for_end(XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_message));
}
static void on_status(struct xpl_rpc_tag *tag, bool ok) {
    struct xpl_rpc_async_call *const f = XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_status);
    (void)ok;
    f->ended = true;
    look_for_end(f);
}

static void start(struct xpl_rpc_async_call *f, const grpc_op *ops, size_t n,
                  struct xpl_rpc_tag *tag, bool *ret_started) {
    XPL_RPC_HAND_OVER(tag);
    *ret_started = grpc_call_start_batch(f->call, ops, n, tag, NULL) == GRPC_CALL_OK;
    if (*ret_started) f->pending++;
}

// ---- life ----

xpl_status_t xpl_rpc_async_calls_new(struct xpl_rpc_async_calls **ret, struct xpl_error *err) {
    struct xpl_rpc_async_calls *const fl = xpl_sys_alloc(sizeof *fl);
    sigset_t old;
    if (!fl) XPL_RETURN_OOM(err, "calls");
    xpl_rpc_library_start(&old);
    *fl = (struct xpl_rpc_async_calls){.cq = grpc_completion_queue_create_for_next(NULL)};
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    *ret = fl;
    return XPL_OK;
}

static void destroy(struct xpl_rpc_async_call *f) {
    if (f->prev)
        f->prev->next = f->next;
    else
        f->set->first = f->next;
    if (f->next) f->next->prev = f->prev;
    if (f->call) grpc_call_unref(f->call);
    if (f->message) grpc_byte_buffer_destroy(f->message);
    grpc_metadata_array_destroy(&f->initial);
    grpc_metadata_array_destroy(&f->trailing);
    grpc_slice_unref(f->text);
    xpl_sys_free(f);
}

struct xpl_rpc_async_call *xpl_rpc_async_call_new(struct xpl_rpc_async_calls *fl,
                                                  struct xpl_rpc_channel *ch, void *user) {
    struct xpl_rpc_async_call *const f = xpl_sys_alloc(sizeof *f);
    if (!f) return NULL;
    *f = (struct xpl_rpc_async_call){
        .set = fl,
        .next = fl->first,
        .channel = ch,
        .user = user,
        .on_watch.fn = on_watch,
        .on_begun.fn = on_begun,
        .on_message.fn = on_message,
        .on_status.fn = on_status,
        .text = grpc_empty_slice(),
    };
    grpc_metadata_array_init(&f->initial);
    grpc_metadata_array_init(&f->trailing);
    if (f->next) f->next->prev = f;
    fl->first = f;
    return f;
}

void *xpl_rpc_async_call_get_user(const struct xpl_rpc_async_call *f) {
    return f->user;
}

void xpl_rpc_async_call_free(struct xpl_rpc_async_call *f) {
    if (!f) return;
    f->dropped = true;
    if (f->call && !f->ended) grpc_call_cancel(f->call, NULL);
    if (!f->pending) destroy(f);
}

// Takes one event off the queue.  False when there is none within the time.
static bool turn(struct xpl_rpc_async_calls *fl, gpr_timespec until,
                 struct xpl_rpc_async_call **ret) {
    const grpc_event ev = grpc_completion_queue_next(fl->cq, until, NULL);
    *ret = NULL;
    if (ev.type != GRPC_OP_COMPLETE) return false;
    struct xpl_rpc_tag *const tag = ev.tag;
    XPL_RPC_TAKE_OVER(tag);
    struct xpl_rpc_async_call *const f =
        tag->fn == on_watch     ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_watch)
        : tag->fn == on_begun   ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_begun)
        : tag->fn == on_message ? XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_message)
                                : XPL_RPC_OWNER(tag, struct xpl_rpc_async_call, on_status);
    f->pending--;
    f->event = XPL_RPC_FLIGHT_NONE;
    tag->fn(tag, ev.success != 0);
    if (!f->dropped)
        *ret = f;
    else if (!f->pending)
        destroy(f);
    return true;
}

void xpl_rpc_async_calls_free(struct xpl_rpc_async_calls *fl) {
    struct xpl_rpc_async_call *f;
    if (!fl) return;
    for (f = fl->first; f;) {
        struct xpl_rpc_async_call *const next = f->next;
        xpl_rpc_async_call_free(f);
        f = next;
    }
    while (fl->first)
        (void)turn(fl, gpr_inf_future(GPR_CLOCK_MONOTONIC), &f);
    grpc_completion_queue_shutdown(fl->cq);
    while (grpc_completion_queue_next(fl->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).type !=
           GRPC_QUEUE_SHUTDOWN)
        continue;
    grpc_completion_queue_destroy(fl->cq);
    xpl_rpc_library_stop();
    xpl_sys_free(fl);
}

enum xpl_rpc_async_call_event xpl_rpc_async_calls_next(struct xpl_rpc_async_calls *fl, int wait_ms,
                                                       struct xpl_rpc_async_call **ret) {
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait_ms, GPR_TIMESPAN));
    while (turn(fl, until, ret))
        if (*ret && (*ret)->event) return (*ret)->event;
    *ret = NULL;
    return XPL_RPC_FLIGHT_NONE;
}

// ---- one flight ----

void xpl_rpc_async_call_connect(struct xpl_rpc_async_call *f) {
    f->connecting = true;
    f->state = grpc_channel_check_connectivity_state(f->channel->channel, 1);
    // Where nothing is to be waited for, the queue still brings the event.
    if (f->state == GRPC_CHANNEL_READY || f->state == GRPC_CHANNEL_TRANSIENT_FAILURE)
        f->state = GRPC_CHANNEL_IDLE;
    start_watch(f);
}

void xpl_rpc_async_call_stop_connecting(struct xpl_rpc_async_call *f) {
    f->connecting = false;
}

xpl_status_t xpl_rpc_async_call_call(struct xpl_rpc_async_call *f, const char *path,
                                     xpl_bytes_t request, struct xpl_error *err) {
    const grpc_slice method = grpc_slice_from_copied_string(path);
    grpc_slice bytes = grpc_slice_from_copied_buffer((const char *)request.ptr, request.len);
    grpc_byte_buffer *const message = grpc_raw_byte_buffer_create(&bytes, 1);
    grpc_metadata auth = {.value = grpc_empty_slice()};
    grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA,
                       .data.recv_initial_metadata.recv_initial_metadata = &f->initial}};
    if (f->channel->bearer) {
        auth.key = grpc_slice_from_static_string("authorization");
        auth.value = grpc_slice_from_copied_string(f->channel->bearer);
        ops[0].data.send_initial_metadata.count = 1;
        ops[0].data.send_initial_metadata.metadata = &auth;
    }
    const grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                            .data.recv_status_on_client = {.trailing_metadata = &f->trailing,
                                                           .status = &f->code,
                                                           .status_details = &f->text}};
    f->call =
        grpc_channel_create_call(f->channel->channel, NULL, GRPC_PROPAGATE_DEFAULTS, f->set->cq,
                                 method, NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    bool sent, watched = false;
    start(f, ops, 4, &f->on_begun, &sent);
    if (sent) start(f, &status, 1, &f->on_status, &watched);
    grpc_byte_buffer_destroy(message);
    grpc_slice_unref(bytes);
    grpc_slice_unref(auth.value);
    grpc_slice_unref(method);
    if (!watched) XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: the call cannot be started", path);
    return XPL_OK;
}

void xpl_rpc_async_call_receive(struct xpl_rpc_async_call *f) {
    const grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &f->message};
    bool started;
    if (f->receiving || f->done) return;
    f->receiving = true;
    start(f, &op, 1, &f->on_message, &started);
}

void xpl_rpc_async_call_cancel(struct xpl_rpc_async_call *f) {
    if (f->call && !f->ended) grpc_call_cancel(f->call, NULL);
}

// ---- the answer ----

xpl_status_t xpl_rpc_async_call_status(const struct xpl_rpc_async_call *f, struct xpl_error *err) {
    XPL_TRY(xpl_rpc_status_of(f->code, f->text, err));
    if (!f->message) XPL_RETURN_ERROR(err, XPL_INTERNAL, "OK without an answer");
    return XPL_OK;
}

uint64_t xpl_rpc_async_call_length(const struct xpl_rpc_async_call *f) {
    return f->message ? grpc_byte_buffer_length(f->message) : 0;
}

bool xpl_rpc_async_call_pieces(struct xpl_rpc_async_call *f,
                               bool (*fn)(void *ctx, xpl_bytes_t piece), void *ctx) {
    grpc_byte_buffer_reader r;
    grpc_slice *s;
    bool ok = true;
    if (!f->message || !grpc_byte_buffer_reader_init(&r, f->message)) return true;
    while (ok && grpc_byte_buffer_reader_peek(&r, &s))
        ok = fn(ctx, (xpl_bytes_t){GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s)});
    grpc_byte_buffer_reader_destroy(&r);
    return ok;
}
