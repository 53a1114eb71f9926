// SPDX-License-Identifier: Apache-2.0
#include "tests/server/http_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/server/harness.h"

int http_connect(const char *address) {
    const char *const colon = strrchr(address, ':');
    CHECK(colon);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void http_send(int fd, const void *p, size_t n) {
    for (const char *at = p; n;) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0) return; // the server has closed already: the reply tells
        at += sent;
        n -= (size_t)sent;
    }
}

void http_send_text(int fd, const char *fmt, ...) {
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    CHECK(n > 0 && (size_t)n < sizeof text);
    http_send(fd, text, (size_t)n);
}

// More bytes at the end of *buf; 0 at the end of the stream, and when the connection is reset.
static size_t read_more(int fd, char **buf, size_t *n) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
    *buf = realloc(*buf, *n + 65536 + 1);
    CHECK(*buf);
    const ssize_t got = recv(fd, *buf + *n, 65536, 0);
    if (got > 0) *n += (size_t)got;
    (*buf)[*n] = 0;
    return got > 0 ? (size_t)got : 0;
}

const char *http_header(const struct reply *r, const char *name) {
    static _Thread_local char value[4096];
    const size_t n = strlen(name);
    for (const char *at = strstr(r->text, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, n) != 0 || at[n] != ':') continue;
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at + n + 2, "\r"), at + n + 2);
        return value;
    }
    return NULL;
}

struct reply http_read(int fd, bool head) {
    char *buf = NULL;
    size_t n = 0;
    const char *end = NULL;
    struct reply r = {0};
    while (!end) {
        if (!read_more(fd, &buf, &n)) {
            r.closed = true;
            r.text = buf;
            return r;
        }
        end = strstr(buf, "\r\n\r\n");
    }
    const size_t at = (size_t)(end - buf) + 4;
    r.text = strndup(buf, at);
    CHECK(r.text && strncmp(r.text, "HTTP/1.1 ", 9) == 0);
    r.status = (int)strtol(r.text + 9, NULL, 10);
    const char *const length = http_header(&r, "Content-Length");
    const size_t expected = head || r.status == 304 ? 0
                            : length                ? strtoul(length, NULL, 10)
                                                    : SIZE_MAX;
    while (n - at < expected && read_more(fd, &buf, &n))
        continue;
    r.n = expected == SIZE_MAX ? n - at : expected;
    CHECK(n - at >= r.n || expected == SIZE_MAX);
    r.body = malloc(r.n + 1);
    CHECK(r.body);
    memcpy(r.body, buf + at, r.n);
    r.body[r.n] = 0;
    free(buf);
    const char *const connection = http_header(&r, "Connection");
    r.closed = connection && strcasecmp(connection, "close") == 0;
    return r;
}

void reply_free(struct reply *r) {
    free(r->text);
    free(r->body);
    *r = (struct reply){0};
}

bool http_closes(int fd, int ms) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const long until = t.tv_sec * 1000 + t.tv_nsec / 1000000 + ms;
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &t);
        const long left = until - t.tv_sec * 1000 - t.tv_nsec / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char bytes[4096];
        if (left <= 0 || poll(&p, 1, (int)left) <= 0) return false;
        if (recv(fd, bytes, sizeof bytes, 0) <= 0) return true;
    }
}

struct reply http_ask(const char *address, const char *method, const char *path,
                      const char *headers) {
    const int fd = http_connect(address);
    http_send_text(fd, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", method, path, address, headers);
    struct reply r = http_read(fd, strcmp(method, "HEAD") == 0);
    (void)close(fd);
    return r;
}

struct reply http_get(const char *address, const char *path) {
    return http_ask(address, "GET", path, "");
}
