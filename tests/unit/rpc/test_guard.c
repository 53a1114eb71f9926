// SPDX-License-Identifier: Apache-2.0
// rpc/listen/guard: what clients may send, and what not; the same in one piece and byte by byte.
#include "rpc/listen/guard.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "tests/check.h"

enum { MAX = 1000 };
enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PING = 6,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4, PADDED = 8 };

static const uint64_t SECOND = 1000000000;

struct client { // one connection, and the bytes that it has sent
    struct xpl_rpc_guard g;
    struct xpl_rpc_guard_shared shared;
    uint64_t now_ns;
    uint8_t last[4096]; // the last frame as gRPC gets it
};

static struct client *new_client(void) {
    struct client *const c = calloc(1, sizeof *c);
    CHECK(c);
    pthread_mutex_init(&c->shared.mu, NULL);
    xpl_rpc_guard_init(&c->g, MAX);
    c->now_ns = 5 * SECOND;
    return c;
}

static void end_client(struct client *c) {
    xpl_rpc_guard_fini(&c->g, &c->shared);
    CHECK_EQ(atomic_load(&c->shared.calls), 0);
    CHECK_EQ(atomic_load(&c->shared.held), 0);
    pthread_mutex_destroy(&c->shared.mu);
    free(c);
}

static enum xpl_rpc_guard_verdict feed(struct client *c, const void *p, size_t n) {
    CHECK(n <= sizeof c->last);
    if (n) memcpy(c->last, p, n);
    return xpl_rpc_guard_feed(&c->g, c->last, n, c->now_ns, &c->shared);
}

static size_t put_frame(uint8_t *to, int type, int flags, uint32_t stream, const void *p,
                        size_t n) {
    const uint8_t head[9] = {
        (uint8_t)(n >> 16),      (uint8_t)(n >> 8),      (uint8_t)n,
        (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
    memcpy(to, head, sizeof head);
    if (n) memcpy(to + sizeof head, p, n);
    return sizeof head + n;
}

static enum xpl_rpc_guard_verdict frame(struct client *c, int type, int flags, uint32_t stream,
                                        const void *p, size_t n) {
    uint8_t b[4096];
    return feed(c, b, put_frame(b, type, flags, stream, p, n));
}

// The server's side.
static void sent(struct client *c, int type, int flags, uint32_t stream, size_t n) {
    static const uint8_t zeros[256];
    uint8_t b[512];
    xpl_rpc_guard_sent(&c->g, b, put_frame(b, type, flags, stream, zeros, n), &c->shared);
}

static struct client *connected(void) {
    struct client *const c = new_client();
    CHECK_EQ(feed(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, SETTINGS, 0, 0, NULL, 0), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, SETTINGS, ACK, 0, NULL, 0), XPL_RPC_GUARD_FINE);
    return c;
}

static void test_preface(void) {
    struct client *c = new_client();
    CHECK_EQ(feed(c, "PRI * HTTP", 10), XPL_RPC_GUARD_FINE);
    CHECK_EQ(feed(c, "/1.1\r\n", 6), XPL_RPC_GUARD_PREFACE);
    CHECK_EQ(feed(c, "PRI", 3), XPL_RPC_GUARD_PREFACE); // it is final
    end_client(c);
    c = new_client();
    CHECK_EQ(feed(c, "\x16\x03\x01", 3), XPL_RPC_GUARD_PREFACE); // TLS
    end_client(c);
    for (int i = 0; i < XPL_RPC_GUARD_VERDICTS; i++)
        CHECK(strlen(xpl_rpc_guard_explain((enum xpl_rpc_guard_verdict)i)) > 3);
}

// A call, and all of its message but for the last `missing` bytes of 900.
static enum xpl_rpc_guard_verdict begin_message(struct client *c, uint32_t id, size_t missing) {
    static const uint8_t message[905] = {0, 0, 0, 900 >> 8, 900 & 255};
    CHECK_EQ(frame(c, HEADERS, END_HEADERS, id, "xyz", 3), XPL_RPC_GUARD_FINE);
    return frame(c, DATA, 0, id, message, sizeof message - missing);
}

// Bytes held of incomplete messages, until they end, or their calls or the connection do.
static void test_held(void) {
    struct client *const c = connected();
    uint32_t id = 1;
    CHECK_EQ(begin_message(c, id, 1), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.held, 899);
    CHECK_EQ(frame(c, DATA, 0, id, "x\0\0\0", 4), XPL_RPC_GUARD_FINE); // and a part of a prefix
    CHECK_EQ(c->g.held, 0);
    CHECK_EQ(begin_message(c, id += 2, 500), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, RST_STREAM, 0, id, "\0\0\0\0", 4), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.held, 0);
    CHECK_EQ(begin_message(c, id += 2, 500), XPL_RPC_GUARD_FINE);
    sent(c, HEADERS, END_HEADERS | END_STREAM, id, 20);
    CHECK_EQ(c->g.held, 0);
    CHECK_EQ(begin_message(c, id += 2, 500), XPL_RPC_GUARD_FINE);
    CHECK_EQ(atomic_load(&c->shared.held), 400);
    end_client(c);
}

// Calls of one connection that do not end their messages, while others hold `others` bytes: how
// much it holds when it is closed, 0 when it is not.
static size_t held_at_end(size_t others, unsigned most) {
    struct client *const c = connected();
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    atomic_store(&c->shared.held, others);
    for (uint32_t i = 0; v == XPL_RPC_GUARD_FINE && i < most; i++)
        v = begin_message(c, 2 * i + 1, 1);
    CHECK(v == XPL_RPC_GUARD_FINE || v == XPL_RPC_GUARD_HELD);
    const size_t held = c->g.held;
    atomic_fetch_sub(&c->shared.held, others);
    end_client(c);
    return v == XPL_RPC_GUARD_FINE ? 0 : held;
}

static void test_held_by_all(void) {
    CHECK_EQ(held_at_end(0, 400), 0);
    CHECK_EQ(held_at_end(XPL_RPC_GUARD_ALL_BYTES, 400),
             0); // 400 KB do not exceed the others' share
    CHECK_EQ(held_at_end(XPL_RPC_GUARD_CROWDED_BYTES - 1000000, 400), 0);
    const size_t few = held_at_end(XPL_RPC_GUARD_CROWDED_BYTES, 400);
    CHECK(few > XPL_RPC_GUARD_FEW_BYTES && few <= XPL_RPC_GUARD_FEW_BYTES + 900);
    // One message of 3 MiB: only its connection may have that, and none may in addition to 32 MiB.
    for (int crowded = 0; crowded < 2; crowded++) {
        struct client *const c = connected();
        static const uint8_t head[5] = {0, 0, 48, 0, 0}, zeros[4000];
        enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
        c->g.max_message = 4 << 20;
        if (crowded) atomic_store(&c->shared.held, XPL_RPC_GUARD_ALL_BYTES);
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, 1, "x", 1), v);
        CHECK_EQ(frame(c, DATA, 0, 1, head, sizeof head), v);
        for (size_t n = 0; v == XPL_RPC_GUARD_FINE && n < (3 << 20) - sizeof zeros;
             n += sizeof zeros)
            v = frame(c, DATA, 0, 1, zeros, sizeof zeros);
        CHECK_EQ(v, crowded ? XPL_RPC_GUARD_HELD : XPL_RPC_GUARD_FINE);
        CHECK(!crowded || c->g.held <= XPL_RPC_GUARD_MANY_BYTES + sizeof zeros);
        if (crowded) atomic_fetch_sub(&c->shared.held, XPL_RPC_GUARD_ALL_BYTES);
        end_client(c);
    }
}

static struct xpl_rpc_guard *ended[32];
static int n_ended;

static void note_ended(struct xpl_rpc_guard *g) {
    CHECK((size_t)n_ended < sizeof ended / sizeof *ended);
    ended[n_ended++] = g;
}

static void skip_preface(struct xpl_rpc_guard *g, struct client *c) {
    uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    xpl_rpc_guard_init(g, MAX);
    CHECK_EQ(xpl_rpc_guard_feed(g, preface, sizeof preface - 1, c->now_ns, &c->shared),
             XPL_RPC_GUARD_FINE);
}

// `n` bytes of a message that is not complete, in a frame that has two more.
static enum xpl_rpc_guard_verdict send_part(struct xpl_rpc_guard *g, struct client *c, size_t n) {
    const size_t length = 5 + n + 2;
    uint8_t bytes[] = {0,
                       0,
                       1,
                       HEADERS,
                       END_HEADERS,
                       0,
                       0,
                       0,
                       1,
                       'x', // a call
                       (uint8_t)(length >> 16),
                       (uint8_t)(length >> 8),
                       (uint8_t)length,
                       DATA,
                       0,
                       0,
                       0,
                       0,
                       1,
                       0,
                       0,
                       63,
                       0,
                       0};
    g->max_message = 4 << 20;
    CHECK_EQ(xpl_rpc_guard_feed(g, bytes, sizeof bytes, c->now_ns, &c->shared), XPL_RPC_GUARD_FINE);
    uint8_t *const zeros = calloc(1, n);
    CHECK(zeros);
    const enum xpl_rpc_guard_verdict v = xpl_rpc_guard_feed(g, zeros, n, c->now_ns, &c->shared);
    free(zeros);
    return v;
}

// While those that leave still have theirs, all together are bounded.
static void expect_full(struct xpl_rpc_guard *g, struct client *c) {
    const size_t more = XPL_RPC_GUARD_FULL_BYTES - atomic_load(&c->shared.held);
    atomic_fetch_add(&c->shared.held, more);
    atomic_fetch_add(&c->shared.leaving, more);
    CHECK_EQ(send_part(g, c, XPL_RPC_GUARD_FEW_BYTES), XPL_RPC_GUARD_FINE);
    uint8_t byte = 0;
    CHECK_EQ(xpl_rpc_guard_feed(g, &byte, 1, c->now_ns, &c->shared), XPL_RPC_GUARD_HELD);
    atomic_fetch_sub(&c->shared.held, more);
    atomic_fetch_sub(&c->shared.leaving, more);
    xpl_rpc_guard_fini(g, &c->shared);
}

// Without room the oldest are closed, and not the sender.
static void test_oldest_go(void) {
    struct client *const c = connected();
    struct xpl_rpc_guard g[4];
    n_ended = 0;
    c->shared.end = note_ended;
    for (int i = 0; i < 4; i++) {
        skip_preface(&g[i], c);
        g[i].fd = i == 1 ? -1 : 7; // the second cannot be ended
    }
    const size_t others = XPL_RPC_GUARD_CROWDED_BYTES - 2500000;
    atomic_fetch_add(&c->shared.held, others);
    for (int i = 0; i < 3; i++, c->now_ns += SECOND) {
        CHECK_EQ(send_part(&g[i], c, 800000), XPL_RPC_GUARD_FINE);
        CHECK_EQ(n_ended, 0);
    }
    CHECK_EQ(send_part(&g[3], c, 1500000), XPL_RPC_GUARD_FINE);
    CHECK(n_ended == 2 && ended[0] == &g[0] && ended[1] == &g[2]);
    CHECK_EQ(atomic_load(&c->shared.leaving), 1600000);
    uint8_t byte = 0;
    struct xpl_rpc_guard late;
    skip_preface(&late, c);
    expect_full(&late, c);
    CHECK_EQ(xpl_rpc_guard_feed(&g[0], &byte, 1, c->now_ns, &c->shared), XPL_RPC_GUARD_HELD);
    // There is room without those that leave; and when none can be ended, the one that sends is.
    CHECK_EQ(xpl_rpc_guard_feed(&g[3], &byte, 1, c->now_ns, &c->shared), XPL_RPC_GUARD_FINE);
    xpl_rpc_guard_fini(&g[0], &c->shared);
    xpl_rpc_guard_fini(&g[2], &c->shared);
    CHECK_EQ(atomic_load(&c->shared.leaving), 0);
    atomic_fetch_add(&c->shared.held, 1600000);
    CHECK_EQ(xpl_rpc_guard_feed(&g[3], &byte, 1, c->now_ns, &c->shared), XPL_RPC_GUARD_HELD);
    CHECK_EQ(n_ended, 2);
    atomic_fetch_sub(&c->shared.held, others + 1600000);
    xpl_rpc_guard_fini(&g[1], &c->shared);
    xpl_rpc_guard_fini(&g[3], &c->shared);
    CHECK(!c->shared.holders);
    end_client(c);
}

// Above what all may have, too, the oldest go: many that hold little and are silent cannot keep
// others out for good.
static void test_full_of_silent(void) {
    enum { SILENT = 20, PART = 2000000 };
    struct client *const c = connected();
    struct xpl_rpc_guard g[SILENT], late;
    n_ended = 0;
    c->shared.end = note_ended;
    for (int i = 0; i < SILENT; i++) {
        skip_preface(&g[i], c);
        g[i].fd = 7;
        CHECK_EQ(send_part(&g[i], c, PART), XPL_RPC_GUARD_FINE);
        c->now_ns += SECOND;
    }
    const size_t others = XPL_RPC_GUARD_FULL_BYTES - SILENT * PART; // of whom each has very little
    atomic_fetch_add(&c->shared.held, others);
    skip_preface(&late, c);
    CHECK_EQ(send_part(&late, c, PART), XPL_RPC_GUARD_HELD);
    CHECK(n_ended > 0 && ended[0] == &g[0]);
    CHECK(atomic_load(&c->shared.held) - atomic_load(&c->shared.leaving) <=
          XPL_RPC_GUARD_CROWDED_BYTES);
    xpl_rpc_guard_fini(&late, &c->shared);
    for (int i = 0; i < n_ended; i++)
        xpl_rpc_guard_fini(ended[i], &c->shared);
    skip_preface(&late, c);
    CHECK_EQ(send_part(&late, c, PART), XPL_RPC_GUARD_FINE);
    xpl_rpc_guard_fini(&late, &c->shared);
    for (int i = 0; i < SILENT; i++)
        if (!atomic_load(&g[i].ended)) xpl_rpc_guard_fini(&g[i], &c->shared);
    atomic_fetch_sub(&c->shared.held, others);
    CHECK(!c->shared.holders);
    end_client(c);
}

static void test_calls(void) {
    struct client *const c = connected();
    static const uint8_t message[8] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
    for (uint32_t id = 1; id < 20000; id += 2) { // any number, one after the other
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, id, "xyz", 3), XPL_RPC_GUARD_FINE);
        CHECK_EQ(frame(c, DATA, END_STREAM, id, message, sizeof message), XPL_RPC_GUARD_FINE);
        CHECK(memcmp(c->last + 9, message, sizeof message) == 0);
        sent(c, HEADERS, END_HEADERS, id, 20);
        sent(c, DATA, 0, id, 200);
        CHECK_EQ(c->g.n_calls, 1); // until the answer is complete
        CHECK_EQ(atomic_load(&c->shared.calls), 1);
        sent(c, HEADERS, END_HEADERS | END_STREAM, id, 20);
        CHECK_EQ(c->g.n_calls, 0);
        CHECK_EQ(atomic_load(&c->shared.calls), 0);
    }
    CHECK_EQ(frame(c, HEADERS, END_HEADERS | END_STREAM, 20001, "xyz", 3), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.n_calls, 1);
    CHECK_EQ(frame(c, DATA, 0, 20001, "x", 1), XPL_RPC_GUARD_UNKNOWN);
    end_client(c);
}

// A stream that only a server may open would hide all calls of lower ids.
static void test_even_streams(void) {
    static const uint32_t ids[] = {0, 2, 0x7ffffffe};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct client *const c = connected();
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, 1, "xyz", 3), XPL_RPC_GUARD_FINE);
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, ids[i], "xyz", 3), XPL_RPC_GUARD_UNKNOWN);
        CHECK_EQ(c->g.n_calls, 1);
        end_client(c);
    }
}

static void put_prefix(uint8_t to[5], uint32_t n) {
    const uint8_t p[5] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(to, p, 5);
}

static uint32_t prefix_of(const struct client *c, size_t at) {
    const uint8_t *const p = c->last + at;
    return (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
}

// What becomes of a prefix at the beginning of a frame.
static void test_lengths(void) {
    static const uint32_t lengths[] = {0, 1, MAX, MAX + 1, 4 * MAX, 4 * MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct client *const c = connected();
        const uint32_t n = lengths[i];
        uint8_t p[5];
        put_prefix(p, n);
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, 1, "x", 1), XPL_RPC_GUARD_FINE);
        CHECK_EQ(frame(c, DATA, 0, 1, p, 5), XPL_RPC_GUARD_FINE);
        CHECK_EQ(c->last[4], n > 4 * MAX ? END_STREAM : 0); // the frame's flags
        CHECK_EQ(prefix_of(c, 9), n > MAX && n <= 4 * MAX ? MAX + 1 : n);
        if (n > 4 * MAX) // what still comes is gRPC's to drop
            CHECK_EQ(frame(c, DATA, END_STREAM, 1, p, 5), XPL_RPC_GUARD_FINE);
        end_client(c);
    }
}

// Messages behind each other, over the edges of frames, and with padding.
static void test_messages(void) {
    struct client *const c = connected();
    uint8_t b[64] = {0};
    CHECK_EQ(frame(c, HEADERS, END_HEADERS, 1, "x", 1), XPL_RPC_GUARD_FINE);
    put_prefix(b, 3);
    put_prefix(b + 8, 4); // 5 + 3 bytes, then 5 + 2 of 4
    CHECK_EQ(frame(c, DATA, 0, 1, b, 15), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.calls[0].left, 2);
    memset(b, 9, sizeof b);
    b[0] = 3; // two bytes of the message, three of padding
    CHECK_EQ(frame(c, DATA, PADDED, 1, b, 6), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.calls[0].left, 0);
    b[0] = 200; // more padding than there are bytes: gRPC's error; nothing of the message
    CHECK_EQ(frame(c, DATA, PADDED, 1, b, 4), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->g.calls[0].prefix, 5);
    // The prefix comes in two frames: the length can still be changed while its first byte is here.
    put_prefix(b, 2 * MAX);
    CHECK_EQ(frame(c, DATA, 0, 1, b, 1), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, DATA, 0, 1, b + 1, 4), XPL_RPC_GUARD_FINE);
    CHECK_EQ(prefix_of(c, 8), MAX + 1);
    // A second message of a stream is not its end, however long it is.
    CHECK_EQ(frame(c, HEADERS, END_HEADERS, 5, "x", 1), XPL_RPC_GUARD_FINE);
    put_prefix(b, 0);
    put_prefix(b + 5, UINT32_MAX);
    CHECK_EQ(frame(c, DATA, 0, 5, b, 10), XPL_RPC_GUARD_FINE);
    CHECK_EQ(c->last[4], 0);
    CHECK_EQ(prefix_of(c, 14), MAX + 1);
    put_prefix(b, 2 * MAX);
    // Then not any more.
    CHECK_EQ(frame(c, HEADERS, END_HEADERS, 7, "x", 1), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, DATA, 0, 7, b, 3), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, DATA, 0, 7, b + 3, 2), XPL_RPC_GUARD_MESSAGE);
    end_client(c);
}

static void test_headers(void) {
    struct client *c = connected();
    uint8_t b[4000] = {0};
    enum xpl_rpc_guard_verdict v = frame(c, HEADERS, 0, 1, b, sizeof b);
    size_t n = sizeof b;
    for (; v == XPL_RPC_GUARD_FINE && n < 1 << 20; n += sizeof b)
        v = frame(c, CONTINUATION, 0, 1, b, sizeof b);
    CHECK_EQ(v, XPL_RPC_GUARD_HEADERS);
    CHECK(n > XPL_RPC_GUARD_HEADER_BYTES && n < XPL_RPC_GUARD_HEADER_BYTES + 2 * sizeof b);
    end_client(c);
    c = connected(); // frames without bytes
    v = frame(c, HEADERS, 0, 1, NULL, 0);
    for (n = 1; v == XPL_RPC_GUARD_FINE && n < 1000; n++)
        v = frame(c, CONTINUATION, 0, 1, NULL, 0);
    CHECK_EQ(v, XPL_RPC_GUARD_HEADERS);
    CHECK_EQ(n, XPL_RPC_GUARD_HEADER_FRAMES + 1);
    end_client(c);
    c = connected(); // the head is enough
    static const uint8_t head[9] = {0xff, 0xff, 0xff, HEADERS, END_HEADERS, 0, 0, 0, 1};
    CHECK_EQ(feed(c, head, sizeof head), XPL_RPC_GUARD_HEADERS);
    end_client(c);
}

// How many of a frame are taken at once, and whether some more are after a while.
static void check_flood(int type, int flags, bool open, size_t least, size_t most,
                        enum xpl_rpc_guard_verdict what) {
    struct client *const c = connected();
    static const uint8_t payload[8];
    size_t n = 0;
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    for (; v == XPL_RPC_GUARD_FINE && n <= most; n++) {
        const uint32_t id = (uint32_t)(2 * n + 1);
        if (open) v = frame(c, HEADERS, END_HEADERS, id, "x", 1);
        if (v == XPL_RPC_GUARD_FINE)
            v = frame(c, type, flags, open ? id : 0, payload, open ? 4 : 8);
        if (n == least / 2) c->now_ns += SECOND / 1000;
    }
    CHECK_EQ(v, what);
    CHECK(n >= least && n <= most);
    end_client(c);
}

static void test_floods(void) {
    check_flood(RST_STREAM, 0, true, 4000, 4200, XPL_RPC_GUARD_RESETS);
    check_flood(SETTINGS, 0, false, 60, 70, XPL_RPC_GUARD_SETTINGS);
    check_flood(SETTINGS, ACK, false, 19000, 21000, XPL_RPC_GUARD_CONTROL);
    check_flood(PING, 0, false, 19000, 21000, XPL_RPC_GUARD_CONTROL);
    check_flood(GOAWAY, 0, false, 60, 70, XPL_RPC_GUARD_CONTROL);
    check_flood(PRIORITY, 0, false, 19000, 21000, XPL_RPC_GUARD_CONTROL);
    check_flood(99, 0, false, 19000, 21000, XPL_RPC_GUARD_CONTROL);
    check_flood(WINDOW_UPDATE, 0, false, 199000, 201000, XPL_RPC_GUARD_CONTROL);
    // At an allowed rate the connection stays open.
    struct client *const c = connected();
    for (uint32_t i = 0; i < 20000; i++) {
        c->now_ns += SECOND / 900;
        CHECK_EQ(frame(c, HEADERS, END_HEADERS, 2 * i + 1, "x", 1), XPL_RPC_GUARD_FINE);
        CHECK_EQ(frame(c, RST_STREAM, 0, 2 * i + 1, "\0\0\0\10", 4), XPL_RPC_GUARD_FINE);
    }
    CHECK_EQ(c->g.n_calls, 0);
    end_client(c);
}

// Several connections share a budget.
static void test_shared(void) {
    struct client *const c = connected();
    struct xpl_rpc_guard others[9];
    uint8_t b[64];
    const size_t all = 4096;
    size_t n = 0;
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    for (int i = 0; i < 9; i++) {
        xpl_rpc_guard_init(&others[i], MAX);
        memcpy(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        CHECK_EQ(xpl_rpc_guard_feed(&others[i], b, 24, c->now_ns, &c->shared), XPL_RPC_GUARD_FINE);
    }
    for (; v == XPL_RPC_GUARD_FINE; n++) {
        const size_t len = put_frame(b, RST_STREAM, 0, 1, "\0\0\0\0", 4);
        v = xpl_rpc_guard_feed(&others[n % 8], b, len, c->now_ns, &c->shared);
    }
    CHECK_EQ(v, XPL_RPC_GUARD_RESETS);
    CHECK_EQ(n, all + 1);
    // Who resets a few calls meanwhile goes on.
    v = XPL_RPC_GUARD_FINE;
    for (n = 0; v == XPL_RPC_GUARD_FINE && n < 100; n++) {
        const size_t len = put_frame(b, RST_STREAM, 0, 1, "\0\0\0\0", 4);
        v = xpl_rpc_guard_feed(&others[8], b, len, c->now_ns, &c->shared);
    }
    CHECK_EQ(n, XPL_RPC_GUARD_FEW_RESETS + 1);
    for (int i = 0; i < 9; i++)
        xpl_rpc_guard_fini(&others[i], &c->shared);
    // Unfinished calls: of too many in all, only a connection with many is closed.
    atomic_store(&c->shared.calls, XPL_RPC_GUARD_ALL_CALLS);
    v = XPL_RPC_GUARD_FINE;
    for (n = 0; v == XPL_RPC_GUARD_FINE && n < 100; n++)
        v = frame(c, HEADERS, END_HEADERS, (uint32_t)(2 * n + 1), "x", 1);
    CHECK_EQ(v, XPL_RPC_GUARD_OPEN);
    CHECK_EQ(n, XPL_RPC_GUARD_FEW_CALLS + 1);
    CHECK_EQ(atomic_load(&c->shared.calls), XPL_RPC_GUARD_ALL_CALLS + n);
    atomic_fetch_sub(&c->shared.calls, XPL_RPC_GUARD_ALL_CALLS);
    end_client(c);
}

// Connections are read by several threads, each with a clock that it read a little before: what the
// others noted meanwhile is later.
static void test_clocks(void) {
    struct client *const c = connected();
    struct xpl_rpc_guard other;
    uint8_t b[64];
    size_t n = 0;
    xpl_rpc_guard_init(&other, MAX);
    memcpy(b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    CHECK_EQ(xpl_rpc_guard_feed(&other, b, 24, c->now_ns, &c->shared), XPL_RPC_GUARD_FINE);
    CHECK_EQ(frame(c, RST_STREAM, 0, 1, "\0\0\0\0", 4), XPL_RPC_GUARD_FINE);
    c->shared.resets.left = 100;
    for (enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE; v == XPL_RPC_GUARD_FINE && n < 200;
         n++) {
        const size_t len = put_frame(b, RST_STREAM, 0, 1, "\0\0\0\0", 4);
        v = xpl_rpc_guard_feed(&other, b, len, c->now_ns - n % 2, &c->shared);
    }
    CHECK_EQ(n, 101);
    CHECK_EQ(c->shared.resets.at_ns, c->now_ns);
    xpl_rpc_guard_fini(&other, &c->shared);
    end_client(c);
}

// How many calls may be opened before one is answered, whether the client has acknowledged the
// server's settings or not, and whether it has sent its messages or not.
static void test_unanswered(void) {
    for (int kind = 0; kind < 4; kind++) {
        struct client *const c = kind & 1 ? connected() : new_client();
        const int flags = kind & 2 ? END_HEADERS | END_STREAM : END_HEADERS;
        enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
        uint32_t n = 0;
        if (!(kind & 1)) CHECK_EQ(feed(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), v);
        for (; v == XPL_RPC_GUARD_FINE && n < 2 * XPL_RPC_GUARD_CALLS; n++)
            v = frame(c, HEADERS, flags, 2 * n + 1, "x", 1);
        CHECK_EQ(v, XPL_RPC_GUARD_OPEN);
        CHECK_EQ(n, XPL_RPC_GUARD_CALLS + 1);
        end_client(c);
    }
}

// A good client at full speed: 256 calls at any time, as it sees them, each answered, reset by it
// or refused early; what the server wrote is noted only after the client's next calls have come.
static void test_full_speed(void) {
    enum { AT_ONCE = 256, ROUNDS = 200 };
    struct client *const c = connected();
    for (uint32_t round = 0; round <= ROUNDS; round++) {
        const uint32_t first = 2 * AT_ONCE * round + 1;
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            const int flags = i % 3 ? END_HEADERS : END_HEADERS | END_STREAM;
            CHECK_EQ(frame(c, HEADERS, flags, first + 2 * i, "x", 1), XPL_RPC_GUARD_FINE);
        }
        for (uint32_t i = 0; round && i < AT_ONCE; i++) {
            const uint32_t id = first - 2 * AT_ONCE + 2 * i;
            const bool reset = i % 64 == 1; // both sides end it
            if (reset) CHECK_EQ(frame(c, RST_STREAM, 0, id, "\0\0\0\10", 4), XPL_RPC_GUARD_FINE);
            sent(c, HEADERS, END_HEADERS | END_STREAM, id, 30);
            sent(c, RST_STREAM, 0, id, 4); // as gRPC does when the client's side is open
            if (i % 3 && !reset)           // the client had not seen it yet
                CHECK_EQ(frame(c, DATA, END_STREAM, id, "\0\0\0\0\0", 5), XPL_RPC_GUARD_FINE);
        }
        CHECK_EQ(c->g.n_calls, AT_ONCE);
        CHECK_EQ(atomic_load(&c->shared.calls), AT_ONCE);
        c->now_ns += SECOND / 100;
    }
    end_client(c);
}

// Errors that make the server reset (CVE-2025-8671) are counted as the client's resets are.
static void test_made_resets(void) {
    struct client *const c = connected();
    enum xpl_rpc_guard_verdict v = XPL_RPC_GUARD_FINE;
    uint32_t n = 0;
    for (; v == XPL_RPC_GUARD_FINE && n < 10000; n++) {
        v = frame(c, HEADERS, END_HEADERS, 2 * n + 1, "x", 1);
        sent(c, RST_STREAM, 0, 2 * n + 1, 4);
        sent(c, RST_STREAM, 0, 2 * n + 1, 4); // the second says nothing
    }
    CHECK_EQ(v, XPL_RPC_GUARD_RESETS);
    CHECK(n >= 4000 && n <= 4200);
    CHECK_EQ(c->g.n_calls, 0);
    end_client(c);
}

// The server's bytes in pieces of any size.
static void test_sent_bytes(void) {
    uint8_t all[512], zeros[100] = {0};
    size_t n = put_frame(all, SETTINGS, 0, 0, zeros, 30);
    n += put_frame(all + n, SETTINGS, ACK, 0, NULL, 0);
    n += put_frame(all + n, HEADERS, END_HEADERS, 1, zeros, 11);
    n += put_frame(all + n, DATA, 0, 1, zeros, 100);
    n += put_frame(all + n, DATA, END_STREAM, 1, NULL, 0);
    n += put_frame(all + n, WINDOW_UPDATE, 0, 0, zeros, 4);
    n += put_frame(all + n, HEADERS, END_HEADERS | END_STREAM, 3, zeros, 1);
    n += put_frame(all + n, RST_STREAM, 0, 5, zeros, 4);
    n += put_frame(all + n, PING, ACK, 0, zeros, 8);
    for (size_t step = 1; step <= n; step++) {
        struct client *const c = connected();
        for (uint32_t id = 1; id <= 7; id += 2)
            CHECK_EQ(frame(c, HEADERS, END_HEADERS, id, "x", 1), XPL_RPC_GUARD_FINE);
        for (size_t at = 0; at < n; at += step)
            xpl_rpc_guard_sent(&c->g, all + at, n - at < step ? n - at : step, &c->shared);
        CHECK_EQ(c->g.n_calls, 1);
        CHECK_EQ(c->g.calls[0].id, 7);
        CHECK_EQ(c->g.sent_head.n, 0);
        end_client(c);
    }
}

static void test_bytes(void) {
    uint8_t all[512], prefix[5];
    size_t n = 24;
    put_prefix(prefix, 7);
    memcpy(all, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    n += put_frame(all + n, SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
    n += put_frame(all + n, HEADERS, END_HEADERS, 1, "abc", 3);
    n += put_frame(all + n, DATA, 0, 1, prefix, 5);
    n += put_frame(all + n, DATA, PADDED, 1, "\2abcde\0\0", 8);
    n += put_frame(all + n, DATA, END_STREAM, 1, "fg", 2);
    n += put_frame(all + n, HEADERS, END_HEADERS, 3, "abc", 3);
    for (size_t step = 1; step <= n; step++) {
        struct client *const c = new_client();
        for (size_t at = 0; at < n; at += step)
            CHECK_EQ(feed(c, all + at, n - at < step ? n - at : step), XPL_RPC_GUARD_FINE);
        CHECK_EQ(c->g.n_calls, 2);
        CHECK(c->g.calls[0].asked && !c->g.calls[1].asked);
        CHECK_EQ(c->g.calls[1].id, 3);
        CHECK_EQ(c->g.head.n, 0);
        end_client(c);
    }
}

#if XPL_FAULTS
static void test_memory(void) {
    struct client *const c = connected();
    xpl_fault_reset();
    xpl_fault_fail_on(0);
    CHECK_EQ(frame(c, HEADERS, END_HEADERS, 1, "x", 1), XPL_RPC_GUARD_MEMORY);
    xpl_fault_fail_on(UINT64_MAX);
    end_client(c);
}
#endif

int main(void) {
    test_preface();
    test_calls();
    test_held();
    test_held_by_all();
    test_oldest_go();
    test_full_of_silent();
    test_even_streams();
    test_lengths();
    test_messages();
    test_headers();
    test_floods();
    test_shared();
    test_clocks();
    test_unanswered();
    test_full_speed();
    test_made_resets();
    test_sent_bytes();
    test_bytes();
#if XPL_FAULTS
    test_memory();
#endif
    return 0;
}
