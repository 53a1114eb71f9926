// SPDX-License-Identifier: Apache-2.0
// Protobuf in pieces: a pull-free reader for messages that are too large to have in one place.
// Pieces may be cut anywhere.  No allocation, no recursion; nesting is as deep as the caller says.
#ifndef XPL_CAPTURE_WALK_H_
#define XPL_CAPTURE_WALK_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { XPL_WALK_DEPTH = 3 }; // messages inside the outermost one

// How to treat a length-delimited field.
enum xpl_walk_way {
    XPL_WALK_SKIP,
    XPL_WALK_ENTER, // it is a message: its fields come next, at depth + 1
    XPL_WALK_TAKE,  // its bytes go to on_bytes, in pieces
};

struct xpl_walk_field {
    uint32_t num, type; // type: enum xpl_wire_type
    unsigned depth;     // 0: the outermost message
    uint64_t u;         // a number, or the length
};

struct xpl_walk {
    // Each field as its head has been read; the answer counts for length-delimited ones only.
    enum xpl_walk_way (*on_field)(void *ctx, const struct xpl_walk_field *f);
    // Bytes of a field being taken; once with `last` for its end, perhaps with no bytes.  False
    // ends the walk as `stopped`.
    bool (*on_bytes)(void *ctx, xpl_bytes_t piece, bool last);
    void *ctx;
    // Fields that occur by the million and only need counting: length-delimited ones of this number
    // (1 to 15) in messages of this depth, where on_field would return SKIP.  0: none.  The walk
    // counts most of them here, and calls on_field only for large ones and for those that are split
    // between pieces.
    uint32_t count_num;
    unsigned count_depth;
    uint64_t counted;
    uint64_t at; // bytes read so far: where a malformed field begins
    bool malformed, stopped;

    // The walk's own.
    uint64_t left[XPL_WALK_DEPTH + 1]; // bytes left in each open message; [0] is not used
    unsigned depth;
    uint64_t body; // bytes left of the field being skipped or taken
    bool taking;
    uint8_t head[20]; // a field's head that is cut by the end of a piece: tag and one more varint
    unsigned n_head;
};

// ctx and the callbacks are the caller's to set afterwards.
void xpl_walk_init(struct xpl_walk *w);
// False when the bytes are malformed or a callback stopped the walk; it stays so.
bool xpl_walk_put(struct xpl_walk *w, xpl_bytes_t piece) __attribute__((warn_unused_result));
// Whether the message is complete here.
bool xpl_walk_complete(const struct xpl_walk *w);

#endif
