// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen/connections.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "rpc/listen/guarded.h"

// Sweeps that a refusal may cause: a flood of connections must not make each one cost a system call
// for every other.
enum { SWEEP_MS = 20 };

struct connection {
    int fd;
    ino_t socket;
    struct xpl_peer peer;
};

struct xpl_rpc_connections {
    size_t max, per_address, n;
    uint64_t swept_ns;
    atomic_size_t open;
    atomic_ullong accepted, refused_total, refused_address, refused_descriptors;
    struct connection all[];
};

struct xpl_rpc_connections *xpl_rpc_connections_new(const struct xpl_rpc_connections_options *o) {
    struct xpl_rpc_connections *const c = xpl_sys_alloc(sizeof *c + o->max * sizeof c->all[0]);
    if (!c) return NULL;
    *c = (struct xpl_rpc_connections){.max = o->max, .per_address = o->per_address};
    return c;
}

void xpl_rpc_connections_free(struct xpl_rpc_connections *c) {
    xpl_sys_free(c);
}

// The inode of an open socket; 0 when the descriptor is closed.
static ino_t socket_of(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

void xpl_rpc_connections_sweep(struct xpl_rpc_connections *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++)
        if (socket_of(c->all[i].fd) == c->all[i].socket) c->all[kept++] = c->all[i];
    c->n = kept;
    c->swept_ns = xpl_clock_ns();
    atomic_store(&c->open, kept);
}

static size_t count_of(const struct xpl_rpc_connections *c, const struct xpl_peer *peer) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += xpl_peer_equal(&c->all[i].peer, peer);
    return n;
}

// Whether the peer's address has all connections that one may have.
static bool has_many(const struct xpl_rpc_connections *c, const struct xpl_peer *peer) {
    return !peer->local && c->per_address && count_of(c, peer) >= c->per_address;
}

// The reason against one more connection: a counter of refusals, or NULL.
static atomic_ullong *find_obstacle(struct xpl_rpc_connections *c, const struct xpl_peer *peer) {
    const size_t max = peer->local ? c->max : xpl_connections_for_others(c->max);
    if (c->n >= max) return &c->refused_total;
    return has_many(c, peer) ? &c->refused_address : NULL;
}

static void forget(struct xpl_rpc_connections *c, size_t i) {
    memmove(c->all + i, c->all + i + 1, (--c->n - i) * sizeof c->all[0]);
}

// Ends the oldest of the connections that their clients use least, and forgets it: gRPC will close
// it.  So connections that do nothing never keep out those that do.  A peer from elsewhere takes
// the place of another one, and never one of this machine's.
static bool end_unused(struct xpl_rpc_connections *c, const struct xpl_peer *peer) {
    for (unsigned use = XPL_RPC_GUARD_UNUSED; use < XPL_RPC_GUARD_BUSY; use++)
        for (size_t i = 0; i < c->n; i++) {
            const struct connection *const one = &c->all[i];
            if ((one->peer.local && !peer->local) || !xpl_rpc_guarded_end_unused(one->fd, use))
                continue;
            forget(c, i);
            atomic_fetch_add(&c->refused_total, 1);
            return true;
        }
    return false;
}

bool xpl_rpc_connections_admit(struct xpl_rpc_connections *c, const struct xpl_peer *peer) {
    atomic_ullong *refused = find_obstacle(c, peer);
    if (refused && xpl_clock_ns() - c->swept_ns > (uint64_t)SWEEP_MS * 1000000) {
        xpl_rpc_connections_sweep(c);
        refused = find_obstacle(c, peer);
    }
    if (refused == &c->refused_total && !has_many(c, peer) && end_unused(c, peer)) return true;
    if (refused) atomic_fetch_add(refused, 1);
    return !refused;
}

void xpl_rpc_connections_add(struct xpl_rpc_connections *c, int fd, const struct xpl_peer *peer) {
    for (size_t i = c->n; i-- > 0;)
        if (c->all[i].fd == fd) forget(c, i); // it was closed, and its number is used again
    assert(c->n < c->max);
    c->all[c->n++] = (struct connection){.fd = fd, .socket = socket_of(fd), .peer = *peer};
    atomic_fetch_add(&c->accepted, 1);
    atomic_store(&c->open, c->n);
}

void xpl_rpc_connections_note_exhausted(struct xpl_rpc_connections *c) {
    atomic_fetch_add(&c->refused_descriptors, 1);
}

void xpl_rpc_connections_get_stats(const struct xpl_rpc_connections *c,
                                   struct xpl_rpc_connections_stats *ret) {
    *ret = (struct xpl_rpc_connections_stats){.accepted = atomic_load(&c->accepted),
                                              .refused_total = atomic_load(&c->refused_total),
                                              .refused_address = atomic_load(&c->refused_address),
                                              .refused_descriptors =
                                                  atomic_load(&c->refused_descriptors),
                                              .open = atomic_load(&c->open)};
}
