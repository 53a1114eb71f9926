// SPDX-License-Identifier: Apache-2.0
// rpc/limits.c: clients that neither send nor read, and who is served meanwhile.
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "tests/server/rpc_fixture.h"

static const struct xpl_rpc_call_options PATIENT = {.size = sizeof PATIENT, .timeout_ms = 60000};

// A call whose outcome is all that matters.
static xpl_status_t call(struct xpl_rpc_channel *ch, const char *path, const char *text,
                         struct xpl_rpc_reply *r, struct xpl_error *err) {
    *err = (struct xpl_error){0};
    return xpl_rpc_unary(ch, path, text_bytes(text), &PATIENT, r, err);
}

// ---- clients that take nothing ----

static void put_text(struct xpl_buf *b, const char *text) {
    xpl_buf_putc(b, (char)strlen(text));
    xpl_buf_str(b, xpl_str_from(text));
}

static void put_frame(struct xpl_buf *b, uint8_t type, uint8_t flags, uint8_t stream,
                      xpl_bytes_t payload) {
    const uint8_t head[9] = {
        0, (uint8_t)(payload.len >> 8), (uint8_t)payload.len, type, flags, 0, 0, 0, stream};
    xpl_buf_put(b, head, sizeof head);
    xpl_buf_put(b, payload.ptr, payload.len);
}

// HEADERS, and a message in DATA unless it is NULL; the client's side stays open.
static void put_call(struct xpl_buf *to, uint8_t stream, const char *path, const char *message,
                     bool token) {
    const char *const headers[][2] = {{":method", "POST"},
                                      {":scheme", "http"},
                                      {":path", path},
                                      {":authority", "a"},
                                      {"content-type", "application/grpc"},
                                      {"te", "trailers"},
                                      {"authorization", "Bearer secret"}};
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    for (size_t i = 0; i < sizeof headers / sizeof *headers - !token; i++) {
        xpl_buf_putc(&b, 0); // neither name nor value are of a table
        put_text(&b, headers[i][0]);
        put_text(&b, headers[i][1]);
    }
    put_frame(to, 1, 4, stream, (xpl_bytes_t){b.p, b.n});
    b.n = 0;
    xpl_buf_put(&b, "\0\0\0", 4);
    if (message) put_text(&b, message);
    if (message) put_frame(to, 0, 0, stream, (xpl_bytes_t){b.p, b.n});
    xpl_buf_fini(&b);
}

// A connection that lets the server send no data, with so many calls.
static int connect_deaf(const struct fixture *f, uint8_t n, const char *path, const char *message,
                        bool token) {
    static const uint8_t no_window[6] = {0, 4};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((in_port_t)atoi(strrchr(f->address, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct xpl_buf b;
    xpl_buf_init(&b, 1 << 16);
    xpl_buf_str(&b, XPL_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    put_frame(&b, 4, 0, 0, (xpl_bytes_t){no_window, sizeof no_window});
    for (uint8_t i = 0; i < n; i++)
        put_call(&b, (uint8_t)(2 * i + 1), path, message, token);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    CHECK_EQ(write(fd, b.p, b.n), (ssize_t)b.n);
    xpl_buf_fini(&b);
    return fd;
}

static bool wait_open(const struct fixture *f, unsigned n) {
    struct xpl_rpc_server_stats st = {0};
    for (int i = 0; i < 60000 && st.open != n; i++) {
        usleep(1000);
        xpl_rpc_server_get_stats(f->server, &st);
    }
    return st.open == n;
}

// A server that is full of calls with the token: one whose answer is not read makes room for
// another one with it.  Those without it are refused or have their own room, and end none.
static void test_crowded(void) {
    const struct xpl_rpc_server_options opt = {
        .size = sizeof opt, .max_calls = 2, .tokens = XPL_STR("secret")};
    struct fixture *const f = fixture_new(&opt);
    struct xpl_rpc_channel *const ours = fixture_connect(f, "secret");
    struct xpl_rpc_channel *const others = fixture_connect(f, NULL);
    struct xpl_rpc_server_stats st;
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    const int deaf = connect_deaf(f, 2, "/t.T/Echo", "x", true);
    CHECK(wait_open(f, 2));
    usleep(2000000); // a sweep, and more than a second
    CHECK_STATUS(call(others, "/t.T/Echo", "x", &r, &err), XPL_UNAUTHENTICATED, &err);
    CHECK_OK(call(others, "/t.T/Open", "x", &r, &err), &err);
    xpl_rpc_server_get_stats(f->server, &st);
    CHECK_EQ(st.slow, 0);
    CHECK_OK(call(ours, "/t.T/Echo", "x", &r, &err), &err);
    xpl_rpc_server_get_stats(f->server, &st);
    CHECK_EQ(st.slow, 1);
    close(deaf);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ours);
    xpl_rpc_channel_close(others);
    fixture_stop(f);
    fixture_free(f);
}

// Idle streams that are ended, but whose clients do not take the status, are cancelled soon.
static void test_deaf_streams(void) {
    static const char path[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const struct xpl_rpc_server_options opt = {.size = sizeof opt, .max_calls = 8};
    struct fixture *const f = fixture_new(&opt);
    struct xpl_rpc_channel *const ch = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    const int64_t began = clock_ms();
    const int deaf =
        connect_deaf(f, 2, path, "\x3a\1*", true); // all that there may be of their kind
    CHECK(wait_open(f, 2));
    const xpl_status_t st = call(ch, path, "\x3a\1*", &r, &err);
    if (clock_ms() - began < 1000) // else they may have been idle for long enough
        CHECK_STATUS(st, XPL_RESOURCE_EXHAUSTED, &err);
    usleep(1050000); // idle for a second, and not known to be stuck that long
    for (int i = 0; i < 3; i++)
        (void)call(ch, path, "\x3a\1*", &r, &err); // each ends one
    usleep(2000000);
    CHECK_OK(call(ch, path, "\x3a\1*", &r, &err), &err);
    close(deaf);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    fixture_stop(f);
    fixture_free(f);
}

// Clients without the token, whose calls never finish, opened a moment ago: a client with the token
// does not wait until they are old.
static void test_strangers(void) {
    const struct xpl_rpc_server_options opt = {
        .size = sizeof opt, .max_calls = 8, .tokens = XPL_STR("secret")};
    struct fixture *const f = fixture_new(&opt);
    struct xpl_rpc_channel *const ours = fixture_connect(f, "secret");
    struct xpl_rpc_channel *const others = fixture_connect(f, NULL);
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    int deaf[8];
    for (int i = 0; i < 8; i++)
        deaf[i] = connect_deaf(f, 8, "/t.T/Open", NULL, false);
    CHECK(wait_open(f, 2)); // an eighth: the others were ended for those after them
    for (int i = 0; i < 20; i++)
        CHECK_OK(call(ours, "/t.T/Echo", "x", &r, &err), &err);
    CHECK_OK(call(ours, "/t.T/Open", "x", &r, &err), &err); // needs no token, but shows it
    CHECK_OK(call(others, "/t.T/Open", "x", &r, &err),
             &err); // of their calls, the oldest is cancelled
    for (int i = 0; i < 8; i++)
        close(deaf[i]);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ours);
    xpl_rpc_channel_close(others);
    fixture_stop(f);
    fixture_free(f);
}

static struct xpl_rpc_stream *watch(struct xpl_rpc_channel *ch) {
    static const struct xpl_rpc_call_options long_time = {.size = sizeof long_time,
                                                          .timeout_ms = 60000};
    struct xpl_rpc_stream *s = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_rpc_stream_open(ch, "/grpc.health.v1.Health/Watch", (xpl_bytes_t){0}, &long_time,
                                 &s, &err),
             &err);
    return s;
}

static xpl_status_t next_of(struct xpl_rpc_stream *s) {
    struct xpl_rpc_reply r = {0};
    struct xpl_error err = {0};
    bool more = true;
    const xpl_status_t st = xpl_rpc_stream_next(s, &r, &more, &err);
    xpl_rpc_reply_fini(&r);
    return st;
}

// Watches of health by strangers: the oldest goes for a new one, its service forgets it, and those
// with the token stay.
static void test_watches(const char *token) {
    enum { MORE = 3 };
    const struct xpl_rpc_server_options opt = {
        .size = sizeof opt, .max_calls = 8, .tokens = xpl_str_from(token)};
    struct fixture *const f = fixture_new(&opt);
    struct xpl_rpc_channel *const ours = fixture_connect(f, token);
    struct xpl_rpc_channel *const others = fixture_connect(f, NULL);
    struct xpl_rpc_stream *const known = token[0] ? watch(ours) : NULL, *idle[2 + MORE];
    if (known) CHECK_OK(next_of(known), NULL);
    for (int i = 0; i < 2; i++) {
        idle[i] = watch(others);
        CHECK_OK(next_of(idle[i]), NULL);
    }
    for (int i = 2; i < 2 + MORE; i++) {
        usleep(1100000);
        idle[i] = watch(others);
        CHECK_OK(next_of(idle[i]), NULL);
        CHECK_STATUS(next_of(idle[i - 2]), XPL_RESOURCE_EXHAUSTED, NULL);
    }
    xpl_rpc_health_set(f->health, true); // for those that are still there
    if (known) CHECK_OK(next_of(known), NULL);
    CHECK_OK(next_of(idle[MORE]), NULL);
    CHECK_OK(next_of(idle[1 + MORE]), NULL);
    fixture_stop(f);
    for (int i = 0; i < 2 + MORE; i++)
        xpl_rpc_stream_close(idle[i]);
    if (known) xpl_rpc_stream_close(known);
    xpl_rpc_channel_close(ours);
    xpl_rpc_channel_close(others);
    fixture_free(f); // no call is left
}

static void quiet(int severity, const char *file, int line, const char *text) {
    (void)severity, (void)file, (void)line, (void)text;
}

int main(void) {
    alarm(100);
    xpl_rpc_set_log(quiet);
    test_crowded();
    test_deaf_streams();
    test_strangers();
    test_watches("secret");
    test_watches("");
    return 0;
}
