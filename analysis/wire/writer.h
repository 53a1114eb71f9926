// SPDX-License-Identifier: Apache-2.0
// Protobuf wire writer into a growable buffer, in two passes: the first measures, the second
// writes.  A length prefix needs the size of its contents; measuring first gives every prefix its
// shortest form without moving a byte twice, however deep messages nest, and the whole message is
// reserved at once.
//
//   struct xpl_writer w;
//   xpl_writer_init(&w, out);
//   emit(&w, msg);                    // measures; nothing is written
//   if (xpl_writer_measured(&w)) emit(&w, msg);  // the same calls again: writes
//   ok = xpl_writer_fini(&w);
//
// Both passes must make the same calls; the second checks that they did.
#ifndef XPL_ANALYSIS_WIRE_WRITER_H_
#define XPL_ANALYSIS_WIRE_WRITER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

// Bytes of a varint.
static inline unsigned xpl_varint_size(uint64_t v) {
    return (unsigned)(70 - __builtin_clzll(v | 1)) / 7;
}
// Writes xpl_varint_size(v) bytes; returns where they end.
static inline uint8_t *xpl_varint_put(uint8_t *p, uint64_t v) {
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

// The same with room for XPL_VARINT_ROOM bytes: spreads seven bits to each byte in three steps and
// stores up to eight bytes at once.
enum { XPL_VARINT_ROOM = 10 };
static inline uint8_t *xpl_varint_put_wide(uint8_t *p, uint64_t v) {
    if (v < 0x80) {
        *p = (uint8_t)v;
        return p + 1;
    }
    if (v >> 56) return xpl_varint_put(p, v);
    v = (v & 0x000000000fffffff) | (v & 0x00fffffff0000000) << 4;
    v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
    v = (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
    const unsigned n = (71 - (unsigned)__builtin_clzll(v)) / 8;
    v |= 0x8080808080808080 >> (72 - 8 * n); // all but the last one continue
    memcpy(p, &v, sizeof v);
    return p + n;
}

struct xpl_writer {
    struct xpl_buf *out;
    uint64_t *sizes; // of submessages, in the order in which they are opened
    size_t n_sizes, cap, next;
    uint64_t n; // bytes measured so far
    bool writing, failed;
};

// An open submessage.
struct xpl_writer_mark {
    size_t index;
    uint64_t start;
};

void xpl_writer_init(struct xpl_writer *w, struct xpl_buf *out);
// Ends the measuring pass and reserves the room.  False when memory is out or the buffer's maximum
// would be passed: nothing has been written then.
bool xpl_writer_measured(struct xpl_writer *w) __attribute__((warn_unused_result));
// Frees the writer's memory.  False when anything failed; the buffer is then incomplete.
bool xpl_writer_fini(struct xpl_writer *w) __attribute__((warn_unused_result));

// Single fields, written even where the value is the default.
void xpl_writer_varint(struct xpl_writer *w, uint32_t num, uint64_t v);
void xpl_writer_fixed32(struct xpl_writer *w, uint32_t num, uint32_t v);
void xpl_writer_fixed64(struct xpl_writer *w, uint32_t num, uint64_t v);
void xpl_writer_bytes(struct xpl_writer *w, uint32_t num, const void *p, size_t n);
// A submessage, or a packed field, between open and close; they nest.
struct xpl_writer_mark xpl_writer_open(struct xpl_writer *w, uint32_t num);
void xpl_writer_close(struct xpl_writer *w, struct xpl_writer_mark m);
void xpl_writer_packed(struct xpl_writer *w, uint32_t num, const uint64_t *v, size_t n);
// Untagged values, for packed fields.
void xpl_writer_raw32(struct xpl_writer *w, uint32_t v);
void xpl_writer_raw64(struct xpl_writer *w, uint64_t v);
void xpl_writer_raw_varint(struct xpl_writer *w, uint64_t v);

#endif
