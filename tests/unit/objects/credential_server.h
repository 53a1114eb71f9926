// SPDX-License-Identifier: Apache-2.0
// A service on loopback that hands out credentials, and can do it badly; one connection at a time.
#ifndef XPL_TESTS_UNIT_OBJECTS_CREDENTIAL_SERVER_H_
#define XPL_TESTS_UNIT_OBJECTS_CREDENTIAL_SERVER_H_

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

enum service_mode { GOOD, STATUS, CUT, NO_TEXT, HUGE_TEXT, SILENT };

struct service_answer {
    const char *begin; // of requests that have it: "GET /path"
    char text[1024];
};

static struct {
    int fd, port;
    pthread_t thread;
    atomic_bool ends;
    atomic_uint requests;
    pthread_mutex_t mu;
    // Under mu.
    struct service_answer answers[4];
    enum service_mode mode;
    int status;       // of STATUS
    int pause_ms;     // before each answer
    char seen[32768]; // requests, one behind the other
} service = {.mu = PTHREAD_MUTEX_INITIALIZER};

static const char *answer_to(const char *request) {
    for (size_t i = 0; i < sizeof service.answers / sizeof *service.answers; i++) {
        const char *const begin = service.answers[i].begin;
        if (begin && strncmp(request, begin, strlen(begin)) == 0) return service.answers[i].text;
    }
    return NULL;
}

// Reads a request with its body.
static bool read_request(int fd, char *ret, size_t size) {
    size_t n = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 5000) <= 0) return false;
        const ssize_t got = recv(fd, ret + n, size - 1 - n, 0);
        if (got <= 0) return false;
        n += (size_t)got;
        ret[n] = 0;
        const char *const end = strstr(ret, "\r\n\r\n");
        const char *const length = strstr(ret, "Content-Length: ");
        if (end && n - (size_t)(end + 4 - ret) >= (length ? (size_t)atoi(length + 16) : 0))
            return true;
    }
}

static void send_answer(int fd, int status, const char *text, size_t n, size_t said) {
    char head[200];
    const int len = snprintf(head, sizeof head,
                             "HTTP/1.1 %d Text\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                             status, said);
    (void)send(fd, head, (size_t)len, MSG_NOSIGNAL);
    (void)send(fd, text, n, MSG_NOSIGNAL);
}

static void answer_request(int fd, const char *request) {
    static char much[100 << 10];
    pthread_mutex_lock(&service.mu);
    const char *const found = answer_to(request);
    char text[1024] = "";
    (void)snprintf(text, sizeof text, "%s", found ? found : "<Code>NoSuchThing</Code>");
    const size_t n = strlen(text), left = sizeof service.seen - strlen(service.seen);
    if (strlen(request) < left) (void)strcat(service.seen, request);
    const enum service_mode mode = service.mode;
    const int status = mode == STATUS ? service.status : found ? 200 : 404, ms = service.pause_ms;
    pthread_mutex_unlock(&service.mu);
    (void)poll(NULL, 0, ms);
    if (mode == SILENT) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        (void)poll(&p, 1, 20000); // until the client goes
    } else if (mode == HUGE_TEXT) {
        memset(much, ' ', sizeof much);
        send_answer(fd, status, much, sizeof much, sizeof much);
    } else {
        send_answer(fd, status, mode == NO_TEXT ? "" : text,
                    mode == CUT       ? n / 2
                    : mode == NO_TEXT ? 0
                                      : n,
                    mode == CUT       ? n / 2
                    : mode == NO_TEXT ? 0
                                      : n);
    }
}

static void *serve(void *unused) {
    static char request[16384];
    (void)unused;
    while (!atomic_load(&service.ends)) {
        struct pollfd p = {.fd = service.fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0) continue;
        const int fd = accept(service.fd, NULL, NULL);
        if (read_request(fd, request, sizeof request)) {
            atomic_fetch_add(&service.requests, 1);
            answer_request(fd, request);
        }
        (void)close(fd);
    }
    return NULL;
}

static void start_service(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    service.fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(service.fd >= 0 && bind(service.fd, (struct sockaddr *)&at, n) == 0 &&
          listen(service.fd, 16) == 0 && getsockname(service.fd, (struct sockaddr *)&at, &n) == 0);
    service.port = ntohs(at.sin_port);
    CHECK_EQ(pthread_create(&service.thread, NULL, serve, NULL), 0);
}

static void end_service(void) {
    atomic_store(&service.ends, true);
    CHECK_EQ(pthread_join(service.thread, NULL), 0);
    CHECK_EQ(close(service.fd), 0);
}

static void set_mode(enum service_mode mode, int status) {
    pthread_mutex_lock(&service.mu);
    service.mode = mode;
    service.status = status;
    pthread_mutex_unlock(&service.mu);
}

// Forgets the requests seen, and all answers.
static void clear_service(void) {
    set_mode(GOOD, 200);
    pthread_mutex_lock(&service.mu);
    memset(service.answers, 0, sizeof service.answers);
    service.seen[0] = 0;
    service.pause_ms = 0;
    atomic_store(&service.requests, 0);
    pthread_mutex_unlock(&service.mu);
}

static bool has_seen(const char *text) {
    pthread_mutex_lock(&service.mu);
    const bool has = strstr(service.seen, text) != NULL;
    pthread_mutex_unlock(&service.mu);
    return has;
}

static void set_answer(size_t i, const char *begin, const char *text) {
    pthread_mutex_lock(&service.mu);
    service.answers[i].begin = begin;
    (void)snprintf(service.answers[i].text, sizeof service.answers[i].text, "%s", text);
    pthread_mutex_unlock(&service.mu);
}

// The time in so many seconds, as services write it.
static const char *time_in(int seconds, char ret[32]) {
    const time_t at = time(NULL) + seconds;
    struct tm tm;
    CHECK(gmtime_r(&at, &tm) && strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm));
    return ret;
}

#endif
