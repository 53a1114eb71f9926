// SPDX-License-Identifier: Apache-2.0
#include "rpc/client.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "rpc/impl.h"
#include "rpc/pem.h"

enum { BOUND_SLACK = 8 << 20 };

// One call under way.  Its completion queue is its own, so that any thread can wait for it.
struct client_call {
    grpc_call *call;
    grpc_completion_queue *cq;
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *message;
    grpc_status_code code;
    grpc_slice text;
    struct xpl_rpc_cancel *cancel;
    struct client_call *prev, *next; // of those that `cancel` cancels
};

struct xpl_rpc_cancel {
    pthread_mutex_t mu;
    bool fired;
    struct client_call *calls;
};

struct xpl_rpc_stream {
    struct client_call c;
    void *metadata_tag;     // tag of the batch that receives the server's metadata
    bool metadata_received; // that batch is complete
    bool over;
};

// ---- cancelling ----

struct xpl_rpc_cancel *xpl_rpc_cancel_new(void) {
    struct xpl_rpc_cancel *const x = xpl_sys_alloc(sizeof *x);
    if (!x) return NULL;
    *x = (struct xpl_rpc_cancel){0};
    pthread_mutex_init(&x->mu, NULL);
    return x;
}

void xpl_rpc_cancel_fire(struct xpl_rpc_cancel *x) {
    pthread_mutex_lock(&x->mu);
    x->fired = true;
    for (struct client_call *c = x->calls; c; c = c->next)
        grpc_call_cancel(c->call, NULL);
    pthread_mutex_unlock(&x->mu);
}

void xpl_rpc_cancel_free(struct xpl_rpc_cancel *x) {
    if (!x) return;
    pthread_mutex_destroy(&x->mu);
    xpl_sys_free(x);
}

static void cancel_attach(struct client_call *c) {
    struct xpl_rpc_cancel *const x = c->cancel;
    if (!x) return;
    pthread_mutex_lock(&x->mu);
    c->next = x->calls;
    if (c->next) c->next->prev = c;
    x->calls = c;
    if (x->fired) grpc_call_cancel(c->call, NULL);
    pthread_mutex_unlock(&x->mu);
}

static void cancel_detach(struct client_call *c) {
    struct xpl_rpc_cancel *const x = c->cancel;
    if (!x) return;
    pthread_mutex_lock(&x->mu);
    if (c->prev)
        c->prev->next = c->next;
    else
        x->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    pthread_mutex_unlock(&x->mu);
}

// ---- channels ----

// *ret stays NULL only on failure.
static xpl_status_t make_credentials(const struct xpl_rpc_channel_options *o,
                                     grpc_channel_credentials **ret, struct xpl_error *err) {
    char *ca = NULL, *cert = NULL, *key = NULL;
    xpl_status_t st = XPL_OK;
    if (!o->tls) {
        *ret = grpc_insecure_credentials_create();
        return XPL_OK;
    }
    if (!o->cert_path != !o->key_path)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "TLS: a client certificate needs its key, and a key "
                         "its certificate");
    if (o->ca_path) st = xpl_rpc_pem_read(o->ca_path, "BEGIN CERTIFICATE", &ca, err);
    if (st == XPL_OK && o->cert_path)
        st = xpl_rpc_pem_read(o->cert_path, "BEGIN CERTIFICATE", &cert, err);
    if (st == XPL_OK && o->key_path) st = xpl_rpc_pem_read(o->key_path, "PRIVATE KEY", &key, err);
    if (st == XPL_OK) {
        grpc_ssl_pem_key_cert_pair pair = {key, cert};
        *ret = grpc_ssl_credentials_create_ex(ca, cert ? &pair : NULL, NULL, NULL);
        if (!*ret)
            st = xpl_error_set(err, XPL_INVALID_ARGUMENT, __FILE__, __LINE__, UINT64_MAX,
                               "TLS: no usable certificates");
    }
    xpl_rpc_pem_free(ca);
    xpl_rpc_pem_free(cert);
    xpl_rpc_pem_free(key);
    return st;
}

static grpc_arg int_arg(const char *key, int value) {
    return (grpc_arg){.type = GRPC_ARG_INTEGER,
                      .key = (char *)(uintptr_t)key, // gRPC copies both
                      .value.integer = value};
}
static grpc_arg text_arg(const char *key, const char *value) {
    return (grpc_arg){.type = GRPC_ARG_STRING,
                      .key = (char *)(uintptr_t)key,
                      .value.string = (char *)(uintptr_t)value};
}

// Adds room for the heads of frames, and for the bytes that gRPC reads in advance.
void xpl_rpc_channel_bound(struct xpl_rpc_channel *ch, uint64_t bytes) {
    const size_t most = bytes < SIZE_MAX / 2 ? (size_t)bytes : SIZE_MAX / 2;
    if (ch->quota) grpc_resource_quota_resize(ch->quota, most + most / 64 + BOUND_SLACK);
}

// gRPC checks a message's length only when it is complete, and bounds a compressed message, but not
// its inflated size.  Its quota ends the call when more bytes arrive.  Windows that grow would let
// servers send more than was requested.
static size_t put_bounds(struct xpl_rpc_channel *ch, const struct xpl_rpc_channel_options *o,
                         grpc_arg *a) {
    const uint64_t max = o->max_message_bytes;
    ch->quota = grpc_resource_quota_create("xplaned");
    xpl_rpc_channel_bound(ch, o->bounded ? max : 2 * max);
    a[0] = (grpc_arg){.type = GRPC_ARG_POINTER,
                      .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
                      .value.pointer = {ch->quota, grpc_resource_quota_arg_vtable()}};
    a[1] = int_arg(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
    a[2] = int_arg(GRPC_ARG_HTTP2_BDP_PROBE, !o->bounded);
    return 3;
}

static void make_channel(struct xpl_rpc_channel *ch, const struct xpl_rpc_channel_options *o,
                         grpc_channel_credentials *creds) {
    grpc_arg a[13];
    size_t n = 0;
    const size_t max = o->max_message_bytes;
    a[n++] = int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, max && max <= INT_MAX ? (int)max : -1);
    a[n++] = int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
    // Separate connections, not shared with other parts of the process.
    a[n++] = int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // The servers are on this machine or in its network; http_proxy is not meant for them.
    a[n++] = int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    a[n++] = int_arg(GRPC_ARG_ENABLE_RETRIES, 0);
    if (max) n += put_bounds(ch, o, a + n);
    // By default gRPC waits up to two minutes before it reconnects to a daemon that was away for a
    // while.  A pending attempt also keeps its channel alive that long.
    a[n++] = int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    a[n++] = int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    a[n++] =
        text_arg(GRPC_ARG_PRIMARY_USER_AGENT_STRING, o->user_agent ? o->user_agent : "xplaned");
    if (o->tls && o->server_name)
        a[n++] = text_arg(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, o->server_name);
    const grpc_channel_args args = {n, a};
    ch->channel = grpc_channel_create(o->target, creds, &args);
}

static bool copy_token(struct xpl_rpc_channel *ch, xpl_str_t token) {
    static const char scheme[] = "Bearer ";
    if (token.len == 0) return true;
    ch->bearer = xpl_sys_alloc(sizeof scheme + token.len);
    if (!ch->bearer) return false;
    memcpy(ch->bearer, scheme, sizeof scheme - 1);
    memcpy(ch->bearer + sizeof scheme - 1, token.ptr, token.len);
    ch->bearer[sizeof scheme - 1 + token.len] = '\0';
    return true;
}

// Characters that a header may contain: otherwise gRPC does not abort, but fails the call with an
// unclear error.
static bool is_header_text(xpl_str_t s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e) return false;
    return true;
}

xpl_status_t xpl_rpc_channel_open(const struct xpl_rpc_channel_options *opt,
                                  struct xpl_rpc_channel **ret, struct xpl_error *err) {
    if (opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "channel: options of another version");
    if (!opt->target || !*opt->target)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "no server address");
    if (!is_header_text(opt->token))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT,
                         "the token has characters other than printable ASCII");
    struct xpl_rpc_channel *const ch = xpl_sys_alloc(sizeof *ch);
    if (!ch) XPL_RETURN_OOM(err, "channel");
    *ch = (struct xpl_rpc_channel){.is_unix = strncmp(opt->target, "unix:", 5) == 0};
    if (!copy_token(ch, opt->token)) {
        xpl_sys_free(ch);
        XPL_RETURN_OOM(err, "channel");
    }
    sigset_t old;
    xpl_rpc_library_start(&old);
    grpc_channel_credentials *creds = NULL;
    const xpl_status_t st = make_credentials(opt, &creds, err);
    if (st == XPL_OK) {
        make_channel(ch, opt, creds);
        grpc_channel_credentials_release(creds);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (st == XPL_OK) {
        *ret = ch;
        return XPL_OK;
    }
    xpl_rpc_channel_close(ch);
    return st;
}

void xpl_rpc_channel_close(struct xpl_rpc_channel *ch) {
    if (!ch) return;
    if (ch->channel) grpc_channel_destroy(ch->channel);
    if (ch->quota) grpc_resource_quota_unref(ch->quota);
    xpl_rpc_library_stop();
    if (ch->bearer) explicit_bzero(ch->bearer, strlen(ch->bearer));
    xpl_sys_free(ch->bearer);
    xpl_sys_free(ch);
}

// ---- one call ----

// In so many ms, but no later than `until`.
static gpr_timespec soon(int64_t ms, gpr_timespec until) {
    return gpr_time_min(
        until, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(ms, GPR_TIMESPAN)));
}

static gpr_timespec deadline_of(const struct xpl_rpc_call_options *opt) {
    const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return opt && opt->timeout_ms > 0 ? soon(opt->timeout_ms, never) : never;
}

static void call_begin(struct client_call *c, struct xpl_rpc_channel *ch, const char *path,
                       const struct xpl_rpc_call_options *opt, gpr_timespec until) {
    *c = (struct client_call){.cq = grpc_completion_queue_create_for_pluck(NULL),
                              .cancel = opt ? opt->cancel : NULL};
    grpc_metadata_array_init(&c->initial);
    grpc_metadata_array_init(&c->trailing);
    c->text = grpc_empty_slice();
    const grpc_slice method = grpc_slice_from_copied_string(path);
    c->call = grpc_channel_create_call(ch->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->cq, method,
                                       NULL, until, NULL);
    grpc_slice_unref(method);
    cancel_attach(c);
}

static void call_end(struct client_call *c) {
    cancel_detach(c);
    grpc_call_unref(c->call);
    grpc_completion_queue_shutdown(c->cq);
    grpc_completion_queue_destroy(c->cq);
    if (c->message) grpc_byte_buffer_destroy(c->message);
    grpc_metadata_array_destroy(&c->initial);
    grpc_metadata_array_destroy(&c->trailing);
    grpc_slice_unref(c->text);
}

// False when gRPC refuses the batch, which needs an unusable path or token.
static bool call_start(struct client_call *c, const grpc_op *ops, size_t n) {
    return grpc_call_start_batch(c->call, ops, n, c, NULL) == GRPC_CALL_OK;
}
static bool call_wait(struct client_call *c) {
    const grpc_event ev =
        grpc_completion_queue_pluck(c->cq, c, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    return ev.type == GRPC_OP_COMPLETE && ev.success;
}

// The four operations that send a request; the auth metadata and the buffer live as long as the
// start.
static size_t put_request(struct client_call *c, grpc_op *ops, grpc_byte_buffer *request,
                          grpc_metadata *auth, const struct xpl_rpc_channel *ch,
                          const struct xpl_rpc_call_options *opt) {
    size_t n = 0;
    ops[n].op = GRPC_OP_SEND_INITIAL_METADATA;
    if (opt && opt->wait_for_ready) {
        ops[n].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                       GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    }
    if (ch->bearer) {
        auth->key = grpc_slice_from_static_string("authorization");
        auth->value = grpc_slice_from_copied_string(ch->bearer);
        ops[n].data.send_initial_metadata.count = 1;
        ops[n].data.send_initial_metadata.metadata = auth;
    }
    n++;
    ops[n].op = GRPC_OP_SEND_MESSAGE;
    ops[n++].data.send_message.send_message = request;
    ops[n++].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    ops[n].op = GRPC_OP_RECV_INITIAL_METADATA;
    ops[n++].data.recv_initial_metadata.recv_initial_metadata = &c->initial;
    return n;
}

static void put_status(struct client_call *c, grpc_op *op) {
    op->op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    op->data.recv_status_on_client.trailing_metadata = &c->trailing;
    op->data.recv_status_on_client.status = &c->code;
    op->data.recv_status_on_client.status_details = &c->text;
}

static grpc_byte_buffer *make_request(xpl_bytes_t bytes) {
    grpc_slice s = grpc_slice_from_copied_buffer((const char *)bytes.ptr, bytes.len);
    grpc_byte_buffer *const bb = grpc_raw_byte_buffer_create(&s, 1);
    grpc_slice_unref(s);
    return bb;
}

// ---- connecting ----

// The channel's state, after its attempt to connect where that ends before `until`.
static grpc_connectivity_state stable_state(struct xpl_rpc_channel *ch, gpr_timespec until) {
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(ch->channel, 1);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) return state;
    grpc_completion_queue *const cq = grpc_completion_queue_create_for_pluck(NULL);
    bool changed = true;
    while (changed && (state == GRPC_CHANNEL_IDLE || state == GRPC_CHANNEL_CONNECTING)) {
        grpc_channel_watch_connectivity_state(ch->channel, state, until, cq, ch);
        changed =
            grpc_completion_queue_pluck(cq, ch, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL).success;
        state = grpc_channel_check_connectivity_state(ch->channel, 1);
    }
    grpc_completion_queue_shutdown(cq);
    grpc_completion_queue_destroy(cq);
    return state;
}

// Whether a call fails with an errno that no TCP connection has.  A call on a channel that has
// failed ends with the cause, and nothing is sent.
static bool is_errno_lost(struct xpl_rpc_channel *ch, gpr_timespec until) {
    struct client_call c;
    grpc_op ops[2] = {{.op = GRPC_OP_SEND_INITIAL_METADATA}};
    call_begin(&c, ch, "/", NULL, until);
    put_status(&c, &ops[1]);
    if (call_start(&c, ops, 2)) call_wait(&c);
    const xpl_str_t text = {(const char *)GRPC_SLICE_START_PTR(c.text), GRPC_SLICE_LENGTH(c.text)};
    const bool is = c.code == GRPC_STATUS_UNAVAILABLE &&
                    xpl_str_starts(text, XPL_STR("failed to connect")) &&
                    xpl_str_has(text, XPL_STR("No such file or directory"));
    call_end(&c);
    return is;
}

static bool is_cancelled(const struct xpl_rpc_call_options *opt) {
    if (!opt || !opt->cancel) return false;
    pthread_mutex_lock(&opt->cancel->mu);
    const bool fired = opt->cancel->fired;
    pthread_mutex_unlock(&opt->cancel->mu);
    return fired;
}

// gRPC 1.51 reads the errno of connect() after it has allocated memory (tcp_client_posix.cc): a TCP
// connection that is being made may then count as one that failed.  Tries again, for some seconds
// at most, so that the call does not fail; all other failures are the call's, and so is its end.
static void connect_first(struct xpl_rpc_channel *ch, const struct xpl_rpc_call_options *opt,
                          gpr_timespec until) {
    enum { TRY_MS = 5000, WATCH_MS = 100 }; // a cancellation is noticed in between
    const struct timespec pause = {.tv_nsec = 20000000};
    if (ch->is_unix || (opt && opt->wait_for_ready)) return;
    const gpr_timespec end = soon(TRY_MS, until);
    bool was_lost = false;
    while (!is_cancelled(opt) && gpr_time_cmp(gpr_now(GPR_CLOCK_MONOTONIC), end) < 0) {
        const grpc_connectivity_state state = stable_state(ch, soon(WATCH_MS, end));
        // On a busy machine an attempt lasts longer.
        if (state == GRPC_CHANNEL_IDLE || state == GRPC_CHANNEL_CONNECTING) continue;
        // gRPC announces a state before calls see it: after a failure only a call knows.
        if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && !was_lost) return;
        if (!is_errno_lost(ch, end)) return;
        was_lost = true;
        grpc_channel_reset_connect_backoff(ch->channel);
        (void)nanosleep(&pause, NULL);
    }
}

// ---- replies ----

void xpl_rpc_reply_fini(struct xpl_rpc_reply *r) {
    xpl_sys_free(r->message);
    xpl_sys_free(r->trailer);
    *r = (struct xpl_rpc_reply){.details.retry_ms = -1};
}

// Copies the message into one piece, and frees gRPC's.
static xpl_status_t read_reply_message(struct client_call *c, struct xpl_rpc_reply *ret,
                                       struct xpl_error *err) {
    const size_t len = grpc_byte_buffer_length(c->message);
    uint8_t *const p = xpl_sys_alloc(len ? len : 1);
    if (!p) XPL_RETURN_OOM(err, "answer");
    const size_t n = xpl_rpc_gather(c->message, p);
    grpc_byte_buffer_destroy(c->message);
    c->message = NULL;
    ret->message = p;
    ret->bytes = (xpl_bytes_t){p, n};
    return XPL_OK;
}

static __attribute__((noinline)) void read_reply_details(struct client_call *c,
                                                         struct xpl_rpc_reply *ret) {
    for (size_t i = 0; i < c->trailing.count; i++) {
        const grpc_metadata *const m = &c->trailing.metadata[i];
        const size_t len = GRPC_SLICE_LENGTH(m->value);
        if (grpc_slice_str_cmp(m->key, "grpc-status-details-bin") != 0 || ret->trailer) continue;
        uint8_t *const p = xpl_sys_alloc(len + 1);
        if (!p) return; // the reply still has the code and the text
        memcpy(p, GRPC_SLICE_START_PTR(m->value), len);
        ret->trailer = p;
        xpl_rpc_status_decode((xpl_bytes_t){p, len}, &ret->details);
    }
}

xpl_status_t xpl_rpc_status_of(grpc_status_code code, grpc_slice message, struct xpl_error *err) {
    char text[XPL_RPC_MAX_MESSAGE];
    if (code == GRPC_STATUS_OK) return XPL_OK;
    xpl_rpc_status_text(
        text, sizeof text,
        (xpl_str_t){(const char *)GRPC_SLICE_START_PTR(message), GRPC_SLICE_LENGTH(message)});
    const xpl_status_t st = code > GRPC_STATUS_OK && code <= GRPC_STATUS_UNAUTHENTICATED
                                ? (xpl_status_t)code
                                : XPL_UNKNOWN;
    XPL_RETURN_ERROR(err, st, "%s", *text ? text : xpl_status_name(st));
}

static __attribute__((noinline)) xpl_status_t
read_reply_status(struct client_call *c, struct xpl_rpc_reply *ret, struct xpl_error *err) {
    if (c->code != GRPC_STATUS_OK) read_reply_details(c, ret);
    return xpl_rpc_status_of(c->code, c->text, err);
}

// ---- the calls ----

xpl_status_t xpl_rpc_unary(struct xpl_rpc_channel *ch, const char *path, xpl_bytes_t request,
                           const struct xpl_rpc_call_options *opt, struct xpl_rpc_reply *ret,
                           struct xpl_error *err) {
    struct client_call c;
    if (opt && opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "call: options of another version");
    const gpr_timespec until = deadline_of(opt);
    grpc_op ops[6] = {0};
    grpc_metadata auth = {.value = grpc_empty_slice()};
    grpc_byte_buffer *const bb = make_request(request);
    xpl_rpc_reply_fini(ret);
    connect_first(ch, opt, until);
    call_begin(&c, ch, path, opt, until);
    size_t n = put_request(&c, ops, bb, &auth, ch, opt);
    ops[n].op = GRPC_OP_RECV_MESSAGE;
    ops[n++].data.recv_message.recv_message = &c.message;
    put_status(&c, &ops[n++]);
    const bool started = call_start(&c, ops, n);
    grpc_byte_buffer_destroy(bb);
    grpc_slice_unref(auth.value);
    if (started) call_wait(&c); // a failure shows in the status
    xpl_status_t st = started ? read_reply_status(&c, ret, err)
                              : xpl_error_set(err, XPL_INTERNAL, __FILE__, __LINE__, UINT64_MAX,
                                              "%s: the call cannot be started", path);
    if (st == XPL_OK)
        st = c.message ? read_reply_message(&c, ret, err)
                       : xpl_error_set(err, XPL_INTERNAL, __FILE__, __LINE__, UINT64_MAX,
                                       "%s: OK without an answer", path);
    call_end(&c);
    return st;
}

static xpl_status_t new_stream(const struct xpl_rpc_call_options *opt, struct xpl_rpc_stream **ret,
                               struct xpl_error *err) {
    if (opt && opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "call: options of another version");
    struct xpl_rpc_stream *const st = xpl_sys_alloc(sizeof *st);
    if (!st) XPL_RETURN_OOM(err, "stream");
    *st = (struct xpl_rpc_stream){0};
    *ret = st;
    return XPL_OK;
}

static xpl_status_t not_started(struct xpl_rpc_stream *st, const char *path,
                                struct xpl_error *err) {
    call_end(&st->c);
    xpl_sys_free(st);
    XPL_RETURN_ERROR(err, XPL_INTERNAL, "%s: the call cannot be started", path);
}

xpl_status_t xpl_rpc_stream_open(struct xpl_rpc_channel *ch, const char *path, xpl_bytes_t request,
                                 const struct xpl_rpc_call_options *opt,
                                 struct xpl_rpc_stream **ret, struct xpl_error *err) {
    const gpr_timespec until = deadline_of(opt);
    struct xpl_rpc_stream *st = NULL;
    grpc_op ops[4] = {0};
    grpc_metadata auth = {.value = grpc_empty_slice()};
    XPL_TRY(new_stream(opt, &st, err));
    grpc_byte_buffer *const bb = make_request(request);
    connect_first(ch, opt, until);
    call_begin(&st->c, ch, path, opt, until);
    const size_t n = put_request(&st->c, ops, bb, &auth, ch, opt);
    const bool started = call_start(&st->c, ops, n);
    grpc_byte_buffer_destroy(bb);
    grpc_slice_unref(auth.value);
    if (!started) return not_started(st, path, err);
    st->metadata_tag = &st->c;
    *ret = st;
    return XPL_OK;
}

xpl_status_t xpl_rpc_duplex_open(struct xpl_rpc_channel *ch, const char *path,
                                 const struct xpl_rpc_call_options *opt,
                                 struct xpl_rpc_stream **ret, struct xpl_error *err) {
    const gpr_timespec until = deadline_of(opt);
    struct xpl_rpc_stream *st = NULL;
    grpc_op ops[4] = {0};
    grpc_metadata auth = {.value = grpc_empty_slice()};
    XPL_TRY(new_stream(opt, &st, err));
    connect_first(ch, opt, until);
    call_begin(&st->c, ch, path, opt, until);
    (void)put_request(&st->c, ops, NULL, &auth, ch, opt);
    // The server's metadata arrives with its first message: receive_metadata waits for it.
    const bool started = call_start(&st->c, ops, 1);
    if (started) call_wait(&st->c);
    grpc_slice_unref(auth.value);
    st->metadata_tag = &st->metadata_received;
    if (!started ||
        grpc_call_start_batch(st->c.call, ops + 3, 1, &st->metadata_received, NULL) != GRPC_CALL_OK)
        return not_started(st, path, err);
    *ret = st;
    return XPL_OK;
}

bool xpl_rpc_stream_send(struct xpl_rpc_stream *st, xpl_bytes_t message) {
    grpc_byte_buffer *const bb = make_request(message);
    const grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = bb};
    const bool ok = call_start(&st->c, &op, 1) && call_wait(&st->c);
    grpc_byte_buffer_destroy(bb);
    return ok;
}

void xpl_rpc_stream_send_end(struct xpl_rpc_stream *st) {
    const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    if (call_start(&st->c, &op, 1)) call_wait(&st->c);
}

static void receive_metadata(struct xpl_rpc_stream *st) {
    if (!st->metadata_received)
        (void)grpc_completion_queue_pluck(st->c.cq, st->metadata_tag,
                                          gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    st->metadata_received = true;
}

xpl_status_t xpl_rpc_stream_next(struct xpl_rpc_stream *st, struct xpl_rpc_reply *msg,
                                 bool *ret_more, struct xpl_error *err) {
    struct client_call *const c = &st->c;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->message};
    xpl_rpc_reply_fini(msg);
    *ret_more = false;
    receive_metadata(st);
    if (!st->over) {
        if (call_start(c, &op, 1)) call_wait(c);
        if (c->message) {
            XPL_TRY(read_reply_message(c, msg, err));
            *ret_more = true;
            return XPL_OK;
        }
        st->over = true;
        op = (grpc_op){0};
        put_status(c, &op);
        if (call_start(c, &op, 1)) call_wait(c);
    }
    return read_reply_status(c, msg, err);
}

void xpl_rpc_stream_close(struct xpl_rpc_stream *st) {
    if (!st) return;
    if (!st->over) grpc_call_cancel(st->c.call, NULL);
    receive_metadata(st);
    call_end(&st->c);
    xpl_sys_free(st);
}
