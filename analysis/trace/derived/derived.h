// SPDX-License-Identifier: Apache-2.0
// An XSpace as viewers show it: its planes with the lines and events that XProf's preprocessing
// produces.  Recorded lines have their events, with groups, flows and names of steps; lines are
// added (steps, name scopes, framework ops, XLA modules and ops, source code, launches, host
// offloading); empty ones are removed; lines of GPU planes get new display ids.
//
// Sources of the rules: openxla/xprof convert/preprocess_single_host_xplane.cc,
// utils/{derived_timeline,host_offload_utils}.cc; openxla/xla tsl/profiler/utils/
// {preprocess_xplane.h,xplane_utils.cc}; where the release differs, tests against it found the
// rule.
//
// No memory is used per recorded event: a cursor decodes the file again and adds the results of
// preprocessing.  Added events are 32 bytes each.  A finished xpl_derived is immutable; any number
// of threads may run cursors on it.  Strings alias the input (see xspace.h) or are in the arena of
// build: copy those that must last.
#ifndef XPL_ANALYSIS_TRACE_DERIVED_DERIVED_H_
#define XPL_ANALYSIS_TRACE_DERIVED_DERIVED_H_

#include <stdbool.h>
#include <stdint.h>

#include "analysis/grouping/flows.h"
#include "analysis/grouping/groups.h"
#include "analysis/hlo/hlo_map.h"
#include "analysis/xplane/xspace.h"
#include "base/exec.h"
#include "base/status.h"

struct xpl_arena;

// ---- planes, lines, names ----

// An event's metadata.  Positions [0, plane->n_event_md) are the recorded ones (an added line may
// have given such a display name); those above were added.
struct xpl_derived_md {
    xpl_str_t name, display_name;        // display_name: "" when it has none
    enum xpl_event_type type;            // by name
    const struct xpl_event_md *recorded; // its stats are those of the metadata; NULL: added, none
};

struct xpl_derived_line {
    const struct xpl_line *recorded; // NULL for an added line
    int64_t id, display_id;          // display_id: as in XLineVisitor::DisplayId
    xpl_str_t name, display_name;    // display_name: name where it has none
    int64_t timestamp_ns;            // events are relative to this; begin_ps includes it already
    uint64_t n_events;               // how many events cursors yield, all pieces together
    uint32_t n_pieces;               // at least 1; pieces may be read side by side
    uint32_t index;                  // position in plane->lines
    const struct xpl_derived_plane *plane;
    const struct xpl_derived_part *part; // private
};

struct xpl_derived_plane {
    const struct xpl_plane *recorded;
    const struct xpl_derived_line *lines; // in XProf's order: recorded ones first
    uint32_t n_lines;
    uint32_t n_md; // recorded and added
    const struct xpl_derived *space;
    const struct xpl_derived_names *names; // private
};

struct xpl_derived_md xpl_derived_md_at(const struct xpl_derived_plane *p, uint32_t md);

// ---- building ----

struct xpl_derived;

// `*ret` lives in `arena` and refers to xs and groups.  `hlo` is used while building and not needed
// afterwards.  RESOURCE_EXHAUSTED at the arena's limit; DATA_LOSS for broken events; CANCELLED.
xpl_status_t xpl_derived_build(const struct xpl_xspace *xs, const struct xpl_groups *groups,
                               struct xpl_hlo_map *hlo, struct xpl_arena *arena,
                               struct xpl_exec *exec, struct xpl_derived **ret,
                               struct xpl_error *err) XPL_NODISCARD;

// One for each recorded plane, in the order of xs->planes.
const struct xpl_derived_plane *xpl_derived_planes(const struct xpl_derived *d, uint32_t *ret_n);

// ---- events ----

// One event as it is after preprocessing.
struct xpl_derived_event {
    uint32_t md; // see xpl_derived_md_at
    bool has_group, has_step_name, has_is_eager, is_eager;
    int64_t begin_ps, duration_ps; // as XEventVisitor sees them
    int64_t group_id;
    xpl_str_t step_name;
    uint32_t n_flows, n_added;
    struct xpl_flow flows[XPL_MAX_FLOWS]; // in the order in which stats "flow" were added
    const struct xpl_stat *added;         // other stats of an added event; changed ones of a step
    struct xpl_stats stats;               // recorded; empty for added events
    uint64_t at;                          // its offset in line->recorded->message; or UINT64_MAX
};

struct xpl_derived_cursor;
// Events of piece `piece` of a line, in XProf's order.  In `arena`; one thread.
xpl_status_t xpl_derived_cursor_new(const struct xpl_derived_line *line, uint32_t piece,
                                    struct xpl_arena *arena, struct xpl_derived_cursor **ret,
                                    struct xpl_error *err) XPL_NODISCARD;
// All events of a line by time, of equal begin the longer first, where XProf's order is another:
// 48 bytes for each recorded event.
xpl_status_t xpl_derived_cursor_new_sorted(const struct xpl_derived_line *line,
                                           struct xpl_arena *arena, struct xpl_derived_cursor **ret,
                                           struct xpl_error *err) XPL_NODISCARD;
// FIELD: *ev is the next event.  END.  MALFORMED: it failed; xpl_derived_cursor_error says how.
enum xpl_wire_result xpl_derived_cursor_next(struct xpl_derived_cursor *c,
                                             struct xpl_derived_event *ev) XPL_NODISCARD;
xpl_status_t xpl_derived_cursor_error(const struct xpl_derived_cursor *c, struct xpl_error *err);

// Where a device's clock is early, events begin before 0: they are shown from 0 on.  Changes such
// times, of an event of a line with that time, and says whether it did.  Lines that count from
// elsewhere have times that wrap: theirs stay.
static inline bool xpl_derived_keep_from_zero(int64_t line_ns, int64_t *begin_ps,
                                              int64_t *duration_ps) {
    int64_t ps;
    if (*begin_ps >= 0 || *begin_ps == INT64_MIN || __builtin_mul_overflow(line_ns, 1000, &ps))
        return false;
    if (*duration_ps > 0) *duration_ps = *duration_ps > -*begin_ps ? *duration_ps + *begin_ps : 0;
    *begin_ps = 0;
    return true;
}

// Statistics of an event as XProf's visitors walk them: those of its metadata first, then its own,
// with the changes of preprocessing (group_id, step_name, is_eager, run_id) in place and its
// additions at the end.  Each `md->type` is set for known names, of added ones too.  Internal ones
// (xpl_derived_is_internal_stat) and those without a value are skipped.
struct xpl_derived_stats {
    const struct xpl_derived_plane *plane;
    const struct xpl_derived_event *ev;
    struct xpl_stats recorded;
    uint32_t phase, next;
    bool mask_run_id, group_done, step_name_done, is_eager_done;
};
void xpl_derived_stats_begin(struct xpl_derived_stats *it, const struct xpl_derived_plane *p,
                             const struct xpl_derived_event *ev);
// True while stats of the metadata come.
static inline bool xpl_derived_stats_of_md(const struct xpl_derived_stats *it) {
    return it->phase == 0;
}
bool xpl_derived_stats_next(struct xpl_derived_stats *it, struct xpl_stat *ret);

// Events and statistics that viewers do not show (tsl IsInternalEvent, IsInternalStat).
bool xpl_derived_is_internal_event(enum xpl_event_type type);

#endif
