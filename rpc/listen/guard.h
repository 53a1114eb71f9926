// SPDX-License-Identifier: Apache-2.0
// Limits of one client's HTTP/2 connection, checked on its bytes before gRPC gets them.
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

#include "rpc/listen/announced.h"
#include "rpc/listen/bucket.h"
#include "rpc/listen/frame.h"

enum {
    XPL_RPC_GUARD_HEADER_BYTES = 32 << 10, // of one header block; gRPC takes 16 KiB of metadata
    XPL_RPC_GUARD_HEADER_FRAMES = 32,      // HEADERS and CONTINUATION of one block
    // Unfinished calls of one connection.  A client may have 256 at once (rpc/server.h).  One write
    // that is not noted yet may have answered all of them, and as many new ones may have arrived.
    XPL_RPC_GUARD_CALLS = 2 * 256,
    XPL_RPC_GUARD_ALL_CALLS = 8192, // of all connections; a connection of more than a few is closed
    XPL_RPC_GUARD_FEW_CALLS = 16,   // when there are more, and it opens another one
    XPL_RPC_GUARD_FEW_RESETS = 64,  // at once, of a connection: fine whatever others do
    // Bytes of incomplete messages, which gRPC holds in memory.  Above ALL_BYTES in all
    // connections, a connection with more than MANY_BYTES is closed.  Above CROWDED_BYTES, data
    // from a connection with more than FEW_BYTES closes the connections whose messages began first,
    // whichever connection sent the data: stalled clients do not block active ones.  The bytes of
    // closed connections stay in memory until gRPC notices the end, which takes a while when it
    // reads hundreds of other connections.  Above FULL_BYTES, the sending connection is closed at
    // once.  Messages of an import have 1 MiB, other requests less than 64 KiB.
    XPL_RPC_GUARD_ALL_BYTES = 32 << 20,
    XPL_RPC_GUARD_MANY_BYTES = 2 << 20,
    XPL_RPC_GUARD_CROWDED_BYTES = 64 << 20,
    XPL_RPC_GUARD_FEW_BYTES = 64 << 10,
    XPL_RPC_GUARD_FULL_BYTES = 96 << 20,
};

enum xpl_rpc_guard_verdict {
    XPL_RPC_GUARD_FINE,
    XPL_RPC_GUARD_PREFACE, // does not begin as HTTP/2 does
    XPL_RPC_GUARD_HEADERS, // a header block of too many bytes or frames
    XPL_RPC_GUARD_UNKNOWN, // data of a stream that is not open; a stream that no client opens
    XPL_RPC_GUARD_OPEN,    // too many unfinished calls, or many while all connections have too many
    XPL_RPC_GUARD_HELD,    // too many bytes of incomplete messages, while all connections have too
                           // many
    XPL_RPC_GUARD_MESSAGE, // a message that is too long, whose prefix is partly gone already
    XPL_RPC_GUARD_RESETS,  // streams are opened and reset, by either side, faster than calls are
    XPL_RPC_GUARD_SETTINGS, // more SETTINGS than any client needs
    XPL_RPC_GUARD_CONTROL,  // more frames without effect than any client needs
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
    // Ends the connection of another guard, soon; under mu, and not twice.  NULL: impossible.
    void (*end)(struct xpl_rpc_guard *g);
    atomic_size_t calls;   // unfinished ones
    atomic_size_t held;    // bytes of incomplete messages
    atomic_size_t leaving; // of these, the bytes of connections that `end` has ended
};

// How much a client uses its connection, the least first: what makes room for others goes by it.
enum xpl_rpc_guard_use {
    XPL_RPC_GUARD_UNUSED,     // it has not begun a call yet
    XPL_RPC_GUARD_IDLE,       // its calls have ended
    XPL_RPC_GUARD_UNFINISHED, // none of its calls has received a complete message
    XPL_RPC_GUARD_BUSY,
};

struct xpl_rpc_guard_call {
    uint32_t id;    // of its stream
    uint32_t left;  // bytes of the current message that are still to come
    uint32_t held;  // and that have come
    uint8_t prefix; // bytes of the message's prefix that have come: 0 to 4, or 5 within the message
    bool second;    // a message was complete
    bool refused;   // gRPC has seen the stream end: later data does not count
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
    atomic_bool told;             // the verdict was counted (guarded.c)
    int fd;                       // guarded.c's: the socket; -1 when it is not known
    char peer[XPL_RPC_PEER_SIZE]; // guarded.c's: of that socket
    // What the server sends: one thread at a time, which may be another one.
    struct xpl_rpc_frame_head sent_head;
    uint32_t sent_left; // bytes of the current frame's payload
    // Of both, under mu.
    pthread_mutex_t mu;
    struct xpl_rpc_guard_call *calls; // unfinished ones, by id
    size_t n_calls, cap_calls;
    size_t n_asking;    // those of them that are UNFINISHED
    atomic_uint use;    // enum xpl_rpc_guard_use; others read it
    atomic_size_t held; // bytes of their incomplete messages; others read it
    struct xpl_rpc_bucket resets;
    uint64_t now_ns; // when the client sent something last
    enum xpl_rpc_guard_verdict verdict;
    // Of all, under the shared mutex.
    struct xpl_rpc_guard *prev, *next; // holders
    bool listed;
    size_t leaving;                 // its part of the shared one
    atomic_uint_least64_t since_ns; // arrival of the oldest byte that it holds
    atomic_bool ended;              // by another
};

void xpl_rpc_guard_init(struct xpl_rpc_guard *g, size_t max_message);
void xpl_rpc_guard_fini(struct xpl_rpc_guard *g, struct xpl_rpc_guard_shared *shared);

// Inspects the next bytes from the client, in pieces of any size.  The guard refuses a message that
// is too long by changing bytes in place, once it knows the length.  Up to 4 times the limit, it
// sets the length to the limit plus one: gRPC then refuses the message as too large, and holds no
// more than of others.  Beyond that, or if the client does not continue, the guard ends the stream
// here: the call arrives without a message.  Every verdict but FINE is final: the connection has to
// be closed.
enum xpl_rpc_guard_verdict xpl_rpc_guard_feed(struct xpl_rpc_guard *g, uint8_t *p, size_t n,
                                              uint64_t now_ns, struct xpl_rpc_guard_shared *shared);

// Inspects the next bytes from the server, in pieces of any size, after they were sent.  A call has
// finished when the server ends or resets its stream.  The next feed returns the verdict on the
// client.
void xpl_rpc_guard_sent(struct xpl_rpc_guard *g, const uint8_t *p, size_t n,
                        struct xpl_rpc_guard_shared *shared);

#endif
