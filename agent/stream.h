// SPDX-License-Identifier: Apache-2.0
// Reads record streams (agent/record.h).  The bytes come from another process: nothing in them is
// believed.
#ifndef XPL_AGENT_STREAM_H_
#define XPL_AGENT_STREAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/record.h"
#include "base/str.h"

struct xpl_stream {
    const uint8_t *p, *end;
};

enum xpl_stream_result {
    XPL_STREAM_MALFORMED = -1,
    XPL_STREAM_END = 0, // or only the beginning of a record is there: `p` tells
    XPL_STREAM_RECORD = 1,
};

struct xpl_stream_record {
    uint16_t kind;
    uint32_t size;
    const uint8_t *bytes; // header and body
};

// The next complete record.  Its kind may be unknown; the size of a known kind is valid.
static inline enum xpl_stream_result xpl_stream_next(struct xpl_stream *s,
                                                     struct xpl_stream_record *ret) {
    struct xpl_record head;
    const size_t left = (size_t)(s->end - s->p);
    if (left < sizeof head) return XPL_STREAM_END;
    memcpy(&head, s->p, sizeof head);
    if (head.size < sizeof head || head.size % 8 || head.size > XPL_RECORD_MAX)
        return XPL_STREAM_MALFORMED;
    if (left < head.size) return XPL_STREAM_END;
    *ret = (struct xpl_stream_record){head.kind, head.size, s->p};
    s->p += head.size;
    return XPL_STREAM_RECORD;
}

// Copies the fixed part.  False when the record is too short for it.
static inline bool xpl_stream_read(const struct xpl_stream_record *r, void *ret, size_t size) {
    if (r->size < size) return false;
    memcpy(ret, r->bytes, size);
    return true;
}

// The text after a fixed part of `fixed` bytes.  False when it does not fit the record.
static inline bool xpl_stream_text(const struct xpl_stream_record *r, size_t fixed, uint32_t len,
                                   xpl_str_t *ret) {
    if (r->size < fixed || len > r->size - fixed) return false;
    *ret = (xpl_str_t){(const char *)r->bytes + fixed, len};
    return true;
}

#endif
