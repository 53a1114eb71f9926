// SPDX-License-Identifier: Apache-2.0
// For analysis/trace and its tests: an opened index, its blocks, and which events an answer shows.
#ifndef XPL_ANALYSIS_TRACE_INDEX_READ_H_
#define XPL_ANALYSIS_TRACE_INDEX_READ_H_

#include <stdbool.h>

#include "analysis/trace/index/format.h"
#include "analysis/trace/options.h"
#include "analysis/trace/trace.h"
#include "analysis/wire/wire.h" // XPL_INLINE

struct xpl_trace {
    xpl_bytes_t bytes;
    const struct trc_footer *footer;
    const struct trc_block_ref *blocks;
    const struct trc_string *strings;
    const char *text;
    const struct trc_name *names;
    const uint8_t *name_blocks;
    const uint32_t *frames;
    const char *frames_json;
    const struct trc_device *devices;
    const struct trc_resource *resources;
    const struct trc_track *tracks;
    const struct trc_arg *args;
    const struct trc_plane *planes;
    const struct trc_stat_md *stat_mds;
    const struct trc_event_md *event_mds;
    const struct trc_piece *pieces; // their sums are checked when they are read
    uint64_t n[TRC_TABLES];         // rows
    // How much later its profile began than the first one of an answer: added to what blocks and
    // the footer say, where it is read.
    uint64_t later_ps;
};

static inline uint64_t trc_first_ts(const struct xpl_trace *t, uint64_t block) {
    return t->blocks[block].first_ts + t->later_ps;
}

// The text of a string; "" for numbers that are none.
static inline xpl_str_t trc_str(const struct xpl_trace *t, uint64_t id) {
    if (id >= t->n[TRC_STRINGS]) return (xpl_str_t){"", 0};
    return (xpl_str_t){t->text + t->strings[id].offset, t->strings[id].len};
}

// A block whose checksum and layout were checked: any of its events can be read.
struct trc_view {
    const uint8_t *column[TRC_COLUMNS];
    uint64_t base[TRC_COLUMNS], mask[TRC_COLUMNS];
    uint32_t width[TRC_COLUMNS];
    uint32_t n;
};
xpl_status_t trc_view_block(const struct xpl_trace *t, uint64_t block, struct trc_view *ret,
                            struct xpl_error *err) XPL_NODISCARD;

XPL_INLINE uint64_t trc_get(const struct trc_view *v, enum trc_column c, uint32_t i) {
    uint64_t d;
    memcpy(&d, v->column[c] + (size_t)i * v->width[c], 8);
    return v->base[c] + (d & v->mask[c]);
}

// One event, decoded.
struct trc_event {
    uint64_t ts, dur, group, flow, src;
    uint32_t name, track;
    uint8_t flags;
    uint16_t serial;
};
// DATA_LOSS when the event refers to a string or a track that the index does not have.
xpl_status_t trc_get_event(const struct xpl_trace *t, const struct trc_view *v, uint32_t i,
                           struct trc_event *ret, struct xpl_error *err) XPL_NODISCARD;

// First block of the level that may hold an event at or after `ts`.
uint64_t trc_find_block(const struct xpl_trace *t, unsigned level, uint64_t ts);

// ---- one host's part of an answer (select.c) ----

struct xpl_arena;
struct xpl_exec;
struct trc_shown {
    struct trc_event *events; // row by row, in the order of the answer
    size_t n;
    bool one; // the event event_name: the answer has only its own stack frame
};
xpl_status_t trc_select(const struct xpl_trace *t, xpl_str_t host,
                        const struct xpl_trace_options *o, struct xpl_exec *exec,
                        struct xpl_arena *arena, struct trc_shown *ret, struct xpl_error *err)
    XPL_NODISCARD;

// How many levels, from the coarsest, an answer of only this host reads at most.  Of the footer it
// reads n_events, has_min, has_max, min_ts and max_ts.
unsigned trc_levels_shown(const struct trc_footer *f, const struct xpl_trace_options *o);

// ---- stack frames (frames.c) ----

// Appends a stack frame as a member of the JSON object that `b` ends with.  The writer of an index
// and JSON answers both use it.
void trc_put_frame(struct xpl_buf *b, uint32_t number, xpl_str_t text);

#endif
