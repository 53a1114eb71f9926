// SPDX-License-Identifier: Apache-2.0
// Grouping of events into steps: the group (step) of each event, the names of groups, and the step
// events of device planes.  Computes the result that upstream's preprocessing writes back into the
// XSpace (PreprocessXPlane, GroupTfEvents or GroupTpuEventsOSS, the Steps line of
// GenerateDerivedTimeLines) without changing or copying the profile: only events that can start,
// join or carry a group across lines are kept.  All others take their group from the innermost kept
// event that encloses them, by a cursor that runs in parallel to the event cursor.
#ifndef XPL_ANALYSIS_GROUPING_GROUPS_H_
#define XPL_ANALYSIS_GROUPING_GROUPS_H_

#include <stdatomic.h>

#include "analysis/xplane/xspace.h"
#include "base/map.h"
#include "base/vec.h"

struct xpl_groups;

// Groups the whole space.  `*ret` is allocated in `arena` and refers to `xs`.  A profile that
// arrives grouped (every host and device plane already has stat metadata "group_id") keeps its
// groups: cursors then read each event's own stats.
xpl_status_t xpl_groups_build(const struct xpl_xspace *xs, struct xpl_arena *arena,
                              struct xpl_exec *exec, struct xpl_groups **ret, struct xpl_error *err)
    XPL_NODISCARD;

// An event of group `child` is nested in an event of group `parent`, or consumes the product of one
// (upstream's GroupMetadata).  Of two groups that meet at an event, `child` began first.
struct xpl_group_relation {
    int64_t parent, child;
};
struct xpl_group_relations {
    struct xpl_arena *arena;
    XPL_VEC(struct xpl_group_relation) v; // each once, in no order
    struct xpl_map known;                 // private
};
// Shows events of a plane to a reader that needs them all, while grouping reads them: events of
// marked metadata, and events that state both type and id of their product or input, if the type is
// watched or takes more than a byte to decode.  Each line is shown in the order of the file, by one
// thread at a time; some are never shown.
struct xpl_watched_event {
    uint64_t md_id, begin_ps, duration_ps;
    struct xpl_stats stats;
    bool marked, produces, consumes;
    // If grouping had to read them: types and ids, 0 for a value that is not an integer.
    bool read;
    uint64_t producer_type, producer_id, consumer_type, consumer_id;
};
struct xpl_event_watch {
    const struct xpl_plane *plane;
    const bool *marked; // by position of metadata
    uint32_t types;     // of contexts: 1 << type
    void *ctx;
    // Discards the events of the line before.  Returns whether to show events of marked metadata
    // for their metadata only.
    bool (*begin)(void *ctx, const struct xpl_line *line);
    // False when memory ran out.
    bool (*event)(void *ctx, const struct xpl_line *line, const struct xpl_watched_event *ev);
    // The line has ended.
    void (*end)(void *ctx, const struct xpl_line *line);
};

struct xpl_group_options {
    // Events "Profiled batch" of Keras' TensorBoard callback begin groups, which have the number of
    // the batch, and events of more than 13 days or of a negative duration enclose no others.  To
    // XProf they are events like any other.
    bool batches;
    // Collects relations, if not NULL: its arena is set, and it lives as long as the groups.
    // Relations of events that do not pass on a group are found only by cursors that run with
    // xpl_group_cursor_relate.
    struct xpl_group_relations *relations;
    const struct xpl_event_watch *watch; // NULL: none
};
// As xpl_groups_build, with options.
xpl_status_t xpl_groups_build_with(const struct xpl_xspace *xs, const struct xpl_group_options *opt,
                                   struct xpl_arena *arena, struct xpl_exec *exec,
                                   struct xpl_groups **ret, struct xpl_error *err) XPL_NODISCARD;

// Whether grouping made that group; false for a group from the events' own stats.
bool xpl_groups_made(const struct xpl_groups *g, int64_t group_id);

// The result of grouping for one event.
struct xpl_event_group {
    bool has_group, has_step_name, has_is_eager;
    bool is_eager;
    int64_t group_id;       // where upstream leaves several: the first, which its analysis reads
    int64_t shown_group_id; // the last, which viewers show
    xpl_str_t step_name;    // stat step_name: own stat of the event, or that of a user-defined root
};

// The group that viewers show of an event whose first is `group`: the last of several among its own
// stats.
int64_t xpl_groups_shown(const struct xpl_event *ev, int64_t group);

// Runs in parallel to an event cursor over one whole line: call next once per event, in file order.
struct xpl_group_cursor;
// In `arena`; one thread.
xpl_status_t xpl_group_cursor_new(const struct xpl_groups *g, const struct xpl_line *line,
                                  struct xpl_arena *arena, struct xpl_group_cursor **ret,
                                  struct xpl_error *err) XPL_NODISCARD;
// Like xpl_group_cursor_new, for xpl_events_begin_chunk(.., i): starts in the middle of the line.
// Only for lines for which xpl_groups_can_start_at_chunk is true; i == 0 always works.
xpl_status_t xpl_group_cursor_new_at(const struct xpl_groups *g, const struct xpl_line *line,
                                     uint32_t chunk, struct xpl_arena *arena,
                                     struct xpl_group_cursor **ret, struct xpl_error *err)
    XPL_NODISCARD;
bool xpl_groups_can_start_at_chunk(const struct xpl_groups *g, const struct xpl_line *line);
void xpl_group_cursor_next(struct xpl_group_cursor *c, const struct xpl_event *ev,
                           struct xpl_event_group *ret);
// From now on the relations of the events that it meets are collected, too; by one thread.
void xpl_group_cursor_relate(struct xpl_group_cursor *c);
// False when memory ran out on the way; results of next since then may lack groups.
bool xpl_group_cursor_ok(const struct xpl_group_cursor *c);

// A shortcut for most events, which do not need the cursor: they change nothing and have the group
// of the event before.  Valid until the next call to the cursor.
struct xpl_group_quick {
    bool on;        // otherwise every event needs the cursor
    bool stateless; // the cursor's result does not depend on earlier events
    bool has_group;
    int64_t group_id;
    uint64_t next_at;               // position of the next event that needs the cursor
    uint64_t begin, end;            // the event has to be inside of this
    const _Atomic uint8_t *special; // by event metadata: needs the cursor; NULL: none does
};
const struct xpl_group_quick *xpl_group_cursor_quick(const struct xpl_group_cursor *c);
// True when the event at position `at`, from begin to end, has the group of `q`, no step name, and
// does not have to be given to xpl_group_cursor_next.
static inline bool xpl_group_quick_knows(const struct xpl_group_quick *q, uint64_t at, uint32_t md,
                                         uint64_t begin, uint64_t end) {
    return q->on && at != q->next_at && q->begin <= begin && end <= q->end &&
           (!q->special || !atomic_load_explicit(&q->special[md], memory_order_relaxed));
}

// Events that upstream's preprocessing adds to lines of thread pools, one for each pair of
// ThreadpoolListener::StartRegion and StopRegion (name "ThreadpoolListener::Region", no type), if
// their enclosing event gives them a group.
struct xpl_region_event {
    int64_t begin_ps, duration_ps;
    int64_t group_id;
};
// Those that belong right before the event last given to next, in order (of a line that is out of
// order: all, before its first event).  Valid until the next call.
const struct xpl_region_event *xpl_group_cursor_regions(const struct xpl_group_cursor *c,
                                                        size_t *ret_n);

// True for a line on which upstream found a region and which its sort by time may change: a reader
// that depends on the order of a line's events needs the ranks, too.  Reads the line if its plane
// has regions at all.
bool xpl_groups_sorts_line(const struct xpl_groups *g, const struct xpl_line *line);
// (*ret)[i]: the place of event i of such a line in upstream's order; places of regions are left
// out, so the ranks have gaps.  In `arena`.
xpl_status_t xpl_groups_sorted_ranks(const struct xpl_groups *g, const struct xpl_line *line,
                                     struct xpl_arena *arena, uint64_t **ret, struct xpl_error *err)
    XPL_NODISCARD;

// All added events of a line, grouped or not, in the order of their ends in the file; group_id is
// 0.  In `arena`.  Upstream sorts the events of a line with regions: begin, longer first.
xpl_status_t xpl_groups_line_regions(const struct xpl_groups *g, const struct xpl_line *line,
                                     struct xpl_arena *arena, const struct xpl_region_event **ret,
                                     size_t *ret_n, struct xpl_error *err) XPL_NODISCARD;

// True when no event of the space has a group.
bool xpl_groups_empty(const struct xpl_groups *g);
// True for a profile that arrived grouped: upstream keeps its groups, and sorts no lines.
bool xpl_groups_arrived_grouped(const struct xpl_groups *g);
// Name of a group, "" when unknown ("train 3", ...).
xpl_str_t xpl_groups_name(const struct xpl_groups *g, int64_t group_id);
// The time of the event of the host that starts a group and gives it its name, such as an
// annotation.  False where no such event does.
bool xpl_groups_annotation(const struct xpl_groups *g, int64_t group_id, int64_t *ret_begin_ps,
                           int64_t *ret_duration_ps);

// Step events of a device plane after preprocessing: for a GPU plane the derived Steps line; for a
// TPU or SparseCore plane its own step line with equal neighbours merged and ungrouped ones removed
// (see group_events.cc).  Empty for other planes.
struct xpl_step_event {
    struct xpl_event ev; // the original event (first of a merged run); zero for derived ones
    const struct xpl_line *line; // its line; NULL for derived ones
    xpl_str_t name;              // event name: the decimal group id for derived ones
    xpl_str_t step_name;         // "" when absent
    bool has_group;
    bool is_merged; // several events merged into one
    int64_t group_id;
    int64_t begin_ps, duration_ps; // as XEventVisitor::GetTimespan sees it
    bool has_device_time;          // stats device_offset_ps and device_duration_ps
    int64_t device_offset_ps, device_duration_ps;
    bool has_idle_time;
    uint64_t step_idle_time_ps; // stat step_idle_time_ps, summed over a merged run
};
const struct xpl_step_event *xpl_groups_steps(const struct xpl_groups *g,
                                              const struct xpl_plane *plane, size_t *ret_n);
// Executions of programs on a TPU whose plane has no steps; neighbours of one group are merged.
const struct xpl_step_event *xpl_groups_modules(const struct xpl_groups *g,
                                                const struct xpl_plane *plane, size_t *ret_n);
// True when these are the recorded events of the step lines.
bool xpl_groups_steps_are_recorded(const struct xpl_groups *g, const struct xpl_plane *plane);
// True when `line` is the step line that xpl_groups_steps replaces: consumers read that instead.
bool xpl_groups_replaces_line(const struct xpl_groups *g, const struct xpl_line *line);

#endif
