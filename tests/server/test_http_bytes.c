// SPDX-License-Identifier: Apache-2.0
// Requests that are malformed, or that two readers could take for different ones.
// Usage: test_http_bytes SCENARIO
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/http_fixture.h"

// Malformed or too large requests; the daemon continues.
static void scenario_malformed(void) {
    const char *dir = one_session();
    const char *const args[] = {"--http-idle", "1s", NULL};
    struct daemon_proc d = start_http(dir, args);
    static const struct {
        const char *text;
        int status; // 0: the connection may just be closed
    } rows[] = {
        {"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /data?run=%4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET runs HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /runs HTTP/1.1\r\n\r\n", 400}, // no Host
        {"GET /runs HTTP/1.0\r\n\r\n", 200},
        {"GET /runs HTTP/9.9\r\nHost: localhost\r\n\r\n", 0},
        {"\r\n\r\n\r\n", 0},
        {"\x16\x03\x01\x02\x00\x01\x00\x01", 0}, // TLS
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 0},
        {"POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi", 405},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, "%s", rows[i].text);
        if (rows[i].status == 0) (void)shutdown(fd, SHUT_WR);
        struct reply r = http_read(fd, false);
        if (r.status != rows[i].status) fprintf(stderr, "%d for %s\n", r.status, rows[i].text);
        CHECK(rows[i].status ? r.status == rows[i].status : r.status == 0 || r.status >= 400);
        reply_free(&r);
        (void)close(fd);
    }
    // headers, one header, the URI, arguments: too large
    static char large[70000];
    memset(large, 'x', sizeof large - 1);
    for (int kind = 0; kind < 3; kind++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd, kind == 0 ? "GET /" : "GET /runs HTTP/1.1\r\nHost: localhost\r\n");
        if (kind == 1) http_send_text(fd, "A: ");
        for (int i = 0; kind == 2 && i < 4000; i++)
            http_send_text(fd, "A%d: 1234567890\r\n", i);
        if (kind < 2) http_send(fd, large, sizeof large - 1);
        http_send_text(fd, kind == 0 ? " HTTP/1.1\r\nHost: localhost\r\n\r\n" : "\r\n\r\n");
        struct reply r = http_read(fd, false);
        CHECK(r.status == 431 || r.status == 414 || r.status == 413 || r.status == 0);
        reply_free(&r);
        (void)close(fd);
    }
    expect(d.http_address, "/runs", 200, "run");
    CHECK_EQ(stop_daemon(&d), 0);
}

// Without other headers, and with each allowed Host: one answer, one head.
static void check_bare_heads(const char *address) {
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"GET /runs HTTP/1.0\r\n: x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.0\r\n:\r\n\r\n", 400},
        {"GET /runs HTTP/1.0\n\n", 400},
        {"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\n\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n", 400},
        {"GET /healthz HTTP/1.1\r\n: x\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nX: y\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: local host\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost/x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: user@localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: localhost:99999\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
        {"GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz?a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz\tx HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /healthz HTTP/1.1\r\nHost: a\xff\r\n\r\n", 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int fd = http_connect(address);
        http_send_text(fd, "%sGET /version HTTP/1.1\r\nHost: localhost\r\n\r\n", rows[i].text);
        struct reply r = http_read(fd, false);
        if (r.status != rows[i].status || !r.closed)
            fprintf(stderr, "%s: %s", rows[i].text, r.text);
        CHECK_EQ(r.status, rows[i].status);
        CHECK(r.closed && http_closes(fd, 30000));
        CHECK(r.text && !strstr(r.text + 1, "HTTP/1."));
        reply_free(&r);
        (void)close(fd);
    }
}

// Many hosts are broken, with long names: the warnings are cut so that all headers are small
// enough for proxies, and each can be decoded by itself.
// What two readers could take for one request or for two: answered once, with 400, and closed.
static void scenario_smuggling(void) {
    const char *dir = one_session();
    struct daemon_proc d = start_http(dir, NULL);
    static const char *const headers[] = {
        "Content-Length: 5\r\nContent-Length: 0\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\x0b: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",  // folded: hides the header
        "Transfer-: chunked\r\n Encoding\r\n", // folded: makes one
        "Content-: 5\r\n Length\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length:\r\n",
        "Host: localhost\r\n",
        "no colon\r\n",
        ": x\r\n", // no name: libmicrohttpd takes it for the end of the headers
        ":\r\n",
        ": \r\n",
        "::\r\n",
        ": x\r\nContent-Length: 5\r\n",
        ":Transfer-Encoding: chunked\r\n",
        "X: y\r\n:\r\nX: z\r\n",
        "X:\r\n: \t\r\n",
        "\t: x\r\n",
    };
    static const char *const methods[] = {"GET", "POST"};
    for (size_t i = 0; i < 2 * sizeof headers / sizeof *headers; i++) {
        const int fd = http_connect(d.http_address);
        http_send_text(fd,
                       "%s /runs HTTP/1.1\r\nHost: localhost\r\n%s\r\n0\r\n\r\n"
                       "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n",
                       methods[i & 1], headers[i / 2]);
        struct reply r = http_read(fd, false);
        if (r.status != 400 || !r.closed) fprintf(stderr, "%s%s", r.text, headers[i / 2]);
        CHECK_EQ(r.status, 400);
        CHECK(r.closed && http_closes(fd, 30000));
        reply_free(&r);
        (void)close(fd);
    }
    check_bare_heads(d.http_address);
    // Ordinary ones go on: two requests on one connection, with and without a body.
    const int fd = http_connect(d.http_address);
    http_send_text(fd, "POST /runs HTTP/1.1\r\nHost:localhost \t\r\nContent-Length: \t5\r\n"
                       "X-Empty:\r\nX: a\tb \r\n\r\nhello"
                       "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct reply r = http_read(fd, false);
    CHECK_EQ(r.status, 405);
    CHECK(!r.closed);
    reply_free(&r);
    (void)close(fd);
    CHECK_EQ(stop_daemon(&d), 0);
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"malformed", scenario_malformed},
        {"smuggling", scenario_smuggling},
    };
    return run_scenario(argc, argv, all, sizeof all / sizeof *all);
}
