// SPDX-License-Identifier: Apache-2.0
#include "analysis/xplane/writer.h"

#include <assert.h>
#include <string.h>

#include "analysis/wire/writer.h"
#include "analysis/xplane/fields.h"
#include "base/arena.h"

enum {
    OUT = 64 << 10,  // bytes handed to the sink at once
    LARGE = OUT / 4, // longer texts go past the buffer
    MAP_KEY = 1,     // of a map's entry
    MAP_VALUE = 2,
    HEADER_MAX = 40, // bytes before a message: at most three tags and three varints
};

void xpl_xspace_writer_init(struct xpl_xspace_writer *w, const struct xpl_xspace_sink *sink) {
    *w = (struct xpl_xspace_writer){.sink = *sink};
    xpl_buf_init(&w->event, SIZE_MAX / 2);
}

void xpl_xspace_writer_init_whole(struct xpl_xspace_writer *w, struct xpl_buf *whole) {
    *w = (struct xpl_xspace_writer){.whole = whole, .writing = true};
}

bool xpl_xspace_writer_measured(struct xpl_xspace_writer *w) {
    assert(!w->writing && (w->failed || w->level == XPL_XSPACE_IN_SPACE));
    w->writing = true;
    w->total = w->n;
    w->n = 0;
    w->out = w->failed ? NULL : xpl_sys_alloc(OUT);
    if (!w->out) w->failed = true;
    return !w->failed;
}

uint64_t xpl_xspace_writer_size(const struct xpl_xspace_writer *w) {
    return w->total;
}

static void flush(struct xpl_xspace_writer *w) {
    if (!w->failed && w->n_out && !w->sink.put(w->sink.ctx, (xpl_bytes_t){w->out, w->n_out}))
        w->failed = true;
    w->n_out = 0;
}

bool xpl_xspace_writer_fini(struct xpl_xspace_writer *w) {
    if (w->writing && !w->whole) flush(w);
    const bool complete = w->writing && w->level == XPL_XSPACE_IN_SPACE && w->n == w->total;
    const bool ok = !w->failed && complete;
    xpl_sys_free(w->sizes);
    xpl_sys_free(w->out);
    xpl_buf_fini(&w->event);
    *w = (struct xpl_xspace_writer){.failed = true};
    return ok;
}

// ---- bytes ----

static inline uint8_t *append(struct xpl_xspace_writer *w, struct xpl_buf *b, size_t n) {
    if ((b->failed || b->cap - b->n < n) && !xpl_buf_room(b, n)) {
        w->failed = true;
        return NULL;
    }
    b->n += n;
    return b->p + b->n - n;
}

// Room for a few bytes; NULL while measuring, when they are only counted, and after a failure.
static uint8_t *reserve(struct xpl_xspace_writer *w, size_t n) {
    if (w->failed) return NULL;
    if (w->whole) return append(w, w->whole, n);
    if (w->level == XPL_XSPACE_IN_EVENT) {
        if (w->writing) return append(w, &w->event, n);
        w->event_size += n;
        return NULL;
    }
    w->n += n;
    if (!w->writing) return NULL;
    if (n > OUT - w->n_out) flush(w);
    if (w->failed) return NULL;
    w->n_out += n;
    return w->out + w->n_out - n;
}

static void put_bytes(struct xpl_xspace_writer *w, const void *p, size_t n) {
    if (w->writing && !w->whole && n >= LARGE && w->level != XPL_XSPACE_IN_EVENT) {
        flush(w);
        w->n += n;
        if (!w->failed && !w->sink.put(w->sink.ctx, (xpl_bytes_t){p, n})) w->failed = true;
        return;
    }
    uint8_t *const to = n ? reserve(w, n) : NULL;
    if (to) memcpy(to, p, n);
}

// All field numbers are below 16: a tag is one byte.
static uint8_t tag(uint32_t field, enum xpl_wire_type type) {
    return (uint8_t)(field << 3 | type);
}

static void put_varint(struct xpl_xspace_writer *w, uint32_t field, uint64_t v) {
    uint8_t *const p = reserve(w, 1 + xpl_varint_size(v));
    if (!p) return;
    *p = tag(field, XPL_WIRE_VARINT);
    xpl_varint_put(p + 1, v);
}

static void put_length(struct xpl_xspace_writer *w, uint32_t field, uint64_t n) {
    uint8_t *const p = reserve(w, 1 + xpl_varint_size(n));
    if (!p) return;
    *p = tag(field, XPL_WIRE_LEN);
    xpl_varint_put(p + 1, n);
}

static void put_text(struct xpl_xspace_writer *w, uint32_t field, const void *p, size_t n) {
    put_length(w, field, n);
    put_bytes(w, p, n);
}

// ---- messages, whose length stands before them ----

static bool push_size(struct xpl_xspace_writer *w) {
    if (w->n_sizes == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 64;
        uint64_t *const grown =
            cap > SIZE_MAX / sizeof *grown ? NULL : xpl_sys_realloc(w->sizes, cap * sizeof *grown);
        if (!grown) return false;
        w->sizes = grown;
        w->cap = cap;
    }
    w->sizes[w->n_sizes++] = 0;
    return true;
}

static struct xpl_xspace_writer_open *innermost(struct xpl_xspace_writer *w) {
    static const uint8_t depths[] = {[XPL_XSPACE_IN_PLANE] = 0,
                                     [XPL_XSPACE_IN_LINE] = 1,
                                     [XPL_XSPACE_IN_EVENT_MD] = 1,
                                     [XPL_XSPACE_IN_EVENT] = 2};
    return &w->open[depths[w->level]];
}

// The entry of a map, up to its value, a message of `size` bytes.
static uint8_t *put_entry(uint8_t *p, uint32_t field, uint64_t id, uint64_t size) {
    *p = tag(field, XPL_WIRE_LEN);
    p = xpl_varint_put(p + 1, 1 + xpl_varint_size(id) + 1 + xpl_varint_size(size) + size);
    *p = tag(MAP_KEY, XPL_WIRE_VARINT);
    p = xpl_varint_put(p + 1, id);
    *p = tag(MAP_VALUE, XPL_WIRE_LEN);
    return xpl_varint_put(p + 1, size);
}

// What stands before a message of `size` bytes; returns its length.
static size_t put_header(uint8_t ret[HEADER_MAX], enum xpl_xspace_writer_level level, uint64_t id,
                         uint64_t size) {
    static const uint32_t fields[] = {[XPL_XSPACE_IN_PLANE] = XSPACE_PLANES,
                                      [XPL_XSPACE_IN_LINE] = XPLANE_LINES,
                                      [XPL_XSPACE_IN_EVENT] = XLINE_EVENTS};
    if (level == XPL_XSPACE_IN_EVENT_MD)
        return (size_t)(put_entry(ret, XPLANE_EVENT_MD, id, size) - ret);
    *ret = tag(fields[level], XPL_WIRE_LEN);
    return (size_t)(xpl_varint_put(ret + 1, size) - ret);
}

// Opens a message; id: the key of event metadata.
static void open_message(struct xpl_xspace_writer *w, enum xpl_xspace_writer_level level,
                         uint64_t id) {
    // Where all is kept: so long a header is left room for that most messages need not be moved.
    static const uint64_t usual[] = {[XPL_XSPACE_IN_PLANE] = 1 << 21,
                                     [XPL_XSPACE_IN_LINE] = 1 << 21,
                                     [XPL_XSPACE_IN_EVENT] = 1 << 7,
                                     [XPL_XSPACE_IN_EVENT_MD] = 0};
    uint8_t header[HEADER_MAX];
    struct xpl_xspace_writer_open o = {.id = id};
    if (w->failed) return;
    if (w->whole) {
        o.start = w->whole->n;
        o.index = put_header(header, level, id, usual[level]);
        put_bytes(w, header, o.index);
    } else if (!w->writing) {
        if (!push_size(w)) w->failed = true;
        o.index = w->n_sizes - 1; // its header is counted at the end
        o.start = w->n;
    } else {
        o.index = w->next++;
        if (o.index >= w->n_sizes)
            w->failed = true;
        else
            put_bytes(w, header, put_header(header, level, id, w->sizes[o.index]));
        o.start = w->n;
    }
    w->level = level;
    *innermost(w) = o;
}

// Puts the header in place, where all is kept.
static void close_whole(struct xpl_xspace_writer *w, const struct xpl_xspace_writer_open *o) {
    struct xpl_buf *const b = w->whole;
    uint8_t header[HEADER_MAX];
    const size_t from = (size_t)o->start + o->index, size = b->n - from;
    const size_t n = put_header(header, w->level, o->id, size);
    if (n > o->index && !append(w, b, n - o->index)) return;
    if (n != o->index) memmove(b->p + o->start + n, b->p + from, size);
    memcpy(b->p + o->start, header, n);
    b->n = (size_t)o->start + n + size;
}

static void close_message(struct xpl_xspace_writer *w, enum xpl_xspace_writer_level level) {
    if (w->failed) return;
    assert(w->level == level);
    const struct xpl_xspace_writer_open *const o = innermost(w);
    const uint64_t size = w->n - o->start;
    uint8_t header[HEADER_MAX];
    if (w->whole) {
        close_whole(w, o);
    } else if (w->writing) {
        if (size != w->sizes[o->index]) w->failed = true;
    } else {
        w->sizes[o->index] = size;
        w->n += put_header(header, level, o->id, size);
    }
    w->level = level == XPL_XSPACE_IN_PLANE   ? XPL_XSPACE_IN_SPACE
               : level == XPL_XSPACE_IN_EVENT ? XPL_XSPACE_IN_LINE
                                              : XPL_XSPACE_IN_PLANE;
}

// After a failure nothing is known of the level any more.
static void check_level(const struct xpl_xspace_writer *w, enum xpl_xspace_writer_level level) {
    assert(w->failed || w->level == level);
    (void)w, (void)level;
}

void xpl_xspace_writer_error(struct xpl_xspace_writer *w, xpl_str_t text) {
    check_level(w, XPL_XSPACE_IN_SPACE);
    put_text(w, XSPACE_ERRORS, text.ptr, text.len);
}

void xpl_xspace_writer_warning(struct xpl_xspace_writer *w, xpl_str_t text) {
    check_level(w, XPL_XSPACE_IN_SPACE);
    put_text(w, XSPACE_WARNINGS, text.ptr, text.len);
}

void xpl_xspace_writer_hostname(struct xpl_xspace_writer *w, xpl_str_t name) {
    check_level(w, XPL_XSPACE_IN_SPACE);
    put_text(w, XSPACE_HOSTNAMES, name.ptr, name.len);
}

void xpl_xspace_writer_begin_plane(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name) {
    check_level(w, XPL_XSPACE_IN_SPACE);
    open_message(w, XPL_XSPACE_IN_PLANE, 0);
    put_varint(w, XPLANE_ID, (uint64_t)id);
    put_text(w, XPLANE_NAME, name.ptr, name.len);
}

void xpl_xspace_writer_end_plane(struct xpl_xspace_writer *w) {
    close_message(w, XPL_XSPACE_IN_PLANE);
}

void xpl_xspace_writer_begin_line(struct xpl_xspace_writer *w,
                                  const struct xpl_xspace_writer_line *line) {
    check_level(w, XPL_XSPACE_IN_PLANE);
    open_message(w, XPL_XSPACE_IN_LINE, 0);
    put_varint(w, XLINE_ID, (uint64_t)line->id);
    put_text(w, XLINE_NAME, line->name.ptr, line->name.len);
    put_varint(w, XLINE_TIMESTAMP_NS, (uint64_t)line->timestamp_ns);
    if (line->duration_ps) put_varint(w, XLINE_DURATION_PS, (uint64_t)line->duration_ps);
    if (line->display_id) put_varint(w, XLINE_DISPLAY_ID, (uint64_t)line->display_id);
    if (line->display_name.len)
        put_text(w, XLINE_DISPLAY_NAME, line->display_name.ptr, line->display_name.len);
}

void xpl_xspace_writer_end_line(struct xpl_xspace_writer *w) {
    close_message(w, XPL_XSPACE_IN_LINE);
}

void xpl_xspace_writer_begin_event_md(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name,
                                      xpl_str_t display_name) {
    check_level(w, XPL_XSPACE_IN_PLANE);
    open_message(w, XPL_XSPACE_IN_EVENT_MD, (uint64_t)id);
    put_varint(w, XEVENT_MD_ID, (uint64_t)id);
    put_text(w, XEVENT_MD_NAME, name.ptr, name.len);
    if (display_name.len) put_text(w, XEVENT_MD_DISPLAY_NAME, display_name.ptr, display_name.len);
}

void xpl_xspace_writer_event_md_bytes(struct xpl_xspace_writer *w, xpl_bytes_t bytes) {
    check_level(w, XPL_XSPACE_IN_EVENT_MD);
    put_text(w, XEVENT_MD_METADATA, bytes.ptr, bytes.len);
}

void xpl_xspace_writer_event_md_child(struct xpl_xspace_writer *w, int64_t id) {
    check_level(w, XPL_XSPACE_IN_EVENT_MD);
    put_varint(w, XEVENT_MD_CHILD_ID, (uint64_t)id);
}

void xpl_xspace_writer_end_event_md(struct xpl_xspace_writer *w) {
    close_message(w, XPL_XSPACE_IN_EVENT_MD);
}

static uint64_t text_size(size_t n) {
    return 1 + xpl_varint_size(n) + n;
}

void xpl_xspace_writer_stat_md(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name,
                               xpl_str_t description) {
    check_level(w, XPL_XSPACE_IN_PLANE);
    const uint64_t size = 1 + xpl_varint_size((uint64_t)id) + text_size(name.len) +
                          (description.len ? text_size(description.len) : 0);
    uint8_t entry[HEADER_MAX];
    put_bytes(w, entry, (size_t)(put_entry(entry, XPLANE_STAT_MD, (uint64_t)id, size) - entry));
    put_varint(w, XSTAT_MD_ID, (uint64_t)id);
    put_text(w, XSTAT_MD_NAME, name.ptr, name.len);
    if (description.len) put_text(w, XSTAT_MD_DESCRIPTION, description.ptr, description.len);
}

// ---- events: put together in a buffer, whose length is known at their end ----

// Begins an event in the only pass, with one check of the room.
static void begin_whole(struct xpl_xspace_writer *w, int64_t md, uint32_t field, int64_t v,
                        int64_t duration_ps) {
    open_message(w, XPL_XSPACE_IN_EVENT, 0);
    uint8_t *p = xpl_xspace_writer_stats_room(w, 3 * (1 + XPL_VARINT_ROOM));
    if (!p) return;
    *p = tag(XEVENT_MD_ID, XPL_WIRE_VARINT);
    p = xpl_varint_put_wide(p + 1, (uint64_t)md);
    *p = tag(field, XPL_WIRE_VARINT);
    p = xpl_varint_put_wide(p + 1, (uint64_t)v);
    *p = tag(XEVENT_DURATION_PS, XPL_WIRE_VARINT);
    xpl_xspace_writer_stats_end(w, xpl_varint_put_wide(p + 1, (uint64_t)duration_ps));
}

static void begin_event(struct xpl_xspace_writer *w, int64_t md, uint32_t field, int64_t v,
                        int64_t duration_ps) {
    check_level(w, XPL_XSPACE_IN_LINE);
    if (w->failed) return;
    if (w->whole) {
        begin_whole(w, md, field, v, duration_ps);
        return;
    }
    w->level = XPL_XSPACE_IN_EVENT;
    w->event.n = 0;
    w->event_size = 0;
    put_varint(w, XEVENT_MD_ID, (uint64_t)md);
    put_varint(w, field, (uint64_t)v);
    put_varint(w, XEVENT_DURATION_PS, (uint64_t)duration_ps);
}

void xpl_xspace_writer_begin_event(struct xpl_xspace_writer *w, int64_t md, int64_t offset_ps,
                                   int64_t duration_ps) {
    begin_event(w, md, XEVENT_OFFSET_PS, offset_ps, duration_ps);
}

void xpl_xspace_writer_begin_counted(struct xpl_xspace_writer *w, int64_t md, int64_t occurrences,
                                     int64_t duration_ps) {
    begin_event(w, md, XEVENT_OCCURRENCES, occurrences, duration_ps);
}

void xpl_xspace_writer_end_event(struct xpl_xspace_writer *w) {
    check_level(w, XPL_XSPACE_IN_EVENT);
    if (w->whole) {
        close_message(w, XPL_XSPACE_IN_EVENT);
        return;
    }
    if (w->failed) return;
    w->level = XPL_XSPACE_IN_LINE;
    if (!w->writing)
        w->n += text_size((size_t)w->event_size);
    else
        put_text(w, XLINE_EVENTS, w->event.p, w->event.n);
}

// ---- statistics ----

// Begins an XStat with `value` bytes after its metadata's id; returns where the first `here` of
// them belong.
static uint8_t *put_stat(struct xpl_xspace_writer *w, int64_t md, uint64_t value, size_t here) {
    static const uint8_t tags[] = {[XPL_XSPACE_IN_PLANE] = XPLANE_STATS << 3 | XPL_WIRE_LEN,
                                   [XPL_XSPACE_IN_EVENT] = XEVENT_STATS << 3 | XPL_WIRE_LEN,
                                   [XPL_XSPACE_IN_EVENT_MD] = XEVENT_MD_STATS << 3 | XPL_WIRE_LEN};
    const uint64_t size = 1 + xpl_varint_size((uint64_t)md) + value;
    if (w->failed) return NULL;
    assert(tags[w->level]);
    uint8_t *p = reserve(w, (size_t)(1 + xpl_varint_size(size) + size - value) + here);
    if (!p) return NULL;
    *p = tags[w->level];
    p = xpl_varint_put(p + 1, size);
    *p = tag(XSTAT_MD_ID, XPL_WIRE_VARINT);
    return xpl_varint_put(p + 1, (uint64_t)md);
}

static void put_stat_varint(struct xpl_xspace_writer *w, int64_t md, uint32_t field, uint64_t v) {
    const size_t size = 1 + xpl_varint_size(v);
    uint8_t *const p = put_stat(w, md, size, size);
    if (!p) return;
    *p = tag(field, XPL_WIRE_VARINT);
    xpl_varint_put(p + 1, v);
}

static void put_stat_text(struct xpl_xspace_writer *w, int64_t md, uint32_t field, const void *p,
                          size_t n) {
    (void)put_stat(w, md, text_size(n), 0);
    put_text(w, field, p, n);
}

void xpl_xspace_writer_double(struct xpl_xspace_writer *w, int64_t md, double v) {
    uint8_t *const p = put_stat(w, md, 1 + sizeof v, 1 + sizeof v);
    if (!p) return;
    *p = tag(XSTAT_DOUBLE, XPL_WIRE_I64);
    memcpy(p + 1, &v, sizeof v);
}

void xpl_xspace_writer_uint(struct xpl_xspace_writer *w, int64_t md, uint64_t v) {
    put_stat_varint(w, md, XSTAT_UINT, v);
}

void xpl_xspace_writer_int(struct xpl_xspace_writer *w, int64_t md, int64_t v) {
    put_stat_varint(w, md, XSTAT_INT, (uint64_t)v);
}

void xpl_xspace_writer_str(struct xpl_xspace_writer *w, int64_t md, xpl_str_t v) {
    put_stat_text(w, md, XSTAT_STR, v.ptr, v.len);
}

void xpl_xspace_writer_bytes(struct xpl_xspace_writer *w, int64_t md, xpl_bytes_t v) {
    put_stat_text(w, md, XSTAT_BYTES, v.ptr, v.len);
}

void xpl_xspace_writer_ref(struct xpl_xspace_writer *w, int64_t md, uint64_t other) {
    put_stat_varint(w, md, XSTAT_REF, other);
}

uint8_t *xpl_xspace_writer_stats_grow(struct xpl_xspace_writer *w, size_t n) {
    uint8_t *const p = w->failed ? NULL : append(w, w->whole, n);
    if (p) w->whole->n -= n;
    return p;
}

void xpl_xspace_stat_init(struct xpl_xspace_stat *ret, int64_t md, enum xpl_xspace_stat_kind kind) {
    static const uint8_t tags[] = {[XPL_XSPACE_STAT_UINT] = XSTAT_UINT << 3 | XPL_WIRE_VARINT,
                                   [XPL_XSPACE_STAT_INT] = XSTAT_INT << 3 | XPL_WIRE_VARINT,
                                   [XPL_XSPACE_STAT_STR] = XSTAT_STR << 3 | XPL_WIRE_LEN,
                                   [XPL_XSPACE_STAT_REF] = XSTAT_REF << 3 | XPL_WIRE_VARINT};
    *ret = (struct xpl_xspace_stat){
        .before = {tag(XEVENT_STATS, XPL_WIRE_LEN), 0, tag(XSTAT_MD_ID, XPL_WIRE_VARINT)}};
    uint8_t *const end = xpl_varint_put(ret->before + 3, (uint64_t)md);
    *end = tags[kind];
    ret->n = (uint8_t)(end + 1 - ret->before);
}

uint8_t *xpl_xspace_stat_text(const struct xpl_xspace_stat *s, uint8_t *p, xpl_str_t v) {
    assert(v.len <= XPL_XSPACE_STAT_TEXT);
    uint8_t *const at = xpl_xspace_stat_number(s, p, v.len);
    memcpy(at, v.ptr, v.len);
    p[1] = (uint8_t)(p[1] + v.len);
    return at + v.len;
}
