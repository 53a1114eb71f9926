// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen/announced.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"

enum {
    PREFIX = 5,
    MAX_BLOCK = 64 << 10, // bytes of headers; gRPC takes 8 KiB
    TINY = 256,           // bytes of a frame; gRPC's servers fill 16 KiB
    FOR_TINY = 1024,      // bytes of larger frames that make up for a tiny one
};
// Short answers and ends of answers are tiny, too, and a connection may be used for weeks.
static const struct xpl_rpc_rate TINY_FRAMES = {8192, 256};

// ---- one connection ----

// Counts frames that cost gRPC more than an answer's bytes.
static void weigh_frame(struct xpl_rpc_announced *a, uint64_t now_ns) {
    const uint8_t type = xpl_rpc_frame_type(&a->head);
    if (type == XPL_RPC_FRAME_HEADERS || type == XPL_RPC_FRAME_CONTINUATION) {
        a->block += a->left;
        a->floods |= a->block > MAX_BLOCK;
        if (xpl_rpc_frame_flags(&a->head) & XPL_RPC_FRAME_END_HEADERS) a->block = 0;
    } else if (type == XPL_RPC_FRAME_DATA && a->left < TINY) {
        a->floods |= !xpl_rpc_spend(&a->tiny, &TINY_FRAMES, now_ns);
    } else if (type == XPL_RPC_FRAME_DATA) {
        a->tiny.left += (double)a->left / FOR_TINY;
    }
}

static void begin_frame(struct xpl_rpc_announced *a, uint64_t now_ns) {
    const uint8_t type = xpl_rpc_frame_type(&a->head);
    const uint32_t stream = xpl_rpc_frame_stream(&a->head);
    a->left = xpl_rpc_frame_payload(&a->head);
    weigh_frame(a, now_ns);
    a->other = !a->begun && (type != XPL_RPC_FRAME_SETTINGS || stream);
    a->begun = true;
    a->padding = xpl_rpc_frame_padding(&a->head);
    // A client's calls are 1, 3 and so on; data of earlier calls is ignored.  If a stream begins
    // before the last has ended, the server may have invented it, to hide the length of the true
    // one.
    const bool of_call = type == XPL_RPC_FRAME_HEADERS || type == XPL_RPC_FRAME_DATA;
    if (of_call && stream > a->stream) {
        a->hidden |= a->open || stream != (a->stream ? a->stream + 2 : 1);
        a->stream = stream;
        a->open = true;
        a->n_prefix = 0;
        a->length = a->missing = 0;
    }
    a->follows = type == XPL_RPC_FRAME_DATA && stream == a->stream;
    const bool ends = of_call && xpl_rpc_frame_flags(&a->head) & XPL_RPC_FRAME_END_STREAM;
    if (stream == a->stream && (type == XPL_RPC_FRAME_RESET || ends)) a->open = false;
}

// Bytes of messages, which follow each other.
static void follow_messages(struct xpl_rpc_announced *a, const uint8_t *p, size_t n) {
    while (n) {
        if (a->n_prefix < PREFIX) {
            a->prefix[a->n_prefix++] = *p++;
            n--;
            if (a->n_prefix < PREFIX) continue;
            a->missing = 0;
            for (size_t i = 1; i < PREFIX; i++) // behind the flag of compression
                a->missing = a->missing << 8 | a->prefix[i];
            a->length = a->missing ? a->missing : 1;
        } else {
            const size_t part = n < a->missing ? n : (size_t)a->missing;
            a->missing -= part;
            p += part, n -= part;
        }
        if (a->n_prefix == PREFIX && !a->missing) a->n_prefix = 0;
    }
}

static void follow_payload(struct xpl_rpc_announced *a, const uint8_t *p, size_t n) {
    a->left -= (uint32_t)n;
    if (!a->follows) return;
    const size_t from = xpl_rpc_frame_data(&a->padding, a->left, p, &n);
    follow_messages(a, p + from, n);
}

void xpl_rpc_announced_feed(struct xpl_rpc_announced *a, const uint8_t *p, size_t n,
                            uint64_t now_ns) {
    while (n && !a->other) {
        size_t part;
        if (!xpl_rpc_frame_whole(&a->head)) {
            part = xpl_rpc_frame_take(&a->head, p, n);
            if (xpl_rpc_frame_whole(&a->head)) begin_frame(a, now_ns);
        } else {
            part = n < a->left ? n : a->left;
            follow_payload(a, p, part);
        }
        if (xpl_rpc_frame_whole(&a->head) && !a->left) a->head.n = 0;
        p += part, n -= part;
    }
}

// ---- all of them ----

enum { MAX_FD = 1 << 16 };

struct connection {
    struct xpl_rpc_announced bytes;
    char peer[XPL_RPC_PEER_SIZE];
};

// The mutex protects readers: a connection's own thread finds its entry without it.
static struct connection *_Atomic by_fd[MAX_FD];
static atomic_int max_fd;
static atomic_bool enabled;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

void xpl_rpc_announced_enable(void) {
    atomic_store(&enabled, true);
}

bool xpl_rpc_peer_text(const struct sockaddr *from, char peer[XPL_RPC_PEER_SIZE]) {
    const struct sockaddr_in *const v4 = (const struct sockaddr_in *)(const void *)from;
    const struct sockaddr_in6 *const v6 = (const struct sockaddr_in6 *)(const void *)from;
    const bool is_v6 = from->sa_family == AF_INET6;
    const bool mapped = is_v6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
    const unsigned port = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
    char text[INET6_ADDRSTRLEN];
    (void)snprintf(peer, XPL_RPC_PEER_SIZE, "%s", from->sa_family == AF_UNIX ? "unix:" : "");
    if (from->sa_family == AF_UNIX) return true;
    if (from->sa_family != AF_INET && !is_v6) return false;
    const void *const address = mapped  ? &v6->sin6_addr.s6_addr[12]
                                : is_v6 ? (const void *)&v6->sin6_addr
                                        : &v4->sin_addr;
    const bool four = !is_v6 || mapped;
    if (inet_ntop(four ? AF_INET : AF_INET6, address, text, sizeof text))
        (void)snprintf(peer, XPL_RPC_PEER_SIZE, four ? "ipv4:%s:%u" : "ipv6:%%5B%s%%5D:%u", text,
                       port);
    return peer[0] != '\0';
}

bool xpl_rpc_peer_of(int fd, char peer[XPL_RPC_PEER_SIZE]) {
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    peer[0] = '\0';
    return getpeername(fd, (struct sockaddr *)&from, &size) == 0 &&
           xpl_rpc_peer_text((const struct sockaddr *)&from, peer);
}

static struct connection *add_connection(int fd) {
    struct connection *const c = xpl_sys_alloc(sizeof *c);
    if (!c) return NULL;
    *c = (struct connection){.bytes = {.begun = false}};
    c->bytes.other = !xpl_rpc_peer_of(fd, c->peer);
    pthread_mutex_lock(&mu);
    if (fd > atomic_load(&max_fd)) atomic_store(&max_fd, fd);
    atomic_store(&by_fd[fd], c);
    pthread_mutex_unlock(&mu);
    return c;
}

ssize_t xpl_rpc_announced_received(int fd, const struct msghdr *m, ssize_t n) {
    if (fd < 0 || fd >= MAX_FD || n <= 0 || !atomic_load_explicit(&enabled, memory_order_relaxed))
        return n;
    struct connection *c = atomic_load(&by_fd[fd]);
    if (!c) c = add_connection(fd); // without memory, the following bytes do not count as HTTP/2
    if (!c || c->bytes.other) return n;
    const uint64_t now_ns = xpl_clock_ns();
    size_t left = (size_t)n;
    pthread_mutex_lock(&mu);
    for (size_t i = 0; left && i < m->msg_iovlen; i++) {
        const struct iovec *const v = &m->msg_iov[i];
        const size_t part = v->iov_len < left ? v->iov_len : left;
        xpl_rpc_announced_feed(&c->bytes, v->iov_base, part, now_ns);
        left -= part;
    }
    const bool floods = c->bytes.floods && !c->bytes.other;
    pthread_mutex_unlock(&mu);
    if (!floods) return n;
    errno = ECONNRESET;
    return -1;
}

void xpl_rpc_announced_close(int fd) {
    if (fd < 0 || fd >= MAX_FD || !atomic_load_explicit(&by_fd[fd], memory_order_relaxed)) return;
    pthread_mutex_lock(&mu);
    xpl_sys_free(atomic_exchange(&by_fd[fd], NULL));
    pthread_mutex_unlock(&mu);
}

uint64_t xpl_rpc_announced_by(const char *peer) {
    uint64_t most = 0;
    bool known = false;
    pthread_mutex_lock(&mu);
    for (int fd = 0; fd <= atomic_load(&max_fd); fd++) {
        const struct connection *const c = atomic_load(&by_fd[fd]);
        if (!c || c->bytes.other || c->bytes.hidden || strcmp(c->peer, peer) != 0) continue;
        known = true;
        if (c->bytes.length > most) most = c->bytes.length;
    }
    pthread_mutex_unlock(&mu);
    return known ? most : XPL_RPC_ANNOUNCED_UNKNOWN;
}
