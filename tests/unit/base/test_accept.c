// SPDX-License-Identifier: Apache-2.0
// base/net/accept and base/net/listen: who a peer is, addresses by their text, and connections
// when no descriptor is left.
#include "base/net/accept.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/net/listen.h"
#include "tests/check.h"

static struct xpl_peer peer_of(const char *text) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return xpl_peer_of((const struct sockaddr *)&four);
    CHECK_EQ(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return xpl_peer_of((const struct sockaddr *)&six);
}

static bool same(const char *a, const char *b) {
    const struct xpl_peer x = peer_of(a), y = peer_of(b);
    return xpl_peer_equal(&x, &y);
}

static void test_peers(void) {
    CHECK(peer_of("127.0.0.1").local);
    CHECK(peer_of("127.9.9.9").local);
    CHECK(peer_of("::1").local);
    CHECK(peer_of("::ffff:127.0.0.1").local);
    CHECK(!peer_of("10.0.0.1").local);
    CHECK(!peer_of("::ffff:10.0.0.1").local);
    CHECK(!peer_of("2001:db8::1").local);
    CHECK(same("10.0.0.1", "::ffff:10.0.0.1"));
    CHECK(!same("10.0.0.1", "10.0.0.2"));
    CHECK(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::2")); // one machine's
    CHECK(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    const struct sockaddr local = {.sa_family = AF_UNIX};
    CHECK(xpl_peer_of(&local).local);
    CHECK_EQ(xpl_connections_for_others(1024), 896);
    CHECK_EQ(xpl_connections_for_others(1), 1);
}

static void test_text(void) {
    static const char *const bad[] = {"",           ":1",      "host", "host:",      "host:x",
                                      "host:65536", "host:-1", "[]:1", "host:123456"};
    char host[32];
    const char *port = NULL;
    struct xpl_error err = {0};
    CHECK_OK(xpl_listen_split("[::1]:0", host, sizeof host, &port, &err), &err);
    CHECK(strcmp(host, "::1") == 0 && strcmp(port, "0") == 0);
    CHECK_OK(xpl_listen_split("localhost:65535", host, sizeof host, &port, &err), &err);
    CHECK(strcmp(host, "localhost") == 0 && strcmp(port, "65535") == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(xpl_listen_split(bad[i], host, sizeof host, &port, NULL), XPL_INVALID_ARGUMENT,
                     NULL);
    CHECK_STATUS(
        xpl_listen_split("a-name-that-does-not-fit-32-bytes:1", host, sizeof host, &port, NULL),
        XPL_INVALID_ARGUMENT, NULL);
}

static int listen_here(struct sockaddr_in *ret) {
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof *ret;
    const struct addrinfo a = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)ret, .ai_addrlen = sizeof *ret};
    const int fd = xpl_listen_open(&a, false);
    CHECK(fd >= 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)ret, &n), 0);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK_EQ(xpl_listen_open(&a, false), -1); // the port is taken
    CHECK_EQ(errno, EADDRINUSE);
    return fd;
}

static int connect_to(const struct sockaddr_in *a) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)a, sizeof *a), 0);
    return fd;
}

static void test_no_descriptors(void) {
    struct sockaddr_in at;
    struct sockaddr_storage from;
    socklen_t n;
    struct xpl_accept_reserve r;
    struct rlimit old, few;
    int fd = -1;
    char byte;
    xpl_accept_reserve_init(&r);
    CHECK(r.fd >= 0);
    const int l = listen_here(&at);
    CHECK_EQ(xpl_accept(&r, l, &fd, &from, &n), XPL_ACCEPT_NONE);
    const int first = connect_to(&at), second = connect_to(&at), third = connect_to(&at);
    CHECK_EQ(xpl_accept(&r, l, &fd, &from, &n), XPL_ACCEPTED);
    CHECK_EQ(from.ss_family, AF_INET);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    // No descriptor is left: the second one is disconnected, and then none waits.
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)fd + 1, .rlim_max = old.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQ(dup(l), -1);
    int unused = -1;
    CHECK_EQ(xpl_accept(&r, l, &unused, &from, &n), XPL_ACCEPT_CLOSED);
    CHECK_EQ(unused, -1);
    CHECK(recv(second, &byte, 1, 0) <= 0);
    CHECK(r.fd >= 0);
    // The reserve is gone, too: nothing can be done until one comes back.
    xpl_accept_reserve_fini(&r);
    const int last = dup(l);
    CHECK(last >= 0);
    CHECK_EQ(xpl_accept(&r, l, &unused, &from, &n), XPL_ACCEPT_STUCK);
    close(last);
    CHECK_EQ(xpl_accept(&r, l, &unused, &from, &n), XPL_ACCEPTED);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK(xpl_descriptors_raise() >= (uint64_t)old.rlim_cur);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK_EQ(few.rlim_cur, few.rlim_max);
    close(unused), close(fd), close(first), close(second), close(third), close(l);
    xpl_accept_reserve_fini(&r);
}

int main(void) {
    test_peers();
    test_text();
    test_no_descriptors();
    return 0;
}
