// SPDX-License-Identifier: Apache-2.0
// Most profiles are none of model servers.  That can be told from the names in the host's plane,
// which are a small part of it: its lines are passed over.
#include "analysis/inference/inference.h"

#include <string.h>

#include "analysis/inference/kinds.h"
#include "analysis/wire/wire.h"
#include "analysis/xplane/fields.h"

enum { ENTRY_VALUE = 2, MD_NAME = 2 }; // the name of events and of statistics alike
enum { TAG_ID = 1 << 3, TAG_TEXT = MD_NAME << 3 | XPL_WIRE_LEN };

// The last name among the fields of an entry's value; `name` when there is none.
static xpl_str_t name_in(struct xpl_wire value, xpl_str_t name) {
    struct xpl_field f;
    while (xpl_wire_next(&value, &f) == XPL_WIRE_FIELD)
        if (f.num == MD_NAME && f.type == XPL_WIRE_LEN)
            name = (xpl_str_t){(const char *)f.len.ptr, f.len.len};
    return name;
}

// A number and then bytes, as writers begin an entry and its value alike.  False when it is not
// written so; else *ret are the bytes, and *p is behind them.
static bool read_pair(const uint8_t **p, const uint8_t *end, xpl_bytes_t *ret) {
    if (*p == end || **p != TAG_ID) return false;
    const struct xpl_varint id = xpl_varint_read(*p + 1, end);
    if (!id.p || id.p == end || *id.p != TAG_TEXT) return false;
    const struct xpl_varint n = xpl_varint_read(id.p + 1, end);
    if (!n.p || n.v > (uint64_t)(end - n.p)) return false;
    *ret = (xpl_bytes_t){n.p, (size_t)n.v};
    *p = n.p + n.v;
    return true;
}

// Skips byte fields other than the name.
static const uint8_t *skip_others(const uint8_t *p, const uint8_t *end) {
    while (p != end && *p != TAG_TEXT && *p < 0x80 && (*p & 7) == XPL_WIRE_LEN) {
        const struct xpl_varint n = xpl_varint_read(p + 1, end);
        if (!n.p || n.v > (uint64_t)(end - n.p)) break;
        p = n.p + n.v;
    }
    return p;
}

// The name in an entry of a map of metadata.
static xpl_str_t name_of(xpl_bytes_t entry) {
    const uint8_t *p = entry.ptr, *const end = entry.ptr + entry.len;
    xpl_bytes_t value, text;
    if (read_pair(&p, end, &value) && p == end) {
        p = value.ptr;
        if (read_pair(&p, end, &text)) {
            const xpl_str_t name = {(const char *)text.ptr, text.len};
            p = skip_others(p, end);
            return p == end ? name : name_in((struct xpl_wire){p, end}, name);
        }
    }
    struct xpl_wire w = xpl_wire_begin(entry);
    struct xpl_field f;
    xpl_str_t name = {0};
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD)
        if (f.num == ENTRY_VALUE && f.type == XPL_WIRE_LEN)
            name = name_in(xpl_wire_begin(f.len), name);
    return name;
}

// Names of the events that begin requests, which are few: most others differ in their length.
struct served {
    xpl_str_t names[XPL_INFER_KINDS];
    unsigned n;
    uint64_t lengths; // a bit for each length below 64
};

static struct served served_names(void) {
    struct served s = {0};
    for (unsigned kind = 0; kind < XPL_INFER_KINDS; kind++) {
        if (kind >= XPL_INFER_ROOT && kind != XPL_INFER_BATCH && kind != XPL_INFER_ORBAX_BATCH)
            continue;
        const xpl_str_t name = xpl_event_type_name(xpl_infer_type_of((enum xpl_infer_kind)kind));
        s.names[s.n++] = name;
        s.lengths |= UINT64_C(1) << (name.len & 63);
    }
    return s;
}

static bool is_served(const struct served *s, xpl_str_t name) {
    for (unsigned i = 0; s->lengths >> (name.len & 63) & 1 && i < s->n; i++)
        if (xpl_str_eq(s->names[i], name)) return true;
    return xpl_infer_is_server_request(name);
}

// A root of level -1 is nine bytes of 255 in the statistics of an event.  At least four of them are
// a word of those that follow each other here, which compilers test several at a time.
enum { RUN = 9, WORD = 4, PIECE = 1024 };

// Whether the byte at `at` is one of such a run.
static bool is_in_run(xpl_bytes_t plane, size_t at) {
    size_t n = 0;
    for (size_t i = at; n < RUN && i < plane.len && plane.ptr[i] == 255; i++)
        n++;
    for (size_t i = at; n && n < RUN && i > 0 && plane.ptr[i - 1] == 255; i--)
        n++;
    return n == RUN;
}

static bool has_run(xpl_bytes_t plane, size_t from, size_t to) {
    for (size_t at = from; at < to; at += WORD)
        if (is_in_run(plane, at)) return true;
    return false;
}

static bool has_such_word(const uint8_t p[static PIECE]) {
    uint32_t any = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < PIECE; i += WORD) {
        uint32_t word;
        memcpy(&word, p + i, sizeof word);
        any |= -(uint32_t)(word == UINT32_MAX);
    }
    return any != 0;
}

// Whether an event may say that it is such a root.
static bool has_own_roots(xpl_bytes_t plane) {
    size_t at = 0;
    for (; plane.len - at >= PIECE; at += PIECE)
        if (XPL_UNLIKELY(has_such_word(plane.ptr + at)) && has_run(plane, at, at + PIECE))
            return true;
    return has_run(plane, at, plane.len);
}

// A plane whose name comes behind its metadata may be any.
static bool plane_may(const struct served *s, xpl_bytes_t plane) {
    const xpl_str_t is_root = xpl_stat_type_name(XPL_STAT_IS_ROOT);
    struct xpl_wire w = xpl_wire_begin(plane);
    struct xpl_field f;
    bool host = false, passed = false, named = false, roots = false;
    while (xpl_wire_next(&w, &f) == XPL_WIRE_FIELD) {
        if (f.type != XPL_WIRE_LEN) continue;
        if (f.num == XPLANE_NAME)
            host = xpl_str_eq((xpl_str_t){(const char *)f.len.ptr, f.len.len},
                              XPL_STR(XPL_PLANE_NAME_HOST_THREADS));
        else if (f.num == XPLANE_EVENT_MD || f.num == XPLANE_STAT_MD)
            passed |= !host;
        if (!host || named) continue;
        if (f.num == XPLANE_EVENT_MD)
            named = is_served(s, name_of(f.len));
        else if (f.num == XPLANE_STAT_MD)
            roots |= xpl_str_eq(name_of(f.len), is_root);
    }
    return host && (named || passed || (roots && has_own_roots(plane)));
}

bool xpl_inference_possible(xpl_bytes_t profile) {
    struct xpl_wire w = xpl_wire_begin(profile);
    const struct served served = served_names();
    struct xpl_field f;
    enum xpl_wire_result r;
    while ((r = xpl_wire_next(&w, &f)) == XPL_WIRE_FIELD)
        if (f.num == XSPACE_PLANES && f.type == XPL_WIRE_LEN && plane_may(&served, f.len))
            return true;
    return r != XPL_WIRE_END;
}
