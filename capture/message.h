// SPDX-License-Identifier: Apache-2.0
// The messages of tensorflow.ProfilerService, as a capture needs them.
#ifndef XPL_CAPTURE_MESSAGE_H_
#define XPL_CAPTURE_MESSAGE_H_

#include "base/buf.h"
#include "capture/driver.h"
#include "capture/walk.h"

// "/tensorflow.ProfilerService/Profile" and so on.
const char *xpl_capture_path(enum xpl_capture_call call);
// Appends the request of plan->call.  Check b->failed.
void xpl_capture_encode(const struct xpl_capture_plan *plan, const struct xpl_capture_query *q,
                        struct xpl_buf *b);

// A ProfileResponse in pieces: the bytes of its XSpace, or of its traces, are handed on.
struct xpl_capture_reply {
    // The next bytes of the XSpace; false ends the reading.
    bool (*on_xspace)(void *ctx, xpl_bytes_t piece);
    // As the sink's begin_trace; NULL, which is the default: traces are skipped.
    bool (*on_trace)(void *ctx, xpl_str_t name);
    void *ctx;
    bool empty_trace;                    // the server says that nothing was recorded
    uint64_t xspace_bytes;               // handed on
    char notes[XPL_CAPTURE_REASON_SIZE]; // xplaned-agent's, printable; "": none
    struct xpl_walk walk;
    // Where the walk is in a ProfileToolData.
    char tool_name[192];
    size_t tool_name_len, notes_len;
    bool begun; // on_trace was called for it
    uint32_t field;
    unsigned depth;
};

void xpl_capture_reply_init(struct xpl_capture_reply *r,
                            bool (*on_xspace)(void *ctx, xpl_bytes_t piece), void *ctx);
// False when on_xspace returned false, or when the bytes are malformed (r->walk.malformed).
bool xpl_capture_reply_put(struct xpl_capture_reply *r, xpl_bytes_t piece);
// Whether all of the answer has come.
bool xpl_capture_reply_end(const struct xpl_capture_reply *r);

#endif
