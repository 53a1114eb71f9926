// SPDX-License-Identifier: Apache-2.0
// protobuf-c for untrusted bytes: bounded memory, bounded nesting, valid text.
#ifndef XPL_RPC_MESSAGE_H_
#define XPL_RPC_MESSAGE_H_

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
    XPL_RPC_MAX_DEPTH = 16,        // of messages in messages
    XPL_RPC_MAX_ELEMENTS = 200000, // fields, counted in the whole message
};

// Walks a serialized message without allocating and refuses messages that protobuf-c does not
// handle: it has no limit on nesting or on elements (each costs tens of bytes), accepts any bytes
// as text, and cuts text at a NUL.  Returns INVALID_ARGUMENT (malformed, too deep, not UTF-8, a NUL
// in text; with the offset) or RESOURCE_EXHAUSTED (too many elements).
xpl_status_t xpl_rpc_message_scan(const ProtobufCMessageDescriptor *type, xpl_bytes_t bytes,
                                  struct xpl_error *err);

// Scans, then decodes into the arena, whose limit bounds the memory; there is nothing to free but
// the arena.  RESOURCE_EXHAUSTED when the arena is too small.
xpl_status_t xpl_rpc_message_unpack(const ProtobufCMessageDescriptor *type, xpl_bytes_t bytes,
                                    struct xpl_arena *a, ProtobufCMessage **ret,
                                    struct xpl_error *err);

// Appends the serialized message.  Check b->failed at the end, as always with a buffer.
void xpl_rpc_message_put(struct xpl_buf *b, const ProtobufCMessage *m);

// Building blocks for headers before shared bytes (varint, "field n is text", "n bytes follow").
void xpl_rpc_put_uint(struct xpl_buf *b, uint32_t field, uint64_t v);  // left out when 0
void xpl_rpc_put_text(struct xpl_buf *b, uint32_t field, xpl_str_t s); // left out when empty
void xpl_rpc_put_len(struct xpl_buf *b, uint32_t field, uint64_t len); // the bytes follow

#endif
