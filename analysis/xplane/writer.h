// SPDX-License-Identifier: Apache-2.0
// Writes an XSpace: planes, lines, events, statistics and metadata, in the caller's order, to a
// sink.  No memory per event is needed, so that an XSpace of any size is written in little memory.
//
// A length prefix needs the size of its content.  As with analysis/wire/writer.h the caller makes
// the same calls twice: the first pass measures, the second writes.  One size for each plane, line
// and event metadata is stored between them.
//
//   struct xpl_xspace_writer w;
//   xpl_xspace_writer_init(&w, &sink);
//   emit(&w, source);                                           // measures
//   if (xpl_xspace_writer_measured(&w)) emit(&w, source);       // the same calls again: writes
//   ok = xpl_xspace_writer_fini(&w);
//
// A caller that keeps all of it in memory writes in one pass; the bytes are the same:
//
//   xpl_xspace_writer_init_whole(&w, &buf);
//   emit(&w, source);
//   ok = xpl_xspace_writer_fini(&w);
//
// Calls nest as the messages do, which is asserted:
//   XSpace          plane, error, warning, hostname
//     plane         line, event metadata, stat metadata, statistics of the plane
//       line        event
//         event     statistics of the event
//       event metadata   statistics, children
// Statistics belong to the open message.  Fields are written in the order of the calls, unchanged
// and in their shortest form.  The caller ensures that ids are unique and declared; readers treat
// undeclared ones as nameless. protobuf reads no message of 2 GiB or more.
//
// The first failure sticks: later calls do nothing, and the owner checks once at the end.
#ifndef XPL_ANALYSIS_XPLANE_WRITER_H_
#define XPL_ANALYSIS_XPLANE_WRITER_H_

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/wire/writer.h"
#include "base/buf.h"
#include "base/str.h"

struct xpl_xspace_sink {
    // The next bytes, valid during the call; false ends the writing.
    bool (*put)(void *ctx, xpl_bytes_t bytes);
    void *ctx;
};

enum xpl_xspace_writer_level {
    XPL_XSPACE_IN_SPACE,
    XPL_XSPACE_IN_PLANE,
    XPL_XSPACE_IN_LINE,
    XPL_XSPACE_IN_EVENT,
    XPL_XSPACE_IN_EVENT_MD,
};

struct xpl_xspace_writer { // private; the caller's memory
    struct xpl_xspace_sink sink;
    struct xpl_buf *whole; // gets all of it in one pass; NULL: two passes
    uint64_t *sizes; // of planes, lines and event metadata, in the order in which they are opened
    size_t n_sizes, cap, next;
    uint64_t n, total; // bytes of this pass so far; of the first pass
    enum xpl_xspace_writer_level level;
    struct xpl_xspace_writer_open {
        size_t index; // into sizes; in one pass, the bytes left for its header
        uint64_t start, id;
    } open[3];            // a plane, a line or event metadata in it, an event
    struct xpl_buf event; // the open event
    uint64_t event_size;  // the same, while measuring
    uint8_t *out;         // bytes for the sink
    size_t n_out;
    bool writing, failed;
};

// Prepares the measuring pass; allocates nothing.  `sink` is copied.
void xpl_xspace_writer_init(struct xpl_xspace_writer *w, const struct xpl_xspace_sink *sink);
// Prepares the only pass, which appends to `whole`; that is borrowed until the end.
void xpl_xspace_writer_init_whole(struct xpl_xspace_writer *w, struct xpl_buf *whole);
// Ends the measuring pass.  False without memory: then there must not be a second pass.
bool xpl_xspace_writer_measured(struct xpl_xspace_writer *w) __attribute__((warn_unused_result));
// Bytes of the whole XSpace, once measured.
uint64_t xpl_xspace_writer_size(const struct xpl_xspace_writer *w);
// Hands the last bytes to the sink and frees the writer's memory.  False when anything failed
// (memory, the sink, passes that differ): the bytes are then not an XSpace.
bool xpl_xspace_writer_fini(struct xpl_xspace_writer *w) __attribute__((warn_unused_result));

// ---- XSpace ----

void xpl_xspace_writer_error(struct xpl_xspace_writer *w, xpl_str_t text);
void xpl_xspace_writer_warning(struct xpl_xspace_writer *w, xpl_str_t text);
void xpl_xspace_writer_hostname(struct xpl_xspace_writer *w, xpl_str_t name);

// ---- planes and lines ----

void xpl_xspace_writer_begin_plane(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name);
void xpl_xspace_writer_end_plane(struct xpl_xspace_writer *w);

struct xpl_xspace_writer_line {
    int64_t id;
    xpl_str_t name;
    int64_t timestamp_ns; // since 1970; events count from here
    // Written when they are not 0 or empty.
    int64_t duration_ps, display_id;
    xpl_str_t display_name;
};
void xpl_xspace_writer_begin_line(struct xpl_xspace_writer *w,
                                  const struct xpl_xspace_writer_line *line);
void xpl_xspace_writer_end_line(struct xpl_xspace_writer *w);

// ---- metadata: the names of ids in a plane ----

// display_name may be empty.  Statistics and children come before the end.
void xpl_xspace_writer_begin_event_md(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name,
                                      xpl_str_t display_name);
// XEventMetadata.metadata: a serialized message.
void xpl_xspace_writer_event_md_bytes(struct xpl_xspace_writer *w, xpl_bytes_t bytes);
void xpl_xspace_writer_event_md_child(struct xpl_xspace_writer *w, int64_t id);
void xpl_xspace_writer_end_event_md(struct xpl_xspace_writer *w);
// description may be empty.
void xpl_xspace_writer_stat_md(struct xpl_xspace_writer *w, int64_t id, xpl_str_t name,
                               xpl_str_t description);

// ---- events ----

void xpl_xspace_writer_begin_event(struct xpl_xspace_writer *w, int64_t md, int64_t offset_ps,
                                   int64_t duration_ps);
// An event that was only counted.
void xpl_xspace_writer_begin_counted(struct xpl_xspace_writer *w, int64_t md, int64_t occurrences,
                                     int64_t duration_ps);
void xpl_xspace_writer_end_event(struct xpl_xspace_writer *w);

// ---- statistics of the open event, event metadata or plane ----

void xpl_xspace_writer_double(struct xpl_xspace_writer *w, int64_t md, double v);
void xpl_xspace_writer_uint(struct xpl_xspace_writer *w, int64_t md, uint64_t v);
void xpl_xspace_writer_int(struct xpl_xspace_writer *w, int64_t md, int64_t v);
void xpl_xspace_writer_str(struct xpl_xspace_writer *w, int64_t md, xpl_str_t v);
void xpl_xspace_writer_bytes(struct xpl_xspace_writer *w, int64_t md, xpl_bytes_t v);
// The name of another stat metadata is the value.
void xpl_xspace_writer_ref(struct xpl_xspace_writer *w, int64_t md, uint64_t other);
// Statistics of the open event as fields of an XEvent, in the only pass, written in place: room for
// n bytes, NULL after a failure; then the end of what was written there.
uint8_t *xpl_xspace_writer_stats_grow(struct xpl_xspace_writer *w, size_t n);
static inline uint8_t *xpl_xspace_writer_stats_room(struct xpl_xspace_writer *w, size_t n) {
    const struct xpl_buf *const b = w->whole;
    assert(b && (w->failed || w->level == XPL_XSPACE_IN_EVENT));
    return w->failed || b->cap - b->n < n ? xpl_xspace_writer_stats_grow(w, n) : b->p + b->n;
}
static inline void xpl_xspace_writer_stats_end(struct xpl_xspace_writer *w, const uint8_t *end) {
    w->whole->n = (size_t)(end - w->whole->p);
}

// A statistic of many events, for that room: the bytes up to its value.
struct xpl_xspace_stat {
    uint8_t n, before[15];
};
enum xpl_xspace_stat_kind {
    XPL_XSPACE_STAT_UINT,
    XPL_XSPACE_STAT_INT,
    XPL_XSPACE_STAT_STR,
    XPL_XSPACE_STAT_REF,
};
// Bytes of room for one, and of a text.
enum { XPL_XSPACE_STAT_ROOM = 128, XPL_XSPACE_STAT_TEXT = 100 };
void xpl_xspace_stat_init(struct xpl_xspace_stat *ret, int64_t md, enum xpl_xspace_stat_kind kind);
// Both return the end. The value of an INT is cast.
static inline uint8_t *xpl_xspace_stat_number(const struct xpl_xspace_stat *s, uint8_t *p,
                                              uint64_t v) {
    memcpy(p, s->before, sizeof s->before);
    uint8_t *const end = xpl_varint_put_wide(p + s->n, v);
    p[1] = (uint8_t)(end - p - 2); // of all that follows
    return end;
}
uint8_t *xpl_xspace_stat_text(const struct xpl_xspace_stat *s, uint8_t *p, xpl_str_t v);

#endif
