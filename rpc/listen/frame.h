// SPDX-License-Identifier: Apache-2.0
// Frames of HTTP/2 (RFC 9113), in pieces of any size: their heads, and the padding of data.
#ifndef XPL_RPC_LISTEN_FRAME_H_
#define XPL_RPC_LISTEN_FRAME_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { // types, section 6
    XPL_RPC_FRAME_DATA = 0,
    XPL_RPC_FRAME_HEADERS = 1,
    XPL_RPC_FRAME_RESET = 3,
    XPL_RPC_FRAME_SETTINGS = 4,
    XPL_RPC_FRAME_GOAWAY = 7,
    XPL_RPC_FRAME_WINDOW = 8,
    XPL_RPC_FRAME_CONTINUATION = 9,
};
enum { // flags; which of them a frame can have depends on its type
    XPL_RPC_FRAME_END_STREAM = 1,
    XPL_RPC_FRAME_ACK = 1,
    XPL_RPC_FRAME_END_HEADERS = 4,
    XPL_RPC_FRAME_PADDED = 8,
};
enum { XPL_RPC_FRAME_HEAD = 9, XPL_RPC_FRAME_TYPE_AT = 3, XPL_RPC_FRAME_FLAGS_AT = 4 };

struct xpl_rpc_frame_head {
    uint8_t bytes[XPL_RPC_FRAME_HEAD], n; // n: bytes of it that have come
};

// Takes those of the `n` bytes that belong to the head; returns how many those are.
static inline size_t xpl_rpc_frame_take(struct xpl_rpc_frame_head *h, const uint8_t *p, size_t n) {
    const size_t missing = (size_t)XPL_RPC_FRAME_HEAD - h->n, part = n < missing ? n : missing;
    if (part == XPL_RPC_FRAME_HEAD)
        memcpy(h->bytes, p, XPL_RPC_FRAME_HEAD); // of a known size: two moves
    else
        memcpy(h->bytes + h->n, p, part);
    h->n = (uint8_t)(h->n + part);
    return part;
}
static inline bool xpl_rpc_frame_whole(const struct xpl_rpc_frame_head *h) {
    return h->n == XPL_RPC_FRAME_HEAD;
}

// ---- of a head that is whole ----

static inline uint8_t xpl_rpc_frame_type(const struct xpl_rpc_frame_head *h) {
    return h->bytes[XPL_RPC_FRAME_TYPE_AT];
}
static inline uint8_t xpl_rpc_frame_flags(const struct xpl_rpc_frame_head *h) {
    return h->bytes[XPL_RPC_FRAME_FLAGS_AT];
}
// Bytes behind the head.
static inline uint32_t xpl_rpc_frame_payload(const struct xpl_rpc_frame_head *h) {
    return (uint32_t)h->bytes[0] << 16 | (uint32_t)h->bytes[1] << 8 | h->bytes[2];
}
static inline uint32_t xpl_rpc_frame_stream(const struct xpl_rpc_frame_head *h) {
    const uint8_t *const b = h->bytes + XPL_RPC_FRAME_FLAGS_AT + 1;
    return ((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]) & 0x7fffffff;
}

// ---- the padding of a frame of data ----

struct xpl_rpc_frame_padding {
    bool expected; // the first byte of the payload is its length
    uint8_t n;     // bytes at the end that do not count
};

static inline struct xpl_rpc_frame_padding
xpl_rpc_frame_padding(const struct xpl_rpc_frame_head *h) {
    return (struct xpl_rpc_frame_padding){.expected =
                                              xpl_rpc_frame_type(h) == XPL_RPC_FRAME_DATA &&
                                              xpl_rpc_frame_flags(h) & XPL_RPC_FRAME_PADDED};
}

// Of the `*n` next bytes of a frame's payload (not 0), behind which `left` are to come: returns
// where those begin that are data, and sets how many they are.
static inline size_t xpl_rpc_frame_data(struct xpl_rpc_frame_padding *pad, uint32_t left,
                                        const uint8_t *p, size_t *n) {
    const size_t skip = pad->expected;
    if (skip) *pad = (struct xpl_rpc_frame_padding){.n = p[0]};
    *n -= skip;
    // The rest of the frame after these bytes may be shorter than the padding.
    const size_t behind = left < pad->n ? pad->n - left : 0;
    *n = behind < *n ? *n - behind : 0;
    return skip;
}

#endif
