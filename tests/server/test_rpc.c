// SPDX-License-Identifier: Apache-2.0
// rpc/ end to end: our client and our server on loopback.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/buf.h"
#include "proto/grpc/health/v1/health.pb-c.h"
#include "rpc/unix.h"
#include "tests/server/rpc_fixture.h"

static const struct xpl_rpc_call_options PATIENT = {.size = sizeof PATIENT, .timeout_ms = 60000};

// A call whose outcome is all that matters.
static xpl_status_t call(struct xpl_rpc_channel *ch, const char *path, const char *text,
                         struct xpl_rpc_reply *r, struct xpl_error *err) {
    *err = (struct xpl_error){0};
    return xpl_rpc_unary(ch, path, text_bytes(text), &PATIENT, r, err);
}
static bool said(const struct xpl_rpc_reply *r, const char *text) {
    return r->bytes.len == strlen(text) && memcmp(r->bytes.ptr, text, r->bytes.len) == 0;
}

static void test_unary(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err;
    CHECK_OK(call(ch, "/t.T/Echo", "hello", &r, &err), &err);
    CHECK(said(&r, "hello"));
    CHECK_OK(call(ch, "/t.T/Echo", "", &r, &err), &err);
    CHECK(said(&r, ""));
    CHECK_OK(call(ch, "/t.T/Later", "x", &r, &err), &err);
    CHECK(said(&r, "late"));
    CHECK_OK(call(ch, "/t.T/Late", "body", &r, &err), &err);
    CHECK(said(&r, "body"));
    CHECK_STATUS(call(ch, "/t.T/Drop", "x", &r, &err), XPL_INTERNAL, &err);
    CHECK_EQ(r.bytes.len, 0);
    CHECK_STATUS(call(ch, "/t.T/NoSuch", "x", &r, &err), XPL_UNIMPLEMENTED, &err);
    CHECK_OK(call(ch, "/t.T/Meta", "x", &r, &err), &err);
    CHECK(r.bytes.len > 7);
    CHECK_BYTES(r.bytes.ptr, 7, "fixture", 7);
    struct xpl_rpc_server_stats st;
    xpl_rpc_server_get_stats(f->server, &st);
    CHECK_EQ(st.calls, 7);
    CHECK_EQ(st.unimplemented, 1);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

static void test_blob(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err;
    const xpl_bytes_t expected = xpl_rpc_blob_get(f->blob);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(call(ch, "/t.T/Blob", "head", &r, &err), &err);
        CHECK_EQ(r.bytes.len, expected.len + 4);
        CHECK_BYTES(r.bytes.ptr + 4, expected.len, expected.ptr, expected.len);
    }
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

static void test_limits(void) {
    const struct xpl_rpc_server_options opt = {.size = sizeof opt,
                                               .max_request_bytes = 100000,
                                               .max_calls = 4,
                                               .memory_quota_bytes = 32 << 20};
    struct fixture *const f = fixture_new(&opt);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    static uint8_t big[200000];
    memset(big, 'x', sizeof big);
    CHECK_OK(xpl_rpc_unary(ch, "/t.T/Echo", (xpl_bytes_t){big, 99000}, &PATIENT, &r, &err), &err);
    CHECK_EQ(r.bytes.len, 99000); // it came in several pieces
    CHECK_BYTES(r.bytes.ptr, 99000, big, 99000);
    const char *const paths[] = {"/t.T/Echo", "/t.T/Late"};
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(
            xpl_rpc_unary(ch, paths[i], (xpl_bytes_t){big, sizeof big}, &PATIENT, &r, &err),
            XPL_RESOURCE_EXHAUSTED, &err);
    struct xpl_rpc_stream *hung[4];
    for (int i = 0; i < 4; i++)
        CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Hang", text_bytes(""), &PATIENT, &hung[i], &err),
                 &err);
    CHECK(wait_for(&f->hanging, 4));
    CHECK_STATUS(call(ch, "/t.T/Echo", "x", &r, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_EQ(r.details.retry_ms, 1000);
    for (int i = 0; i < 4; i++)
        xpl_rpc_stream_close(hung[i]);
    CHECK(wait_for(&f->releases, 4));
    CHECK_OK(call(ch, "/t.T/Echo", "x", &r, &err), &err);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

static void test_deadline(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_call_options brief = {.size = sizeof brief, .timeout_ms = 100};
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    // On a busy machine the deadline may come before the server has the call: then one more.
    for (; atomic_load(&f->hanging) + atomic_load(&f->cancels) == 0; brief.timeout_ms *= 2) {
        const int64_t t0 = clock_ms();
        CHECK_STATUS(xpl_rpc_unary(ch, "/t.T/Hang", text_bytes("x"), &brief, &r, &err),
                     XPL_DEADLINE_EXCEEDED, &err);
        CHECK(clock_ms() - t0 >= 90); // nothing else ends it
    }
    CHECK(wait_for(&f->hanging, 0)); // the server notices, and lets go
    CHECK(wait_for(&f->releases, atomic_load(&f->cancels)));
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

struct firing {
    struct xpl_rpc_cancel *cancel;
    struct fixture *f;
};
static void *fire_when_hanging(void *arg) {
    struct firing *const x = arg;
    CHECK(wait_for(&x->f->hanging, 1));
    xpl_rpc_cancel_fire(x->cancel);
    return NULL;
}

static void test_cancel(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct firing x = {xpl_rpc_cancel_new(), f};
    const struct xpl_rpc_call_options opt = {
        .size = sizeof opt, .timeout_ms = 60000, .cancel = x.cancel};
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    pthread_t t;
    CHECK(x.cancel);
    CHECK_EQ(pthread_create(&t, NULL, fire_when_hanging, &x), 0);
    CHECK_STATUS(xpl_rpc_unary(ch, "/t.T/Hang", text_bytes("x"), &opt, &r, &err), XPL_CANCELLED,
                 &err);
    pthread_join(t, NULL);
    CHECK(wait_for(&f->cancels, 1));
    CHECK(wait_for(&f->releases, 1));
    CHECK_STATUS(xpl_rpc_unary(ch, "/t.T/Echo", text_bytes("x"), &opt, &r, &err), XPL_CANCELLED,
                 &err);
    xpl_rpc_cancel_free(x.cancel);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

static void test_token(void) {
    const struct xpl_rpc_server_options opt = {.size = sizeof opt, .tokens = XPL_STR("sesame")};
    struct fixture *const f = fixture_new(&opt);
    static const char *const bad[] = {NULL, "sesam", "sesame2", "Sesame", "x"};
    struct xpl_rpc_reply r = {0};
    struct xpl_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xpl_rpc_channel *const ch = fixture_connect(f, bad[i]);
        CHECK_STATUS(call(ch, "/t.T/Echo", "x", &r, &err), XPL_UNAUTHENTICATED, &err);
        CHECK_OK(call(ch, "/t.T/Open", "x", &r, &err), &err);
        CHECK_OK(call(ch, "/grpc.health.v1.Health/Check", "", &r, &err), &err);
        xpl_rpc_channel_close(ch);
    }
    struct xpl_rpc_channel *ch = fixture_connect(f, "sesame");
    CHECK_OK(call(ch, "/t.T/Echo", "x", &r, &err), &err);
    CHECK_OK(xpl_rpc_server_set_tokens(f->server, XPL_STR("new"), &err), &err);
    CHECK_STATUS(call(ch, "/t.T/Echo", "x", &r, &err), XPL_UNAUTHENTICATED, &err);
    CHECK_OK(xpl_rpc_server_set_tokens(f->server, XPL_STR(""), &err), &err);
    CHECK_OK(call(ch, "/t.T/Echo", "x", &r, &err), &err);
    struct xpl_rpc_server_stats st;
    xpl_rpc_server_get_stats(f->server, &st);
    CHECK_EQ(st.unauthenticated, 6);
    xpl_rpc_channel_close(ch);
    xpl_rpc_reply_fini(&r);
    fixture_stop(f);
    fixture_free(f);

    struct fixture *const open = fixture_new(NULL);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_server_set_tokens(open->server, XPL_STR("t"), &err),
                 XPL_FAILED_PRECONDITION, &err);
    fixture_stop(open);
    fixture_free(open);
}

static void test_failure(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err;
    CHECK_STATUS(call(ch, "/t.T/Fail", "queue of 17 is full: \xff\xc3\xa4", &r, &err),
                 XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_STR(err.msg, "queue of 17 is full: ?\xc3\xa4");
    CHECK_EQ(r.details.retry_ms, 1500);
    CHECK_STR(r.details.reason, "QUEUE_FULL");
    CHECK_STR(r.details.domain, "xplaned");
    char longer[5000];
    memset(longer, 'm', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CHECK_STATUS(call(ch, "/t.T/Fail", longer, &r, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK_EQ(err.msg[0], 'm');
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

// Reads a Chunks stream whole; the first message begins with the head.
static size_t read_chunks(struct xpl_rpc_stream *st, const struct fixture *f) {
    const xpl_bytes_t expected = xpl_rpc_blob_get(f->blob);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    size_t at = 0, n = 0;
    for (bool more = true;; n++) {
        CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err);
        if (!more) break;
        const size_t head = (n ? 0 : 4) + 3; // key 0x7a and a length of two bytes
        const size_t len = expected.len - at < 1000 ? expected.len - at : 1000;
        CHECK_EQ(r.bytes.len, head + len);
        CHECK_EQ(r.bytes.ptr[head - 3], 15 << 3 | 2);
        CHECK_BYTES(r.bytes.ptr + head, len, expected.ptr + at, len);
        at += len;
    }
    CHECK_EQ(at, expected.len);
    xpl_rpc_reply_fini(&r);
    return n;
}

// connect() as the dynamic linker binds it for libgrpc (glibc declares it with a type that no
// definition can have): so many connections that are being made have another errno, as when gRPC
// has lost it.
__attribute__((visibility("default"))) int lost_connect(int fd, const struct sockaddr *address,
                                                        socklen_t len) __asm__("connect");
static atomic_int n_lost;
int lost_connect(int fd, const struct sockaddr *address, socklen_t len) {
    const int st = (int)syscall(SYS_connect, fd, address, len);
    if (atomic_load(&n_lost) > 0 && atomic_fetch_sub(&n_lost, 1) > 0) {
        errno = ENOENT;
        return -1;
    }
    return st;
}

// A connection that only gRPC took for failed is tried again; others fail at once.
static void test_lost_errno(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err;
    struct xpl_rpc_channel *ch = fixture_connect(f, NULL);
    atomic_store(&n_lost, 3);
    CHECK_OK(call(ch, "/t.T/Echo", "hello", &r, &err), &err);
    CHECK(said(&r, "hello"));
    CHECK_EQ(err.code, XPL_OK);
    CHECK(atomic_load(&n_lost) <= 0);
    xpl_rpc_channel_close(ch);
    ch = fixture_connect(f, NULL);
    atomic_store(&n_lost, 3);
    struct xpl_rpc_stream *st = NULL;
    bool more;
    CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Count", text_bytes(""), &PATIENT, &st, &err), &err);
    CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err);
    CHECK(more);
    CHECK(atomic_load(&n_lost) <= 0);
    xpl_rpc_stream_close(st);
    xpl_rpc_channel_close(ch);
    ch = fixture_connect(f, NULL);
    atomic_store(&n_lost, INT_MAX);
    CHECK_STATUS(call(ch, "/t.T/Echo", "hello", &r, &err), XPL_UNAVAILABLE, &err);
    CHECK(strstr(err.msg, "No such file or directory"));
    // The call's time is the connection's, too, and so is its end.
    const struct xpl_rpc_call_options brief = {.size = sizeof brief, .timeout_ms = 50};
    atomic_store(&n_lost, INT_MAX);
    CHECK(xpl_rpc_unary(ch, "/t.T/Echo", text_bytes("x"), &brief, &r, &err) != XPL_OK);
    CHECK(atomic_load(&n_lost) > INT_MAX - 20);
    struct xpl_rpc_cancel *const cancel = xpl_rpc_cancel_new();
    const struct xpl_rpc_call_options over = {.size = sizeof over, .cancel = cancel};
    xpl_rpc_cancel_fire(cancel);
    atomic_store(&n_lost, INT_MAX);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_unary(ch, "/t.T/Echo", text_bytes("x"), &over, &r, &err), XPL_CANCELLED,
                 &err);
    CHECK(atomic_load(&n_lost) > INT_MAX - 20);
    xpl_rpc_cancel_free(cancel);
    atomic_store(&n_lost, 0);
    xpl_rpc_channel_close(ch);
    const struct xpl_rpc_channel_options nobody = {.size = sizeof nobody,
                                                   .target = "unix:/nonexistent/socket"};
    CHECK_OK(xpl_rpc_channel_open(&nobody, &ch, &err), &err);
    CHECK_STATUS(call(ch, "/t.T/Echo", "hello", &r, &err), XPL_UNAVAILABLE, &err);
    xpl_rpc_channel_close(ch);
    xpl_rpc_reply_fini(&r);
    fixture_stop(f);
    fixture_free(f);
}

static void test_streams(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_stream *st = NULL;
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    bool more = true;
    CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Chunks", text_bytes("head"), &PATIENT, &st, &err), &err);
    CHECK_EQ(read_chunks(st, f), 101);
    CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err); // still over
    CHECK(!more);
    xpl_rpc_stream_close(st);
    CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Count", text_bytes(""), &PATIENT, &st, &err), &err);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err);
        CHECK(more);
        CHECK_EQ(r.bytes.len, 2);
        CHECK_EQ(r.bytes.ptr[0] | r.bytes.ptr[1] << 8, i);
    }
    CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err);
    CHECK(!more);
    CHECK(atomic_load(&f->drained) >= 9);
    xpl_rpc_stream_close(st);
    // A stream left in the middle, and one that fails.
    CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Count", text_bytes(""), &PATIENT, &st, &err), &err);
    CHECK_OK(xpl_rpc_stream_next(st, &r, &more, &err), &err);
    xpl_rpc_stream_close(st);
    CHECK_OK(xpl_rpc_stream_open(ch, "/t.T/Fail", text_bytes("no"), &PATIENT, &st, &err), &err);
    CHECK_STATUS(xpl_rpc_stream_next(st, &r, &more, &err), XPL_RESOURCE_EXHAUSTED, &err);
    CHECK(!more);
    CHECK_EQ(r.details.retry_ms, 1500);
    xpl_rpc_stream_close(st);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

static int health_of(const struct xpl_rpc_reply *r) {
    return r->bytes.len == 2 && r->bytes.ptr[0] == 8 ? r->bytes.ptr[1] : 0;
}

static void test_health(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_stream *watch = NULL, *strange = NULL;
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    bool more = true;
    CHECK_OK(call(ch, "/grpc.health.v1.Health/Check", "", &r, &err), &err);
    CHECK_EQ(health_of(&r), 2);
    CHECK_OK(xpl_rpc_stream_open(ch, "/grpc.health.v1.Health/Watch", text_bytes("\n\3t.T"),
                                 &PATIENT, &watch, &err),
             &err);
    CHECK_OK(xpl_rpc_stream_open(ch, "/grpc.health.v1.Health/Watch", text_bytes("\n\1?"), &PATIENT,
                                 &strange, &err),
             &err);
    CHECK_OK(xpl_rpc_stream_next(watch, &r, &more, &err), &err);
    CHECK_EQ(health_of(&r), 2);
    CHECK_OK(xpl_rpc_stream_next(strange, &r, &more, &err), &err);
    CHECK_EQ(health_of(&r), 3);
    xpl_rpc_health_set(f->health, true);
    xpl_rpc_health_set(f->health, true); // no news
    CHECK_OK(xpl_rpc_stream_next(watch, &r, &more, &err), &err);
    CHECK_EQ(health_of(&r), 1);
    CHECK_OK(call(ch, "/grpc.health.v1.Health/Check", "\n\3t.T", &r, &err), &err);
    CHECK_EQ(health_of(&r), 1);
    CHECK_STATUS(call(ch, "/grpc.health.v1.Health/Check", "\n\3x.X", &r, &err), XPL_NOT_FOUND,
                 &err);
    CHECK_STATUS(call(ch, "/grpc.health.v1.Health/Check", "\n\3x", &r, &err), XPL_INVALID_ARGUMENT,
                 &err);
    CHECK_OK(call(ch, "/grpc.health.v1.Health/List", "", &r, &err), &err);
    Grpc__Health__V1__HealthListResponse *const list =
        grpc__health__v1__health_list_response__unpack(NULL, r.bytes.len, r.bytes.ptr);
    CHECK(list);
    CHECK_EQ(list->n_statuses, 3); // "", health itself, t.T
    CHECK(strcmp(list->statuses[2]->key, "t.T") == 0 && list->statuses[2]->value->status == 1);
    grpc__health__v1__health_list_response__free_unpacked(list, NULL);
    fixture_stop(f);
    CHECK_OK(xpl_rpc_stream_next(watch, &r, &more, &err), &err);
    CHECK_EQ(health_of(&r), 2);
    CHECK_STATUS(xpl_rpc_stream_next(watch, &r, &more, &err), XPL_UNAVAILABLE, &err);
    xpl_rpc_stream_close(watch);
    xpl_rpc_stream_close(strange);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_free(f);
}

static void test_reflection(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    static const char *const paths[] = {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                        "/grpc.reflection.v1alpha.ServerReflection/"
                                        "ServerReflectionInfo"};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(call(ch, paths[i], "\x3a\1*", &r, &err), &err); // list_services
        CHECK(xpl_str_has((xpl_str_t){(const char *)r.bytes.ptr, r.bytes.len},
                          XPL_STR("grpc.reflection.v1alpha.ServerReflection")));
        CHECK_STATUS(call(ch, paths[i], "\x3a\x09*", &r, &err), XPL_INVALID_ARGUMENT, &err);
    }
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

struct acceptor {
    struct xpl_rpc_unix *u;
    struct xpl_rpc_server *s;
    atomic_bool stop;
};
static void *accept_main(void *arg) {
    struct acceptor *const a = arg;
    while (!atomic_load(&a->stop)) {
        struct pollfd p = {.fd = xpl_rpc_unix_get_fd(a->u), .events = POLLIN};
        if (poll(&p, 1, 20) > 0) CHECK(xpl_rpc_unix_accept(a->u, a->s, NULL));
    }
    return NULL;
}

// Without descriptors a waiting client is disconnected: otherwise the listener would stay readable,
// and keep the loop busy for nothing.
static void test_unix_exhausted(void) {
    struct fixture *const f = fixture_new(NULL);
    char dir[] = "/tmp/xpl_rpc_XXXXXX", path[40], rest[1];
    struct xpl_rpc_unix *u = NULL;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct rlimit before;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    CHECK_OK(xpl_rpc_unix_new(path, (gid_t)-1, &u, NULL), NULL);
    memcpy(addr.sun_path, path, sizeof path);
    const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof addr), 0);
    const int next = dup(client); // the next number, and all above it, are taken from us
    CHECK(next > client && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const bool done = xpl_rpc_unix_accept(u, f->server, NULL);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK(done);
    CHECK_EQ(read(client, rest, 1), 0);
    struct pollfd p = {.fd = xpl_rpc_unix_get_fd(u), .events = POLLIN};
    CHECK_EQ(poll(&p, 1, 0), 0);
    close(client);
    xpl_rpc_unix_free(u);
    CHECK_EQ(rmdir(dir), 0);
    fixture_stop(f);
    fixture_free(f);
}

static void test_unix(void) {
    struct fixture *const f = fixture_new(NULL);
    char dir[] = "/tmp/xpl_rpc_XXXXXX", path[40], file[40], target[50], rest[2];
    struct acceptor a = {.s = f->server};
    struct xpl_rpc_unix *second = NULL;
    struct xpl_error err = {0};
    struct stat st;
    pthread_t t;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(file, sizeof file, "%s/f", dir);
    snprintf(target, sizeof target, "unix:%s", path);
    CHECK_OK(xpl_rpc_unix_new(path, (gid_t)-1, &a.u, &err), &err);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0600);
    CHECK_EQ(pthread_create(&t, NULL, accept_main, &a), 0);
    CHECK_STATUS(xpl_rpc_unix_new(path, (gid_t)-1, &second, &err), XPL_ALREADY_EXISTS, &err);
    snprintf(f->address, sizeof f->address, "%s", target);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    CHECK_OK(call(ch, "/t.T/Echo", "over a socket", &r, &err), &err);
    CHECK(said(&r, "over a socket"));
    CHECK_OK(call(ch, "/t.T/Blob", "", &r, &err), &err);
    CHECK_EQ(r.bytes.len, 100500);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    // Adopting into a server that stops closes the socket.
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    err = (struct xpl_error){0};
    const struct sockaddr from = {.sa_family = AF_UNIX};
    CHECK_STATUS(xpl_rpc_server_adopt(f->server, pair[0], &from, &err), XPL_UNAVAILABLE, &err);
    CHECK_EQ(read(pair[1], rest, 1), 0);
    close(pair[1]);
    atomic_store(&a.stop, true);
    pthread_join(t, NULL);
    xpl_rpc_unix_free(a.u);
    CHECK(access(path, F_OK) != 0);
    fixture_free(f);

    // A dead process's socket is replaced, something else is not.
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    CHECK_EQ(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    close(fd);
    err = (struct xpl_error){0};
    CHECK_OK(xpl_rpc_unix_new(path, getgid(), &a.u, &err), &err);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0660);
    // Not ours any more: then it stays.
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkdir(path, 0700), 0);
    xpl_rpc_unix_free(a.u);
    CHECK_EQ(rmdir(path), 0);
    const int plain = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(plain >= 0);
    close(plain);
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_unix_new(file, (gid_t)-1, &second, &err), XPL_ALREADY_EXISTS, &err);
    char long_path[200];
    memset(long_path, 'p', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_unix_new(long_path, (gid_t)-1, &second, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK_EQ(unlink(file), 0);
    CHECK_EQ(rmdir(dir), 0);
}

static void test_options(void) {
    struct fixture *const f = fixture_new(NULL);
    struct xpl_rpc_server *s = NULL;
    struct xpl_error err = {0};
    const struct xpl_rpc_server_options none = {.size = sizeof none};
    struct xpl_rpc_method twice[2] = {f->methods[0], f->methods[0]};
    CHECK_STATUS(xpl_rpc_server_new(f->queue, twice, 2, &none, &s, &err), XPL_INVALID_ARGUMENT,
                 &err);
    err = (struct xpl_error){0};
    CHECK_OK(xpl_rpc_server_new(f->queue, f->methods, 1, &none, &s, &err), &err);
    CHECK_STATUS(xpl_rpc_server_listen(s, f->address, NULL, NULL, &err), XPL_UNAVAILABLE,
                 &err); // in use
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_server_listen(s, "unix:/tmp/x", NULL, NULL, &err), XPL_INVALID_ARGUMENT,
                 &err);
    xpl_rpc_server_free(s); // never started
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_rpc_channel_options bad = {.target = "127.0.0.1:1"};
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_channel_open(&bad, &ch, &err), XPL_INVALID_ARGUMENT, &err); // no size
    bad = (struct xpl_rpc_channel_options){.size = sizeof bad, .target = ""};
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_channel_open(&bad, &ch, &err), XPL_INVALID_ARGUMENT, &err);
    bad.target = f->address;
    bad.token = XPL_STR("a\nb");
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_channel_open(&bad, &ch, &err), XPL_INVALID_ARGUMENT, &err);
    bad.token = XPL_STR("");
    bad.tls = true;
    bad.ca_path = "/nonexistent.pem";
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_channel_open(&bad, &ch, &err), XPL_NOT_FOUND, &err);
    fixture_stop(f);
    fixture_free(f);
    // Nobody there.
    const struct xpl_rpc_channel_options gone = {.size = sizeof gone, .target = "127.0.0.1:1"};
    struct xpl_rpc_reply r = {0};
    err = (struct xpl_error){0};
    CHECK_OK(xpl_rpc_channel_open(&gone, &ch, &err), &err);
    CHECK_STATUS(call(ch, "/t.T/Echo", "x", &r, &err), XPL_UNAVAILABLE, &err);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
}

static void quiet(int severity, const char *file, int line, const char *text) {
    (void)severity, (void)file, (void)line, (void)text;
}

int main(void) {
    alarm(100);
    xpl_rpc_set_log(quiet);
    test_unary();
    test_blob();
    test_limits();
    test_deadline();
    test_cancel();
    test_token();
    test_failure();
    test_lost_errno();
    test_streams();
    test_health();
    test_reflection();
    test_unix();
    test_unix_exhausted();
    test_options();
    return 0;
}
