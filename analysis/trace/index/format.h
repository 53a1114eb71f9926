// SPDX-License-Identifier: Apache-2.0
// For analysis/trace and its tests: the index file.
//
//   header | blocks of events, level by level, and between them the sums of pieces | tables, each
//   aligned to 8 | footer
//
// All numbers are little-endian.  A block holds up to 256 events of one level in order of time,
// column by column; a column is its least value and each event's difference to it, in as many bytes
// as the greatest needs.  So any event of a block can be read by itself.  The footer has the
// tables' positions and checksums; a block's checksum is in the block directory.
#ifndef XPL_ANALYSIS_TRACE_INDEX_FORMAT_H_
#define XPL_ANALYSIS_TRACE_INDEX_FORMAT_H_

#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define TRC_MAGIC "XPLTRACE"
enum { TRC_ENDIAN = 0x01020304, TRC_LEVELS = 13, TRC_BLOCK = 256 };

struct trc_header {
    char magic[8];
    uint32_t version, endian;
};

enum trc_column { // of a block
    TRC_TS,       // ps
    TRC_DUR,      // ps
    TRC_NAME,     // string
    TRC_TRACK,
    TRC_META,  // TRC_* flags | serial << 16
    TRC_GROUP, // group id, where TRC_HAS_GROUP
    TRC_FLOW,  // id << 8 | category << 2 | direction, where TRC_HAS_FLOW
    TRC_SRC,   // offset of the XEvent in the profile, or argument list where TRC_OWN_ARGS
    TRC_COLUMNS,
};
enum {
    TRC_HAS_GROUP = 1,
    TRC_HAS_FLOW = 2,
    TRC_OWN_ARGS = 4,    // arguments are in the index, not in the profile
    TRC_COUNTER = 8,     // a counter: it has no row
    TRC_ASYNC = 16,      // an asynchronous event: it has no row
    TRC_HAS_EAGER = 32,  // TRC_EAGER is valid
    TRC_EAGER = 64,      // the op ran eagerly
    TRC_STEP_NAME = 128, // the name is a step's name from grouping, and an argument
};

struct trc_block {
    uint64_t base[TRC_COLUMNS];
    uint8_t width[TRC_COLUMNS];
    // then n * width[c] bytes for each column c, then 8 bytes of padding, so that 8 can be read
};

struct trc_block_ref { // block directory
    uint64_t offset;   // from the start of the file
    uint64_t first_ts;
    uint32_t size, n;
    uint64_t sum;
};

// Sums of TRC_PIECE neighbouring blocks, whatever their levels; the first block's number is a
// multiple of TRC_PIECE.  They have the count and the total length of the events of each name and
// track, so a piece inside a window is added up without reading its blocks.  A piece with more than
// TRC_PIECE_SUMS names and tracks has no sums: they would take too much room.  A piece with a track
// above 65,535 has none either.
enum { TRC_PIECE = 32, TRC_PIECE_SUMS = 2048 };
struct trc_piece {
    uint64_t first_ts, end; // all of its events are within [first_ts, end)
    uint64_t offset;        // of its sums, from the start of the file
    uint64_t sum;           // checksum of these
    uint32_t n_sums;
    uint32_t counted; // 0: it has none
};
struct trc_piece_sum {
    uint32_t name;
    uint16_t track, count;
    uint64_t total_ps, min_ps, max_ps;
};
_Static_assert(TRC_PIECE *TRC_BLOCK <= UINT16_MAX, "a count fits");
// Where an event ends that belongs to windows beginning before; one without length belongs to those
// that have its time.
static inline uint64_t trc_piece_end_of(uint64_t ts, uint64_t dur) {
    const uint64_t end = ts + (dur ? dur : 1);
    return end < ts ? UINT64_MAX : end;
}

struct trc_name {        // of events
    uint64_t first, len; // blocks that hold such events: its part of the table of them
    uint64_t sum;        // of that part
    uint32_t string, pad;
};
// The part is varints: a block's number less the one before, which is -1 at the beginning.

struct trc_string {
    uint64_t offset; // in the text
    uint32_t len;
    uint32_t frame; // number of the stack frame, 0 when the string is none
};

struct trc_device {
    uint32_t id, name;
};
struct trc_resource { // a row that is listed, with events or without
    uint32_t device, id, name;
};
struct trc_track {
    uint32_t device; // position in the devices
    uint32_t named;  // 1: a counter or asynchronous events; id is then nothing
    uint32_t id;     // resource
    uint32_t name;   // of a named track
    uint32_t plane;  // position in the planes
    uint32_t pad;
};
enum { TRC_ARG_STR = 1, TRC_ARG_INT, TRC_ARG_UINT, TRC_ARG_DOUBLE };
struct trc_arg {
    uint32_t name; // string
    uint32_t kind; // high bit: the last of its list
    uint64_t value;
};
#define TRC_ARG_LAST UINT32_C(0x80000000)
struct trc_plane {
    uint64_t first_stat, n_stats;   // in the stat metadata, by id
    uint64_t first_event, n_events; // in the event metadata, by id
};
enum {
    TRC_STAT_DROP = 1,
    TRC_STAT_GROUP = 2,
    TRC_STAT_STEP_NAME = 4,
    TRC_STAT_EAGER = 8,
    TRC_STAT_RUN_ID = 16
};
struct trc_stat_md {
    uint64_t id;
    uint32_t name, flags;
};
enum { TRC_EVENT_MASK_RUN_ID = 1 };
struct trc_event_md {
    uint64_t id;
    uint32_t args; // argument list + 1, 0: none
    uint32_t flags;
};

enum trc_table {
    TRC_BLOCKS,
    TRC_STRINGS,
    TRC_TEXT,
    TRC_NAMES,       // bytewise
    TRC_NAME_BLOCKS, // checked when read, name by name: it is long and seldom used
    TRC_DEVICES,
    TRC_RESOURCES,
    TRC_TRACKS,
    TRC_ARGS,
    TRC_PLANES,
    TRC_STAT_MDS,
    TRC_EVENT_MDS,
    TRC_FRAMES, // strings, by number of the frame - 1
    TRC_PIECES,
    TRC_FRAMES_JSON, // all of them as in a JSON answer; empty when that is too long
    TRC_TABLES,
};
struct trc_extent {
    uint64_t offset, len, sum;
};
struct trc_footer {
    struct trc_extent tables[TRC_TABLES];
    uint64_t level_first[TRC_LEVELS + 1]; // blocks of level i: [level_first[i], level_first[i + 1])
    uint64_t n_events;                    // of the profile, those that were dropped too
    uint64_t has_min, has_max, min_ts, max_ts;
    int64_t start_ns; // of the profile (xspace.h); 0: unknown
    uint64_t file_size;
    uint64_t sum; // of all above
    char magic[8];
};

// Fast checksum that detects truncated and damaged data; it does not detect forgery.
static inline uint64_t trc_sum(const void *data, size_t n) {
    const uint8_t *p = data;
    uint64_t h[4] = {n, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f), 1};
    for (; n >= 32; n -= 32, p += 32)
        for (unsigned i = 0; i < 4; i++) {
            uint64_t w;
            memcpy(&w, p + 8 * (size_t)i, 8);
            h[i] = (h[i] ^ w) * UINT64_C(0x9fb21c651e98df25);
            h[i] ^= h[i] >> 35;
        }
    uint64_t tail[4] = {0};
    if (n) memcpy(tail, p, n);
    for (unsigned i = 0; i < 4; i++)
        h[i] = (h[i] ^ tail[i]) * UINT64_C(0x9fb21c651e98df25);
    h[0] ^= h[1] >> 29 ^ h[2] >> 31 ^ h[3] >> 33;
    h[0] = (h[0] + h[1] + h[2] * 3 + h[3] * 5) * UINT64_C(0xd6e8feb86659fd93);
    return h[0] ^ h[0] >> 32;
}

// The least distance of events that a level shows apart: 1 s at level 0 down to 1 ps.
static const uint64_t trc_resolutions[TRC_LEVELS] = {UINT64_C(1000000000000),
                                                     UINT64_C(100000000000),
                                                     UINT64_C(10000000000),
                                                     UINT64_C(1000000000),
                                                     UINT64_C(100000000),
                                                     UINT64_C(10000000),
                                                     UINT64_C(1000000),
                                                     UINT64_C(100000),
                                                     UINT64_C(10000),
                                                     UINT64_C(1000),
                                                     UINT64_C(100),
                                                     UINT64_C(10),
                                                     UINT64_C(1)};
static inline uint64_t trc_resolution(unsigned level) {
    return level < TRC_LEVELS ? trc_resolutions[level] : 0;
}

#endif
