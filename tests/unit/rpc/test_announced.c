// SPDX-License-Identifier: Apache-2.0
// rpc/listen/announced: the length of the newest call's answer, from bytes in pieces of any size.
#include "rpc/listen/announced.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/check.h"

enum { DATA, HEADERS, RESET = 3, SETTINGS = 4, PADDED = 8, ROOM = 1 << 16 };

struct bytes {
    uint8_t p[ROOM];
    size_t n;
};

static void put_frame(struct bytes *b, int type, int flags, uint32_t stream, const void *p,
                      size_t n) {
    const uint8_t head[9] = {
        (uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
        (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    CHECK(b->n + sizeof head + n <= sizeof b->p);
    memcpy(b->p + b->n, head, sizeof head);
    if (n) memcpy(b->p + b->n + sizeof head, p, n);
    b->n += sizeof head + n;
}

// Data with a message's prefix, and so many bytes of it.
static void put_message(struct bytes *b, uint32_t stream, uint32_t length, size_t n, int padding) {
    uint8_t data[4096] = {0};
    size_t at = 0;
    if (padding) data[at++] = (uint8_t)padding;
    data[at + 1] = (uint8_t)(length >> 24), data[at + 2] = (uint8_t)(length >> 16);
    data[at + 3] = (uint8_t)(length >> 8), data[at + 4] = (uint8_t)length;
    memset(data + at + 5, 'x', n);
    put_frame(b, DATA, padding ? PADDED : 0, stream, data, at + 5 + n + (size_t)padding);
}

// The length after the bytes in pieces of `piece`, which all sizes agree on.
static uint64_t length_of(const struct bytes *b) {
    uint64_t first = 0;
    for (size_t piece = b->n; piece; piece = piece > 40 ? piece / 3 : piece - 1) {
        struct xpl_rpc_announced a = {.begun = false};
        for (size_t at = 0; at < b->n; at += piece) {
            const size_t n = b->n - at < piece ? b->n - at : piece;
            uint8_t *const copy = malloc(n); // so that reads beyond it are found
            CHECK(copy);
            memcpy(copy, b->p + at, n);
            xpl_rpc_announced_feed(&a, copy, n, 1);
            free(copy);
        }
        CHECK(!a.other);
        if (piece == b->n) first = a.length;
        CHECK_EQ(a.length, first);
    }
    return first;
}

static void test_lengths(void) {
    struct bytes b = {.n = 0};
    put_frame(&b, SETTINGS, 0, 0, "\0\4\0\1\0\0", 6);
    CHECK_EQ(length_of(&b), 0);
    put_frame(&b, HEADERS, 4, 1, "abc", 3);
    CHECK_EQ(length_of(&b), 0);
    put_frame(&b, DATA, 0, 1, "\0\x12\x34", 3); // a part of the prefix
    CHECK_EQ(length_of(&b), 0);
    put_frame(&b, DATA, 0, 1, "\x56\x78xyz", 5);
    CHECK_EQ(length_of(&b), 0x12345678);
    put_frame(&b, DATA, 0, 1, "\0\0\0\0\7\0\0\0\0\1", 10); // bytes of the message
    CHECK_EQ(length_of(&b), 0x12345678);
    put_frame(&b, RESET, 0, 1, "\0\0\0\1", 4);
    put_frame(&b, HEADERS, 4, 3, "abc", 3); // the next call
    CHECK_EQ(length_of(&b), 0);
    put_message(&b, 1, 77, 10, 0); // the rest of the previous one
    put_frame(&b, HEADERS, 5, 1, "abc", 3);
    CHECK_EQ(length_of(&b), 0);
    put_message(&b, 3, 20, 20, 9); // complete, and the padding is not a prefix
    CHECK_EQ(length_of(&b), 20);
    CHECK_EQ(length_of(&b), 20);
    put_message(&b, 3, 30, 2, 0); // a second message
    CHECK_EQ(length_of(&b), 30);
    put_frame(&b, DATA, 0, 3, "0123456789012345678901234567", 28); // its end
    put_message(&b, 3, 0, 0, 0);                                   // an empty one
    CHECK_EQ(length_of(&b), 1);
    put_message(&b, 3, 40, 2, 0);
    CHECK_EQ(length_of(&b), 40);
    put_frame(&b, HEADERS, 5, 3, "abc", 3);
    CHECK_EQ(length_of(&b), 40);
    put_message(&b, 5, UINT32_MAX, 0, 200);
    CHECK_EQ(length_of(&b), UINT32_MAX);
}

static void test_others(void) {
    static const char *const none[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x16\x03\x03\0\x7a\2",
                                       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct xpl_rpc_announced a = {.begun = false};
        xpl_rpc_announced_feed(&a, (const uint8_t *)none[i], i == 1 ? 6 : strlen(none[i]), 1);
        xpl_rpc_announced_feed(&a, (const uint8_t *)"0123456789", 10, 1);
        CHECK(a.other && !a.length);
    }
    struct xpl_rpc_announced a = {.begun = false}; // padding that is longer than its frame
    struct bytes b = {.n = 0};
    put_frame(&b, SETTINGS, 0, 0, NULL, 0);
    put_frame(&b, DATA, PADDED, 1, "\xff\0\0\0\1", 5);
    put_frame(&b, DATA, PADDED, 1, NULL, 0);
    put_message(&b, 1, 9, 0, 0);
    xpl_rpc_announced_feed(&a, b.p, b.n, 1);
    CHECK_EQ(a.length, 9);
}

// Calls that the client cannot have made say nothing of the one that it made.
static void test_hidden(void) {
    static const struct {
        uint32_t first, then;
        int flags; // of the first one's data
    } cases[] = {{99, 1, 0}, {3, 1, 1}, {2, 1, 1}, {1, 3, 0}, {1, 5, 1}, {1, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xpl_rpc_announced a = {.begun = false};
        struct bytes b = {.n = 0};
        put_frame(&b, SETTINGS, 0, 0, NULL, 0);
        put_frame(&b, DATA, cases[i].flags, cases[i].first, "\0\0\0\0\1x", 6);
        put_message(&b, cases[i].then, 1000000, 2, 0);
        xpl_rpc_announced_feed(&a, b.p, b.n, 1);
        CHECK(a.hidden);
    }
}

// Whether so many frames, each with `n` bytes, end the connection; one in `every` has `large`.
static bool mix_ends(int type, int flags, size_t n, unsigned times, unsigned every, size_t large) {
    static const uint8_t zeros[1 << 14];
    struct xpl_rpc_announced a = {.begun = false};
    struct bytes b = {.n = 0};
    put_frame(&b, SETTINGS, 0, 0, NULL, 0);
    put_frame(&b, HEADERS, type == DATA ? 4 : 0, 1, "abc", 3);
    for (unsigned i = 0; i < times; i++) {
        put_frame(&b, type, flags, 1, zeros, i % every ? n : large);
        xpl_rpc_announced_feed(&a, b.p, b.n, 1);
        b.n = 0;
    }
    CHECK(!a.other);
    return a.floods;
}

static bool ends(int type, int flags, size_t n, unsigned times, unsigned every) {
    return mix_ends(type, flags, n, times, every, 1 << 14);
}

// Whether tiny frames, one each `every_ns`, end a connection that also has a call never made, which
// gRPC drops.
static bool hidden_ends(uint64_t every_ns) {
    struct xpl_rpc_announced a = {.begun = false};
    struct bytes b = {.n = 0};
    put_frame(&b, SETTINGS, 0, 0, NULL, 0);
    put_frame(&b, HEADERS, 4, 1, "abc", 3);
    put_frame(&b, DATA, 0, 99, NULL, 0);
    for (unsigned i = 0; i < 20000; i++) {
        put_frame(&b, DATA, 0, 1, "x", 1);
        xpl_rpc_announced_feed(&a, b.p, b.n, 1 + i * every_ns);
        b.n = 0;
    }
    CHECK(a.hidden);
    return a.floods;
}

// What fills gRPC's memory without being an answer.
static void test_floods(void) {
    enum { CONTINUATION = 9, NEVER = 1 << 30 };
    CHECK(!ends(CONTINUATION, 0, 1000, 45, NEVER));
    CHECK(ends(CONTINUATION, 0, 1000, 65, NEVER));
    CHECK(!ends(CONTINUATION, 4, 1000, 1000, NEVER)); // each block ends
    CHECK(!ends(DATA, 0, 255, 8193, NEVER));          // the first has 16 KiB
    CHECK(ends(DATA, 0, 255, 8194, NEVER));
    CHECK(!ends(DATA, 0, 256, 100000, NEVER));
    CHECK(!ends(DATA, 0, 1, 100000, 16));         // the window of HTTP/2 cuts frames anywhere
    CHECK(mix_ends(DATA, 0, 1, 100000, 16, 256)); // not with frames that are hardly larger
    CHECK(hidden_ends(0));
    CHECK(hidden_ends(1000000));
    CHECK(!hidden_ends(4000000)); // as short answers over days
}

// Two ends of a connection over loopback.
static void connect_ends(int ends[2], char peer[64]) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof to;
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(server >= 0 && bind(server, (struct sockaddr *)&to, size) == 0 && listen(server, 1) == 0);
    CHECK_EQ(getsockname(server, (struct sockaddr *)&to, &size), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(ends[0], (struct sockaddr *)&to, size), 0);
    ends[1] = accept(server, NULL, NULL);
    CHECK(ends[1] >= 0 && close(server) == 0);
    (void)snprintf(peer, 64, "ipv4:127.0.0.1:%u", (unsigned)ntohs(to.sin_port));
}

static void test_connections(void) {
    int ends[2];
    char peer[64];
    struct bytes b = {.n = 0};
    put_frame(&b, SETTINGS, 0, 0, NULL, 0);
    const struct iovec v[] = {{b.p, 9}, {b.p + 9, sizeof b.p - 9}};
    const struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = 2};
    connect_ends(ends, peer);
    CHECK_EQ(xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n), b.n);
    CHECK_EQ(xpl_rpc_announced_by(peer), XPL_RPC_ANNOUNCED_UNKNOWN); // off
    xpl_rpc_announced_enable();
    xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n);
    CHECK_EQ(xpl_rpc_announced_by(peer), 0);
    b.n = 0;
    put_message(&b, 1, 5000, 2, 0);
    xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n);
    xpl_rpc_announced_received(ends[0], &m, -1);
    CHECK_EQ(xpl_rpc_announced_by(peer), 5000);
    CHECK_EQ(xpl_rpc_announced_by("ipv4:127.0.0.1:1"), XPL_RPC_ANNOUNCED_UNKNOWN);
    xpl_rpc_announced_close(ends[0]);
    CHECK_EQ(xpl_rpc_announced_by(peer), XPL_RPC_ANNOUNCED_UNKNOWN);
    xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n); // no settings first
    CHECK_EQ(xpl_rpc_announced_by(peer), XPL_RPC_ANNOUNCED_UNKNOWN);
    xpl_rpc_announced_close(ends[0]);
    xpl_rpc_announced_received(0, &m, (ssize_t)b.n); // no socket
    xpl_rpc_announced_close(0);
    xpl_rpc_announced_received(-1, &m, 1);
    xpl_rpc_announced_close(1 << 30);
    b.n = 0;
    put_frame(&b, SETTINGS, 0, 0, NULL, 0);
    put_frame(&b, HEADERS, 0, 1, NULL, 0);
    static const uint8_t zeros[1 << 14];
    CHECK_EQ(xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n), b.n);
    b.n = 0;
    for (int i = 0; i < 3; i++)
        put_frame(&b, 9, 0, 1, zeros, sizeof zeros);
    CHECK_EQ(xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n), b.n);
    CHECK_EQ(xpl_rpc_announced_received(ends[0], &m, (ssize_t)b.n), -1);
    xpl_rpc_announced_close(ends[0]);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

int main(void) {
    test_lengths();
    test_others();
    test_hidden();
    test_floods();
    test_connections();
    return 0;
}
