// SPDX-License-Identifier: Apache-2.0
// What one client's HTTP/2 connection may do, checked on its bytes before gRPC gets them.
//
// gRPC 1.51 buffers a message of any announced length before it refuses it, header blocks without
// end (CVE-2023-33953), and calls that were reset but not forgotten yet, by the client
// (CVE-2023-44487) or for its errors (CVE-2025-8671).  Its limit of streams holds only for a client
// that has acknowledged it.  The guard follows frames (RFC 9113) of both sides and gRPC's messages
// in them, allocates only a small table of calls, and never decodes headers.
#ifndef XPL_RPC_LISTEN_GUARD_H_
#define XPL_RPC_LISTEN_GUARD_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/listen/bucket.h"
#include "rpc/listen/frame.h"

enum {
    XPL_RPC_GUARD_HEADER_BYTES = 32 << 10, // of one header block; gRPC takes 16 KiB of metadata
    XPL_RPC_GUARD_HEADER_FRAMES = 32,      // HEADERS and CONTINUATION of one block
    // Calls of one connection that are not over.  Of the 256 that a client may have at once
    // (rpc/server.h), all may have been answered by the write that is not noted yet, and as many
    // new ones be here.
    XPL_RPC_GUARD_CALLS = 2 * 256,
    XPL_RPC_GUARD_ALL_CALLS = 8192, // of all connections; a connection of more than a few is closed
    XPL_RPC_GUARD_FEW_CALLS = 16,   // when there are more, and it opens another one
    XPL_RPC_GUARD_FEW_RESETS = 64,  // at once, of a connection: fine whatever others do
    // Bytes of messages whose end has not come, which gRPC holds.  When those of all connections
    // are more than the first, a connection that has more than the second is closed.  When they are
    // more than the third and one that has more than the fourth sends more, those are closed whose
    // messages began first, whoever sends: a client that goes on is no hostage of those that do
    // not.  What those have is still there until gRPC finds the end, which takes it a while when
    // it has hundreds of others to read: with more than FULL in all, who sends is closed at once.
    // An import's messages are of 1 MiB, other requests of less than 64 KiB.
    XPL_RPC_GUARD_ALL_BYTES = 32 << 20,
    XPL_RPC_GUARD_MANY_BYTES = 2 << 20,
    XPL_RPC_GUARD_CROWDED_BYTES = 64 << 20,
    XPL_RPC_GUARD_FEW_BYTES = 64 << 10,
    XPL_RPC_GUARD_FULL_BYTES = 96 << 20,
};

enum xpl_rpc_guard_verdict {
    XPL_RPC_GUARD_FINE,
    XPL_RPC_GUARD_PREFACE,  // does not begin as HTTP/2 does
    XPL_RPC_GUARD_HEADERS,  // a header block of too many bytes or frames
    XPL_RPC_GUARD_UNKNOWN,  // data of a stream that is not open; a stream that no client opens
    XPL_RPC_GUARD_OPEN,     // calls that are not over: too many, or many while all have too many
    XPL_RPC_GUARD_HELD,     // too much of messages that do not end, while all have too much
    XPL_RPC_GUARD_MESSAGE,  // a message that is too long, whose prefix is partly gone already
    XPL_RPC_GUARD_RESETS,   // streams are opened and reset, by either side, faster than calls are
    XPL_RPC_GUARD_SETTINGS, // more SETTINGS than anybody needs
    XPL_RPC_GUARD_CONTROL,  // more frames without use than anybody needs
    XPL_RPC_GUARD_MEMORY,
    XPL_RPC_GUARD_VERDICTS
};
// For the log: "header block too large".
const char *xpl_rpc_guard_explain(enum xpl_rpc_guard_verdict v);

struct xpl_rpc_guard;
struct xpl_rpc_guard_shared { // of all connections together; zeroed, and its mutex initialized
    pthread_mutex_t mu;
    struct xpl_rpc_bucket resets;  // under mu
    struct xpl_rpc_guard *holders; // under mu: guards that hold something; a list
    // Ends the connection of another guard, soon; under mu, and not twice.  NULL: nobody can.
    void (*end)(struct xpl_rpc_guard *g);
    atomic_size_t calls;   // that are not over
    atomic_size_t held;    // bytes of messages whose end has not come
    atomic_size_t leaving; // of them, those of connections that were ended by `end`
};

// How much a client uses its connection, the least first: what makes room for others goes by it.
enum xpl_rpc_guard_use {
    XPL_RPC_GUARD_UNUSED,     // it has not begun a call yet
    XPL_RPC_GUARD_IDLE,       // its calls have ended
    XPL_RPC_GUARD_UNFINISHED, // of none of its calls a message has come whole
    XPL_RPC_GUARD_BUSY,
};

struct xpl_rpc_guard_call {
    uint32_t id;    // of its stream
    uint32_t left;  // bytes of the current message that are still to come
    uint32_t held;  // and that have come
    uint8_t prefix; // bytes of the message's prefix that have come: 0 to 4, or 5 within the message
    bool second;    // a message was complete
    bool refused;   // gRPC was told that it has ended: what still comes does not count
    bool asked;     // the client has ended its side
    uint32_t length;
    uint64_t since_ns; // when the first of the held bytes came
};

struct xpl_rpc_guard {    // its members are guard.c's
    uint32_t max_message; // bytes
    // What the client sends: one thread at a time.
    struct xpl_rpc_frame_head head;
    uint8_t preface;
    uint8_t type, flags;
    uint8_t *flags_at; // in the bytes that are fed now; NULL when they are not there any more
    struct xpl_rpc_frame_padding padding;
    uint32_t payload, stream, left, last_stream;
    uint32_t header_bytes, header_frames;
    struct xpl_rpc_bucket settings, control, windows;
    atomic_bool told; // the verdict was counted (guarded.c)
    int fd;           // guarded.c's: the socket; -1 when it is not known
    // What the server sends: one thread at a time, which may be another one.
    struct xpl_rpc_frame_head sent_head;
    uint32_t sent_left; // bytes of the current frame's payload
    // Of both, under mu.
    pthread_mutex_t mu;
    struct xpl_rpc_guard_call *calls; // that are not over, by id
    size_t n_calls, cap_calls;
    size_t n_asking;    // those of them that are UNFINISHED
    atomic_uint use;    // enum xpl_rpc_guard_use; others read it
    atomic_size_t held; // bytes of their messages whose end has not come; others read it
    struct xpl_rpc_bucket resets;
    uint64_t now_ns; // when the client sent something last
    enum xpl_rpc_guard_verdict verdict;
    // Of all, under the shared mutex.
    struct xpl_rpc_guard *prev, *next; // holders
    bool listed;
    size_t leaving;                 // its part of the shared one
    atomic_uint_least64_t since_ns; // when the oldest of what it holds came
    atomic_bool ended;              // by another
};

void xpl_rpc_guard_init(struct xpl_rpc_guard *g, size_t max_message);
void xpl_rpc_guard_fini(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared);

// The next bytes that the client sent, in pieces of any size.  A message that is too long is
// refused by what is changed in place when its length is known.  Up to 4 times the limit the length
// becomes one byte more than the limit: gRPC then refuses it as too large, and holds no more than
// of others. Beyond, or where the client does not go on, the stream ends here: the call comes
// without a message.  Anything but FINE is final: the connection has to be closed.
enum xpl_rpc_guard_verdict xpl_rpc_guard_feed(struct xpl_rpc_guard *g, uint8_t *p, size_t n,
                                              uint64_t now_ns, struct xpl_rpc_guard_shared *shared);

// The next bytes that the server sent, in pieces of any size, after they were sent: calls are over
// when it ends or resets their streams.  What is against the client is said by the next feed.
void xpl_rpc_guard_sent(struct xpl_rpc_guard *g, const uint8_t *p, size_t n,
                        struct xpl_rpc_guard_shared *shared);

#endif
