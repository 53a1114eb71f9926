// SPDX-License-Identifier: Apache-2.0
// Requests to an object store that is there and does not do its work: what drips, or never ends,
// holds a request for a bounded time.
#include "storage/objects/transfer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "tests/check.h"

// A server that answers every request with a head, and then with `piece` bytes every `pause_ms`.
static struct {
    int fd;
    pthread_t thread;
    atomic_bool ends;
    atomic_uint requests;
    size_t piece; // 0: 503 with a Retry-After of a day
    int pause_ms;
    char url[64];
} server;

static bool wait_readable(int fd, int ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

static void answer(int fd) {
    char request[8192] = "", head[200], *const bytes = calloc(1, server.piece + 1);
    CHECK(bytes);
    if (recv(fd, request, sizeof request - 1, 0) > 0) {
        const char *const range = strstr(request, "Range: bytes=");
        const int from = range ? atoi(range + 13) : -1;
        CHECK(from >= 0);
        (void)snprintf(head, sizeof head,
                       "HTTP/1.1 206 Partial Content\r\nContent-Length: %d\r\nETag: \"1\"\r\n"
                       "Content-Range: bytes %d-999999/1000000\r\n\r\n",
                       1000000 - from, from);
        if (!server.piece)
            (void)snprintf(head, sizeof head,
                           "HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n");
        atomic_fetch_add(&server.requests, 1);
        ssize_t n = send(fd, head, strlen(head), MSG_NOSIGNAL);
        while (n > 0 && server.piece && !atomic_load(&server.ends) &&
               !wait_readable(fd, server.pause_ms))
            n = send(fd, bytes, server.piece, MSG_NOSIGNAL);
    }
    free(bytes);
    (void)close(fd);
}

static void *serve(void *unused) {
    (void)unused;
    while (!atomic_load(&server.ends))
        if (wait_readable(server.fd, 50)) answer(accept(server.fd, NULL, NULL));
    return NULL;
}

static void start_server(size_t piece, int pause_ms) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    server.piece = piece, server.pause_ms = pause_ms;
    atomic_store(&server.ends, false);
    atomic_store(&server.requests, 0);
    server.fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(server.fd >= 0 && bind(server.fd, (struct sockaddr *)&at, n) == 0 &&
          listen(server.fd, 8) == 0 && getsockname(server.fd, (struct sockaddr *)&at, &n) == 0);
    (void)snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/object", ntohs(at.sin_port));
    CHECK_EQ(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void end_server(void) {
    atomic_store(&server.ends, true);
    CHECK_EQ(pthread_join(server.thread, NULL), 0);
    CHECK_EQ(close(server.fd), 0);
}

// Fetches the object; how long it took.
static uint64_t fetch_ms(unsigned stalled_s, unsigned try_s, struct xpl_error *err) {
    char path[] = "/tmp/xplaned-test-XXXXXX";
    struct xpl_transfers *t = NULL;
    const struct xpl_transfers_options o = {.parallel = 1,
                                            .first_retry_ns = 1000000,
                                            .region = "auto",
                                            .stalled_s = stalled_s,
                                            .try_s = try_s,
                                            .max_wait_s = 1};
    const struct xpl_credential nobody = {.kind = XPL_CREDENTIAL_NONE};
    struct xpl_transfer v = {.url = server.url,
                             .shown = "object",
                             .fd = mkstemp(path),
                             .n = 1000000,
                             .whole = 1000000,
                             .version = "\"1\""};
    CHECK(v.fd >= 0 && unlink(path) == 0);
    CHECK_OK(xpl_transfers_new(&o, &t, err), err);
    const uint64_t begin = xpl_clock_ns();
    CHECK_STATUS(xpl_transfers_run(t, &nobody, &v, 1, err), XPL_UNAVAILABLE, err);
    const uint64_t ms = xpl_clock_between(begin, xpl_clock_ns()) / 1000000;
    xpl_transfers_free(t);
    CHECK_EQ(close(v.fd), 0);
    return ms;
}

static void test_drips(void) {
    struct xpl_error err = {0};
    start_server(1, 20);
    CHECK(fetch_ms(1, 0, &err) < 40000);
    CHECK_EQ(atomic_load(&server.requests), 5);
    end_server();
}

// Fast enough to be no stall, and without an end: what a try may take in all.
static void test_endless(void) {
    struct xpl_error err = {0};
    start_server(500, 20);
    CHECK(fetch_ms(0, 1, &err) < 25000);
    end_server();
}

// Retry-After is waited for, as far as that is bearable.
static void test_busy(void) {
    struct xpl_error err = {0};
    start_server(0, 0);
    const uint64_t ms = fetch_ms(0, 0, &err);
    CHECK(ms >= 4000 && ms < 40000); // between five tries
    CHECK_EQ(atomic_load(&server.requests), 5);
    CHECK(strstr(err.msg, "503"));
    end_server();
}

static void test_versions(void) {
    static const char *const same[][2] = {
        {"\"a\"", "\"a\""}, {"W/\"a\"", "\"a\""}, {"a", "W/\"a\""}, {"\"a\"", "a"}};
    static const char *const other[][2] = {
        {"\"a\"", "\"b\""}, {"W/\"a\"", "W/\"b\""}, {"", ""}, {"\"", "\"\""}, {"w/\"a\"", "\"a\""}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        CHECK(xpl_transfer_is_version(xpl_str_from(same[i][0]), xpl_str_from(same[i][1])));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        CHECK(!xpl_transfer_is_version(xpl_str_from(other[i][0]), xpl_str_from(other[i][1])));
}

// A request that is made again, with newer credentials, was tried before: its object may be there.
static void test_tries(void) {
    struct xpl_transfers *t = NULL;
    struct xpl_error err = {0};
    const struct xpl_transfers_options o = {
        .parallel = 1, .first_retry_ns = 1000000, .region = "auto"};
    const struct xpl_credential nobody = {.kind = XPL_CREDENTIAL_NONE};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(100);
    struct xpl_transfer v = {.url = "http://127.0.0.1:1/", // nothing listens there
                             .shown = "object",
                             .method = "PUT",
                             .from = "x",
                             .from_n = 1,
                             .direct = true,
                             .max_tries = 2,
                             .fd = -1,
                             .answer = &answer};
    CHECK_OK(xpl_transfers_new(&o, &t, &err), &err);
    CHECK_STATUS(xpl_transfers_run(t, &nobody, &v, 1, &err), XPL_UNAVAILABLE, &err);
    CHECK_EQ(v.tries, 2);
    CHECK_STATUS(xpl_transfers_run(t, &nobody, &v, 1, &err), XPL_UNAVAILABLE, &err);
    CHECK_EQ(v.tries, 4);
    xpl_transfers_free(t);
}

// What cleans up runs after a stop: for a while, and as long as the store is reached.
static void test_cleaning(void) {
    const struct xpl_credential nobody = {.kind = XPL_CREDENTIAL_NONE};
    XPL_AUTO(xpl_buf_fini) struct xpl_buf answer = xpl_buf_of(100);
    for (unsigned i = 0; i < 2; i++) {
        struct xpl_transfers *t = NULL;
        struct xpl_error err = {0};
        const struct xpl_transfers_options o = {
            .parallel = 1, .first_retry_ns = 1000000, .region = "auto", .clean_s = i ? 1 : 100};
        struct xpl_transfer v = {.url = "http://127.0.0.1:1/",
                                 .shown = "object",
                                 .method = "DELETE",
                                 .direct = true,
                                 .is_last = true,
                                 .fd = -1,
                                 .answer = &answer};
        CHECK_OK(xpl_transfers_new(&o, &t, &err), &err);
        xpl_transfers_stop(t, true);
        if (i) CHECK_EQ(usleep(1100000), 0);
        CHECK_STATUS(xpl_transfers_run(t, &nobody, &v, 1, &err),
                     i ? XPL_CANCELLED : XPL_UNAVAILABLE, &err);
        CHECK_EQ(v.tries, i ? 0 : 1);
        CHECK_STATUS(xpl_transfers_run(t, &nobody, &v, 1, &err), XPL_CANCELLED, &err);
        xpl_transfers_free(t);
    }
}

int main(void) {
    test_versions();
    test_tries();
    test_cleaning();
    test_drips();
    test_endless();
    test_busy();
    return 0;
}
