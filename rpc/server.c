// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <errno.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <limits.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "rpc/impl.h"
#include "rpc/listen/guarded.h"

// Calls armed per method ahead of the requests.  More than a few only cost memory: the queue's
// thread arms the next one before it dispatches a request.
enum { ARMED_CALLS = 16 };

// ---- making ----

static grpc_arg int_arg(const char *key, int value) {
    return (grpc_arg){.type = GRPC_ARG_INTEGER,
                      .key = (char *)(uintptr_t)key, // gRPC copies it
                      .value.integer = value};
}

static int clamp_int(size_t v) {
    return v > INT_MAX ? INT_MAX : (int)v;
}

static grpc_server *make_server(struct xpl_rpc_server *s, const struct xpl_rpc_server_options *o) {
    grpc_arg a[24];
    size_t n = 0;
    const size_t request = o->max_request_bytes ? o->max_request_bytes : XPL_RPC_MAX_REQUEST;
    a[n++] = int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, clamp_int(request));
    a[n++] = int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
    a[n++] =
        int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, clamp_int(o->max_streams ? o->max_streams : 256));
    // Two daemons must not share a port by accident.
    a[n++] = int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // A peer that vanished is detected within half a minute.
    a[n++] = int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
    a[n++] = int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, XPL_RPC_KEEPALIVE_TIMEOUT_MS);
    a[n++] = int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    a[n++] = int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    a[n++] = int_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10000);
    // Each ping above gRPC's own limit makes an error, which gRPC 1.51 keeps while a write waits:
    // 20,000 pings of a client that reads nothing block it for seconds.  The guard counts pings.
    a[n++] = int_arg(GRPC_ARG_HTTP2_MAX_PING_STRIKES, xpl_rpc_guarded_enabled() ? 0 : 2);
    a[n++] = int_arg(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20000);
    a[n++] = int_arg(GRPC_ARG_MAX_METADATA_SIZE, 16384);
    // A compressed request is refused (call.c): gRPC 1.51 bounds it before it inflates it, not
    // after.
    a[n++] = int_arg(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    a[n++] = int_arg(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    a[n++] = int_arg(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
    a[n++] = xpl_rpc_external_arg(&s->tls);
    // No statistics that this program does not read.
    a[n++] = int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0);
    if (o->max_connection_age_ms > 0) {
        a[n++] = int_arg(GRPC_ARG_MAX_CONNECTION_AGE_MS, o->max_connection_age_ms);
        a[n++] = int_arg(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, 600000);
    }
    grpc_resource_quota *quota = NULL;
    if (o->memory_quota_bytes) {
        quota = grpc_resource_quota_create("xplaned");
        grpc_resource_quota_resize(quota, o->memory_quota_bytes);
        a[n++] = (grpc_arg){.type = GRPC_ARG_POINTER,
                            .key = (char *)(uintptr_t)GRPC_ARG_RESOURCE_QUOTA,
                            .value.pointer = {quota, grpc_resource_quota_arg_vtable()}};
    }
    const grpc_channel_args args = {n, a};
    grpc_server *const server = grpc_server_create(&args, NULL);
    if (quota) grpc_resource_quota_unref(quota);
    return server;
}

static void free_entries(struct xpl_rpc_server *s) {
    for (size_t i = 0; i < s->n_entries; i++)
        xpl_sys_free((void *)(uintptr_t)s->entries[i].m.path);
    xpl_sys_free(s->entries);
}

// Copies the table; the last entry answers calls of methods that are not in it.
static bool copy_entries(struct xpl_rpc_server *s, const struct xpl_rpc_method *methods, size_t n) {
    s->entries = xpl_sys_alloc((n + 1) * sizeof *s->entries);
    if (!s->entries) return false;
    for (size_t i = 0; i < n; i++) {
        struct xpl_rpc_entry *const e = &s->entries[i];
        const size_t len = strlen(methods[i].path) + 1;
        char *const path = xpl_sys_alloc(len);
        if (!path) return false;
        memcpy(path, methods[i].path, len);
        *e = (struct xpl_rpc_entry){.m = methods[i], .server = s};
        e->m.path = path;
        e->late = s->has_token || methods[i].flags & (XPL_RPC_LATE_BODY | XPL_RPC_CLIENT_STREAM);
        s->n_entries++;
    }
    s->entries[n] =
        (struct xpl_rpc_entry){.m = {.path = "*", .flags = XPL_RPC_NO_AUTH}, .server = s};
    return true;
}

static xpl_status_t register_methods(struct xpl_rpc_server *s, struct xpl_error *err) {
    for (size_t i = 0; i < s->n_entries; i++) {
        struct xpl_rpc_entry *const e = &s->entries[i];
        e->handle = grpc_server_register_method(
            s->server, e->m.path, NULL,
            e->late ? GRPC_SRM_PAYLOAD_NONE : GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
        if (!e->handle)
            XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "rpc method %s: twice in the table",
                             e->m.path);
    }
    return XPL_OK;
}

static void free_memory(struct xpl_rpc_server *s) {
    free_entries(s);
    xpl_rpc_tokens_free(s->tokens);
    pthread_mutex_destroy(&s->mu);
    xpl_sys_free(s);
}

xpl_status_t xpl_rpc_server_new(struct xpl_rpc_queue *q, const struct xpl_rpc_method *methods,
                                size_t n, const struct xpl_rpc_server_options *opt,
                                struct xpl_rpc_server **ret, struct xpl_error *err) {
    if (opt->size != sizeof *opt)
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "rpc server: options of another version");
    struct xpl_rpc_server *const s = xpl_sys_alloc(sizeof *s);
    if (!s) XPL_RETURN_OOM(err, "rpc server");
    *s = (struct xpl_rpc_server){.queue = q, .cq = xpl_rpc_queue_get_cq(q)};
    s->max_calls = opt->max_calls ? opt->max_calls : 4096;
    s->has_token = opt->tokens.len > 0;
    atomic_init(&s->records, 1); // the server itself, until gRPC has shut it down
    pthread_mutex_init(&s->mu, NULL);
    xpl_status_t st = xpl_rpc_server_set_tokens(s, opt->tokens, err);
    if (st == XPL_OK && !copy_entries(s, methods, n))
        st = xpl_error_set(err, XPL_RESOURCE_EXHAUSTED, __FILE__, __LINE__, UINT64_MAX,
                           "rpc server: out of memory");
    if (st != XPL_OK) {
        free_memory(s);
        return st;
    }
    s->server = make_server(s, opt);
    grpc_server_register_completion_queue(s->server, s->cq, NULL);
    xpl_rpc_queue_add(q, s);
    st = register_methods(s, err);
    if (st != XPL_OK) {
        xpl_rpc_server_free(s);
        return st;
    }
    *ret = s;
    return XPL_OK;
}

// ---- listening and running ----

xpl_status_t xpl_rpc_server_listen(struct xpl_rpc_server *s, const char *address,
                                   struct xpl_rpc_tls *tls, int *ret_port, struct xpl_error *err) {
    if (strncmp(address, "unix", 4) == 0 && strchr("-:", address[4]))
        XPL_RETURN_ERROR(err, XPL_INVALID_ARGUMENT, "%s: unix sockets are opened apart", address);
    grpc_server_credentials *const creds =
        tls ? xpl_rpc_tls_make(tls) : grpc_insecure_server_credentials_create();
    if (!creds) XPL_RETURN_OOM(err, "TLS");
    const int port = grpc_server_add_http2_port(s->server, address, creds);
    grpc_server_credentials_release(creds);
    if (port <= 0)
        XPL_RETURN_ERROR(err, XPL_UNAVAILABLE,
                         "cannot listen on %s: not an address of this machine, or in use%s",
                         address, tls ? ", or the certificate does not fit its key" : "");
    if (ret_port) *ret_port = port;
    return XPL_OK;
}

xpl_status_t xpl_rpc_server_start(struct xpl_rpc_server *s, struct xpl_error *err) {
    s->started = true;
    grpc_server_start(s->server);
    bool ok = true;
    for (size_t i = 0; i <= s->n_entries && ok; i++)
        for (unsigned k = 0; k < ARMED_CALLS && ok; k++)
            ok = xpl_rpc_call_arm(&s->entries[i], NULL);
    if (!ok) XPL_RETURN_OOM(err, "rpc server");
    return XPL_OK;
}

xpl_status_t xpl_rpc_server_adopt(struct xpl_rpc_server *s, int fd, const struct sockaddr *from,
                                  struct xpl_error *err) {
    grpc_server_credentials *const creds = grpc_insecure_server_credentials_create();
    pthread_mutex_lock(&s->mu); // against shutdown
    const bool ok = s->started && !atomic_load(&s->stopping) && xpl_rpc_guarded_add(fd, from);
    if (ok) grpc_server_add_channel_from_fd(s->server, fd, creds);
    pthread_mutex_unlock(&s->mu);
    grpc_server_credentials_release(creds);
    if (ok) return XPL_OK;
    close(fd);
    XPL_RETURN_ERROR(err, XPL_UNAVAILABLE, "the server is not running");
}

// ---- the end ----

// gRPC reports that all connections are closed; calls may still be in memory.
static void on_down(struct xpl_rpc_tag *tag, bool ok) {
    (void)ok;
    xpl_rpc_server_drop_record(XPL_RPC_OWNER(tag, struct xpl_rpc_server, on_down));
}

void xpl_rpc_server_shutdown(struct xpl_rpc_server *s, void (*done)(void *arg), void *arg) {
    pthread_mutex_lock(&s->mu);
    atomic_store(&s->stopping, true);
    s->done = done, s->done_arg = arg;
    s->on_down.fn = on_down;
    pthread_mutex_unlock(&s->mu);
    xpl_rpc_tag_release(&s->on_down);
    grpc_server_shutdown_and_notify(s->server, s->cq, &s->on_down);
}

void xpl_rpc_server_cancel_all(struct xpl_rpc_server *s) {
    grpc_server_cancel_all_calls(s->server);
}

static void wake(void *sem) {
    sem_post(sem);
}

void xpl_rpc_server_free(struct xpl_rpc_server *s) {
    if (!s) return;
    if (!atomic_load(&s->stopping)) { // gRPC requires a shutdown even of listeners that never ran
        sem_t sem;
        sem_init(&sem, 0, 0);
        xpl_rpc_server_shutdown(s, wake, &sem);
        while (sem_wait(&sem) != 0 && errno == EINTR)
            continue;
        sem_destroy(&sem);
    }
    xpl_rpc_queue_remove(s->queue, s);
    grpc_server_destroy(s->server);
    free_memory(s);
}

void xpl_rpc_server_get_stats(const struct xpl_rpc_server *s, struct xpl_rpc_server_stats *ret) {
    *ret = (struct xpl_rpc_server_stats){.calls = atomic_load(&s->calls),
                                         .cancelled = atomic_load(&s->cancelled),
                                         .unauthenticated = atomic_load(&s->unauthenticated),
                                         .denied = atomic_load(&s->denied),
                                         .unimplemented = atomic_load(&s->unimplemented),
                                         .refused = atomic_load(&s->refused),
                                         .slow = atomic_load(&s->slow),
                                         .open = atomic_load(&s->open)};
}

bool xpl_rpc_server_get_method(const struct xpl_rpc_server *s, size_t i,
                               struct xpl_rpc_method_stats *ret) {
    if (i > s->n_entries) return false;
    const struct xpl_rpc_entry *const e = &s->entries[i];
    ret->path = e->m.path;
    for (size_t k = 0; k < XPL_RPC_CODES; k++)
        ret->answered[k] = atomic_load_explicit(&e->answered[k], memory_order_relaxed);
    return true;
}
