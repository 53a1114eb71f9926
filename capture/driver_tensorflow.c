// SPDX-License-Identifier: Apache-2.0
// The driver for tensorflow.ProfilerService: each attempt is an asynchronous gRPC call, whose
// answer stays in gRPC's slices until it is read.
#include <stdio.h>

#include "base/arena.h"
#include "capture/driver.h"
#include "capture/explain.h"
#include "capture/impl.h"
#include "capture/message.h"
#include "rpc/calls.h"

struct xpl_capture_connections {
    const struct xpl_capture_plan *plan;
    struct xpl_rpc_async_calls *calls;
    struct xpl_capture_connection *first;
};

struct xpl_capture_connection {
    struct xpl_capture_connections *set;
    struct xpl_capture_connection *next;
    struct xpl_rpc_channel *channel;
    struct xpl_rpc_async_call *call; // the attempt; NULL: none
    void *user;
    const char *root; // of the last query
    bool of_pytorch;  // the target is an xplaned-agent's PyTorch processes
    bool probing;     // the call asks for nothing but the reason why it cannot be made
};

static xpl_status_t driver_open(const struct xpl_capture_plan *plan,
                                struct xpl_capture_connections **ret, struct xpl_error *err) {
    struct xpl_capture_connections *const set = xpl_sys_alloc(sizeof *set);
    if (!set) XPL_RETURN_OOM(err, "capture");
    *set = (struct xpl_capture_connections){.plan = plan};
    const xpl_status_t st = xpl_rpc_async_calls_new(&set->calls, err);
    if (st == XPL_OK)
        *ret = set;
    else
        xpl_sys_free(set);
    return st;
}

static void driver_close(struct xpl_capture_connections *set) {
    if (!set) return;
    xpl_rpc_async_calls_free(set->calls); // all calls among them
    while (set->first) {
        struct xpl_capture_connection *const c = set->first;
        set->first = c->next;
        xpl_rpc_channel_close(c->channel);
        xpl_sys_free(c);
    }
    xpl_sys_free(set);
}

static xpl_status_t driver_add(struct xpl_capture_connections *set, const char *target, void *user,
                               struct xpl_capture_connection **ret, struct xpl_error *err) {
    const struct xpl_capture_plan *const p = set->plan;
    const uint64_t max = p->max_host_bytes ? p->max_host_bytes : XPL_CAPTURE_MAX_BYTES;
    struct xpl_capture_address address;
    xpl_capture_address(&address, target);
    const struct xpl_rpc_channel_options o = {
        .size = sizeof o,
        .target = address.text,
        .tls = p->tls,
        .ca_path = p->ca_path,
        .cert_path = p->cert_path,
        .key_path = p->key_path,
        .server_name = p->server_name,
        .token = p->token,
        .max_message_bytes = (size_t)max,
        .bounded = true,
    };
    struct xpl_capture_connection *const c = xpl_sys_alloc(sizeof *c);
    if (!c) XPL_RETURN_OOM(err, "capture");
    *c = (struct xpl_capture_connection){
        .set = set, .user = user, .next = set->first, .of_pytorch = address.of_pytorch};
    const xpl_status_t st = xpl_rpc_channel_open(&o, &c->channel, err);
    if (st == XPL_OK)
        *ret = set->first = c;
    else
        xpl_sys_free(c);
    return st;
}

static void driver_cancel(struct xpl_capture_connection *c) {
    xpl_rpc_async_call_free(c->call);
    c->call = NULL;
    c->probing = false;
}

static xpl_status_t new_call(struct xpl_capture_connection *c, struct xpl_error *err) {
    c->call = xpl_rpc_async_call_new(c->set->calls, c->channel, c);
    if (c->call) return XPL_OK;
    XPL_RETURN_ERROR(err, XPL_RESOURCE_EXHAUSTED, "out of memory for the capture");
}

// ---- connecting ----

static xpl_status_t driver_connect(struct xpl_capture_connection *c, struct xpl_error *err) {
    XPL_TRY(new_call(c, err));
    xpl_rpc_async_call_connect(c->call);
    return XPL_OK;
}

// Only the status of a call has the reason of a failed connection.  If the connection exists by
// now, the call of a method that no server has does no harm.
static void probe(struct xpl_capture_connection *c, struct xpl_capture_event *ret) {
    struct xpl_error err = {0};
    driver_cancel(c);
    xpl_status_t st = new_call(c, &err);
    c->probing = true;
    if (st == XPL_OK)
        st = xpl_rpc_async_call_call(c->call, "/tensorflow.ProfilerService/Probe", (xpl_bytes_t){0},
                                     &err);
    if (st == XPL_OK) return;
    ret->kind = XPL_CAPTURE_EVENT_UNREACHABLE;
    ret->code = st;
    (void)snprintf(ret->reason, sizeof ret->reason, "%s", err.msg);
}

static void end_probe(const struct xpl_capture_connection *c, struct xpl_capture_event *ret) {
    struct xpl_error err = {0};
    const xpl_status_t st = xpl_rpc_async_call_status(c->call, &err);
    ret->kind = XPL_CAPTURE_EVENT_CONNECTED; // whatever it says, a server says it
    if (st != XPL_UNAVAILABLE) return;
    ret->kind = XPL_CAPTURE_EVENT_UNREACHABLE;
    ret->code = err.code;
    ret->again = true;
    xpl_capture_explain(ret->reason, c->set->plan, XPL_CAPTURE_AT_CONNECT, &err);
}

// ---- the call ----

static xpl_status_t driver_start(struct xpl_capture_connection *c,
                                 const struct xpl_capture_query *q, struct xpl_error *err) {
    const struct xpl_capture_plan *const plan = c->set->plan;
    struct xpl_capture_query query = *q;
    struct xpl_buf b;
    c->root = q->root;
    query.tool = c->of_pytorch ? "pytorch" : NULL;
    xpl_buf_init(&b, (size_t)4 << 20);
    xpl_capture_encode(plan, &query, &b);
    xpl_status_t st = XPL_OK;
    if (b.failed)
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "out of memory for the capture");
    if (st == XPL_OK) st = new_call(c, err);
    if (st == XPL_OK)
        st = xpl_rpc_async_call_call(c->call, xpl_capture_path(plan->call), (xpl_bytes_t){b.p, b.n},
                                     err);
    xpl_buf_fini(&b);
    return st;
}

static uint64_t driver_announced(const struct xpl_capture_connection *c) {
    return c->call ? xpl_rpc_async_call_announced(c->call) : UINT64_MAX;
}

static void driver_receive(struct xpl_capture_connection *c, uint64_t max_bytes) {
    xpl_rpc_async_call_receive(c->call, max_bytes);
}

static void answered(const struct xpl_capture_connection *c, struct xpl_capture_event *ret) {
    struct xpl_error err = {0};
    ret->kind = XPL_CAPTURE_EVENT_ANSWERED;
    ret->code = xpl_rpc_async_call_status(c->call, &err);
    if (ret->code == XPL_OK) return;
    xpl_capture_explain(ret->reason, c->set->plan, XPL_CAPTURE_AT_CALL, &err);
    ret->again = ret->code == XPL_UNAVAILABLE || xpl_capture_is_busy(ret->code, err.msg);
    // Servers call it INTERNAL, which it is not.  ALREADY_EXISTS says more: it records already.
    if (ret->again && ret->code == XPL_INTERNAL) ret->code = XPL_UNAVAILABLE;
}

static bool put_reply(void *ctx, xpl_bytes_t piece) {
    return xpl_capture_reply_put(ctx, piece);
}

static xpl_status_t driver_read(struct xpl_capture_connection *c,
                                const struct xpl_capture_sink *sink, struct xpl_capture_answer *ret,
                                struct xpl_error *err) {
    struct xpl_capture_reply reply;
    xpl_capture_reply_init(&reply, sink->put, sink->ctx);
    if (c->of_pytorch) reply.on_trace = sink->begin_trace;
    const bool whole = xpl_rpc_async_call_pieces(c->call, put_reply, &reply);
    if (!whole && !reply.walk.malformed) XPL_RETURN_ERROR(err, XPL_CANCELLED, "cancelled");
    if (!whole || !xpl_capture_reply_end(&reply))
        XPL_RETURN_ERROR(err, XPL_DATA_LOSS,
                         "the answer is not a profile: is this a profiler server?");
    *ret = (struct xpl_capture_answer){.idle = reply.empty_trace ||
                                               c->set->plan->call == XPL_CAPTURE_SNAPSHOT};
    (void)snprintf(ret->reason, sizeof ret->reason,
                   "its profiler is too old to send the profile (no emit_xspace) and wrote it on "
                   "its own machine, below %.150s: update it, or give it a directory that this "
                   "machine sees, too",
                   c->root);
    if (c->of_pytorch) (void)snprintf(ret->notes, sizeof ret->notes, "%s", reply.notes);
    return XPL_OK;
}

// ---- events ----

static void driver_next_event(struct xpl_capture_connections *set, int wait_ms,
                              struct xpl_capture_event *ret) {
    struct xpl_rpc_async_call *call;
    const enum xpl_rpc_async_call_event ev = xpl_rpc_async_calls_next(set->calls, wait_ms, &call);
    *ret = (struct xpl_capture_event){.kind = XPL_CAPTURE_EVENT_NONE};
    if (ev == XPL_RPC_ASYNC_CALL_NONE) return;
    struct xpl_capture_connection *const c = xpl_rpc_async_call_get_user(call);
    ret->kind = XPL_CAPTURE_EVENT_INTERNAL;
    ret->user = c->user;
    switch (ev) {
        case XPL_RPC_ASYNC_CALL_CONNECTED: ret->kind = XPL_CAPTURE_EVENT_CONNECTED; break;
        case XPL_RPC_ASYNC_CALL_UNREACHABLE: probe(c, ret); break;
        case XPL_RPC_ASYNC_CALL_ANSWERING:
            if (c->probing)
                xpl_rpc_async_call_receive(c->call, 0);
            else
                ret->kind = XPL_CAPTURE_EVENT_ANSWERING;
            break;
        case XPL_RPC_ASYNC_CALL_DONE:
            if (c->probing)
                end_probe(c, ret);
            else
                answered(c, ret);
            break;
        case XPL_RPC_ASYNC_CALL_NONE:
        default: break;
    }
}

const struct xpl_capture_driver xpl_capture_tensorflow = {
    .name = "tensorflow.ProfilerService",
    .open = driver_open,
    .close = driver_close,
    .add = driver_add,
    .connect = driver_connect,
    .start = driver_start,
    .announced = driver_announced,
    .receive = driver_receive,
    .read = driver_read,
    .cancel = driver_cancel,
    .next_event = driver_next_event,
};
