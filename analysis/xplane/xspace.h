// SPDX-License-Identifier: Apache-2.0
// A view of one XSpace: planes, lines, metadata and statistics, over bytes that stay mapped.
//
// xpl_xspace_open makes one pass that checks the framing down to every event and skips the events'
// contents; cursors decode them later, so no memory is used per event.
// Strings and byte views ALIAS THE INPUT, which another process may rewrite while we read: no code
// may rely on reading the same bytes twice, and data that outlives the conversion is copied
// (xpl_arena_str, xpl_intern_put) before it is examined.  Everything else is in the arena given to
// open.  A finished view is immutable; any number of threads may run cursors on it.
//
// Meaning follows the visitor that XProf uses (openxla/xla xplane_visitor): an event starts at
// line.timestamp_ns * 1000 + offset_ps, a stat's type is looked up by its metadata's name, missing
// metadata reads as empty, of duplicate map keys the last wins.
#ifndef XPL_ANALYSIS_XPLANE_XSPACE_H_
#define XPL_ANALYSIS_XPLANE_XSPACE_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/wire/wire.h"
#include "analysis/xplane/schema.h" // enum xpl_stat_type, enum xpl_event_type, plane and line names
#include "base/status.h"
#include "base/str.h"

struct xpl_arena;
struct xpl_exec;

struct xpl_stat_md {
    int64_t id;
    xpl_str_t name;
    enum xpl_stat_type type; // by name; XPL_STAT_UNKNOWN when the name is not in the table
};

enum xpl_stat_kind {
    XPL_VALUE_NONE,
    XPL_VALUE_DOUBLE,
    XPL_VALUE_UINT,
    XPL_VALUE_INT,
    XPL_VALUE_STR,
    XPL_VALUE_BYTES,
    XPL_VALUE_REF,
};

// One decoded XStat.
struct xpl_stat {
    const struct xpl_stat_md *md; // never NULL; an unknown id has the empty metadata
    enum xpl_stat_kind kind;
    union {
        double d;
        uint64_t u; // UINT, REF
        int64_t i;
    };
    xpl_str_t str; // STR, BYTES; for REF the name of the metadata it refers to
};

// XStat messages of one owner: an event, an event's metadata or a plane.
struct xpl_stats {
    const struct xpl_plane *plane;
    const uint8_t *p, *end; // the owner's message from the first XStat on
    uint32_t field;         // number of the repeated field that holds them
};

struct xpl_event_md {
    int64_t id;
    xpl_str_t name, display_name;
    enum xpl_event_type type; // by name; XPL_EVENT_UNKNOWN when the name is not in the table
    xpl_bytes_t message;      // the XEventMetadata, for stats, children and `metadata`
    bool has_stats, has_children;
};

struct xpl_event_chunk; // where every few thousandth event begins, to cut a line into pieces

struct xpl_line {
    int64_t id, display_id; // display_id: id when the message has 0
    xpl_str_t name, display_name;
    int64_t timestamp_ns, duration_ps;
    int64_t absolute_ns; // the timestamp as the file has it
    uint64_t n_events;
    xpl_bytes_t message; // the XLine
    uint32_t index;      // position in plane->lines
    const struct xpl_plane *plane;
    const struct xpl_event_chunk *chunks;
    uint32_t n_chunks;
};

enum xpl_plane_kind {
    XPL_PLANE_OTHER,
    XPL_PLANE_HOST_THREADS, // "/host:CPU"
    XPL_PLANE_METADATA,     // "/host:metadata"
    XPL_PLANE_GPU,          // "/device:GPU:..." (prefix)
    XPL_PLANE_TPU_CORE,     // "/device:TPU:<n>"
    XPL_PLANE_SPARSE_CORE,  // "/device:TPU:<n> SparseCore ..."
    XPL_PLANE_TPU_OTHER,    // any other "/device:TPU:" prefix
    XPL_PLANE_CUSTOM,       // "/device:CUSTOM:..."
};

struct xpl_plane {
    int64_t id;
    xpl_str_t name;
    enum xpl_plane_kind kind;
    int64_t core_id; // number of the TensorCore or SparseCore, -1 otherwise
    uint32_t index;  // position in xspace->planes
    const struct xpl_xspace *space;
    struct xpl_line *lines;
    uint32_t n_lines;
    struct xpl_event_md *event_md; // [0] is the empty metadata of unknown ids
    uint32_t n_event_md;           // [0] counts: the real ones are [1, n)
    struct xpl_stat_md *stat_md;   // [0] likewise
    uint32_t n_stat_md;
    struct xpl_stats stats;
    const struct xpl_id_table *event_ids, *stat_ids; // private: id to position
};

struct xpl_xspace {
    xpl_bytes_t bytes;
    // Since 1970, `profile_start_time` of the plane "Task Environment"; 0: not a date.  Lines count
    // from it: where the file has absolute timestamps, it was taken from them, so that no sum of
    // times wraps (2^64 ps are 213 days).
    int64_t start_ns;
    bool was_absolute;
    struct xpl_plane *planes;
    uint32_t n_planes;
    xpl_str_t *hostnames, *errors, *warnings;
    uint32_t n_hostnames, n_errors, n_warnings;
};

// Indexes `bytes`.  DATA_LOSS with the offset when the framing is broken; RESOURCE_EXHAUSTED at the
// arena's limit.  An empty input is a valid XSpace without planes.  The HLO ids of "/host:metadata"
// are corrected here as XProf does (xplane_hlo_fixer).
xpl_status_t xpl_xspace_open(xpl_bytes_t bytes, struct xpl_arena *arena, struct xpl_exec *exec,
                             struct xpl_xspace **ret, struct xpl_error *err) XPL_NODISCARD;

// First plane with that exact name, or NULL.
const struct xpl_plane *xpl_xspace_plane(const struct xpl_xspace *xs, xpl_str_t name);

// Position of an id in plane->event_md / stat_md; 0 (the empty metadata) when unknown.
uint32_t xpl_plane_event_md(const struct xpl_plane *p, int64_t id);
uint32_t xpl_plane_stat_md(const struct xpl_plane *p, uint64_t id);

// ---- events ----

struct xpl_event {
    uint32_t md; // position in plane->event_md
    int64_t offset_ps, duration_ps, num_occurrences;
    bool has_occurrences;   // num_occurrences instead of an offset
    struct xpl_stats stats; // its XStats
    uint64_t index;         // position in the line
    uint64_t at;            // its offset in line->message
};

// Walks the events of one line, or of a piece of it, in file order.
struct xpl_event_cursor {
    const struct xpl_line *line;
    const uint8_t *p, *end;
    uint64_t index, stop; // events [index, stop)
};

void xpl_events_begin(struct xpl_event_cursor *c, const struct xpl_line *line);
// The same, for a declaration.
static inline struct xpl_event_cursor xpl_events_of(const struct xpl_line *line) {
    struct xpl_event_cursor c;
    xpl_events_begin(&c, line);
    return c;
}
// Events of piece i of line->n_chunks.
void xpl_events_begin_chunk(struct xpl_event_cursor *c, const struct xpl_line *line, uint32_t i);
// FIELD: *ev is the next event.  END.  MALFORMED: bytes changed or are broken inside the event;
// xpl_events_error reports it.
enum xpl_wire_result xpl_events_next(struct xpl_event_cursor *c, struct xpl_event *ev)
    XPL_NODISCARD;
// DATA_LOSS naming plane, line and offset.
xpl_status_t xpl_events_error(const struct xpl_event_cursor *c, struct xpl_error *err);

// The event at offset `at` (as in xpl_event.at) of its line; its index is unknown: 0.  DATA_LOSS if
// there is none.
xpl_status_t xpl_event_at(const struct xpl_line *line, uint64_t at, struct xpl_event *ret,
                          struct xpl_error *err) XPL_NODISCARD;

static inline const struct xpl_event_md *xpl_event_get_md(const struct xpl_line *l,
                                                          const struct xpl_event *ev);
// Picoseconds since the epoch of the profile.  Sums wrap as upstream's int64 does.
int64_t xpl_event_begin_ps(const struct xpl_line *l, const struct xpl_event *ev);
int64_t xpl_event_end_ps(const struct xpl_line *l, const struct xpl_event *ev);

// ---- stats ----

struct xpl_stats xpl_event_md_stats(const struct xpl_plane *p, const struct xpl_event_md *md);
// Reads the next stat of `s`.  A broken XStat ends the list (END), as if it were the last.
enum xpl_wire_result xpl_stats_next(struct xpl_stats *s, struct xpl_stat *ret) XPL_NODISCARD;
// The same, but only stats whose metadata is wanted, by its position in the plane's stat_md. Others
// are passed over unread, broken or not.
enum xpl_wire_result xpl_stats_next_of(struct xpl_stats *s, const uint8_t *wanted,
                                       struct xpl_stat *ret) XPL_NODISCARD;
enum xpl_wire_result xpl_stats_next_type(struct xpl_stats *s, enum xpl_stat_type type,
                                         struct xpl_stat *ret) XPL_NODISCARD;
// First stat of that type; false when there is none.
bool xpl_stats_get(struct xpl_stats s, enum xpl_stat_type type, struct xpl_stat *ret);
// The same for up to 31 different types in one walk: bit i is set when ret[i] is the first of
// types[i].
unsigned xpl_stats_find(struct xpl_stats s, const enum xpl_stat_type *types, unsigned n,
                        struct xpl_stat *ret);
// Value conversions of upstream's visitor: IntValue, UintValue, IntOrUintValue, DoubleValue,
// BoolValue read the named member of the oneof and give 0 when another one is set.
int64_t xpl_stat_int(const struct xpl_stat *s);
uint64_t xpl_stat_uint(const struct xpl_stat *s);
uint64_t xpl_stat_int_or_uint(const struct xpl_stat *s);
double xpl_stat_double(const struct xpl_stat *s);
bool xpl_stat_bool(const struct xpl_stat *s);
// StrOrRefValue; "" for other kinds.
xpl_str_t xpl_stat_str(const struct xpl_stat *s);

// Calls fn for each child metadata of md, in order (XEventMetadata.child_id).
void xpl_event_md_children(const struct xpl_plane *p, const struct xpl_event_md *md,
                           void (*fn)(void *ctx, const struct xpl_event_md *child), void *ctx);

static inline const struct xpl_event_md *xpl_event_get_md(const struct xpl_line *l,
                                                          const struct xpl_event *ev) {
    return &l->plane->event_md[ev->md];
}

#endif
