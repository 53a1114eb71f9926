// SPDX-License-Identifier: Apache-2.0
// Fast paths over one XStat, for statistics written as writers write them: the id first, then one
// value.  Each says when it does not apply; the caller then takes the slow path, which reads fields
// in any order.  A unit test compares both.
#ifndef XPL_ANALYSIS_XPLANE_FAST_STAT_H_
#define XPL_ANALYSIS_XPLANE_FAST_STAT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analysis/wire/wire.h"
#include "analysis/xplane/fields.h"
#include "analysis/xplane/xspace.h"

// The id of a stat by its first bytes, for ids below 2^14.  False when they say nothing.  (Of a
// stat that states several ids the last counts; this gives the first.)
XPL_INLINE bool xpl_fast_stat_id(xpl_bytes_t message, uint32_t *ret) {
    if (XPL_UNLIKELY(message.len < 3) || XPL_UNLIKELY(message.ptr[0] != XSTAT_MD_ID << 3))
        return false;
    uint32_t id = message.ptr[1];
    if (id >= 0x80) {
        if (XPL_UNLIKELY(message.ptr[2] >= 0x80)) return false;
        id = (id & 0x7f) | (uint32_t)message.ptr[2] << 7;
    }
    *ret = id;
    return true;
}

// The stat at the head of a list of stats.
struct xpl_fast_stat {
    uint32_t id;          // as xpl_fast_stat_id
    size_t len;           // of the field: tag, length and message
    const uint8_t *value; // where the field after the id begins
};
// Reads it in [at, end); `tag` is that of the list's field.  False when it is not written as usual:
// framing is checked, the value is not.
XPL_INLINE bool xpl_fast_stat_head(const uint8_t *at, const uint8_t *end, uint8_t tag,
                                   struct xpl_fast_stat *ret) {
    const size_t left = (size_t)(end - at);
    if (XPL_UNLIKELY(left < 5) || XPL_UNLIKELY(at[0] != tag)) return false;
    size_t len = at[1], head = 2;
    if (XPL_UNLIKELY(len >= 0x80)) { // texts
        if (at[2] >= 0x80) return false;
        len = (len & 0x7f) | (size_t)at[2] << 7;
        head = 3;
    }
    if (XPL_UNLIKELY(len < 3) || XPL_UNLIKELY(left - head < len) ||
        XPL_UNLIKELY(at[head] != XSTAT_MD_ID << 3))
        return false;
    uint32_t id = at[head + 1];
    ret->value = at + head + 2;
    if (XPL_UNLIKELY(id >= 0x80)) {
        if (at[head + 2] >= 0x80) return false;
        id = (id & 0x7f) | (uint32_t)at[head + 2] << 7;
        ret->value = at + head + 3;
    }
    ret->id = id;
    ret->len = head + len;
    return true;
}

// Kind of value by the tag of the field that holds it; NONE for other fields.
static const uint8_t xpl_kind_of_tag[] = {
    [XSTAT_DOUBLE << 3 | XPL_WIRE_I64] = XPL_VALUE_DOUBLE,
    [XSTAT_UINT << 3 | XPL_WIRE_VARINT] = XPL_VALUE_UINT,
    [XSTAT_INT << 3 | XPL_WIRE_VARINT] = XPL_VALUE_INT,
    [XSTAT_STR << 3 | XPL_WIRE_LEN] = XPL_VALUE_STR,
    [XSTAT_BYTES << 3 | XPL_WIRE_LEN] = XPL_VALUE_BYTES,
    [XSTAT_REF << 3 | XPL_WIRE_VARINT] = XPL_VALUE_REF,
};

// A stat before its ids are looked up.
struct xpl_raw_stat {
    uint64_t md_id, u;
    xpl_str_t str; // STR, BYTES
    enum xpl_stat_kind kind;
};

// Fields in any order, last wins.  False when the message is malformed.
bool xpl_raw_stat_slow(xpl_bytes_t message, struct xpl_raw_stat *ret);

// A stat as writers write it: the id, then one value; else the slow way.  `limit` ends the input:
// reading eight bytes at once is safe up to there.
XPL_INLINE bool xpl_raw_stat_read(xpl_bytes_t message, const uint8_t *limit,
                                  struct xpl_raw_stat *ret) {
    const uint8_t *const end = message.ptr + message.len;
    struct xpl_varint id = {message.ptr, 0}, v;
    if (XPL_LIKELY(message.len > 2) && *id.p == XSTAT_MD_ID << 3)
        id = xpl_varint_read(id.p + 1, end);
    if (XPL_UNLIKELY(!id.p) || id.p == end || *id.p >= sizeof xpl_kind_of_tag)
        return xpl_raw_stat_slow(message, ret);
    *ret = (struct xpl_raw_stat){.md_id = id.v, .kind = (enum xpl_stat_kind)xpl_kind_of_tag[*id.p]};
    if ((*id.p & 7) == XPL_WIRE_VARINT) {
        v = xpl_varint_wide(id.p + 1, limit);
        ret->u = v.v;
    } else if ((*id.p & 7) == XPL_WIRE_LEN) {
        v = xpl_varint_read(id.p + 1, end);
        if (XPL_UNLIKELY(!v.p) || v.v != (uint64_t)(end - v.p))
            return xpl_raw_stat_slow(message, ret);
        ret->str = (xpl_str_t){(const char *)v.p, (size_t)v.v};
        v.p = end;
    } else if ((*id.p & 7) == XPL_WIRE_I64 && end - id.p == 9) {
        memcpy(&ret->u, id.p + 1, 8);
        v.p = end;
    } else {
        return xpl_raw_stat_slow(message, ret);
    }
    if (XPL_UNLIKELY(v.p != end) || XPL_UNLIKELY(ret->kind == XPL_VALUE_NONE))
        return xpl_raw_stat_slow(message, ret);
    return true;
}

#endif
