// SPDX-License-Identifier: Apache-2.0
// Accepting connections of strangers: the peer's address, the lack of descriptors, and the number
// of open connections of one address.
#ifndef XPL_BASE_NET_ACCEPT_H_
#define XPL_BASE_NET_ACCEPT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

// The peer as limits see it: an IPv4 address (also when it is mapped into IPv6), or the upper 64
// bits of an IPv6 address, within which one machine may have any number.  `local`: loopback, or a
// unix socket.
struct xpl_peer {
    uint8_t key[16];
    bool local;
};
struct xpl_peer xpl_peer_of(const struct sockaddr *a);
static inline bool xpl_peer_equal(const struct xpl_peer *a, const struct xpl_peer *b) {
    for (size_t i = 0; i < sizeof a->key; i++)
        if (a->key[i] != b->key[i]) return false;
    return true;
}

// A reserved descriptor: if no other is free, it is closed for a moment, so that a connection can
// be accepted and closed instead of waiting in the kernel forever.  One thread at a time.
struct xpl_accept_reserve {
    int fd; // -1: none
};
void xpl_accept_reserve_init(struct xpl_accept_reserve *r);
void xpl_accept_reserve_fini(struct xpl_accept_reserve *r);

enum xpl_accept_result {
    XPL_ACCEPTED,
    XPL_ACCEPT_NONE,   // no connection waits
    XPL_ACCEPT_CLOSED, // no descriptor, or no memory, was left: a pending client was disconnected
    XPL_ACCEPT_STUCK,  // as before, but not even that could be done: try again in a while
};
// Accepts one connection of a non-blocking listener: not blocking, closed on exec.
enum xpl_accept_result xpl_accept(struct xpl_accept_reserve *r, int listener, int *ret_fd,
                                  struct sockaddr_storage *ret_peer, socklen_t *ret_len);

// ---- how many are open ----

// Of all the connections that may be open, peers from elsewhere get at most 7/8: this machine's
// users, such as an operator, can connect whatever others do.
static inline size_t xpl_connections_for_others(size_t max) {
    return max - max / 8;
}

// Raises the soft limit of descriptors to the hard one.  Returns the limit that holds then.
uint64_t xpl_descriptors_raise(void);

#endif
