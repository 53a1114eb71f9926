// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen/guarded.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "base/arena.h"
#include "base/clock.h"

// Descriptors are small numbers: a table, whose pages are there when they are used.
enum { MAX_FD = 1 << 18 };
static struct xpl_rpc_guard *_Atomic by_fd[MAX_FD];

static size_t max_request; // 0: no guards
static atomic_ullong counts[XPL_RPC_GUARD_VERDICTS];

static void count_closed(struct xpl_rpc_guard *g, enum xpl_rpc_guard_verdict v) {
    if (!atomic_exchange(&g->told, true)) atomic_fetch_add(&counts[v], 1);
}

// gRPC finds the connection's end, closes it, and frees the bytes that it holds.  The descriptor is
// not closed before its guard has left the list.
static void end_connection(struct xpl_rpc_guard *g) {
    count_closed(g, XPL_RPC_GUARD_HELD);
    (void)shutdown(g->fd, SHUT_RDWR);
}

static struct xpl_rpc_guard_shared shared = {.mu = PTHREAD_MUTEX_INITIALIZER,
                                             .end = end_connection};

void xpl_rpc_guarded_enable(size_t max_message) {
    max_request = max_message;
}

bool xpl_rpc_guarded_enabled(void) {
    return max_request != 0;
}

struct xpl_rpc_guard *xpl_rpc_guarded_new(void) {
    struct xpl_rpc_guard *const g = xpl_sys_alloc(sizeof *g);
    if (g) xpl_rpc_guard_init(g, max_request);
    return g;
}

void xpl_rpc_guarded_free(struct xpl_rpc_guard *g) {
    if (!g) return;
    xpl_rpc_guard_fini(g, &shared);
    xpl_sys_free(g);
}

bool xpl_rpc_guarded_feed(struct xpl_rpc_guard *g, uint8_t *p, size_t n) {
    const enum xpl_rpc_guard_verdict v = xpl_rpc_guard_feed(g, p, n, xpl_clock_ns(), &shared);
    if (v != XPL_RPC_GUARD_FINE) count_closed(g, v);
    return v == XPL_RPC_GUARD_FINE;
}

void xpl_rpc_guarded_note_sent(struct xpl_rpc_guard *g, const uint8_t *p, size_t n) {
    xpl_rpc_guard_sent(g, p, n, &shared);
}

bool xpl_rpc_guarded_add(int fd, const struct sockaddr *from) {
    if (!max_request) return true;
    if (fd < 0 || fd >= MAX_FD) return false;
    struct xpl_rpc_guard *const g = xpl_rpc_guarded_new();
    if (!g) return false;
    g->fd = fd;
    (void)xpl_rpc_peer_text(from, g->peer);
    xpl_rpc_guarded_free(atomic_exchange(&by_fd[fd], g));
    return true;
}

void xpl_rpc_guarded_close(int fd) {
    if (fd < 0 || fd >= MAX_FD || !atomic_load_explicit(&by_fd[fd], memory_order_relaxed)) return;
    pthread_mutex_lock(&shared.mu); // not while another thread ends it
    struct xpl_rpc_guard *const g = atomic_exchange(&by_fd[fd], NULL);
    pthread_mutex_unlock(&shared.mu);
    xpl_rpc_guarded_free(g);
}

bool xpl_rpc_guarded_end_unused(int fd, enum xpl_rpc_guard_use at_most) {
    if (fd < 0 || fd >= MAX_FD || !atomic_load_explicit(&by_fd[fd], memory_order_relaxed))
        return false;
    pthread_mutex_lock(&shared.mu); // gRPC cannot close it meanwhile
    const struct xpl_rpc_guard *const g = atomic_load(&by_fd[fd]);
    const bool ends = g && atomic_load_explicit(&g->use, memory_order_relaxed) <= at_most;
    if (ends) (void)shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&shared.mu);
    return ends;
}

static struct xpl_rpc_guard *find_guard(int fd) {
    return fd >= 0 && fd < MAX_FD ? atomic_load_explicit(&by_fd[fd], memory_order_acquire) : NULL;
}

bool xpl_rpc_guarded_has(int fd) {
    return find_guard(fd) != NULL;
}

bool xpl_rpc_guarded_get_peer(int fd, char peer[XPL_RPC_PEER_SIZE]) {
    pthread_mutex_lock(&shared.mu); // the connection's thread may close it meanwhile
    const struct xpl_rpc_guard *const g = find_guard(fd);
    if (g) memcpy(peer, g->peer, sizeof g->peer);
    pthread_mutex_unlock(&shared.mu);
    return g != NULL;
}

void xpl_rpc_guarded_sent(int fd, const struct msghdr *m, ssize_t n) {
    struct xpl_rpc_guard *const g = find_guard(fd);
    size_t left = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; g && left && i < m->msg_iovlen; i++) {
        const struct iovec *const v = &m->msg_iov[i];
        const size_t part = v->iov_len < left ? v->iov_len : left;
        left -= part;
        xpl_rpc_guarded_note_sent(g, v->iov_base, part);
    }
}

ssize_t xpl_rpc_guarded_received(int fd, const struct msghdr *m, ssize_t n) {
    struct xpl_rpc_guard *const g = find_guard(fd);
    size_t left = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; g && left && i < m->msg_iovlen; i++) {
        const struct iovec *const v = &m->msg_iov[i];
        const size_t part = v->iov_len < left ? v->iov_len : left;
        left -= part;
        if (xpl_rpc_guarded_feed(g, v->iov_base, part)) continue;
        errno = ECONNRESET;
        return -1;
    }
    return n;
}

void xpl_rpc_guarded_get_counts(uint64_t ret[XPL_RPC_GUARD_VERDICTS]) {
    for (size_t i = 0; i < XPL_RPC_GUARD_VERDICTS; i++)
        ret[i] = atomic_load(&counts[i]);
}
