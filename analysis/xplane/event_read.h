// SPDX-License-Identifier: Apache-2.0
// Decoding of one XEvent, inline, for the cursors and for the few loops that see every event: the
// scan of grouping and the host part of opstats.
#ifndef XPL_ANALYSIS_XPLANE_EVENT_READ_H_
#define XPL_ANALYSIS_XPLANE_EVENT_READ_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "analysis/xplane/fast_stat.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/xspace.h"

// Skips fields up to the next message of a repeated field; stops at `end`, or at a malformed field.
XPL_INLINE const uint8_t *xpl_find_message(const uint8_t *p, const uint8_t *end, uint32_t field) {
    while (XPL_LIKELY(p != end) && XPL_UNLIKELY(*p != (field << 3 | XPL_WIRE_LEN))) {
        struct xpl_wire w = {p, end};
        struct xpl_field f;
        if (xpl_wire_next(&w, &f) != XPL_WIRE_FIELD) break;
        if (f.num == field && f.type == XPL_WIRE_LEN) break; // a tag of more bytes than needed
        p = w.p;
    }
    return p;
}

// Reads the next message of a repeated field in [*p, end) and moves *p behind it.  END at the end.
XPL_INLINE enum xpl_wire_result xpl_next_message(const uint8_t **p, const uint8_t *end,
                                                 uint32_t field, xpl_bytes_t *ret) {
    const uint8_t *const q = xpl_find_message(*p, end, field);
    if (q == end) {
        *p = q;
        return XPL_WIRE_END;
    }
    if (XPL_LIKELY(*q == (field << 3 | XPL_WIRE_LEN))) {
        const struct xpl_varint n = xpl_varint_read(q + 1, end);
        if (XPL_UNLIKELY(!n.p) || XPL_UNLIKELY(n.v > (uint64_t)(end - n.p)))
            return XPL_WIRE_MALFORMED;
        *ret = (xpl_bytes_t){n.p, (size_t)n.v};
        *p = n.p + n.v;
        return XPL_WIRE_FIELD;
    }
    struct xpl_wire w = {q, end};
    struct xpl_field f;
    if (xpl_wire_next(&w, &f) != XPL_WIRE_FIELD) return XPL_WIRE_MALFORMED;
    *ret = f.len;
    *p = w.p;
    return XPL_WIRE_FIELD;
}

// An event before its metadata is looked up.
struct xpl_raw_event {
    uint64_t md_id, offset_ps, duration_ps, occurrences;
    bool has_occurrences;
    const uint8_t *stats, *end; // the message from its first stat on
};

// Fields in any order, last wins.
bool xpl_raw_event_slow(xpl_bytes_t message, struct xpl_raw_event *ret);

// One varint field, if it is next.
XPL_INLINE bool xpl_read_varint_field(const uint8_t **p, const uint8_t *end, const uint8_t *limit,
                                      unsigned num, uint64_t *ret) {
    if (*p == end || **p != num << 3) return true;
    const struct xpl_varint v =
        num == XEVENT_MD_ID ? xpl_varint_small(*p + 1, limit) : xpl_varint_wide(*p + 1, limit);
    if (XPL_UNLIKELY(!v.p) || XPL_UNLIKELY(v.p > end)) return false;
    *ret = v.v;
    *p = v.p;
    return true;
}

// The fields before the stats of an event as writers write it: metadata, offset, duration.  False
// when malformed.
XPL_INLINE bool xpl_raw_event_head(xpl_bytes_t message, const uint8_t *limit,
                                   struct xpl_raw_event *ret) {
    const uint8_t *q = message.ptr, *const end = message.ptr + message.len;
    *ret = (struct xpl_raw_event){.end = end};
    if (XPL_UNLIKELY(!xpl_read_varint_field(&q, end, limit, XEVENT_MD_ID, &ret->md_id)) ||
        XPL_UNLIKELY(!xpl_read_varint_field(&q, end, limit, XEVENT_OFFSET_PS, &ret->offset_ps)) ||
        XPL_UNLIKELY(!xpl_read_varint_field(&q, end, limit, XEVENT_DURATION_PS, &ret->duration_ps)))
        return false;
    ret->stats = q;
    return true;
}

// The whole event; an unusual order of fields takes the slow path.
XPL_INLINE bool xpl_raw_event_read(xpl_bytes_t message, const uint8_t *limit,
                                   struct xpl_raw_event *ret) {
    if (XPL_UNLIKELY(!xpl_raw_event_head(message, limit, ret))) return false;
    const uint8_t *q = ret->stats, *const end = ret->end;
    while (q != end && XPL_LIKELY(*q == XPL_TAG_FIELD4_LEN)) {
        const struct xpl_varint n = xpl_varint_read(q + 1, end);
        if (XPL_UNLIKELY(!n.p) || XPL_UNLIKELY(n.v > (uint64_t)(end - n.p))) return false;
        q = n.p + n.v;
    }
    return XPL_LIKELY(q == end) || xpl_raw_event_slow(message, ret);
}

// The event that stands at `at` (xpl_event.at) of its line; false when there is none.
bool xpl_raw_event_at(const struct xpl_line *line, uint64_t at, struct xpl_raw_event *ret);

#endif
