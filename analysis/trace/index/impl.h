// SPDX-License-Identifier: Apache-2.0
// Private to analysis/trace/index: how an index is built.
//
//   plan     which planes and lines are shown, as which devices and rows; what each metadata means
//   collect  events of all lines, in parallel, into records
//   tracks   the records of a row together, in order of time
//   order    one order over all tracks; serial numbers of events that begin together
//   levels   the coarsest level at which each event is seen, coarse levels first
//   write    blocks and tables, of the levels that are known
#ifndef XPL_ANALYSIS_TRACE_INDEX_IMPL_H_
#define XPL_ANALYSIS_TRACE_INDEX_IMPL_H_

#include "analysis/grouping/flows.h"
#include "analysis/grouping/groups.h"
#include "analysis/trace/derived/derived.h"
#include "analysis/trace/index/format.h"
#include "analysis/trace/trace.h"
#include "base/arena.h"
#include "base/exec.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#include <stddef.h>

// One event while the index is built.
struct rec {
    uint64_t ts, dur;
    uint64_t src;   // see TRC_SRC
    uint64_t group; // where TRC_HAS_GROUP
    uint64_t flow;  // see TRC_FLOW
    uint32_t name;  // slot
    uint32_t track;
    uint8_t flags;   // TRC_*
    uint8_t level;   // builder.n_levels: of none that is known yet
    uint16_t serial; // 256: too many events begin together, this one is not written
};
#define SRC_OF_MD UINT64_MAX // src of an event whose arguments are those of its metadata
#define NO_RANK   UINT32_MAX

enum {
    TRC_DECIDED = TRC_LEVELS - 1
}; // levels with a resolution; events that none shows are in the last

enum { MD_INTERNAL = 1, MD_HAS_FLOW = 2, MD_HAS_GROUP = 4, MD_ASYNC = 8 };

struct plane_src {
    const struct xpl_plane *plane;
    const struct xpl_derived_plane *derived; // NULL: the plane is shown as it was recorded
    uint32_t n_md;                           // recorded and added
    uint32_t device;                         // position in builder.devices
    uint32_t slot_base; // slot of an event's name: slot_base + position of its metadata
    uint8_t *used;      // per metadata: 1 when an event that is shown has it
    uint8_t *md_flags;
    uint64_t *md_flow, *md_group; // NULL when no metadata has such a stat
    uint8_t *scan;                // stat metadata to read from an event's stats, NULL: none
    bool regions;                 // thread pools: regions are added
    uint32_t start_md, stop_md;   // markers of regions, 0: none
};

struct line_src {
    const struct xpl_line *line;            // NULL: an added one
    const struct xpl_derived_line *derived; // NULL: as it was recorded
    struct plane_src *ps;
    uint32_t resource;
    bool counter;
    uint64_t n_events;
    uint32_t n_chunks; // where it may be cut
    struct xpl_flow_reader flows;
    struct rec *recs; // of all its pieces; after collecting, the first n count
    size_t n;
    struct xpl_region_event *regions; // of a line out of order, known at its first event
    size_t n_regions;
    uint32_t first_piece, n_pieces;
};

struct track {
    uint32_t device, resource, name; // name: slot of a named track
    bool named;
    uint32_t plane;
    struct rec *recs;
    size_t n;
    bool failed; // out of memory
    bool has_max;
    uint64_t min_ts, max_ts;
    size_t n_flows;
};

// The name of a step, for a record that was read.
struct named_step {
    uint64_t at; // in out; in named where the high bit is set
    xpl_str_t name;
};

// Arguments of an event that the profile does not hold.
struct own_args {
    uint64_t at; // in out; in named where the high bit is set
    uint32_t md, n;
    size_t first; // in own_stats
};

// A part of a line that one thread reads.
struct piece {
    struct line_src *ls;
    uint32_t chunk, end_chunk;
    struct rec *out;
    size_t cap, n;
    XPL_VEC(struct rec) named;
    struct rec *regions; // that ended here; there is room for as many as events
    size_t n_regions;
    XPL_VEC(struct named_step) steps;
    XPL_VEC(struct own_args) own;
    XPL_VEC(struct xpl_stat) own_stats;
    XPL_VEC(xpl_str_t) frames;
    XPL_VEC(uint64_t) stops; // ends of regions that began in an earlier piece
    bool has_start, start_grouped;
    uint64_t start, start_group;
    struct xpl_arena arena;
    xpl_status_t status;
    struct xpl_error err;
};

struct trc_flow_pass;

struct builder {
    struct xpl_arena view, own; // of the profile's view; of all other data, as `arena`
    struct xpl_xspace *xs;
    struct xpl_groups *groups;
    struct xpl_hlo_map *hlo;
    struct xpl_derived *derived; // NULL when the profile has no device
    struct xpl_exec *exec;
    struct xpl_arena *arena;
    size_t limit;
    int64_t start_ns; // of the profile
    bool arrived;     // the profile arrived grouped: it is shown as it is
    XPL_VEC(struct plane_src) planes;
    XPL_VEC(struct line_src) lines;
    XPL_VEC(struct trc_device) devices; // .name: string
    struct xpl_map device_of;           // by id
    XPL_VEC(struct trc_resource) resources;
    XPL_VEC(struct track) tracks;
    struct piece *pieces;
    size_t n_pieces;
    struct xpl_arena_budget pieces_budget; // of their arenas
    // Slots: one per metadata of each plane, then those of the other names.
    uint32_t n_md_slots, region_slot;
    XPL_VEC(xpl_str_t) more_slots;
    struct xpl_map step_slots;
    uint32_t *slot_string; // slot -> string, 0 where not used
    uint32_t *slot_args;   // slot -> argument list + 1
    struct xpl_intern *strings;
    uint32_t n_strings;
    XPL_VEC(uint32_t) sorted_names; // strings that are names of events, bytewise
    uint32_t *rank_of;              // string -> its position there, NO_RANK for others
    XPL_VEC(uint32_t) frames;       // strings
    struct xpl_map frame_of;        // string -> number of the frame
    XPL_VEC(struct trc_arg) args;
    XPL_VEC(struct trc_stat_md) stat_mds;
    XPL_VEC(struct trc_event_md) event_mds;
    XPL_VEC(struct trc_plane) plane_rows;
    // The order of all events.
    uint64_t n_events;
    struct rec **order;
    size_t n_buckets, *bucket_first; // pieces of the order, each a range of time
    // Those of flows, from where each bucket begins (until levels are found), and how many; NULL:
    // none.
    struct rec **flow_events;
    size_t *bucket_flows;
    bool has_min, has_max;
    uint64_t min_ts, max_ts;
    unsigned n_levels;           // that were found, TRC_DECIDED: all
    struct trc_flow_pass *flows; // between coarse levels and fine ones
};

xpl_status_t trc_plan(struct builder *b, struct xpl_error *err);
xpl_status_t trc_collect(struct builder *b, struct xpl_error *err);
xpl_status_t trc_name_slots(struct builder *b, struct xpl_error *err);
xpl_status_t trc_make_tracks(struct builder *b, struct xpl_error *err);
xpl_status_t trc_put_in_order(struct builder *b, struct xpl_error *err);
// Finds the levels before `end` that are not found yet; trc_end_flows frees its state between
// calls.
xpl_status_t trc_find_levels(struct builder *b, unsigned end, struct xpl_error *err);
void trc_end_flows(struct builder *b);
// Writes an index of the levels that were found; it has no events of the others.
xpl_status_t trc_write(struct builder *b, const struct xpl_trace_sink *sink, struct xpl_error *err);

// A flow as the index holds it, from the value of a stat "flow" in the file (XFlow: the direction
// in the lowest bits, the category in the highest; unknown categories are generic).
static inline uint64_t trc_flow_of_stat(uint64_t v) {
    const uint64_t category = v >> 58 <= XPL_CONTEXT_SC_OFFLOAD ? v >> 58 : 0;
    return (v & 3) | category << 2 | (v >> 2) << 8;
}

// Metadata of a plane, recorded or added.
static inline struct xpl_derived_md trc_md(const struct plane_src *ps, uint32_t i) {
    if (ps->derived) return xpl_derived_md_at(ps->derived, i);
    const struct xpl_event_md *const md = &ps->plane->event_md[i];
    return (struct xpl_derived_md){md->name, md->display_name, md->type, md};
}

// Earlier first, of those that begin together the longer (XProf: TraceEventLiteComparator).
static inline bool comes_before(const struct rec *a, const struct rec *b) {
    return a->ts != b->ts ? a->ts < b->ts : a->dur > b->dur;
}

// Names that upstream interns; where it compares names, these are all alike.
enum { LONG_NAME = 32 };
static inline bool trc_is_long(const struct builder *b, uint32_t slot) {
    return xpl_intern_get(b->strings, (xpl_strid_t){b->slot_string[slot]}).len > LONG_NAME;
}

// ---- argument lists (names.c) ----

// Whether a stat of that type is an argument that viewers show (XProf: IsInternalStat, and stats
// that become something else).
bool trc_stat_is_arg(enum xpl_stat_type type);
// Appends to the list being written; false when out of memory.
bool trc_put_stat(struct builder *b, const struct xpl_stat *s);
bool trc_put_long_name(struct builder *b, xpl_str_t name);
// Ends the list that began at `first`: 0 for an empty one, else its position + 1.
uint32_t trc_end_args(struct builder *b, size_t first);

#endif
