// SPDX-License-Identifier: Apache-2.0
// rpc/listen/connections: limits in all and per address, and sockets that other code closes.
#include "rpc/listen/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rpc/listen/guarded.h"
#include "tests/check.h"

static const struct sockaddr UNIX = {.sa_family = AF_UNIX};

static struct xpl_peer peer(uint8_t n, bool local) {
    return (struct xpl_peer){.key = {n}, .local = local};
}

// A connection that is admitted; returns its descriptor.
static int add(struct xpl_rpc_connections *c, const struct xpl_peer *p) {
    int pair[2];
    CHECK(xpl_rpc_connections_admit(c, p));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    xpl_rpc_connections_add(c, pair[0], p);
    return pair[0];
}

static void wait_for_sweep(void) {
    usleep(30000); // a refusal sweeps at most each 20 ms
}

static void test_limits(void) {
    const struct xpl_rpc_connections_options o = {.max = 16, .per_address = 3};
    struct xpl_rpc_connections *const c = xpl_rpc_connections_new(&o);
    const struct xpl_peer a = peer(1, false), b = peer(2, false), here = peer(127, true);
    struct xpl_rpc_connections_stats st;
    int fds[32];
    size_t n = 0;
    CHECK(c);
    for (; n < 3; n++)
        fds[n] = add(c, &a);
    CHECK(!xpl_rpc_connections_admit(c, &a)); // the fourth of one address
    fds[n++] = add(c, &b);
    for (; n < 14; n++)
        fds[n] = add(c, &here); // loopback has no separate limit
    const struct xpl_peer d = peer(3, false);
    CHECK(!xpl_rpc_connections_admit(c, &d)); // 14 of 16: the rest is this machine's
    for (; n < 16; n++)
        fds[n] = add(c, &here);
    CHECK(!xpl_rpc_connections_admit(c, &here));
    xpl_rpc_connections_get_stats(c, &st);
    CHECK_EQ(st.open, 16);
    CHECK_EQ(st.accepted, 16);
    CHECK_EQ(st.refused_address, 1);
    CHECK_EQ(st.refused_total, 2);
    // Somebody closes three, and one of their numbers becomes another socket.
    close(fds[0]), close(fds[1]), close(fds[5]);
    const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(other, fds[0]);
    wait_for_sweep();
    CHECK(xpl_rpc_connections_admit(c, &a));
    xpl_rpc_connections_get_stats(c, &st);
    CHECK_EQ(st.open, 13);
    xpl_rpc_connections_note_exhausted(c);
    xpl_rpc_connections_get_stats(c, &st);
    CHECK_EQ(st.refused_descriptors, 1);
    close(other);
    for (size_t i = 0; i < n; i++)
        if (i != 0 && i != 1 && i != 5) close(fds[i]);
    xpl_rpc_connections_sweep(c);
    xpl_rpc_connections_get_stats(c, &st);
    CHECK_EQ(st.open, 0);
    xpl_rpc_connections_free(c);
}

static void test_no_limit_of_an_address(void) {
    const struct xpl_rpc_connections_options o = {.max = 8};
    struct xpl_rpc_connections *const c = xpl_rpc_connections_new(&o);
    const struct xpl_peer a = peer(1, false);
    int fds[7];
    for (size_t i = 0; i < 7; i++)
        fds[i] = add(c, &a);
    CHECK(!xpl_rpc_connections_admit(c, &a));
    for (size_t i = 0; i < 7; i++)
        close(fds[i]);
    xpl_rpc_connections_free(c);
    xpl_rpc_connections_free(NULL);
}

// The client of `fd` sends the `n` bytes at p.
static void receive(int fd, const char *p, size_t n) {
    char data[128];
    memcpy(data, p, n);
    struct iovec v = {.iov_base = data, .iov_len = n};
    const struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    CHECK_EQ(xpl_rpc_guarded_received(fd, &m, (ssize_t)n), (ssize_t)n);
}

// The server ends the stream 1.
static void send_end(int fd) {
    char end[] = "\0\0\0\1\5\0\0\0\1"; // HEADERS that end it
    struct iovec v = {.iov_base = end, .iov_len = sizeof end - 1};
    const struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    xpl_rpc_guarded_sent(fd, &m, (ssize_t)v.iov_len);
}

// A new connection ends the one that its client uses least: no call yet, finished calls, calls
// without a message; never one whose call waits for its answer.
static void test_unused(void) {
    static const char CALL[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                               "\0\0\0\1\4\0\0\0\1";              // HEADERS of a stream
    static const char MESSAGE[] = "\0\0\5\0\1\0\0\0\1\0\0\0\0\0"; // all of its data
    const struct xpl_rpc_connections_options o = {.max = 4};
    struct xpl_rpc_connections *const c = xpl_rpc_connections_new(&o);
    const struct xpl_peer here = peer(127, true);
    static const int order[] = {3, 2, 1};
    int pairs[4][2], others[3];
    char data[1];
    xpl_rpc_guarded_enable(1 << 20);
    for (size_t i = 0; i < 4; i++) {
        CHECK(xpl_rpc_connections_admit(c, &here));
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
        CHECK(xpl_rpc_guarded_add(pairs[i][0], &UNIX));
        xpl_rpc_connections_add(c, pairs[i][0], &here);
        if (i < 3) receive(pairs[i][0], CALL, sizeof CALL - 1);
    }
    receive(pairs[0][0], MESSAGE, sizeof MESSAGE - 1); // waits for its answer
    receive(pairs[2][0], MESSAGE, sizeof MESSAGE - 1);
    send_end(pairs[2][0]); // its call has ended
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(recv(pairs[order[i]][1], data, 1, MSG_DONTWAIT), -1); // open
        others[i] = add(c, &here);                                     // not guarded: never ended
        CHECK_EQ(recv(pairs[order[i]][1], data, 1, MSG_DONTWAIT), 0);  // ended
    }
    CHECK(!xpl_rpc_connections_admit(c, &here));
    CHECK_EQ(recv(pairs[0][1], data, 1, MSG_DONTWAIT), -1); // open
    for (size_t i = 0; i < 4; i++) {
        xpl_rpc_guarded_close(pairs[i][0]);
        close(pairs[i][0]), close(pairs[i][1]);
        if (i < 3) close(others[i]);
    }
    xpl_rpc_connections_free(c);
}

// A guarded connection of `p` that has not begun a call; returns its client's side.
static int add_unused(struct xpl_rpc_connections *c, const struct xpl_peer *p, int *ret_fd) {
    int pair[2];
    CHECK(xpl_rpc_connections_admit(c, p));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK(xpl_rpc_guarded_add(pair[0], &UNIX));
    xpl_rpc_connections_add(c, pair[0], p);
    *ret_fd = pair[0];
    return pair[1];
}

// Peers from elsewhere end none of this machine's connections, and none at all when their address
// has its part; another one of theirs makes room also when this machine has more than its part.
static void test_unused_of_others(void) {
    const struct xpl_rpc_connections_options o = {.max = 8, .per_address = 1};
    struct xpl_rpc_connections *const c = xpl_rpc_connections_new(&o);
    const struct xpl_peer here = peer(127, true), a = peer(1, false), b = peer(2, false);
    int sides[9], fds[9];
    char data[1];
    xpl_rpc_guarded_enable(1 << 20);
    for (size_t i = 0; i < 8; i++)
        sides[i] = add_unused(c, i == 3 ? &a : &here, &fds[i]);
    sides[8] = add_unused(c, &b, &fds[8]);
    CHECK_EQ(recv(sides[3], data, 1, MSG_DONTWAIT), 0); // ended
    CHECK(!xpl_rpc_connections_admit(c, &b));
    CHECK_EQ(recv(sides[8], data, 1, MSG_DONTWAIT), -1); // open
    xpl_rpc_guarded_close(fds[8]);                       // not unused any more
    CHECK(!xpl_rpc_connections_admit(c, &a));
    for (size_t i = 0; i < 9; i++) {
        if (i != 3) CHECK_EQ(recv(sides[i], data, 1, MSG_DONTWAIT), -1); // open
        xpl_rpc_guarded_close(fds[i]);
        close(fds[i]), close(sides[i]);
    }
    xpl_rpc_connections_free(c);
}

// A client that resets its connection does not hide its address from the log.
static void test_peer_of_reset(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof to;
    char peer[XPL_RPC_PEER_SIZE], expected[XPL_RPC_PEER_SIZE];
    const int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server, (struct sockaddr *)&to, size) == 0 && listen(server, 1) == 0);
    CHECK_EQ(getsockname(server, (struct sockaddr *)&to, &size), 0);
    CHECK_EQ(connect(client, (struct sockaddr *)&to, size), 0);
    const int fd = accept(server, (struct sockaddr *)&to, &size);
    (void)snprintf(expected, sizeof expected, "ipv4:127.0.0.1:%u", (unsigned)ntohs(to.sin_port));
    xpl_rpc_guarded_enable(1 << 20);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    close(client); // with a byte that it has not read, which resets the connection
    CHECK(!xpl_rpc_peer_of(fd, peer) && !peer[0]);
    CHECK(!xpl_rpc_guarded_get_peer(fd, peer));
    CHECK(xpl_rpc_guarded_add(fd, (const struct sockaddr *)&to));
    CHECK(xpl_rpc_guarded_get_peer(fd, peer));
    CHECK_STR(peer, expected);
    xpl_rpc_guarded_close(fd);
    close(fd), close(server);
}

static void check_text(const char *address, const char *expected) {
    struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_port = htons(7)};
    char peer[XPL_RPC_PEER_SIZE];
    CHECK_EQ(inet_pton(AF_INET6, address, &from.sin6_addr), 1);
    CHECK(xpl_rpc_peer_text((const struct sockaddr *)&from, peer));
    CHECK_STR(peer, expected);
}

static void test_texts_of_peers(void) {
    const struct sockaddr other = {.sa_family = AF_NETLINK};
    char peer[XPL_RPC_PEER_SIZE];
    check_text("2001:db8::1", "ipv6:%5B2001:db8::1%5D:7");
    check_text("::ffff:192.0.2.7", "ipv4:192.0.2.7:7");
    CHECK(!xpl_rpc_peer_text(&other, peer) && !peer[0]);
    CHECK(xpl_rpc_peer_text(&UNIX, peer));
    CHECK_STR(peer, "unix:");
}

int main(void) {
    test_peer_of_reset();
    test_texts_of_peers();
    test_unused();
    test_unused_of_others();
    test_limits();
    test_no_limit_of_an_address();
    return 0;
}
