// SPDX-License-Identifier: Apache-2.0
// What one client's HTTP/2 connection may do, checked on its bytes before gRPC gets them.
//
// gRPC 1.51 buffers a message of any announced length before it refuses it, header blocks without
// end (CVE-2023-33953), and calls that were reset but not forgotten yet (CVE-2023-44487).  The
// guard follows frames (RFC 9113) and gRPC's messages in them, allocates only a small table of
// streams, and never decodes headers.
#ifndef XPL_RPC_LISTEN_GUARD_H_
#define XPL_RPC_LISTEN_GUARD_H_

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    XPL_RPC_GUARD_HEADER_BYTES = 32 << 10, // of one header block; gRPC takes 16 KiB of metadata
    XPL_RPC_GUARD_HEADER_FRAMES = 32,      // HEADERS and CONTINUATION of one block
    XPL_RPC_GUARD_STREAMS = 2048, // of one connection that the client has not ended: of more, the
                                  // oldest one without a message is forgotten
    XPL_RPC_GUARD_ALL_STREAMS = 8192, // of all connections; a connection of more than a few is
    XPL_RPC_GUARD_FEW_STREAMS = 16,   // closed when there are more, and opens another one
    XPL_RPC_GUARD_FEW_RESETS = 64,    // at once, of a connection: fine whatever others do
};

enum xpl_rpc_guard_verdict {
    XPL_RPC_GUARD_FINE,
    XPL_RPC_GUARD_PREFACE,  // does not begin as HTTP/2 does
    XPL_RPC_GUARD_HEADERS,  // a header block of too many bytes or frames
    XPL_RPC_GUARD_UNKNOWN,  // data of a stream that is not open
    XPL_RPC_GUARD_OPEN,     // many streams that do not end, while all have too many
    XPL_RPC_GUARD_MESSAGE,  // a message that is too long, whose prefix is partly gone already
    XPL_RPC_GUARD_RESETS,   // streams are opened and reset faster than calls are
    XPL_RPC_GUARD_SETTINGS, // more SETTINGS than anybody needs
    XPL_RPC_GUARD_CONTROL,  // more frames without use than anybody needs
    XPL_RPC_GUARD_MEMORY,
    XPL_RPC_GUARD_VERDICTS
};
// For the log: "header block too large".
const char *xpl_rpc_guard_explain(enum xpl_rpc_guard_verdict v);

struct xpl_rpc_bucket { // a budget of events, which fills with time; zeroed at first: full
    double left;
    uint64_t at_ns;
};
struct xpl_rpc_guard_shared { // of all connections together; zeroed, and its mutex initialized
    pthread_mutex_t mu;
    struct xpl_rpc_bucket resets; // under mu
    atomic_size_t streams;        // that clients have not ended
};

struct xpl_rpc_guard_stream {
    uint32_t id;
    uint32_t left;  // bytes of the current message that are still to come
    uint8_t prefix; // bytes of the message's prefix that have come: 0 to 4, or 5 within the message
    bool second;    // a message was complete
    bool refused;   // gRPC was told that it has ended: what still comes does not count
    uint32_t length;
};

struct xpl_rpc_guard {    // its members are guard.c's; one thread at a time
    uint32_t max_message; // bytes
    uint8_t head[9];      // of the frame, or the preface
    uint8_t n_head, preface;
    uint8_t type, flags;
    uint8_t *flags_at; // in the bytes that are fed now; NULL when they are not there any more
    uint8_t padding;   // 0: no pad length; 1: it comes; 2: it is known
    uint32_t payload, stream, left, pad, last_stream;
    uint32_t header_bytes, header_frames;
    struct xpl_rpc_guard_stream *streams;    // by id
    size_t n_streams, cap_streams, n_shared; // n_shared: as counted in `shared`
    struct xpl_rpc_bucket resets, settings, control, windows;
    enum xpl_rpc_guard_verdict verdict;
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

#endif
