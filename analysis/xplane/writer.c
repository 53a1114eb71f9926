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
};

void xpl_xspace_writer_init(struct xpl_xspace_writer *w, const struct xpl_xspace_sink *sink) {
    *w = (struct xpl_xspace_writer){.sink = *sink};
    xpl_buf_init(&w->event, SIZE_MAX / 2);
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
    if (w->writing) flush(w);
    const bool whole = w->writing && w->level == XPL_XSPACE_IN_SPACE && w->n == w->total;
    const bool ok = !w->failed && whole;
    xpl_sys_free(w->sizes);
    xpl_sys_free(w->out);
    xpl_buf_fini(&w->event);
    *w = (struct xpl_xspace_writer){.failed = true};
    return ok;
}

// ---- bytes ----

// Room for a few bytes; NULL while measuring, when they are only counted, and after a failure.
static uint8_t *reserve(struct xpl_xspace_writer *w, size_t n) {
    if (w->failed) return NULL;
    if (w->level == XPL_XSPACE_IN_EVENT) {
        if (!w->writing) {
            w->event_size += n;
            return NULL;
        }
        if (!xpl_buf_room(&w->event, n)) {
            w->failed = true;
            return NULL;
        }
        w->event.n += n;
        return w->event.p + w->event.n - n;
    }
    w->n += n;
    if (!w->writing) return NULL;
    if (n > OUT - w->n_out) flush(w);
    if (w->failed) return NULL;
    w->n_out += n;
    return w->out + w->n_out - n;
}

static void put_bytes(struct xpl_xspace_writer *w, const void *p, size_t n) {
    if (w->writing && n >= LARGE && w->level != XPL_XSPACE_IN_EVENT) {
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

// ---- planes, lines, event metadata: sizes are remembered ----

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
    return &w->open[w->level == XPL_XSPACE_IN_PLANE ? 0 : 1];
}

// The size of a map's entry whose value is a message of `size` bytes.
static uint64_t entry_size(uint64_t id, uint64_t size) {
    return 1 + xpl_varint_size(id) + 1 + xpl_varint_size(size) + size;
}

static void put_entry(struct xpl_xspace_writer *w, uint32_t field, uint64_t id, uint64_t size) {
    put_length(w, field, entry_size(id, size));
    put_varint(w, MAP_KEY, id);
    put_length(w, MAP_VALUE, size);
}

// Opens a message of field `field`; that of a map's entry of key `id` for event metadata.
static void open_message(struct xpl_xspace_writer *w, enum xpl_xspace_writer_level level,
                         uint32_t field, uint64_t id) {
    uint64_t size = 0;
    size_t index = 0;
    if (w->failed) return;
    if (!w->writing) {
        if (!push_size(w)) w->failed = true;
        index = w->n_sizes - 1; // its header is counted at the end
    } else {
        index = w->next++;
        if (index >= w->n_sizes) w->failed = true;
        size = w->failed ? 0 : w->sizes[index];
        if (level == XPL_XSPACE_IN_EVENT_MD)
            put_entry(w, field, id, size);
        else
            put_length(w, field, size);
    }
    w->level = level;
    *innermost(w) = (struct xpl_xspace_writer_open){.index = index, .start = w->n, .id = id};
}

static void close_message(struct xpl_xspace_writer *w, enum xpl_xspace_writer_level level) {
    if (w->failed) return;
    assert(w->level == level);
    const struct xpl_xspace_writer_open *const o = innermost(w);
    const uint64_t size = w->n - o->start;
    if (w->writing) {
        if (size != w->sizes[o->index]) w->failed = true;
    } else {
        w->sizes[o->index] = size;
        const uint64_t inner = level == XPL_XSPACE_IN_EVENT_MD ? entry_size(o->id, size) : size;
        w->n += 1 + xpl_varint_size(inner) + inner - size;
    }
    w->level = level == XPL_XSPACE_IN_PLANE ? XPL_XSPACE_IN_SPACE : XPL_XSPACE_IN_PLANE;
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
    open_message(w, XPL_XSPACE_IN_PLANE, XSPACE_PLANES, 0);
    put_varint(w, XPLANE_ID, (uint64_t)id);
    put_text(w, XPLANE_NAME, name.ptr, name.len);
}

void xpl_xspace_writer_end_plane(struct xpl_xspace_writer *w) {
    close_message(w, XPL_XSPACE_IN_PLANE);
}

void xpl_xspace_writer_begin_line(struct xpl_xspace_writer *w,
                                  const struct xpl_xspace_writer_line *line) {
    check_level(w, XPL_XSPACE_IN_PLANE);
    open_message(w, XPL_XSPACE_IN_LINE, XPLANE_LINES, 0);
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
    open_message(w, XPL_XSPACE_IN_EVENT_MD, XPLANE_EVENT_MD, (uint64_t)id);
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
    put_entry(w, XPLANE_STAT_MD, (uint64_t)id, size);
    put_varint(w, XSTAT_MD_ID, (uint64_t)id);
    put_text(w, XSTAT_MD_NAME, name.ptr, name.len);
    if (description.len) put_text(w, XSTAT_MD_DESCRIPTION, description.ptr, description.len);
}

// ---- events: put together in a buffer, whose length is known at their end ----

static void begin_event(struct xpl_xspace_writer *w, int64_t md, uint32_t field, int64_t v,
                        int64_t duration_ps) {
    check_level(w, XPL_XSPACE_IN_LINE);
    if (w->failed) return;
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
    if (w->failed) return;
    w->level = XPL_XSPACE_IN_LINE;
    if (!w->writing) {
        w->n += text_size((size_t)w->event_size);
        return;
    }
    put_text(w, XLINE_EVENTS, w->event.p, w->event.n);
}

// ---- statistics ----

// Begins an XStat with `value` bytes after its metadata's id.
static void put_stat(struct xpl_xspace_writer *w, int64_t md, uint64_t value) {
    static const uint32_t fields[] = {[XPL_XSPACE_IN_PLANE] = XPLANE_STATS,
                                      [XPL_XSPACE_IN_EVENT] = XEVENT_STATS,
                                      [XPL_XSPACE_IN_EVENT_MD] = XEVENT_MD_STATS};
    if (w->failed) return;
    const uint32_t field = fields[w->level];
    assert(field);
    put_length(w, field, 1 + xpl_varint_size((uint64_t)md) + value);
    put_varint(w, XSTAT_MD_ID, (uint64_t)md);
}

static void put_stat_varint(struct xpl_xspace_writer *w, int64_t md, uint32_t field, uint64_t v) {
    put_stat(w, md, 1 + xpl_varint_size(v));
    put_varint(w, field, v);
}

static void put_stat_text(struct xpl_xspace_writer *w, int64_t md, uint32_t field, const void *p,
                          size_t n) {
    put_stat(w, md, text_size(n));
    put_text(w, field, p, n);
}

void xpl_xspace_writer_double(struct xpl_xspace_writer *w, int64_t md, double v) {
    put_stat(w, md, 1 + sizeof v);
    uint8_t *const p = reserve(w, 1 + sizeof v);
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

void xpl_xspace_writer_stats(struct xpl_xspace_writer *w, xpl_bytes_t fields) {
    check_level(w, XPL_XSPACE_IN_EVENT);
    put_bytes(w, fields.ptr, fields.len);
}
