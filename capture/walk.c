// SPDX-License-Identifier: Apache-2.0
#include "capture/walk.h"

#include <string.h>

#include "analysis/wire/wire.h"

void xpl_walk_init(struct xpl_walk *w) {
    *w = (struct xpl_walk){.left[0] = UINT64_MAX};
}

bool xpl_walk_complete(const struct xpl_walk *w) {
    return !w->malformed && !w->stopped && w->depth == 0 && w->body == 0 && w->n_head == 0;
}

enum head { HEAD_BAD = -1, HEAD_SHORT, HEAD_READ };

// A varint at b[*at...n), moved past.
static inline enum head read_varint(const uint8_t *b, size_t n, size_t *at, uint64_t *ret) {
    size_t i = *at;
    if (n - i < 10) {
        while (i < n && b[i] >= 0x80)
            i++;
        if (i == n) return HEAD_SHORT;
    }
    const struct xpl_varint v = xpl_varint_read(b + *at, b + n);
    if (!v.p) return HEAD_BAD;
    *at = (size_t)(v.p - b);
    *ret = v.v;
    return HEAD_READ;
}

// Tag, and number or length.  As wire.h has it: no groups, no field 0, tags of 32 bits.
static inline enum head read_head(const uint8_t *b, size_t n, struct xpl_walk_field *f,
                                  size_t *ret_used) {
    size_t at = 0;
    uint64_t tag;
    enum head r = read_varint(b, n, &at, &tag);
    if (r != HEAD_READ) return r;
    if (tag > UINT32_MAX || tag < 8) return HEAD_BAD;
    f->num = (uint32_t)tag >> 3;
    f->type = (uint32_t)tag & 7;
    f->u = 0;
    if (f->type == XPL_WIRE_VARINT || f->type == XPL_WIRE_LEN) {
        r = read_varint(b, n, &at, &f->u);
    } else if (f->type == XPL_WIRE_I64 || f->type == XPL_WIRE_I32) {
        const size_t size = f->type == XPL_WIRE_I64 ? 8 : 4;
        r = n - at < size ? HEAD_SHORT : HEAD_READ;
        if (r == HEAD_READ) memcpy(&f->u, b + at, size);
        at += size;
    } else {
        return HEAD_BAD;
    }
    *ret_used = at;
    return r;
}

// Opens the field after a head of `used` bytes.  False at the end of the walk.
static inline bool open_field(struct xpl_walk *w, const struct xpl_walk_field *f, size_t used) {
    uint64_t *const left = &w->left[w->depth];
    const bool len = f->type == XPL_WIRE_LEN;
    if (len && f->u > *left - used) {
        w->malformed = true;
        return false;
    }
    *left -= used + (len ? f->u : 0);
    w->at += used;
    const enum xpl_walk_way way = w->on_field(w->ctx, f);
    if (!len) return true;
    if (way == XPL_WALK_ENTER && w->depth < XPL_WALK_DEPTH) {
        w->left[++w->depth] = f->u;
        return true;
    }
    w->body = f->u;
    w->taking = way == XPL_WALK_TAKE;
    if (w->taking && f->u == 0) w->stopped = !w->on_bytes(w->ctx, (xpl_bytes_t){0}, true);
    return !w->stopped;
}

static inline void leave_messages(struct xpl_walk *w) {
    while (w->depth > 0 && w->left[w->depth] == 0 && w->body == 0)
        w->depth--;
}

// The body of a field, or as much of it as is here.  Returns how much.
static size_t pass_body(struct xpl_walk *w, const uint8_t *p, size_t n) {
    const size_t part = w->body < n ? (size_t)w->body : n;
    w->body -= part;
    if (w->taking) w->stopped = !w->on_bytes(w->ctx, (xpl_bytes_t){p, part}, w->body == 0);
    w->at += part;
    return part;
}

// Skips bytes that no callback needs: nearly all bytes of a profile.
static inline size_t pass_over(struct xpl_walk *w, size_t n) {
    const size_t part = w->body < n ? (size_t)w->body : n;
    w->body -= part;
    w->at += part;
    return part;
}

// Counts the short fields of count_num that begin here and are completely within this piece and
// message.  Returns the number of their bytes.
static size_t count_fields(struct xpl_walk *w, const uint8_t *p, size_t n) {
    enum { LONGEST = 2 + 127 }; // tag, length of one byte, body
    const uint8_t tag = (uint8_t)(w->count_num << 3 | XPL_WIRE_LEN);
    uint64_t *const left = &w->left[w->depth];
    const uint8_t *at = p;
    const uint8_t *const end = p + (*left < n ? (size_t)*left : n);
    while (end - at >= LONGEST && at[0] == tag && at[1] < 0x80) {
        at += 2 + at[1];
        w->counted++;
    }
    *left -= (size_t)(at - p);
    w->at += (size_t)(at - p);
    return (size_t)(at - p);
}

// A head of which an earlier piece had the beginning: byte by byte.  Returns how many it took.
static size_t finish_head(struct xpl_walk *w, const uint8_t *p, size_t n) {
    struct xpl_walk_field f = {.depth = w->depth};
    size_t used = 0, i = 0;
    enum head r = HEAD_SHORT;
    while (r == HEAD_SHORT && i < n && w->n_head < w->left[w->depth] &&
           w->n_head < sizeof w->head) {
        w->head[w->n_head++] = p[i++];
        r = read_head(w->head, w->n_head, &f, &used);
    }
    if (r == HEAD_READ) {
        w->n_head = 0;
        (void)open_field(w, &f, used);
    } else if (r == HEAD_BAD || w->n_head == w->left[w->depth] || w->n_head == sizeof w->head) {
        w->malformed = true;
    }
    return i;
}

bool xpl_walk_put(struct xpl_walk *w, xpl_bytes_t piece) {
    const uint8_t *p = piece.ptr;
    size_t n = piece.len;
    while (n > 0 && !w->malformed && !w->stopped) {
        size_t used = 0;
        if (w->body > 0) {
            used = pass_body(w, p, n);
        } else if (w->n_head > 0) {
            used = finish_head(w, p, n);
        } else if (w->count_num && w->depth == w->count_depth &&
                   (used = count_fields(w, p, n)) > 0) {
            // As far as that goes.
        } else {
            struct xpl_walk_field f = {.depth = w->depth};
            const uint64_t left = w->left[w->depth];
            const size_t room = left < n ? (size_t)left : n;
            const enum head r = read_head(p, room, &f, &used);
            if (r == HEAD_BAD || (r == HEAD_SHORT && room == left)) {
                w->malformed = true;
            } else if (r == HEAD_SHORT) {
                used = w->n_head = (unsigned)n; // shorter than a head can be
                memcpy(w->head, p, n);
            } else if (open_field(w, &f, used) && !w->taking) {
                used += pass_over(w, n - used);
            }
        }
        if (w->malformed || w->stopped) break;
        p += used, n -= used;
        leave_messages(w);
    }
    return !w->malformed && !w->stopped;
}
