// SPDX-License-Identifier: Apache-2.0
// TLS: a server certificate, its renewal without a restart, and client certificates.
//   server_rpc_tls DIRECTORY_OF_CERTIFICATES
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "rpc/listen/tcp.h"
#include "tests/server/rpc_fixture.h"

static const char *certs;
static char work[] = "/tmp/xpl_tls_XXXXXX";

static const char *in(const char *dir, const char *name) {
    static char paths[8][512];
    static unsigned next;
    char *const p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", dir, name);
    return p;
}

// Replaces a file as a whole, with a time that no other has: a handshake of a client that has gone
// may read it at any moment.
static void install(const char *from, const char *to) {
    static time_t tick = 1000000000;
    char buf[8192];
    FILE *const a = fopen(in(certs, from), "rb");
    CHECK(a);
    const size_t n = fread(buf, 1, sizeof buf, a);
    fclose(a);
    FILE *const b = fopen(in(work, "new"), "wb");
    CHECK(b);
    CHECK_EQ(fwrite(buf, 1, n, b), n);
    fclose(b);
    const struct timespec times[2] = {{tick, 0}, {tick, 0}};
    tick++;
    CHECK_EQ(utimensat(AT_FDCWD, in(work, "new"), times, 0), 0);
    CHECK_EQ(rename(in(work, "new"), in(work, to)), 0);
}

static void echo(struct xpl_rpc_call *c, xpl_bytes_t request, void *service) {
    (void)service;
    xpl_rpc_finish(c, request, NULL);
}

struct secure {
    struct xpl_rpc_queue *q;
    struct xpl_rpc_server *s;
    struct xpl_rpc_tls *tls;
    char target[64];
    // Connections are accepted here and handed to gRPC, as in the daemon.
    struct xpl_rpc_tcp *tcp;
    struct xpl_rpc_connections *connections;
    pthread_t thread;
    atomic_bool stop;
};

static void *accept_main(void *arg) {
    struct secure *const x = arg;
    const int *fds;
    CHECK_EQ(xpl_rpc_tcp_get_fds(x->tcp, &fds), 1);
    while (!atomic_load(&x->stop)) {
        struct pollfd p = {.fd = fds[0], .events = POLLIN};
        if (poll(&p, 1, 20) > 0)
            CHECK(xpl_rpc_tcp_accept(x->tcp, fds[0], x->s, true, x->connections));
    }
    return NULL;
}

static void start(struct secure *x, const char *client_ca) {
    const struct xpl_rpc_method m = {.path = "/t.T/Echo", .on_request = echo};
    const struct xpl_rpc_server_options opt = {.size = sizeof opt};
    const struct xpl_rpc_tls_options tls = {.size = sizeof tls,
                                            .cert_path = in(work, "cert.pem"),
                                            .key_path = in(work, "key.pem"),
                                            .client_ca_path = client_ca};
    struct xpl_error err = {0};
    int port = 0;
    CHECK_OK(xpl_rpc_tls_new(&tls, &x->tls, &err), &err);
    CHECK_OK(xpl_rpc_queue_new(&x->q, &err), &err);
    CHECK_OK(xpl_rpc_server_new(x->q, &m, 1, &opt, &x->s, &err), &err);
    CHECK_OK(xpl_rpc_tcp_new("127.0.0.1:0", &x->tcp, &port, &err), &err);
    CHECK_OK(xpl_rpc_server_serve_tls(x->s, x->tls, &err), &err);
    CHECK_OK(xpl_rpc_server_start(x->s, &err), &err);
    const struct xpl_rpc_connections_options limits = {.max = 64};
    CHECK(x->connections = xpl_rpc_connections_new(&limits));
    CHECK_EQ(pthread_create(&x->thread, NULL, accept_main, x), 0);
    snprintf(x->target, sizeof x->target, "127.0.0.1:%d", port);
}

static void stop(struct secure *x) {
    struct xpl_rpc_connections_stats st;
    atomic_store(&x->stop, true);
    pthread_join(x->thread, NULL);
    xpl_rpc_connections_get_stats(x->connections, &st);
    CHECK(st.accepted > 0);
    xpl_rpc_server_free(x->s);
    // gRPC closes them on a separate thread, the last ones after the server has gone.
    for (int i = 0; i < 60000 && st.open; i++) {
        usleep(1000);
        xpl_rpc_connections_sweep(x->connections);
        xpl_rpc_connections_get_stats(x->connections, &st);
    }
    CHECK_EQ(st.open, 0);
    xpl_rpc_connections_free(x->connections);
    xpl_rpc_tcp_free(x->tcp);
    xpl_rpc_queue_free(x->q);
    xpl_rpc_tls_free(x->tls);
}

static xpl_status_t try(const struct secure *x, bool tls, const char *ca, const char *client) {
    char cert[64], key[64];
    struct xpl_rpc_channel_options opt = {.size = sizeof opt, .target = x->target, .tls = tls};
    const struct xpl_rpc_call_options limit = {.size = sizeof limit, .timeout_ms = 60000};
    struct xpl_rpc_channel *ch = NULL;
    struct xpl_rpc_reply r = {0};
    if (ca) opt.ca_path = in(certs, ca);
    if (client) {
        snprintf(cert, sizeof cert, "%s.pem", client);
        snprintf(key, sizeof key, "%s.key", client);
        opt.cert_path = in(certs, cert), opt.key_path = in(certs, key);
    }
    CHECK_OK(xpl_rpc_channel_open(&opt, &ch, NULL), NULL);
    const xpl_status_t st = xpl_rpc_unary(ch, "/t.T/Echo", text_bytes("x"), &limit, &r, NULL);
    xpl_rpc_reply_fini(&r);
    xpl_rpc_channel_close(ch);
    return st;
}

static void test_renewal(void) {
    struct secure x = {0};
    struct xpl_error err = {0};
    install("first.pem", "cert.pem");
    install("first.key", "key.pem");
    start(&x, NULL);
    CHECK_OK(try(&x, true, "ca.pem", NULL), NULL);
    CHECK_EQ(xpl_rpc_tls_get_loads(x.tls), 1);
    CHECK_STATUS(try(&x, false, NULL, NULL), XPL_UNAVAILABLE, NULL);        // in the clear
    CHECK_STATUS(try(&x, true, "client.pem", NULL), XPL_UNAVAILABLE, NULL); // not trusted
    install("second.pem", "cert.pem");
    install("second.key", "key.pem");
    CHECK_OK(try(&x, true, "ca.pem", NULL), NULL);
    CHECK_EQ(xpl_rpc_tls_get_loads(x.tls), 2);
    install("certs.stamp", "cert.pem"); // empty: the old pair stays
    CHECK_OK(try(&x, true, "ca.pem", NULL), NULL);
    CHECK_EQ(xpl_rpc_tls_get_loads(x.tls), 2);
    CHECK_STATUS(xpl_rpc_tls_reload(x.tls, &err), XPL_INVALID_ARGUMENT, &err);
    CHECK(strstr(err.msg, "cert.pem"));
    install("first.pem", "cert.pem"); // does not fit the key: the old pair stays
    CHECK_OK(try(&x, true, "ca.pem", NULL), NULL);
    install("first.key", "key.pem");
    CHECK_OK(xpl_rpc_tls_reload(x.tls, NULL), NULL);
    CHECK_OK(try(&x, true, "ca.pem", NULL), NULL);
    stop(&x);
}

static void test_client_certificates(void) {
    struct secure x = {0};
    install("first.pem", "cert.pem");
    install("first.key", "key.pem");
    start(&x, in(certs, "ca.pem"));
    CHECK_OK(try(&x, true, "ca.pem", "client"), NULL);
    CHECK_STATUS(try(&x, true, "ca.pem", NULL), XPL_UNAVAILABLE, NULL);
    stop(&x);
}

// Whether a connection that the server has accepted has gRPC's limit of time for its peer.
static bool has_time_limit(in_port_t port) {
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_in a = {0};
        socklen_t n = sizeof a, len = sizeof(int);
        int listens = 1;
        unsigned ms = 0;
        if (getsockname(fd, (struct sockaddr *)&a, &n) != 0 || a.sin_port != port) continue;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) != 0 || listens) continue;
        len = sizeof ms;
        if (getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len) == 0)
            return ms == XPL_RPC_KEEPALIVE_TIMEOUT_MS;
    }
    return false;
}

// As with gRPC's own listeners the kernel ends connections whose peers take nothing.
static void test_time_limit(void) {
    struct secure x = {0};
    install("first.pem", "cert.pem");
    install("first.key", "key.pem");
    start(&x, NULL);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((in_port_t)atoi(strchr(x.target, ':') + 1)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool found = false;
    CHECK_EQ(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    for (int i = 0; i < 60000 && !found; i++) {
        usleep(1000);
        found = has_time_limit(to.sin_port);
    }
    CHECK(found);
    close(fd);
    stop(&x);
}

static void test_errors(void) {
    struct xpl_rpc_tls *t = NULL;
    struct xpl_rpc_tls_options opt = {
        .size = sizeof opt, .cert_path = "/nonexistent", .key_path = in(certs, "first.key")};
    struct xpl_error err = {0};
    CHECK_STATUS(xpl_rpc_tls_new(&opt, &t, &err), XPL_NOT_FOUND, &err);
    CHECK(strstr(err.msg, "/nonexistent"));
    opt.cert_path = in(certs, "first.key"); // a key is not a certificate
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_tls_new(&opt, &t, &err), XPL_INVALID_ARGUMENT, &err);
    opt.cert_path = NULL;
    err = (struct xpl_error){0};
    CHECK_STATUS(xpl_rpc_tls_new(&opt, &t, &err), XPL_INVALID_ARGUMENT, &err);
    xpl_rpc_tls_free(NULL);
}

// A certificate that belongs to another key, and sockets that cannot be served.
static void test_no_tls(void) {
    const struct xpl_rpc_method m = {.path = "/t.T/Echo", .on_request = echo};
    const struct xpl_rpc_server_options opt = {.size = sizeof opt};
    struct xpl_rpc_queue *q = NULL;
    struct xpl_rpc_server *s = NULL;
    struct xpl_rpc_tls *t = NULL;
    struct xpl_error err = {0};
    int pair[2];
    char rest;
    const struct xpl_rpc_tls_options odd = {.size = sizeof odd,
                                            .cert_path = in(certs, "first.pem"),
                                            .key_path = in(certs, "client.key")};
    CHECK_OK(xpl_rpc_tls_new(&odd, &t, &err), &err);
    CHECK_OK(xpl_rpc_queue_new(&q, &err), &err);
    CHECK_OK(xpl_rpc_server_new(q, &m, 1, &opt, &s, &err), &err);
    CHECK_STATUS(xpl_rpc_server_serve_tls(s, t, &err), XPL_FAILED_PRECONDITION, &err);
    CHECK_OK(xpl_rpc_server_start(s, NULL), NULL);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    CHECK_STATUS(xpl_rpc_server_adopt_tls(s, pair[0], &err), XPL_UNAVAILABLE, &err);
    CHECK_EQ(read(pair[1], &rest, 1), 0); // closed
    close(pair[1]);
    xpl_rpc_server_free(s);
    xpl_rpc_queue_free(q);
    xpl_rpc_tls_free(t);
}

static void quiet(int severity, const char *file, int line, const char *text) {
    (void)severity, (void)file, (void)line, (void)text;
}

int main(int argc, char **argv) {
    CHECK_EQ(argc, 2);
    alarm(100);
    certs = argv[1];
    xpl_rpc_set_log(quiet);
    CHECK(mkdtemp(work));
    test_renewal();
    test_client_certificates();
    test_time_limit();
    test_errors();
    test_no_tls();
    CHECK_EQ(unlink(in(work, "cert.pem")), 0);
    CHECK_EQ(unlink(in(work, "key.pem")), 0);
    CHECK_EQ(rmdir(work), 0);
    return 0;
}
