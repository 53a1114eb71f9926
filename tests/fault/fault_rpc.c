// SPDX-License-Identifier: Apache-2.0
// Each allocation of rpc/ fails once: first where everything happens on the calling thread, then on
// the queue's thread of a running server, whose clients must always get an answer or an error.
#include <grpc/grpc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "proto/descriptors.h"
#include "proto/xplaned/v1/analysis.pb-c.h"
#include "rpc/client.h"
#include "rpc/message.h"
#include "rpc/server.h"
#include "rpc/standard/health.h"
#include "rpc/standard/reflection.h"
#include "rpc/unix.h"
#include "tests/check.h"

static const struct xpl_rpc_method METHODS[] = {{.path = "/a.A/X"}, {.path = "/b.B/Y"}};
static char dir[] = "/tmp/xpl_fault_XXXXXX";

// ---- on one thread ----

static xpl_status_t encode_status(void) {
    static const xpl_str_t pairs[1][2] = {{{"key", 3}, {"value", 5}}};
    const struct xpl_rpc_failure f = {.code = XPL_ABORTED,
                                      .message = XPL_STR("changed while it was read"),
                                      .retry_ms = 5,
                                      .reason = "CHANGED",
                                      .n_metadata = 1,
                                      .metadata = pairs};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf b = xpl_buf_of(1 << 20);
    xpl_rpc_status_encode(&b, &f);
    const bool failed = b.failed;
    return failed ? XPL_RESOURCE_EXHAUSTED : XPL_OK;
}

static xpl_status_t list_health(void) {
    struct xpl_rpc_health *h = NULL;
    struct xpl_buf b;
    XPL_TRY(xpl_rpc_health_new(METHODS, 2, &h, NULL));
    xpl_buf_init(&b, 1 << 20);
    xpl_rpc_health_list(h, &b);
    const bool failed = b.failed;
    xpl_buf_fini(&b);
    xpl_rpc_health_free(h);
    return failed ? XPL_RESOURCE_EXHAUSTED : XPL_OK;
}

static xpl_status_t reflect(void) {
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    static const char request[] = "\"\x1axplaned.v1.AnalysisService"; // file_containing_symbol
    struct xpl_rpc_reflection *r = NULL;
    struct xpl_buf b;
    XPL_TRY(xpl_rpc_reflection_new(set, METHODS, 2, &r, NULL));
    xpl_buf_init(&b, 1 << 20);
    const xpl_status_t st = xpl_rpc_reflection_answer(
        r, (xpl_bytes_t){(const uint8_t *)request, sizeof request - 1}, &b, NULL);
    xpl_buf_fini(&b);
    xpl_rpc_reflection_free(r);
    return st;
}

static xpl_status_t unpack(void) {
    static const char request[] = "\n\3run\22\1a\22\1b\32\4tool\"\7\n\2k1\22\1v";
    XPL_AUTO(xpl_arena_fini) struct xpl_arena a = xpl_arena_of(1 << 20);
    ProtobufCMessage *m = NULL;
    const xpl_status_t st = xpl_rpc_message_unpack(
        &xplaned__v1__get_tool_data_request__descriptor,
        (xpl_bytes_t){(const uint8_t *)request, sizeof request - 1}, &a, &m, NULL);
    CHECK_EQ(st == XPL_OK, m != NULL);
    return st;
}

static xpl_status_t copy_blob(void) {
    struct xpl_rpc_blob *const b = xpl_rpc_blob_copy((xpl_bytes_t){(const uint8_t *)"x", 1});
    if (!b) return XPL_RESOURCE_EXHAUSTED;
    xpl_rpc_blob_unref(b);
    return XPL_OK;
}

static xpl_status_t open_socket(void) {
    char path[64];
    struct xpl_rpc_unix *u = NULL;
    snprintf(path, sizeof path, "%s/s", dir);
    XPL_TRY(xpl_rpc_unix_new(path, (gid_t)-1, &u, NULL));
    xpl_rpc_unix_free(u);
    return XPL_OK;
}

static xpl_status_t load_tls(void) {
    char cert[64], key[64];
    struct xpl_rpc_tls *t = NULL;
    snprintf(cert, sizeof cert, "%s/cert", dir);
    snprintf(key, sizeof key, "%s/key", dir);
    const struct xpl_rpc_tls_options o = {
        .size = sizeof o, .cert_path = cert, .key_path = key, .client_ca_path = cert};
    XPL_TRY(xpl_rpc_tls_new(&o, &t, NULL));
    const xpl_status_t st = xpl_rpc_tls_reload(t, NULL);
    CHECK_EQ(xpl_rpc_tls_get_loads(t), st == XPL_OK ? 2 : 1);
    xpl_rpc_tls_free(t);
    return st;
}

static xpl_status_t open_channel(void) {
    const struct xpl_rpc_channel_options o = {
        .size = sizeof o, .target = "127.0.0.1:1", .token = XPL_STR("token")};
    struct xpl_rpc_channel *ch = NULL;
    XPL_TRY(xpl_rpc_channel_open(&o, &ch, NULL));
    xpl_rpc_channel_close(ch);
    return XPL_OK;
}

static void write_file(const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    fclose(f);
}

static void sweep(const char *name, xpl_status_t (*scenario)(void)) {
    CHECK_OK(scenario(), NULL);
    xpl_fault_reset();
    CHECK_OK(scenario(), NULL);
    const uint64_t n = xpl_fault_count();
    const int64_t live = xpl_fault_live();
    CHECK(n > 0);
    for (uint64_t i = 0; i < n; i++) {
        xpl_fault_reset();
        xpl_fault_fail_on(i);
        CHECK_STATUS(scenario(), XPL_RESOURCE_EXHAUSTED, NULL);
        CHECK_EQ(xpl_fault_live(), live);
    }
    xpl_fault_reset();
    CHECK_OK(scenario(), NULL);
    printf("%s: %llu allocations\n", name, (unsigned long long)n);
}

// ---- on the queue's thread ----

static unsigned long long used;
static struct xpl_rpc_blob *big;

// The request's byte: which allocation of this thread fails from now on; 255: none.
static void arm(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)service;
    used = xpl_fault_count();
    xpl_rpc_finish(c, request, NULL);
    xpl_fault_reset();
    if (request.ptr[0] != 255) xpl_fault_fail_on(request.ptr[0]);
}
static void answer(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    Xplaned__V1__GetToolDataRequest m;
    (void)request, (void)service;
    xplaned__v1__get_tool_data_request__init(&m);
    xpl_rpc_finish_message(c, &m.base);
}
static void stream(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    Xplaned__V1__GetToolDataRequest m;
    (void)service;
    xplaned__v1__get_tool_data_request__init(&m);
    xpl_status_t st = xpl_rpc_send_message(c, &m.base);
    if (st == XPL_OK) st = xpl_rpc_send(c, request, NULL);
    if (st == XPL_OK) st = xpl_rpc_send_chunks(c, request, 15, big, 4096);
    if (st == XPL_OK)
        xpl_rpc_finish_ok(c);
    else
        xpl_rpc_finish_status(c, st, "no memory");
}

struct server {
    struct xpl_rpc_queue *queue;
    struct xpl_rpc_server *server;
    struct xpl_rpc_health *health;
    struct xpl_rpc_reflection *reflection;
    struct xpl_rpc_channel *channel;
};

static void start(struct server *s) {
    struct xpl_rpc_method m[3 + XPL_RPC_HEALTH_METHODS + XPL_RPC_REFLECTION_METHODS] = {
        {.path = "/f.F/Arm", .on_request = arm},
        {.path = "/f.F/Answer", .on_request = answer},
        {.path = "/f.F/Stream", .on_request = stream},
    };
    const xpl_bytes_t set = {xpl_proto_descriptors, xpl_proto_descriptors_len};
    const struct xpl_rpc_server_options o = {.size = sizeof o};
    struct xpl_rpc_channel_options c = {.size = sizeof c};
    char target[32];
    int port = 0;
    CHECK_OK(xpl_rpc_health_new(m, 3, &s->health, NULL), NULL);
    CHECK_OK(xpl_rpc_reflection_new(set, m, 3, &s->reflection, NULL), NULL);
    xpl_rpc_health_get_methods(s->health, m + 3);
    xpl_rpc_reflection_get_methods(s->reflection, m + 3 + XPL_RPC_HEALTH_METHODS);
    CHECK_OK(xpl_rpc_queue_new(&s->queue, NULL), NULL);
    CHECK_OK(xpl_rpc_server_new(s->queue, m, sizeof m / sizeof *m, &o, &s->server, NULL), NULL);
    CHECK_OK(xpl_rpc_server_listen(s->server, "127.0.0.1:0", NULL, &port, NULL), NULL);
    CHECK_OK(xpl_rpc_server_start(s->server, NULL), NULL);
    snprintf(target, sizeof target, "127.0.0.1:%d", port);
    c.target = target;
    CHECK_OK(xpl_rpc_channel_open(&c, &s->channel, NULL), NULL);
}

static void stop(struct server *s) {
    xpl_rpc_channel_close(s->channel);
    xpl_rpc_health_stop(s->health);
    xpl_rpc_server_free(s->server);
    xpl_rpc_queue_free(s->queue);
    xpl_rpc_health_free(s->health);
    xpl_rpc_reflection_free(s->reflection);
}

// A stream read to its end, or to the first message for one that has none.
static xpl_status_t call(const struct server *s, const char *path, const char *request, size_t n,
                         bool endless) {
    const struct xpl_rpc_call_options o = {.size = sizeof o, .timeout_ms = 10000};
    struct xpl_rpc_stream *st = NULL;
    struct xpl_rpc_reply r = {0};
    xpl_status_t rc;
    bool more = true;
    CHECK_OK(xpl_rpc_stream_open(s->channel, path, (xpl_bytes_t){(const uint8_t *)request, n}, &o,
                                 &st, NULL),
             NULL);
    do {
        rc = xpl_rpc_stream_next(st, &r, &more, NULL);
    } while (rc == XPL_OK && more && !endless);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_stream_close(st);
    return rc;
}

static void scenario(const struct server *s) {
    static const struct {
        const char *path, *request;
        size_t n;
        bool endless;
    } calls[] = {
        {"/f.F/Answer", "x", 1, false},
        {"/f.F/Stream", "x", 1, false},
        {"/grpc.health.v1.Health/Check", "", 0, false},
        {"/grpc.health.v1.Health/List", "", 0, false},
        {"/grpc.health.v1.Health/Watch", "", 0, true},
        {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ":\1*", 3, false},
        {"/no.Such/Method", "", 0, false},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const xpl_status_t st =
            call(s, calls[i].path, calls[i].request, calls[i].n, calls[i].endless);
        CHECK(st == XPL_OK || st == XPL_RESOURCE_EXHAUSTED ||
              (st == XPL_UNIMPLEMENTED && i == sizeof calls / sizeof *calls - 1));
    }
}

static void sweep_server(void) {
    struct server s = {0};
    uint8_t *const bytes = xpl_sys_alloc(100000);
    CHECK(bytes);
    memset(bytes, 'b', 100000);
    big = xpl_rpc_blob_take(bytes, 100000);
    CHECK(big);
    start(&s);
    CHECK_OK(call(&s, "/f.F/Arm", "\xff", 1, false), NULL);
    scenario(&s);
    CHECK_OK(call(&s, "/f.F/Arm", "\xff", 1, false), NULL);
    const unsigned long long n = used;
    CHECK(n > 10 && n < 200);
    // More rounds than a method has calls armed: one that lost a place with each failure would run
    // out of them.
    for (int round = 0; round < 20; round++)
        for (unsigned i = 0; i < n; i++) {
            const char which = (char)i;
            CHECK_OK(call(&s, "/f.F/Arm", &which, 1, false), NULL);
            scenario(&s);
        }
    CHECK_OK(call(&s, "/f.F/Arm", "\xff", 1, false), NULL);
    CHECK_OK(call(&s, "/f.F/Answer", "x", 1, false), NULL);
    stop(&s);
    xpl_rpc_blob_unref(big);
    printf("server: %llu allocations\n", n);
}

int main(void) {
    alarm(250);
    CHECK(mkdtemp(dir));
    write_file("cert", "-----BEGIN CERTIFICATE-----\n");
    write_file("key", "-----BEGIN PRIVATE KEY-----\n");
    grpc_init();
    sweep("status", encode_status);
    sweep("health", list_health);
    sweep("reflection", reflect);
    sweep("unpack", unpack);
    sweep("blob", copy_blob);
    sweep("unix", open_socket);
    sweep("tls", load_tls);
    sweep("channel", open_channel);
    sweep_server();
    grpc_shutdown_blocking();
    static const char *const files[] = {"cert", "key"};
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        CHECK_EQ(unlink(path), 0);
    }
    CHECK_EQ(rmdir(dir), 0);
    return 0;
}
