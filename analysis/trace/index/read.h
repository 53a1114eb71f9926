// Private to analysis/trace: an opened index, and how its blocks are read.
#ifndef XPL_ANALYSIS_TRACE_INDEX_READ_H_
#define XPL_ANALYSIS_TRACE_INDEX_READ_H_

#include <stdbool.h>

#include "analysis/trace/index/format.h"
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
    uint64_t n[TRC_TABLES]; // rows
    bool tpu_core;          // a device is a TPU core, whoever the host is
};

// The text of a string; "" for numbers that are none.
static inline xpl_str_t trc_str(const struct xpl_trace *t, uint64_t id) {
    if (id >= t->n[TRC_STRINGS]) return (xpl_str_t){"", 0};
    return (xpl_str_t){t->text + t->strings[id].offset, t->strings[id].len};
}

// A block whose checksum and layout were checked: reading any event of it stays inside.
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

// One event that was asked for.
struct trc_event {
    uint64_t ts, dur, group, flow, src;
    uint32_t name, track;
    uint8_t flags;
    uint16_t serial;
};
// DATA_LOSS when the event names what the index does not have.
xpl_status_t trc_get_event(const struct xpl_trace *t, const struct trc_view *v, uint32_t i,
                           struct trc_event *ret, struct xpl_error *err) XPL_NODISCARD;

// First block of the level that may hold an event at or after `ts`.
uint64_t trc_find_block(const struct xpl_trace *t, unsigned level, uint64_t ts);

// ---- what an answer shows of one host (select.c) ----

struct xpl_arena;
struct xpl_exec;
struct trc_shown {
    struct trc_event *events; // row by row, as they are printed
    size_t n;
    bool one; // an event that was asked for: only its own stack frame is told
};
xpl_status_t trc_select(const struct xpl_trace *t, xpl_str_t host,
                        const struct xpl_trace_options *o, struct xpl_exec *exec,
                        struct xpl_arena *arena, struct trc_shown *ret, struct xpl_error *err)
    XPL_NODISCARD;

// How many levels, from the coarsest, an answer reads at most.  Of the footer: has_min and what
// follows it, and n_events.
unsigned trc_levels_shown(const struct trc_footer *f, const struct xpl_trace_options *o);

// A stack frame as JSON tells it, after those before (answer_json.c).
void trc_put_frame(struct xpl_buf *b, uint32_t number, xpl_str_t text);

// ---- arguments of one event (args.c) ----

enum { TRC_MAX_ARGS = 512 };
struct trc_value {
    xpl_str_t name, text;
    uint32_t kind;  // TRC_ARG_*
    uint64_t bits;  // INT, UINT, DOUBLE
    uint32_t frame; // number of the stack frame that the text is, 0: none
};
// The index's stack frames by their texts, for an answer that asks for many.
struct trc_frames {
    struct xpl_arena *arena;
    uint32_t *by_text; // numbers - 1; NULL until it is worth while
    uint32_t scans;
};
// Arguments of `e`, from the index and from the profile that it was built from; at most
// TRC_MAX_ARGS.  DATA_LOSS when the profile does not hold the event.
xpl_status_t trc_read_args(const struct xpl_trace *t, xpl_bytes_t profile,
                           const struct trc_event *e, struct trc_frames *frames,
                           struct trc_value *ret, size_t *ret_n, struct xpl_error *err)
    XPL_NODISCARD;

#endif
