// SPDX-License-Identifier: Apache-2.0
// A plain HTTP/1.1 client for tests: blocking, every wait bounded, one connection at a time.
#ifndef XPL_TESTS_SERVER_HTTP_CLIENT_H_
#define XPL_TESTS_SERVER_HTTP_CLIENT_H_

#include <stdbool.h>
#include <stddef.h>

struct reply {
    int status; // 0: the connection ended before a reply
    char *text; // status line and headers, NUL-terminated
    char *body; // NUL-terminated after its `n` bytes
    size_t n;
    bool closed; // the server closed the connection afterwards
};

// Connects to "127.0.0.1:PORT".
int http_connect(const char *address);
void http_send(int fd, const void *p, size_t n);
void http_send_text(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Reads one reply; `head`: it has no body.
struct reply http_read(int fd, bool head);
// Value of a header of `r`, good until the thread's next call; NULL without it.
const char *http_header(const struct reply *r, const char *name);
void reply_free(struct reply *r);
// True when the server closes the connection within `ms`.
bool http_closes(int fd, int ms);

// One request on a separate connection: "GET", path, and further header lines ("A: b\r\n").
struct reply http_ask(const char *address, const char *method, const char *path,
                      const char *headers);
// GET without further headers.
struct reply http_get(const char *address, const char *path);

#endif
